//! A sink that keeps every row in memory, and short ways to ask for columns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, DictionaryArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use npusnap::error::{Error, Result};
use npusnap::pickle::PickleError;
use npusnap::replay::Replay;
use npusnap::schema::Table;
use npusnap::snapshot::{Options, Progress, RowSink, Summary, check_from, read_from};

/// All rows of an import.
#[derive(Default)]
pub(crate) struct Rows {
    tables: BTreeMap<&'static str, Vec<RecordBatch>>,
    pub(crate) summary: Summary,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.summary)
    }
}

impl RowSink for Rows {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        assert_eq!(batch.schema(), table.batch(), "batches of {} have the declared schema", table.name);
        self.tables.entry(table.name).or_default().push(batch);
        Ok(())
    }
}

struct Silent;

impl Progress for Silent {
    fn advance(&self, _bytes: u64, _events: u64) {}
}

/// Reads a snapshot from memory, in both ways, which have to agree in everything, and once more to count only.
pub(crate) fn read(bytes: &[u8]) -> Result<Rows> {
    let fast = read_with(bytes, &Options::default());
    let plain = read_with(bytes, &Options { plain_loop: true, ..Options::default() });
    match (&fast, &plain) {
        (Ok(fast), Ok(plain)) => assert_eq!(fast.listing(), plain.listing(), "both ways give the same rows"),
        (Err(fast), Err(plain)) => assert_eq!(told(fast), told(plain), "both ways give the same error"),
        _ => panic!("the ways differ: {fast:?} and {plain:?}"),
    }
    let length = u64::try_from(bytes.len()).ok();
    let counted = check_from(bytes, length, Path::new("test.pickle"), &Options::default(), &Silent);
    match (&fast, &counted) {
        (Ok(rows), Ok(counted)) => {
            assert_eq!(
                format!("{:?}", rows.summary),
                format!("{counted:?}"),
                "what is counted is what is read"
            );
        }
        (Err(read), Err(counted)) => assert_eq!(told(read), told(counted), "counting finds the same fault"),
        _ => panic!("counting differs: {fast:?} and {counted:?}"),
    }
    fast
}

/// An error with all its causes.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

/// Reads a snapshot from memory with options.
pub(crate) fn read_with(bytes: &[u8], options: &Options) -> Result<Rows> {
    let mut rows = Rows::default();
    let length = u64::try_from(bytes.len()).ok();
    let summary = read_from(bytes, length, Path::new("test.pickle"), options, &mut rows, &Silent)?;
    rows.summary = summary;
    Ok(rows)
}

/// Reads and replays a snapshot from memory.
pub(crate) fn replayed(bytes: &[u8], options: &Options) -> Rows {
    let mut rows = Rows::default();
    let folder = tempfile::tempdir().unwrap();
    let mut replay = Replay::new(folder.path(), &mut rows);
    let length = u64::try_from(bytes.len()).ok();
    let summary = read_from(bytes, length, Path::new("test.pickle"), options, &mut replay, &Silent).unwrap();
    replay.finish(options, &summary).unwrap();
    rows.summary = summary;
    rows
}

/// The pickle error that reading ends with.
pub(crate) fn pickle_error(bytes: &[u8]) -> PickleError {
    match read(bytes) {
        Err(Error::Pickle { source, .. }) => source,
        other => panic!("expected a pickle error, got {other:?}"),
    }
}

/// Path, expectation and finding of the shape error that reading ends with.
pub(crate) fn shape_error(bytes: &[u8]) -> (String, String, String) {
    match read(bytes) {
        Err(Error::Shape { at, expected, found, .. }) => (at, expected, found),
        other => panic!("expected a shape error, got {other:?}"),
    }
}

impl Rows {
    fn column(&self, table: &str, column: &str) -> Vec<arrow::array::ArrayRef> {
        let batches = self.tables.get(table).map(Vec::as_slice).unwrap_or_default();
        batches.iter().map(|batch| batch.column_by_name(column).unwrap()).map(Arc::clone).collect()
    }

    /// An integer column.
    pub(crate) fn ints(&self, table: &str, column: &str) -> Vec<Option<i64>> {
        let arrays = self.column(table, column);
        arrays.iter().flat_map(|array| array.as_any().downcast_ref::<Int64Array>().unwrap().iter()).collect()
    }

    /// A text column, interned or not.
    pub(crate) fn texts(&self, table: &str, column: &str) -> Vec<Option<String>> {
        let mut values = Vec::new();
        for array in self.column(table, column) {
            let plain = match array.as_any().downcast_ref::<DictionaryArray<Int32Type>>() {
                Some(_) => cast(&array, &DataType::Utf8).unwrap(),
                None => array,
            };
            let plain: &StringArray = plain.as_string();
            values.extend(plain.iter().map(|value| value.map(str::to_owned)));
        }
        values
    }

    /// The frames of every stack as (name, filename, line), one line of text each.
    pub(crate) fn nested_frames(&self) -> Vec<String> {
        let arrays = self.column("call_stacks", "frames");
        arrays.iter().flat_map(shown).collect()
    }

    /// Value of a statistic, all devices together.
    pub(crate) fn stat(&self, name: &str) -> Option<i64> {
        let names = self.texts("import_stats", "name");
        let values = self.ints("import_stats", "value");
        let found: Vec<i64> = names
            .iter()
            .zip(values)
            .filter(|(found, _)| found.as_deref() == Some(name))
            .filter_map(|(_, value)| value)
            .collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }

    /// Every row of every table as text; `snapshot` without what differs between two encodings of the same graph.
    pub(crate) fn listing(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (table, batches) in &self.tables {
            for batch in batches {
                let columns: Vec<(String, Vec<String>)> = batch
                    .schema()
                    .fields()
                    .iter()
                    .map(|field| field.name().clone())
                    .zip(batch.columns().iter().map(shown))
                    .filter(|(name, _)| {
                        !matches!(name.as_str(), "source_bytes" | "sha256" | "producer" | "protocol")
                    })
                    .collect();
                for row in 0..batch.num_rows() {
                    let values: Vec<&str> = columns.iter().map(|(_, values)| values[row].as_str()).collect();
                    lines.push(format!("{table}: {}", values.join(" | ")));
                }
            }
        }
        lines
    }
}

fn shown(array: &arrow::array::ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).unwrap();
    (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
}
