//! A record becomes a cell of a leaf: its length, the number of the row in a table, and the record, or as much of it as
//! may stand on a page of a tree. The rest is on overflow pages, and the cell ends with the number of the first.

use super::page_file::PageFile;
use super::record::{Record, count, put_varint};
use crate::error::Result;

/// Makes cells in the same memory again and again.
#[derive(Debug, Default)]
pub(super) struct CellWriter {
    cell: Vec<u8>,
    record: Vec<u8>,
}

impl CellWriter {
    /// The cell of row `id`.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn row(&mut self, id: i64, record: &Record, pages: &mut PageFile) -> Result<&[u8]> {
        self.begin(record);
        put_varint(&mut self.cell, id.cast_unsigned());
        self.put(record, pages.page_size() - 35, pages)
    }

    /// The cell of an index entry.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn entry(&mut self, record: &Record, pages: &mut PageFile) -> Result<&[u8]> {
        self.begin(record);
        // So that four of them fit on a page.
        self.put(record, (pages.page_size() - 12) * 64 / 255 - 23, pages)
    }

    fn begin(&mut self, record: &Record) {
        self.cell.clear();
        put_varint(&mut self.cell, count(record.len()));
    }

    /// Puts the record behind what there is, up to `most` bytes of it.
    fn put(&mut self, record: &Record, most: usize, pages: &mut PageFile) -> Result<&[u8]> {
        if record.len() <= most {
            record.write(&mut self.cell);
            return Ok(&self.cell);
        }
        self.record.clear();
        record.write(&mut self.record);
        let (local, rest) = self.record.split_at(local(record.len(), most, pages.page_size()));
        let first = pages.append_overflow(rest)?;
        self.cell.extend_from_slice(local);
        self.cell.extend_from_slice(&first.to_be_bytes());
        Ok(&self.cell)
    }
}

/// Bytes of a long record that stand in its cell: as many as leave the last overflow page full, if that is not more than
/// `most`, else the least there may be.
fn local(length: usize, most: usize, page_size: usize) -> usize {
    let least = (page_size - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (page_size - 4);
    if fitting <= most { fitting } else { least }
}
