//! Text without user names and without the folders that lead to a file, for results that leave the house.
//!
//! A path keeps what tells code apart: the package inside `site-packages`, else the last two parts of it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;

use crate::engine::{Cell, Rows};

/// Whether, and with which names, text is redacted.
#[derive(Debug, Clone)]
pub struct Redaction {
    is_on: bool,
}

/// What stands for the folders that were left out.
const CUT: &str = "…/";
/// Parts of a path that are kept at its end.
const KEPT: usize = 2;
/// Folders behind which a path is the same on every machine.
const ROOTS: [&str; 3] = ["site-packages", "dist-packages", "node_modules"];

impl Redaction {
    /// Changes nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { is_on: false }
    }

    /// Shortens paths.
    #[must_use]
    pub const fn paths() -> Self {
        Self { is_on: true }
    }

    /// The text with every absolute path in it shortened.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.is_on || !text.contains(['/', '\\']) {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = path_start(rest) {
            let (before, from) = rest.split_at(start);
            redacted.push_str(before);
            let end = from.find(ends_path).unwrap_or(from.len());
            let (path, behind) = from.split_at(end);
            redacted.push_str(&shorten(path));
            rest = behind;
        }
        redacted.push_str(rest);
        Cow::Owned(redacted)
    }

    /// The rows with every text in them redacted.
    #[must_use]
    pub fn rows(&self, rows: Rows) -> Rows {
        if !self.is_on {
            return rows;
        }
        let fields: Vec<Field> = rows
            .schema
            .fields()
            .iter()
            .map(|field| {
                let field = field.as_ref().clone();
                if is_text(field.data_type()) { field.with_data_type(DataType::Utf8) } else { field }
            })
            .collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let batches = rows.batches.iter().filter_map(|batch| {
            let columns = batch.columns().iter().map(|column| self.column(column)).collect();
            RecordBatch::try_new(Arc::clone(&schema), columns).ok()
        });
        Rows { batches: batches.collect(), schema }
    }

    fn column(&self, column: &ArrayRef) -> ArrayRef {
        if !is_text(column.data_type()) {
            return Arc::clone(column);
        }
        let texts = (0..column.len()).map(|row| {
            let text = <Option<String> as Cell>::read(column.as_ref(), row).flatten();
            text.map(|text| self.apply(&text).into_owned())
        });
        Arc::new(texts.collect::<StringArray>())
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

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

/// Where an absolute path begins: a slash, or a drive letter, that no word stands before.
fn path_start(text: &str) -> Option<usize> {
    let mut before = None;
    for (at, symbol) in text.char_indices() {
        let begins =
            before.is_none_or(|before: char| !before.is_alphanumeric() && !"._-/\\:~…)]".contains(before));
        let next = text.get(at + symbol.len_utf8()..).unwrap_or_default();
        let is_unix = symbol == '/' && next.starts_with(|c: char| c.is_alphanumeric() || "._-~".contains(c));
        let is_drive = symbol.is_ascii_alphabetic() && (next.starts_with(":\\") || next.starts_with(":/"));
        let is_home = symbol == '~' && next.starts_with('/');
        if begins && (is_unix || is_drive || is_home) {
            return Some(at);
        }
        before = Some(symbol);
    }
    None
}

/// What a path as frames have it does not hold.
fn ends_path(symbol: char) -> bool {
    symbol.is_whitespace() || symbol.is_control() || "\"'<>|`,;()".contains(symbol)
}

/// The end of a path, with a mark for what was before it.
fn shorten(path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let root = parts.iter().rposition(|part| ROOTS.contains(part)).map(|at| at + 1);
    let from = root.unwrap_or_else(|| parts.len().saturating_sub(KEPT));
    if root.is_none() && parts.len() < KEPT {
        return path.to_owned();
    }
    // Of a path as short as /home/name/run.py even the last two parts name somebody.
    let is_home =
        |at: usize| parts.get(at).is_some_and(|part| matches!(*part, "home" | "Users" | "~" | "users"));
    let from = if from > 0 && is_home(from - 1) {
        from + 1
    } else if is_home(from) {
        from + 2
    } else {
        from
    };
    let kept = parts.get(from..).unwrap_or_default();
    format!("{CUT}{}", kept.join("/"))
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
            ("f (/home/ada/a/b.py:1), g (/home/ada/c/d.py:2)", "f (…/a/b.py:1), g (…/c/d.py:2)"),
            ("\"filename\": \"/data/ada/exp/run.py\"", "\"filename\": \"…/exp/run.py\""),
            ("a/b ratio, 3/4, and/or", "a/b ratio, 3/4, and/or"),
            ("<frozen runpy>", "<frozen runpy>"),
            ("~/work/x/run.py", "…/x/run.py"),
        ] {
            assert_eq!(Redaction::paths().apply(text), redacted, "{text}");
            assert_eq!(Redaction::none().apply(text), text);
        }
    }

    #[test]
    fn a_line_is_redacted_however_it_is_cut_into_writes() {
        let mut out = Vec::new();
        let mut writer = Redaction::paths().writer(&mut out);
        for piece in ["at /ho", "me/ada/run.py\nand /home/", "ada/a/b.py"] {
            writer.write_all(piece.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "at …/run.py\nand …/a/b.py");
    }
}
