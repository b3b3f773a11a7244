//! From the bytes of a file to its rows: layers off, machine over it, tables written.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;

use super::container::{self, Form, Opened};
use super::fault::Fault;
use super::finish::{Ending, FileFacts};
use super::import::Import;
use super::source::Source;
use super::{Options, Progress, RowSink, Summary, words};
use crate::error::Result;
use crate::pickle::{End, JsonMachine, Limits, Machine, PickleError, PickleErrorKind, State};

/// What a snapshot from standard input is called.
const STDIN: &str = "stdin";

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
    let events = Cell::new(0);
    let mut source = Source::new(input, progress, &events);
    let mut import = Import::new(path, options, sink, &events);
    let opened = container::open(&mut source).map_err(|error| {
        let kind = container::explained(error);
        Fault::from(PickleError { offset: 0, kind }).at(path, &[])
    })?;
    let layers = opened.layers.clone();
    let (container, is_from_cpp) = (opened.name(), opened.is_from_cpp);
    let has_protocol = opened.form == Form::Pickle;
    let (state, outcome) = run(opened, length, &mut import);
    let ending = match outcome {
        Ok(end) => Ending::Whole(end),
        Err(fault) if options.salvage && fault.is_damage() && import.has_rows() => Ending::Damaged(fault),
        Err(fault) => return Err(fault.at(path, &layers)),
    };
    // The digest is that of the whole file, whatever of it was decoded.
    let drained = io::copy(&mut source, &mut io::sink());
    if let (Ending::Whole(_), Err(error)) = (&ending, drained) {
        return Err(crate::error::Error::io(path, "cannot read")(error));
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
    import.finish(&state, ending, file, &layers).map_err(|fault| fault.at(path, &layers))
}

/// Runs the machine for what is inside the layers.
fn run(opened: Opened<'_>, length: Option<u64>, import: &mut Import<'_>) -> (State, Result<End, Fault>) {
    // What a layer unpacks to is as long as it is.
    let length = length.filter(|_| opened.layers.is_empty());
    match opened.form {
        Form::Pickle => {
            let mut machine = Machine::new(opened.input, length, Limits::default());
            words::teach(&mut machine.state);
            let outcome = machine.run(import);
            (machine.state, outcome.map_err(with_layer))
        }
        Form::Json => {
            let mut machine = JsonMachine::new(opened.input, length, Limits::default());
            words::teach(&mut machine.state);
            let outcome = machine.run(import);
            (machine.state, outcome.map_err(with_layer))
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
