//! Files of the column writer, read by the library.

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
    let integers =
        |value: fn(i64) -> Option<i64>| Arc::new(rows.clone().map(value).collect::<Int64Array>()) as ArrayRef;
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
    let properties = encoding::properties(table).build();
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
    assert!(encodings(&metadata, "addr").contains(&Encoding::DELTA_BINARY_PACKED), "the dictionary is full");
    assert!(!encodings(&metadata, "user_metadata").contains(&Encoding::RLE_DICTIONARY), "nothing but NULL");

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
    let text = "x".repeat(encoding::TEXT_BYTES);
    let texts: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter([Some(text.as_str()), None]));
    let batch = batch(0..2);
    let mut columns = batch.columns().to_vec();
    columns[place("user_metadata")] = texts;
    let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
    let (file, _dir) = written(&[batch.clone(), batch]);
    assert_eq!(opened(file).metadata().num_row_groups(), 2);
}
