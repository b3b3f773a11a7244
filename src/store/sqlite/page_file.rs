//! The database file as a row of pages, to which pages are added behind those that SQLite wrote.
//!
//! SQLite and the page file take turns. Before SQLite's turn the header says how many pages there are
//! ([`publish`](PageFile::publish)), after it the header tells how many there are by then ([`adopt`](PageFile::adopt)).
//! Pages are numbered from 1, and page 1 begins with the header. The page that holds byte 2^30 of the file is never
//! used: that byte is what SQLite locks.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::ACTION;
use crate::error::{Error, Result};

/// Bytes of pages that are written at a time.
const RUN: usize = 256 << 10;

/// Byte of the file that SQLite locks.
const LOCK_BYTE: u32 = 1 << 30;

// Places of header fields; all are big-endian.
const PAGE_SIZE: u64 = 16;
const CHANGE_COUNTER: u64 = 24;
const PAGE_COUNT: u64 = 28;
/// The change counter for which the number of pages was written.
const VALID_FOR: u64 = 92;

/// A database file that grows by pages.
#[derive(Debug)]
pub(super) struct PageFile {
    path: PathBuf,
    file: File,
    page_size: u16,
    /// Number of the last page.
    count: u32,
    /// The last pages, not written yet.
    waiting: Vec<u8>,
    /// Whether pages were added since SQLite's turn.
    has_grown: bool,
}

impl PageFile {
    /// Opens the database at `path`, which SQLite made.
    ///
    /// # Errors
    /// It cannot be read, or its pages are of a size that no database of npusnap has.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(Error::io(path, "cannot open"))?;
        let mut size = [0; 2];
        file.read_exact_at(&mut size, PAGE_SIZE).map_err(Error::io(path, "cannot read"))?;
        let page_size = u16::from_be_bytes(size);
        // 1 stands for 65536, which SQLite takes only if it is told to.
        if page_size < 512 {
            return Err(Error::store::<&str>(path, ACTION)("its pages are too large"));
        }
        let mut pages = Self {
            path: path.to_owned(),
            file,
            page_size,
            count: 0,
            waiting: Vec::with_capacity(RUN + usize::from(page_size)),
            has_grown: false,
        };
        pages.adopt()?;
        Ok(pages)
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of a page.
    pub(super) fn page_size(&self) -> usize {
        usize::from(self.page_size)
    }

    /// Adds a page, whose bytes `fill` appends, and gives its number.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<u32> {
        let number = self.after(self.count)?;
        if self.waiting.len() >= RUN || number != self.count.saturating_add(1) {
            self.flush()?;
        }
        let end = self.waiting.len() + self.page_size();
        fill(&mut self.waiting);
        self.waiting.resize(end, 0);
        self.count = number;
        self.has_grown = true;
        Ok(number)
    }

    /// Adds the end of a record that does not fit on its own page, as a chain of overflow pages: each begins with the
    /// number of the next, 0 on the last. Gives the number of the first.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn append_overflow(&mut self, rest: &[u8]) -> Result<u32> {
        let first = self.after(self.count)?;
        let mut chunks = rest.chunks(self.page_size() - 4).peekable();
        while let Some(chunk) = chunks.next() {
            let own = self.after(self.count)?;
            let next = if chunks.peek().is_some() { self.after(own)? } else { 0 };
            self.append(|page| {
                page.extend_from_slice(&next.to_be_bytes());
                page.extend_from_slice(chunk);
            })?;
        }
        Ok(first)
    }

    /// Puts `page` in the place of page `number`, which SQLite made.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn replace(&mut self, number: u32, page: &[u8]) -> Result<()> {
        self.has_grown = true;
        self.write(number.saturating_sub(1), page)
    }

    /// Writes what waits and makes the header say so: it is SQLite's turn.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn publish(&mut self) -> Result<()> {
        if !self.has_grown {
            return Ok(());
        }
        self.flush()?;
        let change = self.field(CHANGE_COUNTER)?.wrapping_add(1);
        let fields = [(CHANGE_COUNTER, change), (PAGE_COUNT, self.count), (VALID_FOR, change)];
        for (place, value) in fields {
            self.file.write_all_at(&value.to_be_bytes(), place).map_err(self.unwritten())?;
        }
        self.has_grown = false;
        Ok(())
    }

    /// Learns how many pages there are after SQLite's turn.
    ///
    /// # Errors
    /// The header cannot be read.
    pub(super) fn adopt(&mut self) -> Result<()> {
        self.count = self.field(PAGE_COUNT)?;
        Ok(())
    }

    fn field(&self, place: u64) -> Result<u32> {
        let mut field = [0; 4];
        self.file.read_exact_at(&mut field, place).map_err(Error::io(&self.path, "cannot read"))?;
        Ok(u32::from_be_bytes(field))
    }

    /// The number of the page behind page `number`.
    fn after(&self, number: u32) -> Result<u32> {
        let lock = LOCK_BYTE / u32::from(self.page_size) + 1;
        let next = number.checked_add(1).map(|next| if next == lock { lock + 1 } else { next });
        // SQLite numbers pages up to 2^32 - 2.
        next.filter(|next| *next < u32::MAX)
            .ok_or_else(|| Error::store::<&str>(&self.path, ACTION)("it has too many pages"))
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let pages = u32::try_from(waiting.len() / self.page_size()).unwrap_or_default();
        self.write(self.count.saturating_sub(pages), &waiting)?;
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }

    /// Writes pages behind the first `before` ones.
    fn write(&self, before: u32, pages: &[u8]) -> Result<()> {
        let offset = u64::from(before) * u64::from(self.page_size);
        self.file.write_all_at(pages, offset).map_err(self.unwritten())
    }

    fn unwritten(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io(&self.path, "cannot write")
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn the_page_with_the_byte_that_is_locked_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        let mut pages = PageFile::open(&path).unwrap();
        let lock = (1 << 30) / 4096 + 1;
        pages.count = lock - 3;
        let page = |mark: u8| move |page: &mut Vec<u8>| page.push(mark);
        assert_eq!(pages.append(page(1)).unwrap(), lock - 2);
        assert_eq!(pages.append_overflow(&[7; 4092 + 4092 + 1]).unwrap(), lock - 1);
        assert_eq!(pages.append(page(2)).unwrap(), lock + 3);
        pages.publish().unwrap();
        let read = |number: u32| {
            let mut start = [0; 5];
            pages.file.read_exact_at(&mut start, u64::from(number - 1) * 4096).unwrap();
            (u32::from_be_bytes([start[0], start[1], start[2], start[3]]), start[4])
        };
        assert_eq!(read(lock - 2), (1 << 24, 0));
        assert_eq!(read(lock - 1), (lock + 1, 7));
        assert_eq!(read(lock), (0, 0));
        assert_eq!(read(lock + 1), (lock + 2, 7));
        assert_eq!(read(lock + 2), (0, 7));
        assert_eq!(read(lock + 3), (2 << 24, 0));
        // SQLite counts as we do.
        let connection = Connection::open(&path).unwrap();
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
        assert_eq!(count("PRAGMA page_count"), lock + 3);
    }
}
