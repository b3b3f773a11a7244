//! A b-tree written from keys that come in order, page by page from the left, each page full.
//!
//! In an index every entry stands once: those on a page with children separate the pages below. In a table all rows are on
//! leaves, and the pages above have a copy of the last row id of each child but the right-most. SQLite takes no page
//! without a cell other than the root. So an entry that no longer fits waits until the next one comes; where none comes,
//! the page before gives it a companion.

use super::page::{Kind, Page};
use super::page_file::PageFile;
use super::record::put_varint;
use crate::error::Result;

/// An index in the making.
#[derive(Debug)]
pub(super) struct IndexTree {
    leaves: Level,
}

impl IndexTree {
    pub(super) fn new(page_size: usize) -> Self {
        Self { leaves: Level::new(Kind::IndexLeaf, page_size) }
    }

    /// Adds an entry, which is above those before.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn add(&mut self, cell: &[u8], pages: &mut PageFile) -> Result<()> {
        self.leaves.add(cell, pages)
    }

    /// Writes the rest, and page `root`, where SQLite looks for the tree.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn finish(self, root: u32, pages: &mut PageFile) -> Result<()> {
        self.leaves.finish(None, root, pages)
    }
}

/// A table in the making.
#[derive(Debug)]
pub(super) struct TableTree {
    leaves: Level,
    /// The last row.
    last: i64,
}

impl TableTree {
    pub(super) fn new(page_size: usize) -> Self {
        Self { leaves: Level::new(Kind::TableLeaf, page_size), last: 0 }
    }

    /// Adds a row, whose number is above those before.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn add(&mut self, id: i64, cell: &[u8], pages: &mut PageFile) -> Result<()> {
        if !self.leaves.page.has_room(cell.len()) {
            let mut key = Vec::new();
            put_varint(&mut key, self.last.cast_unsigned());
            self.leaves.close(None, &key, pages)?;
        }
        self.leaves.page.push(cell);
        self.last = id;
        Ok(())
    }

    /// Writes the rest, and page `root`, where SQLite looks for the tree.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn finish(self, root: u32, pages: &mut PageFile) -> Result<()> {
        self.leaves.finish(None, root, pages)
    }
}

/// The pages at one height of a tree, of which only the last is not written. A cell of a page with children begins with
/// the number of the child before its key.
#[derive(Debug)]
struct Level {
    page: Page,
    /// A cell that does not fit on the page.
    waiting: Option<Vec<u8>>,
    above: Option<Box<Level>>,
}

impl Level {
    fn new(kind: Kind, page_size: usize) -> Self {
        Self { page: Page::new(kind, page_size), waiting: None, above: None }
    }

    fn add(&mut self, cell: &[u8], pages: &mut PageFile) -> Result<()> {
        if let Some(divider) = self.waiting.take() {
            self.close_with(&divider, pages)?;
        } else if !self.page.has_room(cell.len()) {
            self.waiting = Some(cell.to_owned());
            return Ok(());
        }
        self.page.push(cell);
        Ok(())
    }

    /// Ends the page before a cell that goes one level up, and leaves the child that the cell has.
    fn close_with(&mut self, divider: &[u8], pages: &mut PageFile) -> Result<()> {
        match divider.split_first_chunk() {
            Some((child, key)) if !self.page.kind().is_leaf() => {
                self.close(Some(u32::from_be_bytes(*child)), key, pages)
            }
            _ => self.close(None, divider, pages),
        }
    }

    /// Ends the page, above all of whose keys but no others is `key`.
    fn close(&mut self, right: Option<u32>, key: &[u8], pages: &mut PageFile) -> Result<()> {
        let number = pages.append(|out| self.page.write(right, out))?;
        let mut cell = number.to_be_bytes().to_vec();
        cell.extend_from_slice(key);
        let (kind, size) = (self.page.kind().above(), self.page.size());
        self.above.get_or_insert_with(|| Box::new(Self::new(kind, size))).add(&cell, pages)
    }

    /// Writes the last page of this level and of those above; the last page of all is the root.
    fn finish(mut self, right: Option<u32>, root: u32, pages: &mut PageFile) -> Result<()> {
        if let Some(waiting) = self.waiting.take() {
            // Four cells fit on any page.
            if let Some(divider) = self.page.pop() {
                self.close_with(&divider, pages)?;
            }
            self.page.push(&waiting);
        }
        let Some(above) = self.above.take() else {
            let mut page = Vec::with_capacity(self.page.size());
            self.page.write(right, &mut page);
            return pages.replace(root, &page);
        };
        let number = pages.append(|out| self.page.write(right, out))?;
        above.finish(Some(number), root, pages)
    }
}
