//! Rows of a query in every format, batch by batch: a million rows never sit in memory.
//!
//! Columns without rows are written too: an empty result has its header or its schema, or is `[]`.

mod binary;
mod column;
mod markdown;
mod object;
mod record;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;

use super::table::Table;
use binary::Binary;
use column::Encoding;
pub(super) use column::{Column, is_number};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns, for people.
    Table,
    /// One array of objects, a row on each line.
    Json,
    /// An object on each line, and nothing around them.
    Ndjson,
    /// RFC 4180 quoting, lines end with LF; NULL is an empty field, an empty text is `""`.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// Arrow IPC stream.
    Arrow,
    /// Parquet file.
    Parquet,
}

impl Format {
    /// The format that a file's name asks for.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "csv" => Self::Csv,
            "md" | "markdown" => Self::Markdown,
            "arrow" | "arrows" => Self::Arrow,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }

    /// Whether it is no text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

/// Writes the batches of one result.
#[expect(missing_debug_implementations, reason = "the libraries' writers have none")]
pub struct RowWriter<W> {
    out: W,
    shape: Shape,
    /// The row that is being put together.
    line: Vec<u8>,
}

enum Shape {
    Table(Table),
    Json { keys: Vec<Vec<u8>>, started: bool },
    Ndjson { keys: Vec<Vec<u8>> },
    Csv,
    Markdown,
    Binary(Binary),
}

impl<W: Write> RowWriter<W> {
    /// Starts a result with the columns of `schema`. A table is cut to `width` columns of a terminal.
    ///
    /// # Errors
    /// `out` takes no more, or a column has a type that the format cannot hold.
    pub fn new(format: Format, schema: &Schema, width: Option<usize>, mut out: W) -> io::Result<Self> {
        let shape = match format {
            Format::Table => Shape::Table(Table::new(schema, width)),
            Format::Json => {
                out.write_all(b"[")?;
                Shape::Json { keys: object::keys(schema)?, started: false }
            }
            Format::Ndjson => Shape::Ndjson { keys: object::keys(schema)? },
            Format::Csv => {
                out.write_all(&record::header(schema))?;
                Shape::Csv
            }
            Format::Markdown => {
                out.write_all(&markdown::header(schema))?;
                Shape::Markdown
            }
            Format::Arrow => Shape::Binary(Binary::arrow(schema, &mut out)?),
            Format::Parquet => Shape::Binary(Binary::parquet(schema, &mut out)?),
        };
        Ok(Self { out, shape, line: Vec::new() })
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        if let Shape::Binary(binary) = &mut self.shape {
            return binary.write(batch, &mut self.out);
        }
        let options = Encoding::default();
        let fields = batch.schema();
        let mut columns = fields
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| Column::new(field, array.as_ref(), &options))
            .collect::<io::Result<Vec<_>>>()?;
        if let Shape::Table(table) = &mut self.shape {
            return table.write(&mut columns, batch.num_rows(), &mut self.out);
        }
        for row in 0..batch.num_rows() {
            self.line.clear();
            self.shape.append(&mut columns, row, &mut self.line)?;
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    /// Ends the result and gives the stream back.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn finish(mut self) -> io::Result<W> {
        match self.shape {
            Shape::Table(mut table) => table.finish(&mut self.out)?,
            Shape::Json { started, .. } => self.out.write_all(if started { b"\n]\n" } else { b"]\n" })?,
            Shape::Binary(binary) => binary.finish(&mut self.out)?,
            Shape::Ndjson { .. } | Shape::Csv | Shape::Markdown => {}
        }
        Ok(self.out)
    }
}

impl Shape {
    /// Appends a row, for the formats where rows do not depend on each other.
    fn append(&mut self, columns: &mut [Column<'_>], row: usize, line: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Json { keys, started } => {
                line.extend_from_slice(if *started { b",\n" } else { b"\n" });
                *started = true;
                object::append_object(keys, columns, row, line)
            }
            Self::Ndjson { keys } => {
                object::append_object(keys, columns, row, line)?;
                line.push(b'\n');
                Ok(())
            }
            Self::Csv => record::append_record(columns, row, line),
            Self::Markdown => markdown::append_row(columns, row, line),
            Self::Table(_) | Self::Binary(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
