//! The file on its way to the machine: counted, hashed and reported as it passes.

use std::cell::Cell;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::{Progress, stacks::hex};

/// A reader that counts, hashes and reports.
pub(super) struct Source<'a, R> {
    input: R,
    digest: Sha256,
    bytes: u64,
    progress: &'a dyn Progress,
    events: &'a Cell<u64>,
}

impl<'a, R: Read> Source<'a, R> {
    pub(super) fn new(input: R, progress: &'a dyn Progress, events: &'a Cell<u64>) -> Self {
        Self { input, digest: Sha256::new(), bytes: 0, progress, events }
    }

    /// Bytes that have passed.
    pub(super) fn passed(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of what has passed, in hexadecimal.
    pub(super) fn sha256(self) -> String {
        hex(&self.digest.finalize())
    }
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let fresh = buffer.get(..count).unwrap_or_default();
        self.digest.update(fresh);
        self.bytes += u64::try_from(count).unwrap_or(u64::MAX);
        self.progress.advance(self.bytes, self.events.get());
        Ok(count)
    }
}
