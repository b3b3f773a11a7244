//! Rows of a small file wait until its end is reached, so that it can be read once more in another way.

use std::cell::Cell;

use arrow::record_batch::RecordBatch;

use super::RowSink;
use crate::error::Result;
use crate::schema::Table;

/// Bytes of rows that wait. A small file may be a packed one, whose rows are many.
const MOST_BYTES: usize = 64 << 20;

/// A sink that holds rows back.
pub(super) struct Held<'s, 'c> {
    sink: Option<&'s mut dyn RowSink>,
    rows: Vec<(&'static Table, RecordBatch)>,
    bytes: usize,
    /// Whether rows have left. They cannot be taken back.
    has_left: &'c Cell<bool>,
}

impl<'s, 'c> Held<'s, 'c> {
    /// Holds rows on their way to `sink`, if they are wanted, and says in `has_left` when there are too many.
    pub(super) fn new(sink: Option<&'s mut dyn RowSink>, has_left: &'c Cell<bool>) -> Self {
        Self { sink, rows: Vec::new(), bytes: 0, has_left }
    }

    /// Itself, if rows are wanted.
    pub(super) fn lend(&mut self) -> Option<&mut dyn RowSink> {
        self.sink.is_some().then_some(self as &mut dyn RowSink)
    }

    /// Hands on what waits.
    pub(super) fn release(&mut self) -> Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        self.bytes = 0;
        self.rows.drain(..).try_for_each(|(table, batch)| sink.write(table, batch))
    }

    /// Drops what waits, and gives the sink back.
    pub(super) fn into_sink(self) -> Option<&'s mut dyn RowSink> {
        self.sink
    }

    /// Drops what waits.
    pub(super) fn clear(&mut self) {
        self.bytes = 0;
        self.rows.clear();
    }
}

impl RowSink for Held<'_, '_> {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        self.bytes = self.bytes.saturating_add(batch.get_array_memory_size());
        self.rows.push((table, batch));
        if self.bytes <= MOST_BYTES {
            return Ok(());
        }
        self.has_left.set(true);
        self.release()
    }
}
