//! Compare: what changed between two snapshots, `a` (the source) and `b` (the reference, attached as `base`).
//!
//! Every change is a - b. Nothing is matched by address: stacks by their functions and files, segments by kind and size.

mod figures;
mod findings;
mod json;
mod overlay;
mod settings;

use serde_json::Value;

use super::chart::ChartFigure;
use super::facts::SnapshotFacts;
use super::language::Lang;
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{BASE, Engine, row};
use crate::error::Result;

pub use overlay::CourseRow;
use overlay::overlay;
use settings::{Difference, differences};

row! {
    /// A counter of a device in both snapshots.
    pub struct CounterChange from "device_compare" {
        /// Device number in the snapshots.
        device_index: i64,
        /// Name of the counter.
        counter: String,
        /// In this snapshot.
        value: Option<i64>,
        /// In the other.
        base_value: Option<i64>,
        /// The difference.
        change: Option<i64>,
        /// Highest in this snapshot's window.
        peak: Option<i64>,
        /// Highest in the other's.
        base_peak: Option<i64>,
        /// The difference.
        peak_change: Option<i64>,
        /// Event that reached it.
        peak_index: Option<i64>,
        /// Event that reached it in the other.
        base_index: Option<i64>,
    }
}

row! {
    /// What a call stack holds in both snapshots.
    pub struct StackChange from "stack_compare" {
        /// Device number in the snapshots.
        device_index: i64,
        /// Call stack in this snapshot.
        stack_id: Option<i64>,
        /// Call stacks in this snapshot that are the same but for their lines.
        stack_count: i64,
        /// Call stack in the other.
        base_stack_id: Option<i64>,
        /// Those in the other.
        base_stack_count: i64,
        /// Bytes held in this snapshot.
        live_bytes: i64,
        /// Bytes held in the other.
        base_bytes: i64,
        /// The difference.
        live_change: i64,
        /// Blocks in this snapshot.
        live_count: i64,
        /// Blocks in the other.
        base_count: i64,
        /// Bytes held at the peak of this snapshot; `None` where no peak is known.
        peak_bytes: Option<i64>,
        /// Bytes held at the peak of the other.
        base_peak: Option<i64>,
        /// The difference.
        peak_change: Option<i64>,
        /// Frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// A segment that is not the same in both snapshots.
    pub struct SegmentChange from "segment_compare" {
        /// `new`, `gone`, `grown` or `shrunk`.
        change: String,
        /// Device number in the snapshots.
        device_index: i64,
        /// `large` or `small`.
        segment_type: Option<String>,
        /// 1 in a private pool.
        is_private: i64,
        /// 1 for an expandable segment.
        is_expandable: i64,
        /// Row of table `segments`.
        segment_id: Option<i64>,
        /// Start address.
        address: Option<i64>,
        /// Bytes.
        total_size: Option<i64>,
        /// Row of table `segments` in the other snapshot.
        base_segment_id: Option<i64>,
        /// Start address there.
        base_address: Option<i64>,
        /// Bytes there.
        base_total_size: Option<i64>,
        /// The difference.
        size_change: i64,
    }
}

row! {
    /// A fact about both snapshots.
    pub struct FactPair from "settings_compare" {
        /// What it is.
        name: String,
        /// In this snapshot.
        value: Option<String>,
        /// In the other.
        base_value: Option<String>,
    }
}

row! {
    /// A step of both recordings on one axis.
    pub struct TimelineStep from "timeline_compare" {
        /// Device number in the snapshots.
        device_index: i64,
        /// Share of the events at its end.
        position: f64,
        /// Last event of it in this snapshot.
        trace_index: Option<i64>,
        /// Bytes held from the driver.
        reserved: Option<i64>,
        /// Bytes in allocated blocks.
        allocated: Option<i64>,
        /// Bytes in allocated and pending-free blocks.
        active: Option<i64>,
        /// Last event of it in the other.
        base_trace_index: Option<i64>,
        /// Bytes held from the driver there.
        base_reserved: Option<i64>,
        /// Bytes in allocated blocks there.
        base_allocated: Option<i64>,
        /// Bytes in allocated and pending-free blocks there.
        base_active: Option<i64>,
    }
}

/// See the module.
#[derive(Debug)]
pub struct Compare;

impl Analysis for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn relations(&self) -> &'static [&'static str] {
        &["stack_compare", "device_compare", "segment_compare", "settings_compare", "timeline_compare"]
    }

    fn needs_base(&self) -> bool {
        true
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        let facts: Vec<FactPair> = scope.rows(engine)?;
        Ok(Box::new(CompareOutcome {
            a: SnapshotFacts::read(engine)?,
            b: SnapshotFacts::read_attached(engine, BASE)?,
            counters: scope.rows(engine)?,
            stacks: scope.rows(engine)?,
            segments: scope.rows(engine)?,
            timeline: scope.rows(engine)?,
            settings: differences(&facts),
            thresholds: thresholds.clone(),
        }))
    }
}

/// Both snapshots and what differs.
#[derive(Debug)]
struct CompareOutcome {
    a: Option<SnapshotFacts>,
    b: Option<SnapshotFacts>,
    counters: Vec<CounterChange>,
    stacks: Vec<StackChange>,
    segments: Vec<SegmentChange>,
    timeline: Vec<TimelineStep>,
    settings: Vec<Difference>,
    thresholds: Thresholds,
}

impl CompareOutcome {
    /// Numbers of the devices that either snapshot has; -1 is pinned host memory.
    fn device_indexes(&self) -> Vec<i64> {
        let mut indexes: Vec<i64> = self.counters.iter().map(|row| row.device_index).collect();
        indexes.dedup();
        indexes
    }

    fn counter(&self, device_index: i64, counter: &str) -> Option<&CounterChange> {
        self.counters.iter().find(|row| row.device_index == device_index && row.counter == counter)
    }

    /// Whether events of a device were recorded: in this snapshot, and in the other.
    fn recorded(&self, device_index: i64) -> (bool, bool) {
        let own = || self.timeline.iter().filter(|step| step.device_index == device_index);
        (own().any(|step| step.trace_index.is_some()), own().any(|step| step.base_trace_index.is_some()))
    }
}

impl Outcome for CompareOutcome {
    fn json(&self, _lang: Lang) -> Value {
        json::all(self)
    }

    fn findings(&self) -> Vec<Finding> {
        findings::all(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn charts(&self, engine: &Engine, wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        let name = |facts: &Option<SnapshotFacts>| {
            facts.as_ref().map_or_else(String::new, |facts| facts.source_name().to_owned())
        };
        let mut charts = Vec::new();
        for device in self.device_indexes().into_iter().filter(|index| *index >= 0 && wanted(*index)) {
            charts.extend(overlay(engine, device, [name(&self.a), name(&self.b)])?);
        }
        Ok(charts)
    }
}
