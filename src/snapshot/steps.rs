//! Markers of steps in a file beside the snapshot, `X.pickle.steps.jsonl`: torch_npu has neither named ranges nor a clock,
//! so the capture helper notes how many allocations there had been at each marker, and at the dump.
//!
//! A marker stands where as many allocs follow as were made between it and the dump. That holds however much of the
//! beginning the ring buffer forgot. A line that is none is passed over and counted.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use arrow::array::AsArray as _;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use serde::Deserialize;

use super::RowSink;
use super::beside::device_ids;
use crate::error::{Error, Result};
use crate::schema::{
    Annotation, AnnotationsBuilder, ImportStat, ImportStatsBuilder, NoNames, Snapshot, Table,
};

/// More than so many bytes of markers are not read.
const MOST_BYTES: u64 = 64 << 20;

/// Stage of the line that is written with the snapshot.
const DUMP: &str = "DUMP";

#[derive(Debug, Clone, Deserialize)]
struct Mark {
    stage: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    time_us: Option<i64>,
    #[serde(default)]
    device: Option<i64>,
    #[serde(default)]
    allocations: Option<i64>,
}

/// A sink that adds the markers to `annotations` on their way.
pub(super) struct Marked<'a> {
    sink: &'a mut dyn RowSink,
    /// Whether the events that are handed on are all up to the last.
    keeps_the_end: bool,
    marks: Vec<Mark>,
    unreadable: i64,
    /// Positions of the allocs of each device, by `devices.id`.
    allocs: HashMap<i64, Vec<i64>>,
    /// `devices.id` by `device_index`.
    devices: HashMap<i64, i64>,
}

impl<'a> Marked<'a> {
    /// Reads the markers in `path`, if there are any. They are placed by counting allocations from the end, which
    /// `keeps_the_end` says are all there.
    pub(super) fn new(path: Option<&Path>, keeps_the_end: bool, sink: &'a mut dyn RowSink) -> Result<Self> {
        let (allocs, devices) = (HashMap::new(), HashMap::new());
        let (mut marks, mut unreadable) = (Vec::new(), 0);
        let Some((path, Ok(file))) = path.map(|path| (path, File::open(path))) else {
            return Ok(Self { sink, keeps_the_end, marks, unreadable, allocs, devices });
        };
        for line in BufReader::new(file.take(MOST_BYTES)).split(b'\n') {
            let line = line.map_err(Error::io(path, "cannot read"))?;
            match serde_json::from_slice(&line) {
                Ok(mark) => marks.push(mark),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(_) => unreadable += 1,
            }
        }
        Ok(Self { sink, keeps_the_end, marks, unreadable, allocs, devices })
    }

    fn watch(&mut self, batch: &RecordBatch) -> Option<()> {
        let column = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        let (devices, indexes) = (column("device_id")?, column("trace_index")?);
        let workspace = column("is_workspace")?;
        let actions = cast(batch.column_by_name("action")?, &DataType::Utf8).ok()?;
        let actions = actions.as_string_opt::<i32>()?;
        for row in 0..batch.num_rows() {
            if actions.value(row) == "alloc" && workspace.value(row) == 0 {
                self.allocs.entry(devices.value(row)).or_default().push(indexes.value(row));
            }
        }
        Some(())
    }

    /// The last event before the alloc that came first after the marker; none where that is not in the window.
    fn place(&self, mark: &Mark, dumped: &HashMap<i64, i64>) -> Option<i64> {
        let device = mark.device.filter(|_| self.keeps_the_end)?;
        let later = dumped.get(&device)?.checked_sub(mark.allocations?)?;
        let allocs = self.allocs.get(self.devices.get(&device)?)?;
        let later = usize::try_from(later).ok()?;
        let next = allocs.len().checked_sub(later)?;
        match allocs.get(next) {
            Some(index) => index.checked_sub(1),
            None => allocs.last().copied(),
        }
    }

    fn write_marks(&mut self) -> Result<()> {
        let dumped: HashMap<i64, i64> = self
            .marks
            .iter()
            .filter(|mark| mark.stage == DUMP)
            .filter_map(|mark| mark.device.zip(mark.allocations))
            .collect();
        let mut builder = AnnotationsBuilder::default();
        let (mut count, mut unplaced) = (0, 0);
        for mark in self.marks.iter().filter(|mark| mark.stage != DUMP) {
            let trace_index = self.place(mark, &dumped);
            count += 1;
            unplaced += i64::from(trace_index.is_none());
            builder.push(Annotation {
                device_id: mark.device.and_then(|device| self.devices.get(&device).copied()),
                stage: Some(mark.stage.clone()),
                name: mark.name.clone(),
                time_us: mark.time_us,
                trace_index,
            });
        }
        if count > 0 {
            let failed = Error::store("steps.jsonl", "cannot build a batch of rows");
            self.sink.write(&Annotation::TABLE, builder.finish(&NoNames).map_err(failed)?)?;
        }
        let mut stats = ImportStatsBuilder::default();
        for (name, value, doc) in [
            (
                "step_markers",
                count,
                "markers of steps from the file beside the snapshot; rows of annotations",
            ),
            (
                "step_markers_before_window",
                unplaced,
                "of them, markers whose events are not in the window, or were left out",
            ),
            (
                "step_markers_unreadable",
                self.unreadable,
                "lines of the file beside the snapshot that are no markers",
            ),
        ] {
            if value > 0 {
                let (name, severity) = (name.to_owned(), "info".to_owned());
                stats.push(ImportStat { name, severity, device_id: None, value, doc: doc.to_owned() });
            }
        }
        if count + self.unreadable > 0 {
            let failed = Error::store("steps.jsonl", "cannot build a batch of rows");
            self.sink.write(&ImportStat::TABLE, stats.finish(&NoNames).map_err(failed)?)?;
        }
        Ok(())
    }
}

impl RowSink for Marked<'_> {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        match table.name {
            "traces" if !self.marks.is_empty() => self.watch(&batch).unwrap_or_default(),
            "devices" => self.devices.extend(device_ids(&batch)),
            _ => {}
        }
        // It comes last of all that is asked for here, and it always comes.
        if table.name == Snapshot::TABLE.name {
            self.write_marks()?;
        }
        self.sink.write(table, batch)
    }
}
