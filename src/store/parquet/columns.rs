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

/// Bytes of a dictionary of texts that end a row group before its time. A batch may go beyond with what it has.
const DICTIONARY_BYTES: usize = 16 << 20;

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
            if self.rows >= encoding::ROW_GROUP_ROWS || dictionaries.max() > Some(DICTIONARY_BYTES) {
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
mod tests {
    use arrow::array::{DictionaryArray, Int64Array};
    use arrow::compute::{cast, concat_batches};
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use parquet::basic::Encoding;
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, RowGroupMetaData};

    use super::*;
    use crate::schema::TraceEvent;

    const WORDS: [&str; 3] = ["alloc", "", "free_completed"];

    /// A batch of `traces` whose columns are made of row numbers.
    fn batch(rows: Range<i64>) -> RecordBatch {
        let table = &TraceEvent::TABLE;
        let integers = |value: fn(i64) -> Option<i64>| {
            Arc::new(rows.clone().map(value).collect::<Int64Array>()) as ArrayRef
        };
        let words = |value: fn(i64) -> Option<usize>| {
            let words = rows.clone().map(|row| value(row).map(|word| WORDS[word]));
            Arc::new(words.collect::<DictionaryArray<Int32Type>>()) as ArrayRef
        };
        let columns = table.columns.iter().map(|column| match column.name {
            "id" | "trace_index" => integers(Some),
            // Nearly all are different, so that the dictionary is full before the end of a row group.
            "addr" => integers(|row| Some((row * 7919) % 300_007 * 512 - (1 << 40))),
            "size" => integers(|row| (row % 3 != 0).then_some(row % 5000)),
            "stack_id" => integers(|row| (row > 100).then_some(row % 700)),
            // NULL in one page and not in the next.
            "time_us" => integers(|row| (row / 70_000 % 2 == 0).then_some(row * row)),
            "stream" => integers(|row| Some(if row == 5 { i64::MIN } else { i64::MAX })),
            "action" => words(|row| usize::try_from(row % 3).ok()),
            "compile_context" => words(|row| (row % 2 == 0).then_some(1)),
            "user_metadata" => words(|_| None),
            _ if column.nullable => integers(|_| None),
            _ => integers(|_| Some(1)),
        });
        RecordBatch::try_new(table.batch(), columns.collect()).unwrap()
    }

    fn written(batches: &[RecordBatch]) -> (File, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("traces.parquet");
        let table = &TraceEvent::TABLE;
        assert!(can_write(table));
        let properties = encoding::properties(table).unwrap();
        let mut writer = ColumnsWriter::new(File::create(&path).unwrap(), table, properties).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
        (File::open(path).unwrap(), dir)
    }

    fn opened(file: File) -> ParquetRecordBatchReaderBuilder<File> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap()
    }

    fn place(name: &str) -> usize {
        TraceEvent::TABLE.columns.iter().position(|column| column.name == name).unwrap()
    }

    fn encodings(metadata: &ParquetMetaData, name: &str) -> Vec<Encoding> {
        metadata.row_group(0).column(place(name)).encodings().collect()
    }

    #[test]
    fn the_library_reads_what_was_written_across_pages_and_row_groups() {
        let rows = i64::try_from(encoding::ROW_GROUP_ROWS).unwrap() + 70_000;
        let batches: Vec<_> =
            (0..rows).step_by(65_536).map(|start| batch(start..rows.min(start + 65_536))).collect();
        let (file, _dir) = written(&batches);
        let reader = opened(file);
        let metadata = Arc::clone(reader.metadata());
        let groups: Vec<i64> = metadata.row_groups().iter().map(RowGroupMetaData::num_rows).collect();
        assert_eq!(groups, [1 << 20, 70_000]);
        assert!(encodings(&metadata, "addr").contains(&Encoding::RLE_DICTIONARY));
        assert!(
            encodings(&metadata, "addr").contains(&Encoding::DELTA_BINARY_PACKED),
            "the dictionary is full"
        );
        assert!(
            !encodings(&metadata, "user_metadata").contains(&Encoding::RLE_DICTIONARY),
            "nothing but NULL"
        );

        let read: Vec<_> = reader.with_batch_size(1 << 21).build().unwrap().map(Result::unwrap).collect();
        let read = concat_batches(&read[0].schema(), &read).unwrap();
        let expected = concat_batches(&batches[0].schema(), &batches).unwrap();
        for (number, column) in TraceEvent::TABLE.columns.iter().enumerate() {
            let expected = cast(expected.column(number), &(column.data_type)()).unwrap();
            assert!(read.column(number) == &expected, "{}", column.name);
        }
    }

    #[test]
    fn pages_of_ordered_columns_are_found_by_their_smallest_and_largest_value() {
        let rows = i64::try_from(PAGE_ROWS).unwrap() * 2 + 10;
        let (file, _dir) = written(&[batch(0..rows)]);
        let metadata = Arc::clone(opened(file).metadata());
        let statistics = metadata.row_group(0).column(place("trace_index")).statistics().unwrap();
        let bytes = |value: i64| Some(value.to_le_bytes().to_vec());
        assert_eq!(statistics.min_bytes_opt().map(<[u8]>::to_vec), bytes(0));
        assert_eq!(statistics.max_bytes_opt().map(<[u8]>::to_vec), bytes(rows - 1));
        let offsets = &metadata.offset_index().unwrap()[0][place("trace_index")];
        let firsts: Vec<i64> = offsets.page_locations().iter().map(|page| page.first_row_index).collect();
        assert_eq!(firsts, [0, 65_536, 131_072]);
        let index = &metadata.column_index().unwrap()[0][place("trace_index")];
        assert!(index.is_sorted());
        assert_eq!(index.null_counts(), Some(&vec![0; 3]));
    }

    #[test]
    fn a_table_without_rows_is_a_whole_file() {
        for batches in [vec![], vec![batch(0..0)]] {
            let (file, _dir) = written(&batches);
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        }
    }

    #[test]
    fn large_dictionaries_end_a_row_group_before_its_time() {
        let text = "x".repeat(DICTIONARY_BYTES);
        let texts: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter([Some(text.as_str()), None]));
        let batch = batch(0..2);
        let mut columns = batch.columns().to_vec();
        columns[place("user_metadata")] = texts;
        let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
        let (file, _dir) = written(&[batch.clone(), batch]);
        assert_eq!(opened(file).metadata().num_row_groups(), 2);
    }
}
