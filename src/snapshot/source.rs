//! The file on its way to the machine: counted, hashed and reported as it passes.

use std::cell::Cell;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::{Progress, stacks::hex};

/// A reader that counts, hashes if that is wanted, and reports.
pub(super) struct Source<'a, R> {
    input: R,
    digest: Option<Sha256>,
    bytes: u64,
    progress: &'a dyn Progress,
    events: &'a Cell<u64>,
}

impl<'a, R: Read> Source<'a, R> {
    pub(super) fn new(
        input: R,
        digest: Option<Sha256>,
        progress: &'a dyn Progress,
        events: &'a Cell<u64>,
    ) -> Self {
        Self { input, digest, bytes: 0, progress, events }
    }

    /// Bytes that have passed.
    pub(super) fn passed(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of what has passed, in hexadecimal, if it was wanted.
    pub(super) fn sha256(self) -> Option<String> {
        self.digest.map(|digest| hex(&digest.finalize()))
    }
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let fresh = buffer.get(..count).unwrap_or_default();
        if let Some(digest) = &mut self.digest {
            digest.update(fresh);
        }
        self.bytes += u64::try_from(count).unwrap_or(u64::MAX);
        self.progress.advance(self.bytes, self.events.get());
        Ok(count)
    }
}
