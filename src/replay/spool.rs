//! Columns on their way to a second reading: in memory while they are few, in a file without a name once they are not.
//!
//! What is spooled is the buffers themselves; writing and reading them back costs a copy and nothing else.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use arrow::buffer::{Buffer, MutableBuffer};

use crate::error::{Error, Result};

/// Chunks of buffers, read in any order.
#[derive(Debug)]
pub(super) struct Spool {
    dir: PathBuf,
    /// Bytes that may stay in memory.
    limit: usize,
    held: usize,
    chunks: Vec<Chunk>,
    /// The file and where it ends. It has no name, so that nothing is left of it however the program ends.
    file: Option<(File, u64)>,
}

#[derive(Debug)]
enum Chunk {
    Memory(Vec<Buffer>),
    Disk { offset: u64, lengths: Vec<usize> },
}

impl Spool {
    /// An empty spool that makes its file in `dir` once it holds more than `limit` bytes.
    pub(super) fn new(dir: &Path, limit: usize) -> Self {
        Self { dir: dir.to_owned(), limit, held: 0, chunks: Vec::new(), file: None }
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, parts: Vec<Buffer>) -> Result<()> {
        self.held = self.held.saturating_add(parts.iter().map(Buffer::len).sum());
        self.chunks.push(Chunk::Memory(parts));
        if self.held <= self.limit {
            return Ok(());
        }
        // From the first that is too many on, each goes to the file at once.
        let first = if self.file.is_some() { self.chunks.len().saturating_sub(1) } else { 0 };
        for index in first..self.chunks.len() {
            self.spill(index)?;
        }
        Ok(())
    }

    fn spill(&mut self, index: usize) -> Result<()> {
        let failed = || Error::io(&self.dir, "cannot write a temporary file in it");
        let Some(chunk) = self.chunks.get_mut(index) else { return Ok(()) };
        let Chunk::Memory(parts) = chunk else { return Ok(()) };
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert((tempfile::tempfile_in(&self.dir).map_err(failed())?, 0)),
        };
        let offset = file.1;
        for part in parts.iter() {
            file.0.write_all_at(part, file.1).map_err(failed())?;
            file.1 = file.1.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        }
        *chunk = Chunk::Disk { offset, lengths: parts.iter().map(Buffer::len).collect() };
        Ok(())
    }

    /// Chunks so far.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The buffers of a chunk; none for a chunk that was never pushed.
    pub(super) fn get(&self, index: usize) -> Result<Vec<Buffer>> {
        match (self.chunks.get(index), &self.file) {
            (Some(Chunk::Memory(parts)), _) => Ok(parts.clone()),
            (Some(Chunk::Disk { offset, lengths }), Some((file, _))) => {
                let mut at = *offset;
                lengths
                    .iter()
                    .map(|length| {
                        let mut buffer = MutableBuffer::from_len_zeroed(*length);
                        file.read_exact_at(buffer.as_slice_mut(), at)
                            .map_err(Error::io(&self.dir, "cannot read a temporary file in it"))?;
                        at = at.saturating_add(u64::try_from(*length).unwrap_or(u64::MAX));
                        Ok(Buffer::from(buffer))
                    })
                    .collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_what_went_in_from_memory_and_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for limit in [0, 24, 1 << 20] {
            let mut spool = Spool::new(dir.path(), limit);
            let chunk =
                |first: i64| vec![Buffer::from_vec(vec![first, first + 1]), Buffer::from_vec(vec![7_u8])];
            for first in 0..5 {
                spool.push(chunk(first)).unwrap();
            }
            assert_eq!(spool.len(), 5);
            for first in [4, 0, 2, 1, 3] {
                assert_eq!(
                    spool.get(usize::try_from(first).unwrap()).unwrap(),
                    chunk(first),
                    "limit {limit}"
                );
            }
            assert!(spool.get(5).unwrap().is_empty());
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
        }
    }
}
