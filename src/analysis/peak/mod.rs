//! Peak: how high each counter rose within the recorded window, after which event, and what lived at the highest point.
//!
//! Everything is measured in SQL; here the curve is thinned to what can be drawn, and limits of the answer are said.

mod charts;
mod doubt;
mod json;
mod tables;
mod words;

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub use charts::StepRow;

use super::chart::{ChartFigure, Level};
use super::devices::Device;
use super::downsample::extremes;
use super::facts::ImportNote;
use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{Engine, row};
use crate::error::Result;

/// The counters in the order that everything shows them: first the ledger of rounded sizes, then that of requests.
pub const COUNTERS: [&str; 5] =
    ["reserved", "allocated", "active", "allocated_requested", "active_requested"];

/// Points of a timeline that is drawn.
const POINTS: usize = 2000;

row! {
    /// Base, peak and end of one counter of a device.
    pub struct Peak from "memory_peaks" {
        /// Device number in the snapshot.
        device_index: i64,
        /// One of [`COUNTERS`].
        counter: String,
        /// Bytes just before the first event.
        base: Option<i64>,
        /// Bytes at the peak.
        peak: Option<i64>,
        /// Event after which it was reached; -1 where the window began with it.
        trace_index: Option<i64>,
        /// Time of that event.
        time_us: Option<i64>,
        /// Bytes after the last event.
        at_end: Option<i64>,
        /// Whether every block's real size is known.
        exact: i64,
    }
}

row! {
    /// What one stack held at the peak of allocated.
    pub struct Contributor from "peak_contributors" {
        /// Device number in the snapshot.
        device_index: i64,
        /// `stack`, `no_stack`, `others` or `unexplained`.
        part: String,
        /// Call stack.
        stack_id: Option<i64>,
        /// Rounded bytes.
        allocated_size: i64,
        /// Requested bytes.
        requested_size: i64,
        /// Blocks.
        block_count: i64,
        /// Rounded bytes that waited for a pending free, beside those.
        pending_size: i64,
        /// The stack's frames.
        frames_json: Option<String>,
    }
}

row! {
    /// The counters after an event.
    pub struct Point from "memory_curve" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the event.
        trace_index: i64,
        /// Time of the event.
        time_us: Option<i64>,
        /// Bytes held from the driver.
        reserved: Option<i64>,
        /// Rounded bytes in allocated blocks.
        allocated: Option<i64>,
        /// Rounded bytes in allocated and pending-free blocks.
        active: Option<i64>,
        /// Requested bytes in allocated blocks.
        allocated_requested: Option<i64>,
        /// Requested bytes in allocated and pending-free blocks.
        active_requested: Option<i64>,
    }
}

row! {
    /// An event worth pointing at, with the counters after it.
    pub struct Mark from "memory_marks" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the event.
        trace_index: i64,
        /// Time of the event.
        time_us: Option<i64>,
        /// What happened.
        action: String,
        /// Bytes of the event.
        size: Option<i64>,
        /// Whether a counter reached its peak.
        is_peak: i64,
        /// Bytes held from the driver.
        reserved: Option<i64>,
        /// Rounded bytes in allocated blocks.
        allocated: Option<i64>,
        /// Rounded bytes in allocated and pending-free blocks.
        active: Option<i64>,
        /// Requested bytes in allocated blocks.
        allocated_requested: Option<i64>,
        /// Requested bytes in allocated and pending-free blocks.
        active_requested: Option<i64>,
    }
}

/// See the module.
#[derive(Debug)]
pub struct PeakAnalysis;

impl Analysis for PeakAnalysis {
    fn name(&self) -> &'static str {
        "peak"
    }

    fn relations(&self) -> &'static [&'static str] {
        &["memory_peaks", "peak_contributors", "memory_curve", "memory_marks"]
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        let devices = Device::in_scope(engine, scope)?;
        let mut peaks: Vec<Peak> = scope.rows(engine)?;
        let mut contributors: Vec<Contributor> = scope.rows(engine)?;
        let mut curve: Vec<Point> = scope.rows(engine)?;
        let mut marks: Vec<Mark> = scope.rows(engine)?;
        let notes = ImportNote::read(engine)?;
        let all = devices.into_iter().map(|device| {
            let index = device.device_index;
            let speaks = |note: &&ImportNote| note.device_id.is_none_or(|id| id == device.id);
            let lost = |note: &ImportNote| note.name == "trace_alloc_overflowed" && note.value > 0;
            let points: Vec<Point> = curve.extract_if(.., |row| row.device_index == index).collect();
            let has_history = !points.is_empty();
            DevicePeak {
                device_index: index,
                peaks: peaks.extract_if(.., |row| row.device_index == index).collect(),
                // What only waited to be freed then is no part of allocated; without events there is no such moment.
                contributors: contributors
                    .extract_if(.., |row| row.device_index == index)
                    .filter(|row| has_history && (row.allocated_size != 0 || row.block_count != 0))
                    .collect(),
                has_history,
                overflowed: notes.iter().filter(speaks).any(lost),
                doubts: notes.iter().filter(speaks).filter_map(doubt::reason).collect(),
                points,
                marks: marks.extract_if(.., |row| row.device_index == index).collect(),
            }
            .drawn()
        });
        // Pinned host memory is a domain of its own: it stands beside the devices, never among them.
        let (host, devices) = all.partition(|device| device.device_index < 0);
        Ok(Box::new(PeakOutcome { devices, host, thresholds: thresholds.clone() }))
    }
}

#[derive(Debug)]
struct PeakOutcome {
    devices: Vec<DevicePeak>,
    host: Vec<DevicePeak>,
    thresholds: Thresholds,
}

/// One device, with the points of its timeline as they are drawn.
#[derive(Debug)]
struct DevicePeak {
    device_index: i64,
    peaks: Vec<Peak>,
    contributors: Vec<Contributor>,
    has_history: bool,
    /// The snapshot says that the ring buffer overflowed.
    overflowed: bool,
    /// What the import found that speaks against the curves.
    doubts: Vec<Text>,
    points: Vec<Point>,
    marks: Vec<Mark>,
}

impl Outcome for PeakOutcome {
    fn json(&self, _lang: Lang) -> Value {
        json!({
            "devices": self.devices.iter().map(DevicePeak::json).collect::<Vec<_>>(),
            "host": self.host.iter().map(DevicePeak::json).collect::<Vec<_>>(),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        words::findings(&self.devices, &self.thresholds)
    }

    fn figures(&self) -> Vec<Figure> {
        tables::figures(&self.devices, &self.host)
    }

    fn charts(&self, engine: &Engine, wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        charts::all(engine, self.devices.iter().filter(|device| wanted(device.device_index)))
    }
}

impl DevicePeak {
    fn peak(&self, counter: &str) -> Option<&Peak> {
        self.peaks.iter().find(|peak| peak.counter == counter)
    }

    /// The base, the curve and the marks as one row of points, thinned.
    fn drawn(mut self) -> Self {
        if !self.has_history {
            return self;
        }
        let base = |counter: &str| self.peak(counter).and_then(|peak| peak.base);
        let mut points = vec![Point {
            device_index: self.device_index,
            trace_index: -1,
            time_us: None,
            reserved: base("reserved"),
            allocated: base("allocated"),
            active: base("active"),
            allocated_requested: base("allocated_requested"),
            active_requested: base("active_requested"),
        }];
        points.append(&mut self.points);
        points.extend(self.marks.iter().map(Mark::point));
        points.sort_by_key(|point| point.trace_index);
        points.dedup_by_key(|point| point.trace_index);
        let marked: BTreeSet<i64> = self.marks.iter().map(|mark| mark.trace_index).collect();
        let places = points.iter().enumerate();
        let keep: Vec<usize> =
            places.filter(|(_, point)| marked.contains(&point.trace_index)).map(|(place, _)| place).collect();
        let curves = [
            points.iter().map(|point| point.reserved).collect(),
            points.iter().map(|point| point.allocated).collect(),
            points.iter().map(|point| point.active).collect(),
        ];
        let chosen = extremes(&curves, POINTS, &keep);
        self.points = chosen.into_iter().filter_map(|place| points.get(place).cloned()).collect();
        self
    }
}

impl Point {
    /// The counters that charts show.
    pub(super) fn level(&self) -> Level {
        Level {
            trace_index: self.trace_index,
            time_us: self.time_us,
            bytes: [self.reserved, self.active, self.allocated],
        }
    }
}

impl Mark {
    fn point(&self) -> Point {
        Point {
            device_index: self.device_index,
            trace_index: self.trace_index,
            time_us: self.time_us,
            reserved: self.reserved,
            allocated: self.allocated,
            active: self.active,
            allocated_requested: self.allocated_requested,
            active_requested: self.active_requested,
        }
    }
}
