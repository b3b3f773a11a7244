//! The only code that moves the offset: a window over the input.
//!
//! No mapping: a file that shrinks while it is read must end in an error, not in a signal, and pipes and compressed files
//! go the same way. The window grows only for a single argument that is larger than it, and only as fast as bytes
//! arrive, so a length that lies costs no memory.

use std::io::{self, Read};

use super::error::PickleErrorKind;

/// Bytes read at once, and what the window holds unless one argument is larger. They are copied, hashed and decoded, so that
/// they should stay in the second-level cache beside what the decoder remembers.
const WINDOW: usize = 1 << 17;

/// Bounds-checked cursor over an input of any size.
pub(crate) struct Reader<R> {
    input: R,
    /// `buffer[start..end]` is read but not consumed.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[0]` in the input.
    base: u64,
    /// Length of the input, where it is known.
    length: Option<u64>,
    at_end: bool,
}

fn wide(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(input: R, length: Option<u64>) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, base: 0, length, at_end: false }
    }

    /// Offset of the next byte.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + wide(self.start)
    }

    /// Bytes the window can hold without growing.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// What is read but not consumed. Empty does not mean the end: ask [`fill`](Self::fill) first.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Consumes `count` bytes of the window.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count));
    }

    /// Makes the window at least `count` bytes long, or as long as the input allows. Says whether it is.
    pub(crate) fn fill(&mut self, count: usize) -> Result<bool, PickleErrorKind> {
        while self.end - self.start < count {
            if self.at_end {
                return Ok(false);
            }
            self.read_more().map_err(PickleErrorKind::Io)?;
        }
        Ok(true)
    }

    /// Moves the rest to the front and reads once behind it. A window that one argument fills is doubled.
    fn read_more(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += wide(self.start);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // A small file needs no large window; one byte more than it has finds its end.
            let first = self.length.and_then(|length| usize::try_from(length).ok()).unwrap_or(WINDOW);
            let least = first.saturating_add(1).min(WINDOW);
            let grown = self.buffer.len().saturating_mul(2).max(least);
            self.buffer.resize(grown, 0);
        }
        let space = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.input.read(space) {
            Ok(0) => self.at_end = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The next `count` bytes, consumed; `inside` names what they belong to.
    #[inline]
    pub(crate) fn take(&mut self, count: usize, inside: &'static str) -> Result<&[u8], PickleErrorKind> {
        if self.end - self.start < count {
            self.require(count, inside)?;
        }
        let from = self.start;
        self.start += count;
        Ok(self.buffer.get(from..self.start).unwrap_or_default())
    }

    #[cold]
    fn require(&mut self, count: usize, inside: &'static str) -> Result<(), PickleErrorKind> {
        if let Some(length) = self.length {
            let remaining = length.saturating_sub(self.offset());
            if wide(count) > remaining {
                return Err(PickleErrorKind::BeyondEnd { inside, claimed: wide(count), remaining });
            }
        }
        if self.fill(count)? { Ok(()) } else { Err(PickleErrorKind::Truncated { inside }) }
    }

    /// The next `N` bytes, consumed.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, inside: &'static str) -> Result<[u8; N], PickleErrorKind> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N, inside)?);
        Ok(bytes)
    }

    /// The next byte; `None` at the end of the input.
    #[inline]
    pub(crate) fn opcode(&mut self) -> Result<Option<u8>, PickleErrorKind> {
        if self.start == self.end && !self.fill(1)? {
            return Ok(None);
        }
        let byte = self.buffer.get(self.start).copied();
        self.start += 1;
        Ok(byte)
    }

    /// The bytes up to the next line feed, both consumed; the line feed is not returned.
    pub(crate) fn line(&mut self, limit: usize, inside: &'static str) -> Result<&[u8], PickleErrorKind> {
        let mut searched = 0;
        loop {
            let fresh = self.window().get(searched..).unwrap_or_default();
            if let Some(found) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.take(searched + found + 1, inside)?;
                return Ok(line.split_last().map_or(line, |(_, line)| line));
            }
            searched = self.window().len();
            if searched > limit {
                let limit = wide(limit);
                return Err(PickleErrorKind::LimitExceeded { of: "bytes in one line", limit });
            }
            self.require(searched + 1, inside)?;
        }
    }

    /// Consumes `count` bytes without keeping them.
    pub(crate) fn skip(&mut self, count: u64, inside: &'static str) -> Result<(), PickleErrorKind> {
        if let Some(length) = self.length {
            let remaining = length.saturating_sub(self.offset());
            if count > remaining {
                return Err(PickleErrorKind::BeyondEnd { inside, claimed: count, remaining });
            }
        }
        let mut left = count;
        while left > 0 {
            if self.window().is_empty() {
                self.require(1, inside)?;
            }
            let step = left.min(wide(self.window().len()));
            self.consume(usize::try_from(step).unwrap_or(usize::MAX));
            left -= step;
        }
        Ok(())
    }

    /// Reads to the end of the input and says how many of the remaining bytes are not zero.
    pub(crate) fn drain(&mut self) -> Result<u64, PickleErrorKind> {
        let mut odd = 0;
        loop {
            odd += wide(self.window().iter().filter(|byte| **byte != 0).count());
            self.consume(usize::MAX);
            if !self.fill(1)? {
                return Ok(odd);
            }
        }
    }
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("base", &self.base).field("start", &self.start).finish_non_exhaustive()
    }
}
