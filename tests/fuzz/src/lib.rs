//! What the fuzz targets share: reading bytes into rows that are checked and kept, and errors as text.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use npusnap::error::{Error, Result};
use npusnap::schema::Table;
use npusnap::snapshot::{Options, RowSink, Summary, read_from};
use npusnap::store::Silent;

pub mod opcodes;
pub mod wrap;

/// All rows of an import, table by table, in batches as they came.
#[derive(Default)]
pub struct Rows {
    pub tables: BTreeMap<&'static str, Vec<RecordBatch>>,
    counts: BTreeMap<&'static str, i64>,
    last_event: (i64, i64),
}

impl RowSink for Rows {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        assert_eq!(batch.schema(), table.batch(), "batches of {} have the declared schema", table.name);
        let count = self.counts.entry(table.name).or_default();
        if let Some(ids) = batch.column_by_name("id") {
            for id in ids.as_primitive::<Int64Type>().values() {
                *count += 1;
                assert_eq!(*id, *count, "ids of {} count from 1", table.name);
            }
        }
        if table.name == "traces" {
            let column = |name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().values();
            for event in column("device_id").iter().copied().zip(column("trace_index").iter().copied()) {
                assert!(event > self.last_event, "events come sorted: {event:?} after {:?}", self.last_event);
                self.last_event = event;
            }
        }
        self.tables.entry(table.name).or_default().push(batch);
        Ok(())
    }
}

impl Rows {
    fn agree_with(&self, summary: &Summary) {
        let rows = |table| u64::try_from(self.counts.get(table).copied().unwrap_or_default()).unwrap();
        let counted = (rows("segments"), rows("blocks"), rows("traces"), rows("call_stacks"));
        assert_eq!(counted, (summary.segments, summary.blocks, summary.events, summary.stacks));
    }
}

/// Reads a snapshot from memory, and checks what holds for every import.
pub fn read(bytes: &[u8], options: &Options) -> Result<Rows> {
    let mut rows = Rows { last_event: (i64::MIN, i64::MIN), ..Rows::default() };
    let length = u64::try_from(bytes.len()).ok();
    let summary = read_from(bytes, length, Path::new("fuzz.pickle"), options, &mut rows, &Silent)?;
    rows.agree_with(&summary);
    Ok(rows)
}

/// An error with all its causes; making the text is part of what is tried.
pub fn told(error: &Error) -> String {
    let mut text = format!("{error} {:?}", error.hint());
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
