//! Rows of a query as JSON, CSV or a table, batch by batch: a million rows never sit in memory.
//!
//! Columns without rows are written too: an empty result has its header, or is `[]`.

use std::io::{self, Write};

use arrow::array::Array;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::table::Table;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns, for people.
    Table,
    /// One array of objects, a row on each line.
    Json,
    /// RFC 4180 quoting, lines end with LF; NULL is an empty field, an empty text is `""`.
    Csv,
}

/// Writes the batches of one result.
#[derive(Debug)]
pub struct RowWriter<W> {
    out: W,
    shape: Shape,
    /// The row that is being put together.
    line: Vec<u8>,
}

#[derive(Debug)]
enum Shape {
    Table(Table),
    Json { keys: Vec<Vec<u8>>, started: bool },
    Csv,
}

impl<W: Write> RowWriter<W> {
    /// Starts a result with the columns of `schema`. A table is cut to `width` columns of a terminal.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn new(format: Format, schema: &Schema, width: Option<usize>, mut out: W) -> io::Result<Self> {
        let shape = match format {
            Format::Table => Shape::Table(Table::new(schema, width)),
            Format::Json => {
                out.write_all(b"[")?;
                Shape::Json { keys: keys(schema)?, started: false }
            }
            Format::Csv => {
                let names = schema.fields().iter().map(|field| field.name().as_bytes());
                let names = names.map(|name| if needs_quotes(name) { quoted(name) } else { name.to_vec() });
                out.write_all(&names.collect::<Vec<_>>().join(&b','))?;
                out.write_all(b"\n")?;
                Shape::Csv
            }
        };
        Ok(Self { out, shape, line: Vec::new() })
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = Encoding::default();
        let fields = batch.schema();
        let mut columns = fields
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| Column::new(field, array.as_ref(), &options))
            .collect::<io::Result<Vec<_>>>()?;
        match &mut self.shape {
            Shape::Table(table) => table.write(&mut columns, batch.num_rows(), &mut self.out),
            Shape::Json { keys, started } => {
                for row in 0..batch.num_rows() {
                    self.out.write_all(if *started { b",\n" } else { b"\n" })?;
                    *started = true;
                    self.line.clear();
                    append_object(keys, &mut columns, row, &mut self.line)?;
                    self.out.write_all(&self.line)?;
                }
                Ok(())
            }
            Shape::Csv => {
                for row in 0..batch.num_rows() {
                    self.line.clear();
                    append_record(&mut columns, row, &mut self.line)?;
                    self.out.write_all(&self.line)?;
                }
                Ok(())
            }
        }
    }

    /// Ends the result and gives the stream back.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn finish(mut self) -> io::Result<W> {
        match self.shape {
            Shape::Table(mut table) => table.finish(&mut self.out)?,
            Shape::Json { started, .. } => self.out.write_all(if started { b"\n]\n" } else { b"]\n" })?,
            Shape::Csv => {}
        }
        Ok(self.out)
    }
}

/// How values are turned into text; columns borrow it.
struct Encoding {
    json: EncoderOptions,
    text: FormatOptions<'static>,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { json: EncoderOptions::default().with_explicit_nulls(true), text: FormatOptions::default() }
    }
}

/// A column of a batch, ready to give its values as text.
pub(super) struct Column<'a> {
    /// Also those that are NULL in a dictionary, or by their type.
    nulls: Option<NullBuffer>,
    nested: bool,
    text: ArrayFormatter<'a>,
    /// None for a type that JSON has no writer for; its text is a string then.
    json: Option<NullableEncoder<'a>>,
}

impl<'a> Column<'a> {
    fn new(field: &'a FieldRef, array: &'a dyn Array, encoding: &'a Encoding) -> io::Result<Self> {
        let text = ArrayFormatter::try_new(array, &encoding.text).map_err(io::Error::other)?;
        let json = make_encoder(field, array, &encoding.json).ok();
        Ok(Self { nulls: array.logical_nulls(), nested: array.data_type().is_nested(), text, json })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value as JSON.
    fn append_json(&mut self, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &mut self.json {
            Some(json) => json.encode(row, out),
            None => serde_json::to_writer(out, &self.text.value(row).to_string())?,
        }
        Ok(())
    }

    /// Appends the value as text, lists and structs as JSON, and says whether there is one: NULL has none.
    fn append_text(&mut self, row: usize, out: &mut Vec<u8>) -> io::Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        if self.nested {
            self.append_json(row, out)?;
        } else {
            write!(out, "{}", self.text.value(row))?;
        }
        Ok(true)
    }

    /// The value as text, lists and structs as JSON; none where it is NULL.
    pub(super) fn text(&mut self, row: usize) -> io::Result<Option<String>> {
        let mut text = Vec::new();
        if !self.append_text(row, &mut text)? {
            return Ok(None);
        }
        String::from_utf8(text).map(Some).map_err(io::Error::other)
    }
}

/// Whether values of the type are numbers, which tables align to the right.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// The columns' names as JSON keys. A join can give two columns one name; an object must not have a key twice, or
/// readers keep one of the values only: the later ones get a number behind.
fn keys(schema: &Schema) -> io::Result<Vec<Vec<u8>>> {
    let mut taken: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut number = 2;
        while taken.contains(&name) || (number > 2 && schema.column_with_name(&name).is_some()) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        taken.push(name);
    }
    taken.iter().map(|name| Ok(serde_json::to_vec(name)?)).collect()
}

fn append_object(
    keys: &[Vec<u8>],
    columns: &mut [Column<'_>],
    row: usize,
    line: &mut Vec<u8>,
) -> io::Result<()> {
    for (index, (key, column)) in keys.iter().zip(columns).enumerate() {
        line.push(if index == 0 { b'{' } else { b',' });
        line.extend_from_slice(key);
        line.push(b':');
        column.append_json(row, line)?;
    }
    line.push(b'}');
    Ok(())
}

fn append_record(columns: &mut [Column<'_>], row: usize, line: &mut Vec<u8>) -> io::Result<()> {
    for (index, column) in columns.iter_mut().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        let start = line.len();
        if column.append_text(row, line)? {
            let field = line.get(start..).unwrap_or_default();
            if needs_quotes(field) {
                let quoted = quoted(field);
                line.truncate(start);
                line.extend_from_slice(&quoted);
            }
        }
    }
    line.push(b'\n');
    Ok(())
}

/// Whether the text would not be read back from a CSV as it is; an empty one would be taken for NULL.
fn needs_quotes(field: &[u8]) -> bool {
    field.is_empty() || field.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'))
}

fn quoted(field: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(field.len() + 2);
    quoted.push(b'"');
    for byte in field {
        if *byte == b'"' {
            quoted.push(b'"');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests;
