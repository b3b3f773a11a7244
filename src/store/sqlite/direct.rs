//! A table whose pages are written without SQLite, which takes several times as long for each row.
//!
//! SQLite makes the table and its indexes while it sees no rows in them; the pages hang in the air until
//! [`finish`](DirectTable::finish) puts their roots in the places that SQLite chose. This is for tables whose first
//! column is the number of the row: SQLite keeps it beside the record, in which it is NULL.

use arrow::array::RecordBatch;

use super::ACTION;
use super::cell::CellWriter;
use super::index::Index;
use super::page_file::PageFile;
use super::record::Record;
use super::tree::TableTree;
use super::values::Values;
use crate::error::{Error, Result};
use crate::schema::Table;

/// A table in the making.
#[derive(Debug)]
pub(super) struct DirectTable {
    table: &'static Table,
    tree: TableTree,
    last: Option<i64>,
    record: Record,
    cells: CellWriter,
    indexes: Vec<Index>,
}

impl DirectTable {
    /// `table` without its indexes.
    pub(super) fn new(table: &'static Table, page_size: usize) -> Self {
        Self {
            table,
            tree: TableTree::new(page_size),
            last: None,
            record: Record::default(),
            cells: CellWriter::default(),
            indexes: Vec::new(),
        }
    }

    /// The table with its indexes.
    pub(super) fn with_indexes(self, page_size: usize) -> Self {
        let indexes = self.table.indexes.iter();
        let indexes =
            indexes.map(|(name, columns)| Index::new(self.table, name, columns, page_size)).collect();
        Self { indexes, ..self }
    }

    /// The table.
    pub(super) fn table(&self) -> &'static Table {
        self.table
    }

    /// Names of the indexes that SQLite has to make when the rows are there.
    pub(super) fn left_indexes(&self) -> impl Iterator<Item = &'static str> {
        self.indexes.iter().filter(|index| index.is_left()).map(Index::name)
    }

    /// Adds rows, whose numbers are above those before.
    ///
    /// # Errors
    /// The disk is full, or rows are out of order.
    pub(super) fn add(&mut self, batch: &RecordBatch, pages: &mut PageFile) -> Result<()> {
        let columns = Values::of_table(self.table, batch).map_err(Error::store(pages.path(), ACTION))?;
        let Some((Values::Integer(ids), values)) = columns.split_first() else {
            return Err(self.unfit(pages, "have no number"));
        };
        for (row, id) in ids.values().iter().enumerate() {
            if self.last.replace(*id).is_some_and(|last| last >= *id) {
                return Err(self.unfit(pages, "are not in the order of their numbers"));
            }
            self.record.clear();
            self.record.null();
            for values in values {
                values.put(row, &mut self.record);
            }
            self.tree.add(*id, self.cells.row(*id, &self.record, pages)?, pages)?;
        }
        self.indexes.iter_mut().try_for_each(|index| index.add(batch, ids.values(), pages))
    }

    /// Writes the rest, and puts the roots of table and indexes where `root` says that SQLite looks for them, by name.
    ///
    /// # Errors
    /// The disk is full, or `root` fails.
    pub(super) fn finish(self, root: impl Fn(&str) -> Result<u32>, pages: &mut PageFile) -> Result<()> {
        self.tree.finish(root(self.table.name)?, pages)?;
        self.indexes.into_iter().filter(|index| !index.is_left()).try_for_each(|index| {
            let root = root(index.name())?;
            index.finish(root, pages)
        })
    }

    fn unfit(&self, pages: &PageFile, reason: &str) -> Error {
        Error::store(pages.path(), ACTION)(format!("rows of `{}` {reason}", self.table.name))
    }
}
