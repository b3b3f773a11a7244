//! How each column is stored in Parquet, decided here alone.
//!
//! The encodings make a trace event small, and let the codec see what repeats from step to step.

use parquet::arrow::encode_arrow_schema;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::schema::{Column, Table, VERSION};

/// Key of the table version in a file's metadata.
pub(super) const VERSION_KEY: &str = "npusnap.schema_version";

/// Rows of a row group: what one core reads at a time, and what the writer holds in memory.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 20;

/// Bytes a dictionary of integers may have; what comes after that is stored as differences.
pub(super) const INTEGER_BYTES: usize = 1 << 20;

/// Bytes of a dictionary of texts that end a row group before its time. A batch may go beyond with what it has.
pub(super) const TEXT_BYTES: usize = 16 << 20;

/// Rows of `call_stacks` between two looks at how large a page has become.
const STACK_ROWS: usize = 64;

/// Level of zstd. Level 3 takes 6 % more of an ingest's CPU time and makes the files a tenth smaller.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// That level as the library has it.
pub(super) fn zstd_level() -> Result<ZstdLevel, ParquetError> {
    ZstdLevel::try_new(ZSTD_LEVEL)
}

/// How the values of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// A dictionary, as values repeat: the allocator hands out the same sizes and addresses again and again.
    Dictionary,
    /// Differences to the value before, as the column climbs in small steps.
    Delta,
    /// As it is, as no value comes twice.
    Plain,
}

/// How the values of `column` are stored.
pub(super) fn storage(table: &Table, column: &Column) -> Storage {
    match (table.name, column.name) {
        // The last line is what is nearly constant: a difference of zero costs no bits, and less time than a look into a
        // dictionary.
        (
            _,
            "id"
            | "trace_index"
            | "time_us"
            | "alloc_index"
            | "free_requested_index"
            | "free_completed_index"
            | "alloc_time_us"
            | "free_time_us",
        )
        | (
            "traces" | "allocations",
            "device_id" | "pool_id_0" | "pool_id_1" | "is_workspace" | "block_size_exact",
        ) => Storage::Delta,
        ("call_stacks", "stack_hash" | "frames_json") => Storage::Plain,
        _ => Storage::Dictionary,
    }
}

/// Columns the rows of a table are sorted by, ascending; none where the order means nothing.
pub(in crate::store) fn sorted_by(table: &Table) -> &'static [&'static str] {
    match table.name {
        "traces" => &["device_id", "trace_index"],
        "devices" | "call_stacks" | "segments" | "blocks" | "allocations" => &["id"],
        _ => &[],
    }
}

/// Properties of the Parquet file of `table` as a whole, metadata included.
pub(super) fn properties(table: &Table) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_sorting_columns(sorting(table))
        .set_key_value_metadata(Some(metadata(table)))
}

/// Properties of the file of a table whose columns the library encodes.
pub(super) fn library_properties(table: &Table) -> Result<WriterProperties, ParquetError> {
    let builder = properties(table)
        .set_compression(Compression::ZSTD(zstd_level()?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page);
    // A page ends behind so many rows at the soonest, and a call stack is some thousand bytes.
    let builder =
        if table.name == "call_stacks" { builder.set_write_batch_size(STACK_ROWS) } else { builder };
    Ok(table.columns.iter().fold(builder, |builder, column| encode(builder, table, column)).build())
}

fn encode(builder: WriterPropertiesBuilder, table: &Table, column: &Column) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(column.name);
    let integer = column.sqlite == Some("INTEGER");
    let builder = match storage(table, column) {
        // Its values lie in no order: the smallest and the largest of a page leave no page out of a query.
        Storage::Dictionary => builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None),
        Storage::Delta | Storage::Plain => builder.set_column_dictionary_enabled(path.clone(), false),
    };
    // Beside a dictionary this is what the writer falls back to when the dictionary grows too large.
    if integer { builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED) } else { builder }
}

fn sorting(table: &Table) -> Option<Vec<SortingColumn>> {
    let columns: Vec<SortingColumn> = sorted_by(table)
        .iter()
        .filter_map(|name| table.columns.iter().position(|column| column.name == *name))
        .filter_map(|place| i32::try_from(place).ok())
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: false })
        .collect();
    (!columns.is_empty()).then_some(columns)
}

/// What the file says of itself: the Arrow schema for readers that know Arrow, plain text for all others.
fn metadata(table: &Table) -> Vec<KeyValue> {
    // The writer's own copy of the schema would show interned strings as dictionaries.
    let schema = KeyValue::new("ARROW:schema".to_owned(), encode_arrow_schema(&table.arrow()));
    let own = [
        (VERSION_KEY.to_owned(), VERSION.to_string()),
        ("npusnap.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("npusnap.doc".to_owned(), one_line(table.doc)),
    ];
    let columns =
        table.columns.iter().map(|column| (format!("npusnap.doc.{}", column.name), one_line(column.doc)));
    let pairs = own.into_iter().chain(columns).map(|(key, value)| KeyValue::new(key, value));
    std::iter::once(schema).chain(pairs).collect()
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
