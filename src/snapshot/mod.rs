//! Closed dicts become rows: what a source is, and how its fields map to the tables of [`crate::schema`].

mod annotation;
mod clock;
mod devices;
mod dialect;
mod entry;
mod event;
mod fault;
mod field;
mod finish;
mod import;
mod list_cache;
mod lists;
mod output;
mod place;
mod python_json;
mod segment;
mod source;
mod stacks;
mod stats;
pub mod synth;
mod top;
mod whole;
mod words;

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use arrow::record_batch::RecordBatch;

use self::fault::Fault;
use self::finish::FileFacts;
use self::import::Import;
use self::source::Source;
use self::whole::SMALL;
use crate::error::{Error, Result};
use crate::pickle::{Limits, Machine};
use crate::schema::Table;

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
pub struct Options {
    /// Reads every entry with the opcode loop. The result is the same, later: this is for tests and for finding out whether
    /// the fast way is at fault.
    pub plain_loop: bool,
}

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
    /// Events among them that the fast way through entries read.
    pub events_read_ahead: u64,
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
    let file = File::open(path).map_err(Error::io(path, "cannot open"))?;
    let facts = file.metadata().map_err(Error::io(path, "cannot open"))?;
    let length = facts.is_file().then_some(facts.len());
    read_from(file, length, path, options, sink, progress)
}

/// Reads a snapshot from `input`, whose length may be known; `path` is what messages call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    input: impl Read,
    length: Option<u64>,
    path: &Path,
    options: &Options,
    sink: &mut dyn RowSink,
    progress: &dyn Progress,
) -> Result<Summary> {
    let mut head = Vec::new();
    let mut input = input;
    input.by_ref().take(SMALL + 1).read_to_end(&mut head).map_err(Error::io(path, "cannot read"))?;
    if u64::try_from(head.len()).is_ok_and(|length| length > SMALL) {
        let pass = Pass { length, path, options, progress, is_whole: false };
        return pass.run(head.as_slice().chain(input), sink).map_err(|fault| fault.at(path));
    }
    let length = u64::try_from(head.len()).ok();
    let pass = Pass { length, path, options, progress, is_whole: false };
    let first = match pass.run(head.as_slice(), sink) {
        Err(fault) if whole::may_help(&fault) => fault,
        result => return result.map_err(|fault| fault.at(path)),
    };
    match (Pass { is_whole: true, ..pass }).run(head.as_slice(), sink) {
        Err(Fault::Pickle(_) | Fault::Shape { .. }) => Err(first.at(path)),
        result => result.map_err(|fault| fault.at(path)),
    }
}

/// One reading of the bytes.
struct Pass<'a> {
    length: Option<u64>,
    path: &'a Path,
    options: &'a Options,
    progress: &'a dyn Progress,
    is_whole: bool,
}

impl Pass<'_> {
    fn run(&self, input: impl Read, sink: &mut dyn RowSink) -> Result<Summary, Fault> {
        let events = Cell::new(0);
        let mut source = Source::new(input, self.progress, &events);
        let import = Import::new(self.path, sink, &events, self.options);
        let (mut import, limits) =
            if self.is_whole { (import.whole(), whole::limits()) } else { (import, Limits::default()) };
        let mut machine = Machine::new(&mut source, self.length, limits);
        words::teach(&mut machine.state);
        let mut end = machine.run(&mut import)?;
        let mut state = machine.state;
        if self.is_whole {
            end.root = import.unfold(&mut state, end.root)?;
        }
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = FileFacts {
            name: name.unwrap_or_default(),
            bytes: source.passed(),
            from_cpp: source.is_from_cpp(),
            sha256: source.sha256(),
        };
        import.finish(&state, &end, file)
    }
}
