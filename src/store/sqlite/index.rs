//! An index of a table that is written directly, gathered while the rows come.
//!
//! Entries stand in the order of their values, then of their rows; NULL comes first, texts in the order of their bytes.

use arrow::array::RecordBatch;

use super::ACTION;
use super::cell::CellWriter;
use super::groups::Groups;
use super::keys::{Key, KeyColumn, Keys, Kind, Texts};
use super::page_file::PageFile;
use super::record::{Mark, Record};
use super::tree::IndexTree;
use super::values::Values;
use crate::error::{Error, Result};
use crate::schema::Table;
use crate::store::parquet::sorted_by;

/// An index in the making.
#[derive(Debug)]
pub(super) struct Index {
    name: &'static str,
    columns: Vec<KeyColumn>,
    texts: Texts,
    entries: Entries,
}

/// The entries so far.
#[derive(Debug)]
enum Entries {
    /// Rows come in the order of the index: the pages are written as they fill.
    Ordered(Ordered),
    /// Rows come in any order.
    Grouped(Groups),
    /// SQLite makes the index: it sorts with little memory, and takes longer.
    Left,
}

impl Index {
    /// The index called `name` over `columns`, which are separated by commas.
    pub(super) fn new(table: &Table, name: &'static str, columns: &'static str, page_size: usize) -> Self {
        let columns = KeyColumn::of(table, columns).unwrap_or_default();
        let is_ordered = columns.iter().map(|column| column.name).eq(sorted_by(table).iter().copied())
            && columns.iter().all(|column| column.kind == Kind::Integer);
        let entries = match columns.as_slice() {
            [] => Entries::Left,
            _ if is_ordered => Entries::Ordered(Ordered::new(page_size)),
            _ => Entries::Grouped(Groups::default()),
        };
        Self { name, columns, texts: Texts::default(), entries }
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether SQLite has to make it when the rows are there.
    pub(super) fn is_left(&self) -> bool {
        matches!(self.entries, Entries::Left)
    }

    /// Adds the rows of `batch`, whose numbers are `ids`.
    ///
    /// # Errors
    /// The disk is full, or the rows are not in the order they are said to be in.
    pub(super) fn add(&mut self, batch: &RecordBatch, ids: &[i64], pages: &mut PageFile) -> Result<()> {
        if self.is_left() {
            return Ok(());
        }
        let columns = self.columns.iter().map(|column| Values::of(batch, column.name));
        let columns: Vec<Values<'_>> =
            columns.collect::<Result<_, _>>().map_err(Error::store(pages.path(), ACTION))?;
        let keys = Keys::new(&columns, &mut self.texts);
        let mut rows = ids.iter().enumerate().map(|(row, id)| (keys.at(row), *id));
        match &mut self.entries {
            Entries::Ordered(ordered) => {
                for (key, id) in rows {
                    if ordered.last.is_some_and(|last| key < last) {
                        return Err(self.out_of_order(pages));
                    }
                    if ordered.last.replace(key) != Some(key) {
                        ordered.writer.begin(|record| self.texts.put(&self.columns, &key, record));
                    }
                    ordered.writer.add(id, pages)?;
                }
            }
            Entries::Grouped(groups) => {
                let are_few = self.texts.are_small() && rows.all(|(key, id)| groups.add(key, id).is_ok());
                if !are_few {
                    (self.entries, self.texts) = (Entries::Left, Texts::default());
                }
            }
            Entries::Left => {}
        }
        Ok(())
    }

    fn out_of_order(&self, pages: &PageFile) -> Error {
        Error::store(pages.path(), ACTION)(format!("the rows are not in the order of index `{}`", self.name))
    }

    /// Writes the rest of its pages; page `root` is where SQLite looks for it.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn finish(self, root: u32, pages: &mut PageFile) -> Result<()> {
        let Self { columns, texts, entries, .. } = self;
        match entries {
            Entries::Left => Ok(()),
            Entries::Ordered(ordered) => ordered.writer.tree.finish(root, pages),
            Entries::Grouped(groups) => {
                let mut writer = Writer::new(pages.page_size());
                for group in groups.sorted(|one, other| texts.compare(&columns, one, other)) {
                    writer.begin(|record| texts.put(&columns, &group.key, record));
                    group.rows().try_for_each(|id| writer.add(id, pages))?;
                }
                writer.tree.finish(root, pages)
            }
        }
    }
}

/// An index whose rows come in its order.
#[derive(Debug)]
struct Ordered {
    writer: Writer,
    last: Option<Key>,
}

impl Ordered {
    fn new(page_size: usize) -> Self {
        Self { writer: Writer::new(page_size), last: None }
    }
}

/// Writes entries: a record of the values of the key and of the row's number.
#[derive(Debug)]
struct Writer {
    tree: IndexTree,
    cells: CellWriter,
    record: Record,
    /// Where the key ends in the record.
    end: Mark,
}

impl Writer {
    fn new(page_size: usize) -> Self {
        let record = Record::default();
        let end = record.mark();
        Self { tree: IndexTree::new(page_size), cells: CellWriter::default(), record, end }
    }

    /// Goes on to the next key.
    fn begin(&mut self, put: impl FnOnce(&mut Record)) {
        self.record.clear();
        put(&mut self.record);
        self.end = self.record.mark();
    }

    /// Adds a row with the key.
    fn add(&mut self, id: i64, pages: &mut PageFile) -> Result<()> {
        self.record.back_to(self.end);
        self.record.integer(id);
        self.tree.add(self.cells.entry(&self.record, pages)?, pages)
    }
}
