//! Text without user names and without the folders that lead to a file, for results that leave the house.
//!
//! Paths are shortened wherever they stand. The names of users that paths give away are learned first and replaced in every
//! text, with a path round them or without.

mod columns;
mod names;
mod ordinary;
mod paths;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use serde_json::Value;

use crate::engine::{Engine, Rows};
use crate::error::Result;
use names::Names;

/// Whether, and with which names, text is redacted.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    names: Option<Arc<Names>>,
}

impl Redaction {
    /// Changes nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { names: None }
    }

    /// Shortens paths, and replaces the names of users that the paths of a snapshot, of its sources and of whoever runs this
    /// give away.
    ///
    /// # Errors
    /// The snapshot cannot be read.
    pub fn learn(engine: &Engine, sources: &[&Path]) -> Result<Self> {
        Ok(Self { names: Some(Arc::new(Names::learn(engine, sources)?)) })
    }

    /// Shortens paths, and replaces the names of users in some texts, each of which may hold paths.
    #[must_use]
    pub fn of_texts(texts: &[&str]) -> Self {
        let mut names = Names::default();
        for text in texts {
            names.add(text);
        }
        Self { names: Some(Arc::new(names)) }
    }

    /// The text with every absolute path in it shortened and every name replaced.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(names) = &self.names else { return Cow::Borrowed(text) };
        // Names first: a name may have a blank in it, at which a path seems to end.
        match names.replace(text) {
            Cow::Borrowed(text) => paths::shortened(text),
            Cow::Owned(text) => Cow::Owned(paths::shortened(&text).into_owned()),
        }
    }

    /// The value with every text in it redacted; keys only where they are no names of fields.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        let is_field =
            |key: &str| key.chars().all(|symbol| symbol.is_ascii_alphanumeric() || "_.$-".contains(symbol));
        match value {
            Value::String(text) => Value::String(self.apply(text).into_owned()),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| {
                    let key = if is_field(key) { key.clone() } else { self.apply(key).into_owned() };
                    (key, self.value(item))
                })
                .collect(),
            other => other.clone(),
        }
    }

    /// The rows with every text in them redacted.
    ///
    /// # Errors
    /// A column has a type that texts cannot be found in.
    pub fn rows(&self, rows: &Rows) -> Result<Rows, ArrowError> {
        let schema = self.schema(&rows.schema);
        let batches = rows.batches.iter().map(|batch| self.batch(batch, &schema));
        Ok(Rows { batches: batches.collect::<Result<_, _>>()?, schema })
    }

    /// The schema of redacted rows: texts are plain strings.
    #[must_use]
    pub fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        if self.names.is_none() {
            return Arc::clone(schema);
        }
        let fields = schema.fields().iter().map(|field| {
            let redacted = columns::redacted_type(field.data_type());
            field.as_ref().clone().with_data_type(redacted)
        });
        Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
    }

    /// The rows of a batch with every text in them redacted, under the schema that [`Redaction::schema`] gives.
    ///
    /// # Errors
    /// A column has a type that texts cannot be found in.
    pub fn batch(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        if self.names.is_none() {
            return Ok(batch.clone());
        }
        let apply = |text: &str| self.apply(text).into_owned();
        let columns = batch.columns().iter().map(|column| columns::redacted(column, &apply));
        RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
    }

    /// A writer that redacts whole lines on their way to `out`.
    pub fn writer<'a>(&self, out: &'a mut dyn Write) -> RedactingWriter<'a> {
        RedactingWriter { redaction: self.clone(), line: Vec::new(), out }
    }
}

/// Redacts what is written, line by line.
#[expect(missing_debug_implementations, reason = "a writer has no useful text")]
pub struct RedactingWriter<'a> {
    redaction: Redaction,
    line: Vec<u8>,
    out: &'a mut dyn Write,
}

impl RedactingWriter<'_> {
    /// Writes what is left of the last line.
    ///
    /// # Errors
    /// The output is closed or full.
    pub fn finish(mut self) -> io::Result<()> {
        self.pass()
    }

    fn pass(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        self.out.write_all(self.redaction.apply(&text).as_bytes())
    }
}

impl Write for RedactingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.pass()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_package_or_its_last_two_parts() {
        for (text, redacted) in [
            ("/home/ada/secret/train/model.py:42", "…/train/model.py:42"),
            ("/home/ada/run.py", "…/run.py"),
            ("/Users/ada/x/run.py", "…/x/run.py"),
            ("C:\\Users\\ada\\proj\\run.py", "…/proj/run.py"),
            ("C:\\\\Users\\\\ada\\\\run.py", "…/run.py"),
            ("/opt/py/lib/python3.11/site-packages/torch/nn/linear.py", "…/torch/nn/linear.py"),
            ("~carol/runs/a/train.py and ~carol/b.py", "…/a/train.py and …/b.py"),
            ("cfg:/data/secret/erin/q.py", "cfg:…/erin/q.py"),
            ("file:///home/ada/z.py", "file://…/z.py"),
            (r"\\srv\Users\ada\f.py", "…/f.py"),
            ("https://example.org/a/b/c", "https://example.org/a/b/c"),
            ("~5 of ~10/20", "~5 of ~10/20"),
            ("f (/home/ada/a/b.py:1), g (/home/ada/c/d.py:2)", "f (…/a/b.py:1), g (…/c/d.py:2)"),
            ("\"filename\": \"/data/ada/exp/run.py\"", "\"filename\": \"…/exp/run.py\""),
            ("a/b ratio, 3/4, and/or", "a/b ratio, 3/4, and/or"),
            ("<frozen runpy>", "<frozen runpy>"),
            ("~/work/x/run.py", "…/x/run.py"),
        ] {
            assert_eq!(Redaction::of_texts(&[]).apply(text), redacted, "{text}");
            assert_eq!(Redaction::none().apply(text), text);
        }
    }

    #[test]
    fn a_line_is_redacted_however_it_is_cut_into_writes() {
        let mut out = Vec::new();
        let mut writer = Redaction::of_texts(&[]).writer(&mut out);
        for piece in ["at /ho", "me/ada/run.py\nand /home/", "ada/a/b.py"] {
            writer.write_all(piece.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "at …/run.py\nand …/a/b.py");
    }
}
