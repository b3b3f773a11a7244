//! From the bytes of a file to its rows: layers off, machine over it, tables written.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::container::{self, Form, Opened};
use super::fault::Fault;
use super::finish::{Ending, FileFacts};
use super::held::Held;
use super::import::Import;
use super::source::Source;
use super::whole::{self, SMALL};
use super::{Options, Progress, RowSink, Summary, words};
use crate::error::Result;
use crate::pickle::{End, JsonMachine, Limits, Machine, PickleError, PickleErrorKind, State};

/// What a snapshot from standard input is called.
const STDIN: &str = "stdin";

/// Reads the snapshot at `path`, or from standard input, to its end and makes no rows of it: for its errors and counts.
///
/// # Errors
/// As [`read`](super::read).
pub fn check(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    match super::open(path)? {
        Some((file, length)) => check_from(file, length, path, options, progress),
        None => check_from(io::stdin().lock(), None, path, options, progress),
    }
}

/// Reads a snapshot from `input` as [`check`] does; the arguments are those of [`read_from`].
///
/// # Errors
/// As [`read`](super::read).
pub fn check_from(
    input: impl Read,
    length: Option<u64>,
    path: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Summary> {
    start(input, length, path, options, None, progress)
}

/// Reads a snapshot from `input`, whose length may be known; `path` is what messages call it.
///
/// # Errors
/// As [`read`](super::read).
pub fn read_from(
    input: impl Read,
    length: Option<u64>,
    path: &Path,
    options: &Options,
    sink: &mut dyn RowSink,
    progress: &dyn Progress,
) -> Result<Summary> {
    start(input, length, path, options, Some(sink), progress)
}

fn start(
    mut input: impl Read,
    length: Option<u64>,
    path: &Path,
    options: &Options,
    sink: Option<&mut dyn RowSink>,
    progress: &dyn Progress,
) -> Result<Summary> {
    let mut head = Vec::new();
    let cannot_read = crate::error::Error::io(path, "cannot read");
    let is_large = length.is_some_and(|length| length > SMALL);
    if !is_large {
        input.by_ref().take(SMALL + 1).read_to_end(&mut head).map_err(cannot_read)?;
    }
    let pass =
        Pass { length, path, options, progress, is_whole: false, salvage: options.salvage, has_left: None };
    let head_length = u64::try_from(head.len()).unwrap_or(u64::MAX);
    if is_large || head_length > SMALL {
        return pass.run(head.as_slice().chain(input), sink).map_err(|stopped| stopped.at(path));
    }
    // A small file can be read again, as long as its rows wait.
    let has_left = Cell::new(false);
    let mut held = Held::new(sink, &has_left);
    let pass = Pass { length: Some(head_length), salvage: false, has_left: Some(&has_left), ..pass };
    let stopped = match pass.run(head.as_slice(), held.lend()) {
        Ok(summary) => return held.release().map(|()| summary),
        Err(stopped) => stopped,
    };
    if whole::may_help(&stopped.fault) && !has_left.get() {
        held.clear();
        match (Pass { is_whole: true, ..pass }).run(head.as_slice(), held.lend()) {
            Ok(summary) => return held.release().map(|()| summary),
            Err(stopped) if matches!(*stopped.fault, Fault::Other(_)) => return Err(stopped.at(path)),
            Err(_) => {}
        }
    }
    if options.salvage && !has_left.get() {
        return (Pass { salvage: true, ..pass })
            .run(head.as_slice(), held.into_sink())
            .map_err(|stopped| stopped.at(path));
    }
    Err(stopped.at(path))
}

/// The sink, to be lent out once more.
fn again<'s>(sink: &'s mut Option<&mut dyn RowSink>) -> Option<&'s mut dyn RowSink> {
    let sink = sink.as_mut()?;
    Some(&mut **sink)
}

/// What stopped a pass, and the containers around the bytes it counts.
struct Stopped {
    fault: Box<Fault>,
    layers: Vec<&'static str>,
}

impl Stopped {
    fn at(self, path: &Path) -> crate::error::Error {
        self.fault.at(path, &self.layers)
    }
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self { fault: Box::new(fault), layers: Vec::new() }
    }
}

/// One reading of the bytes.
#[derive(Clone, Copy)]
struct Pass<'a> {
    length: Option<u64>,
    path: &'a Path,
    options: &'a Options,
    progress: &'a dyn Progress,
    /// Whether everything is kept first, for snapshots that refer to a row twice.
    is_whole: bool,
    /// Whether what stands before damage is kept.
    salvage: bool,
    /// Whether rows have left that a later pass would write again; known where there may be one.
    has_left: Option<&'a Cell<bool>>,
}

impl Pass<'_> {
    fn run(&self, input: impl Read, mut sink: Option<&mut dyn RowSink>) -> Result<Summary, Stopped> {
        let path = self.path;
        let events = Cell::new(0);
        // The digest is a column of a row.
        let digest = sink.is_some().then(Sha256::new);
        let mut source = Source::new(input, digest, self.progress, &events);
        let mut import = Import::new(path, self.options, again(&mut sink), &events);
        if self.is_whole {
            import = import.whole();
        }
        let opened = container::open(&mut source).map_err(|error| {
            let kind = container::explained(error);
            Fault::from(PickleError { offset: 0, kind })
        })?;
        let layers = opened.layers.clone();
        let (container, is_from_cpp) = (opened.name(), opened.is_from_cpp);
        let has_protocol = opened.form == Form::Pickle;
        let (mut state, outcome) = self.decode(opened, &mut import);
        let outcome = outcome.and_then(|end| {
            let root = if self.is_whole { import.unfold(&mut state, end.root)? } else { end.root };
            Ok(End { root, ..end })
        });
        let ending = match outcome {
            Ok(end) => Ending::Whole(end),
            Err(fault) if self.may_salvage() && fault.is_damage() && import.has_rows() => {
                Ending::Damaged(fault)
            }
            Err(fault) => return Err(Stopped { fault: Box::new(fault), layers }),
        };
        // The digest is that of the whole file, whatever of it was decoded.
        let drained = io::copy(&mut source, &mut io::sink());
        if let (Ending::Whole(_), Err(error)) = (&ending, drained) {
            return Err(Fault::from(crate::error::Error::io(path, "cannot read")(error)).into());
        }
        let file = FileFacts {
            name: match path.file_name() {
                Some(name) if path != Path::new(super::STANDARD_INPUT) => name.to_string_lossy().into_owned(),
                _ => STDIN.to_owned(),
            },
            bytes: source.passed(),
            container,
            is_from_cpp,
            protocol: has_protocol.then(|| i64::from(state.protocol())),
            sha256: source.sha256(),
        };
        import
            .finish(&state, ending, file, &layers)
            .map_err(|fault| Stopped { fault: Box::new(fault), layers })
    }

    /// Whether damage ends the pass with what stands before it. Where there may be another pass, that one does.
    fn may_salvage(&self) -> bool {
        self.salvage || self.options.salvage && self.has_left.is_some_and(Cell::get)
    }

    /// Runs the machine for what is inside the layers.
    fn decode(&self, opened: Opened<'_>, import: &mut Import<'_>) -> (State, Result<End, Fault>) {
        // What a layer unpacks to is as long as it is.
        let length = self.length.filter(|_| opened.layers.is_empty());
        let limits = if self.is_whole { whole::limits() } else { Limits::default() };
        match opened.form {
            Form::Pickle => {
                let mut machine = Machine::new(opened.input, length, limits);
                words::teach(&mut machine.state);
                let outcome = machine.run(import);
                (machine.state, outcome.map_err(with_layer))
            }
            Form::Json => {
                let mut machine = JsonMachine::new(opened.input, length, limits);
                words::teach(&mut machine.state);
                let outcome = machine.run(import);
                (machine.state, outcome.map_err(with_layer))
            }
        }
    }
}

/// Tells damage to a layer from what the system could not read.
fn with_layer(fault: Fault) -> Fault {
    match fault {
        Fault::Pickle(PickleError { offset, kind: PickleErrorKind::Io(error) }) => {
            Fault::Pickle(PickleError { offset, kind: container::explained(error) })
        }
        other => other,
    }
}
