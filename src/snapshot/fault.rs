//! What stops an import, before the path of the file is put to it.

use std::path::Path;

use crate::error::Error;
use crate::pickle::{NodeKind, PickleError, PickleErrorKind, State, Value};

/// What stops an import.
#[derive(Debug)]
pub(super) enum Fault {
    /// The bytes are no pickle that may be read.
    Pickle(PickleError),
    /// The pickle holds no snapshot.
    Shape { at: String, expected: String, found: String },
    /// The store behind the sink, or a batch that cannot be built.
    Other(Error),
}

impl From<PickleError> for Fault {
    fn from(error: PickleError) -> Self {
        Self::Pickle(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Fault {
    /// The error as the caller sees it, for a file wrapped in `layers`.
    pub(super) fn at(self, path: &Path, layers: &[&'static str]) -> Error {
        match self {
            Self::Pickle(PickleError { kind: PickleErrorKind::Io(source), .. }) => {
                Error::io(path, "cannot read")(source)
            }
            Self::Pickle(source) => {
                Error::Pickle { path: path.to_owned(), within: offsets_in(layers), source }
            }
            Self::Shape { at, expected, found } => {
                let at = at + &offsets_in(layers);
                Error::Shape { path: path.to_owned(), at, expected, found }
            }
            Self::Other(error) => error,
        }
    }
}

/// What to say behind an offset that is not one of the file itself.
pub(super) fn offsets_in(layers: &[&'static str]) -> String {
    match layers.last() {
        Some(layer) => format!(" (bytes are counted in what the {layer} container holds)"),
        None => String::new(),
    }
}

/// A field that is not what a row needs.
#[derive(Debug)]
pub(super) struct BadField {
    pub(super) field: &'static str,
    pub(super) expected: &'static str,
    pub(super) found: String,
}

impl BadField {
    /// A field that has to be there and is not.
    pub(super) fn missing(field: &'static str, expected: &'static str) -> Self {
        Self { field, expected, found: "no such key".to_owned() }
    }

    /// The fault, with the path of the row the field belongs to.
    pub(super) fn within(self, row: &str, offset: u64) -> Fault {
        Fault::Shape {
            at: format!("{row}.{} (dict ends at byte {offset})", self.field),
            expected: self.expected.to_owned(),
            found: self.found,
        }
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The keys of a dict, the first of them by name.
pub(super) fn keys_of(state: &State, items: &[Value]) -> String {
    if items.is_empty() {
        return "an empty dict".to_owned();
    }
    let names: Vec<String> = items
        .iter()
        .step_by(2)
        .take(8)
        .map(|key| match key {
            Value::Text(id) => format!("`{}`", shortened(state.text(*id))),
            other => other.describe().to_owned(),
        })
        .collect();
    let count = items.len() / 2;
    let more = if count > names.len() { format!(", … ({count} in all)") } else { String::new() };
    format!("a dict with the keys {}{more}", names.join(", "))
}

/// What a value is, for a message that says what was found.
pub(super) fn found(state: &State, value: Value) -> String {
    match value {
        Value::Int(number) => format!("the integer {number}"),
        Value::Wide(number) => format!("the integer {number}"),
        Value::Float(number) => format!("the float {number}"),
        Value::Text(id) => format!("the string `{}`", shortened(state.text(id))),
        Value::Node(node) | Value::OpenDict(node) | Value::OpenList(node) => match state.tree().get(node) {
            Some((NodeKind::Dict, items)) => keys_of(state, items),
            Some((kind, items)) => {
                let name = if kind == NodeKind::List { "a list" } else { "a tuple" };
                let first = items.first().map_or("nothing", |item| item.describe());
                format!("{name} of {}, the first of them {first}", items.len())
            }
            None => value.describe().to_owned(),
        },
        other => other.describe().to_owned(),
    }
}
