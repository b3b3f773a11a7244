//! Columns on their way to a second reading: in memory while they are few, in a file without a name once they are not.
//!
//! What is spooled is the bytes of the columns; writing and reading them back costs a copy and nothing else.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use arrow::buffer::{Buffer, MutableBuffer};

use super::narrow::{Form, Narrow};
use crate::error::{Error, Result};

/// Chunks of columns, read in any order.
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
    Memory(Vec<Narrow>),
    Disk { offset: u64, forms: Vec<Form> },
}

impl Spool {
    /// An empty spool that makes a file in `dir` for what goes beyond `limit` bytes.
    pub(super) fn new(dir: &Path, limit: usize) -> Self {
        Self { dir: dir.to_owned(), limit, held: 0, chunks: Vec::new(), file: None }
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, columns: Vec<Narrow>) -> Result<()> {
        let bytes = columns.iter().map(|column| column.form().bytes()).sum::<usize>();
        let held = self.held.saturating_add(bytes);
        let chunk = if held <= self.limit {
            self.held = held;
            Chunk::Memory(columns)
        } else {
            self.spill(&columns)?
        };
        self.chunks.push(chunk);
        Ok(())
    }

    fn spill(&mut self, columns: &[Narrow]) -> Result<Chunk> {
        let failed = || Error::io(&self.dir, "cannot write a temporary file in it");
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert((tempfile::tempfile_in(&self.dir).map_err(failed())?, 0)),
        };
        let offset = file.1;
        write_together(&mut file.0, columns).map_err(failed())?;
        for column in columns {
            file.1 = file.1.saturating_add(u64::try_from(column.form().bytes()).unwrap_or(u64::MAX));
        }
        Ok(Chunk::Disk { offset, forms: columns.iter().map(Narrow::form).collect() })
    }

    /// Chunks so far.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The columns of a chunk; none for a chunk that was never pushed.
    pub(super) fn get(&self, index: usize) -> Result<Vec<Narrow>> {
        match (self.chunks.get(index), &self.file) {
            (Some(Chunk::Memory(columns)), _) => Ok(columns.clone()),
            (Some(Chunk::Disk { offset, forms }), Some((file, _))) => {
                let mut at = *offset;
                forms
                    .iter()
                    .map(|form| {
                        let mut buffer = MutableBuffer::from_len_zeroed(form.bytes());
                        file.read_exact_at(buffer.as_slice_mut(), at)
                            .map_err(Error::io(&self.dir, "cannot read a temporary file in it"))?;
                        at = at.saturating_add(u64::try_from(form.bytes()).unwrap_or(u64::MAX));
                        Ok(Narrow::read(*form, Buffer::from(buffer)))
                    })
                    .collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// Writes columns where the file ends. In one call: the system keeps what comes together in larger pieces, and what it does for
/// a piece hardly depends on its size.
fn write_together(file: &mut File, columns: &[Narrow]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = columns.iter().map(|column| IoSlice::new(column.buffer())).collect();
    let mut rest = slices.as_mut_slice();
    // Columns without bytes are passed over, so that 0 bytes written are a failure.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut rest, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_what_went_in_from_memory_and_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for limit in [0, 24, 1 << 20] {
            let mut spool = Spool::new(dir.path(), limit);
            let values = |first: i64| [vec![first, first + (1 << 50)], vec![7, 7, 7], vec![]];
            let chunk = |first| values(first).map(|column| Narrow::of(column.into_iter())).to_vec();
            for first in 0..5 {
                spool.push(chunk(first)).unwrap();
            }
            assert_eq!(spool.len(), 5);
            for first in [4, 0, 2, 1, 3] {
                let columns = spool.get(usize::try_from(first).unwrap()).unwrap();
                let read: Vec<_> = columns.iter().map(|column| column.integers().to_vec()).collect();
                assert_eq!(read, values(first), "limit {limit}");
            }
            assert!(spool.get(5).unwrap().is_empty());
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
        }
    }
}
