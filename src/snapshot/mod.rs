//! Closed dicts become rows: what a source is, and how its fields map to the tables of [`crate::schema`].

mod annotation;
mod beside;
mod clock;
mod container;
mod decode;
mod devices;
mod dialect;
mod entry;
mod event;
mod fault;
mod field;
mod filter;
mod finish;
mod held;
mod import;
mod list_cache;
mod lists;
mod module_csv;
mod modules;
mod output;
mod place;
mod python_json;
mod salvage;
mod segment;
mod source;
mod stacks;
mod stats;
mod steps;
pub mod synth;
mod token;
mod top;
mod waiting;
mod whole;
mod words;

use std::fs::File;
use std::io;
use std::path::Path;

use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};
use crate::schema::Table;

pub use self::beside::side_files;
pub use self::decode::{check, check_from, read_from};
pub use self::filter::{EventRange, Filter};

/// The path that stands for standard input; a file of that name is `./-`.
pub const STANDARD_INPUT: &str = "-";

/// Kinds of [`Value::Kept`](crate::pickle::Value::Kept): frames, and lists of frames.
const FRAME: u8 = 0;
const FRAME_STACK: u8 = 1;

/// Kinds of [`Value::Taken`](crate::pickle::Value::Taken): rows.
const SEGMENT: u8 = 0;
const HOST_SEGMENT: u8 = 1;
const BLOCK: u8 = 2;
const EVENT: u8 = 3;
const HOST_EVENT: u8 = 4;
const ANNOTATION: u8 = 5;

/// Takes the rows of an import, batch by batch, table by table as they come.
///
/// Batches have the schema [`Table::batch`]. Rows of a table come in the order of their ids; traces come sorted by
/// (`device_id`, `trace_index`). `blocks` and `traces` come while the file is read, the other tables at its end.
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
pub struct Options {
    /// Keeps what stands before the damage in a damaged file, instead of failing.
    pub salvage: bool,
    /// Which rows are kept.
    pub filter: Filter,
    /// Reads every entry with the opcode loop. The result is the same, later: this is for tests and for finding out whether
    /// the fast way is at fault.
    pub plain_loop: bool,
}

/// Where a file was damaged, when its rows were kept up to there.
#[derive(Debug, Clone)]
pub struct Salvaged {
    /// Offset in the file, or in what its container unpacks to.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// What an import found, for the line that says so.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Bytes of the file.
    pub bytes: u64,
    /// Rows in `devices`.
    pub devices: u64,
    /// Rows in `segments`.
    pub segments: u64,
    /// Rows in `blocks`.
    pub blocks: u64,
    /// Rows in `traces`.
    pub events: u64,
    /// Rows in `call_stacks`.
    pub stacks: u64,
    /// Events among them that the fast way through entries read.
    pub events_read_ahead: u64,
    /// Rows in `import_stats` of severity `data_loss` or `error`.
    pub warnings: u64,
    /// The damage, if the file was not read to its end.
    pub salvaged: Option<Salvaged>,
}

/// Reads the snapshot at `path`, or from standard input, and hands its rows to `sink`.
///
/// # Errors
/// The file cannot be read, is neither a pickle nor JSON nor contains one, or holds no snapshot; nothing the sink got is to be kept then.
pub fn read(
    path: &Path,
    options: &Options,
    sink: &mut dyn RowSink,
    progress: &dyn Progress,
) -> Result<Summary> {
    let Some((file, length)) = open(path)? else {
        return read_from(io::stdin().lock(), None, path, options, sink, progress);
    };
    let beside = beside::Beside::find(path);
    let mut modules = modules::Counted::new(&beside, sink);
    let mut marked =
        steps::Marked::new(beside.steps.as_deref(), options.filter.keeps_the_end(), &mut modules)?;
    let mut summary = read_from(file, length, path, options, &mut marked, progress)?;
    summary.warnings += modules.warnings();
    Ok(summary)
}

/// A file and its length, where it has one; `None` for standard input.
fn open(path: &Path) -> Result<Option<(File, Option<u64>)>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(None);
    }
    let file = File::open(path).map_err(Error::io(path, "cannot open"))?;
    let facts = file.metadata().map_err(Error::io(path, "cannot open"))?;
    Ok(Some((file, facts.is_file().then_some(facts.len()))))
}
