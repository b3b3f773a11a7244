//! Closed dicts become rows: what a source is, and how its fields map to the tables of [`crate::schema`].

pub mod synth;

use std::path::Path;

use arrow::record_batch::RecordBatch;

use crate::error::Result;
use crate::schema::Table;

/// Takes the rows of an import, batch by batch, table by table as they come.
///
/// Batches have the schema [`Table::batch`]. Rows of a table come in the order of their ids; traces come sorted by
/// (device_id, trace_index). `blocks` and `traces` come while the file is read, the other tables at its end.
pub trait RowSink {
    /// Takes one batch.
    ///
    /// # Errors
    /// What the store behind it says; it ends the import.
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()>;
}

/// Hears how far an import is.
pub trait Progress {
    /// Called about every megabyte: bytes of the file consumed so far, and events decoded so far.
    fn advance(&self, bytes: u64, events: u64);
}

/// What an import may leave out or do differently.
#[derive(Debug, Clone, Default)]
pub struct Options {}

/// What an import found, for the line that says so.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Bytes of the file.
    pub bytes: u64,
    /// Rows in `segments`.
    pub segments: u64,
    /// Rows in `blocks`.
    pub blocks: u64,
    /// Rows in `traces`.
    pub events: u64,
    /// Rows in `call_stacks`.
    pub stacks: u64,
    /// Rows in `import_stats` of severity `data_loss` or `error`.
    pub warnings: u64,
}

/// Reads the snapshot at `path` and hands its rows to `sink`.
///
/// # Errors
/// The file cannot be read, is not a pickle, or holds no snapshot; nothing the sink got is to be kept then.
pub fn read(
    path: &Path,
    options: &Options,
    sink: &mut dyn RowSink,
    progress: &dyn Progress,
) -> Result<Summary> {
    let _ = (path, options, sink, progress);
    Ok(Summary::default())
}
