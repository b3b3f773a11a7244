//! Compare: what changed between two snapshots, `a` (the source) and `b` (the reference, attached as `base`).
//!
//! Every change is a - b. Nothing is matched by address: stacks by their functions and files, segments by kind and size.

mod figures;
mod findings;
mod settings;

use serde_json::{Map, Value, json};

use super::facts::SnapshotFacts;
use super::frames::frames;
use super::language::Lang;
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{BASE, Engine, row};
use crate::error::Result;
use crate::quantity;

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
    }
}

row! {
    /// What a call stack holds in both snapshots.
    pub struct StackChange from "stack_compare" {
        /// Device number in the snapshots.
        device_index: i64,
        /// Call stack in this snapshot.
        stack_id: Option<i64>,
        /// Call stack in the other.
        base_stack_id: Option<i64>,
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

/// See the module.
#[derive(Debug)]
pub struct Compare;

impl Analysis for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn relations(&self) -> &'static [&'static str] {
        &["stack_compare", "device_compare", "segment_compare", "settings_compare"]
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

    fn device_json(&self, device_index: i64) -> Value {
        let mut json = Map::new();
        json.insert("device_index".to_owned(), json!(device_index));
        for row in self.counters.iter().filter(|row| row.device_index == device_index) {
            json.insert(
                row.counter.clone(),
                json!({"a": row.value, "b": row.base_value, "delta": row.change}),
            );
        }
        Value::Object(json)
    }

    fn segments_json(&self, change: &str) -> Vec<Value> {
        self.segments.iter().filter(|segment| segment.change == change).map(segment_json).collect()
    }
}

fn segment_json(segment: &SegmentChange) -> Value {
    let mut json = json!(segment);
    for (key, address) in [("address", segment.address), ("base_address", segment.base_address)] {
        if let Some(value) = json.get_mut(key) {
            *value = json!(address.map(quantity::address));
        }
    }
    json
}

fn stack_json(stack: &StackChange) -> Value {
    json!({
        "device_index": stack.device_index,
        "stack_id": stack.stack_id,
        "base_stack_id": stack.base_stack_id,
        "live_bytes": {"a": stack.live_bytes, "b": stack.base_bytes, "delta": stack.live_change},
        "live_count": {"a": stack.live_count, "b": stack.base_count, "delta": stack.live_count - stack.base_count},
        "frames": frames(stack.frames_json.as_deref()),
    })
}

impl Outcome for CompareOutcome {
    fn json(&self, _lang: Lang) -> Value {
        let (host, devices): (Vec<i64>, Vec<i64>) =
            self.device_indexes().into_iter().partition(|index| *index < 0);
        json!({
            "a": self.a.as_ref().map(SnapshotFacts::json),
            "b": self.b.as_ref().map(SnapshotFacts::json),
            "devices": devices.into_iter().map(|index| self.device_json(index)).collect::<Vec<_>>(),
            "host": host.into_iter().map(|index| self.device_json(index)).collect::<Vec<_>>(),
            "stacks": self.stacks.iter().map(stack_json).collect::<Vec<_>>(),
            "segments": {
                "new": self.segments_json("new"),
                "gone": self.segments_json("gone"),
                "grown": self.segments_json("grown"),
                "shrunk": self.segments_json("shrunk"),
            },
            "settings_diff": self.settings.iter().map(Difference::json).collect::<Vec<_>>(),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        findings::all(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }
}
