//! Writes tables of integers and interned strings: those with a row per event, and so nearly all the values there are.
//!
//! The library's own writer takes 10 ns for each value, as it gathers a column by the numbers of its rows and looks every
//! value up by a hash of its bytes. Encoding the columns here costs a third of that; the form of pages and files is still
//! the library's.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use parquet::arrow::ArrowSchemaConverter;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::chunk::{Chunk, Codec, Values};
use super::encoding::{self, Storage};
use crate::schema::Table;

/// Rows of a page at most. The codec finds what repeats within a page, so that it should hold a training step or more; a
/// query that looks for one row has to decode all of it.
const PAGE_ROWS: usize = 64 * 1024;

/// A Parquet file in the making.
pub(super) struct ColumnsWriter {
    file: SerializedFileWriter<File>,
    storage: Vec<Storage>,
    /// The row group in the making; none before its first row.
    chunks: Vec<Chunk>,
    rows: usize,
    codec: Codec,
    scratch: Scratch,
}

/// Buffers that are used again: values between NULLs, and places of texts.
#[derive(Default)]
struct Scratch {
    integers: Vec<i64>,
    texts: Vec<u32>,
}

/// Whether this writer can write `table`.
pub(super) fn can_write(table: &Table) -> bool {
    let is_integer = |kind: &DataType| *kind == DataType::Int64;
    let is_interned = |kind: &DataType| matches!(kind, DataType::Dictionary(_, _));
    table.columns.iter().all(|column| {
        let kind = (column.batch_type)();
        let storage = encoding::storage(table, column);
        is_integer(&kind) && storage != Storage::Plain || is_interned(&kind) && storage == Storage::Dictionary
    })
}

impl ColumnsWriter {
    /// Starts the file of `table` in `output`.
    pub(super) fn new(output: File, table: &Table, properties: WriterProperties) -> Result<Self> {
        let schema = ArrowSchemaConverter::new().convert(&table.arrow())?;
        let file = SerializedFileWriter::new(output, schema.root_schema_ptr(), Arc::new(properties))?;
        let storage = table.columns.iter().map(|column| encoding::storage(table, column)).collect();
        Ok(Self {
            file,
            storage,
            chunks: Vec::new(),
            rows: 0,
            codec: Codec::new()?,
            scratch: Scratch::default(),
        })
    }

    /// Adds rows.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            let count =
                (batch.num_rows() - start).min(encoding::ROW_GROUP_ROWS.saturating_sub(self.rows)).max(1);
            self.write_rows(&batch.slice(start, count))?;
            start += count;
            self.rows += count;
            let dictionaries = self.chunks.iter().map(Chunk::dictionary_bytes);
            if self.rows >= encoding::ROW_GROUP_ROWS || dictionaries.max() > Some(encoding::TEXT_BYTES) {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.chunks.is_empty() {
            let columns = self.file.schema_descr().columns().iter().zip(&self.storage);
            self.chunks = columns.map(|(column, storage)| Chunk::new(Arc::clone(column), *storage)).collect();
        }
        let Self { chunks, codec, scratch, .. } = self;
        for (chunk, column) in chunks.iter_mut().zip(batch.columns()) {
            if !chunk.again(column)? {
                write_column(chunk, column, codec, scratch)?;
                chunk.is_of(column);
            }
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for chunk in self.chunks.drain(..) {
            let (bytes, close) = chunk.finish(&mut self.codec)?;
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Completes the file, which is then in the system's hands.
    pub(super) fn finish(&mut self) -> Result<&File> {
        if self.rows > 0 {
            self.end_row_group()?;
        }
        self.file.finish()?;
        Ok(self.file.inner())
    }
}

fn write_column(
    chunk: &mut Chunk,
    column: &ArrayRef,
    codec: &mut Codec,
    scratch: &mut Scratch,
) -> Result<()> {
    let nulls = column.logical_nulls();
    if let Some(integers) = column.as_primitive_opt::<Int64Type>() {
        let values = integers.values();
        return pages(column.len(), nulls.as_ref(), |rows, nulls| {
            let values = values.get(rows.clone()).unwrap_or_default();
            match present(nulls) {
                Present::All => chunk.page(rows.len(), nulls, Values::Integers(values), codec),
                Present::None => chunk.page(rows.len(), nulls, Values::Integers(&[]), codec),
                Present::Some(nulls) => {
                    scratch.integers.clear();
                    extend_valid(&mut scratch.integers, values, nulls, |value| value);
                    chunk.page(rows.len(), Some(nulls), Values::Integers(&scratch.integers), codec)
                }
            }
        });
    }
    let texts = column.as_dictionary_opt::<Int32Type>();
    let Some((texts, names)) = texts.and_then(|texts| Some((texts, texts.values().as_string_opt::<i32>()?)))
    else {
        return Err(ParquetError::General(format!("a column of {} is not expected", column.data_type())));
    };
    let places = Places::of(names, chunk);
    let keys = texts.keys().values();
    pages(column.len(), nulls.as_ref(), |rows, nulls| {
        let keys = keys.get(rows.clone()).unwrap_or_default();
        let texts = &mut scratch.texts;
        texts.clear();
        match present(nulls) {
            Present::All => texts.extend(keys.iter().map(|key| places.get(*key))),
            Present::None => {}
            Present::Some(nulls) => extend_valid(texts, keys, nulls, |key| places.get(key)),
        }
        chunk.page(rows.len(), nulls, Values::Texts(texts), codec)
    })
}

/// Appends the values that are not NULL, each as `make` makes it.
fn extend_valid<T: Copy, V>(all: &mut Vec<V>, values: &[T], nulls: &NullBuffer, make: impl Fn(T) -> V) {
    for (start, end) in nulls.valid_slices() {
        all.extend(values.get(start..end).unwrap_or_default().iter().map(|value| make(*value)));
    }
}

/// The places in a chunk's dictionary of the texts of a batch.
struct Places(Vec<u32>);

impl Places {
    fn of(names: &StringArray, chunk: &mut Chunk) -> Self {
        Self(names.iter().map(|name| chunk.text(name.unwrap_or_default())).collect())
    }

    fn get(&self, key: i32) -> u32 {
        usize::try_from(key).ok().and_then(|key| self.0.get(key)).copied().unwrap_or_default()
    }
}

enum Present<'a> {
    All,
    None,
    Some(&'a NullBuffer),
}

fn present(nulls: Option<&NullBuffer>) -> Present<'_> {
    match nulls {
        Some(nulls) if nulls.null_count() == nulls.len() => Present::None,
        Some(nulls) if nulls.null_count() > 0 => Present::Some(nulls),
        _ => Present::All,
    }
}

/// Cuts rows into pages.
fn pages(
    rows: usize,
    nulls: Option<&NullBuffer>,
    mut write: impl FnMut(Range<usize>, Option<&NullBuffer>) -> Result<()>,
) -> Result<()> {
    (0..rows).step_by(PAGE_ROWS).try_for_each(|start| {
        let page = start..rows.min(start + PAGE_ROWS);
        let nulls = nulls.map(|nulls| nulls.slice(start, page.len()));
        write(page, nulls.as_ref())
    })
}

#[cfg(test)]
mod tests;
