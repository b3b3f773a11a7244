//! Both snapshots and what differs as JSON.

use serde_json::{Map, Value, json};

use super::settings::Difference;
use super::{CompareOutcome, SegmentChange, StackChange, TimelineStep};
use crate::analysis::facts::SnapshotFacts;
use crate::analysis::frames::frames;
use crate::analysis::peak::COUNTERS;
use crate::quantity;

/// The `result` object.
pub(super) fn all(outcome: &CompareOutcome) -> Value {
    let (host, devices): (Vec<i64>, Vec<i64>) =
        outcome.device_indexes().into_iter().partition(|index| *index < 0);
    json!({
        "a": outcome.a.as_ref().map(SnapshotFacts::json),
        "b": outcome.b.as_ref().map(SnapshotFacts::json),
        "devices": devices.into_iter().map(|index| outcome.device_json(index)).collect::<Vec<_>>(),
        "host": host.into_iter().map(|index| outcome.device_json(index)).collect::<Vec<_>>(),
        "stacks": outcome.stacks.iter().map(stack_json).collect::<Vec<_>>(),
        "segments": {
            "new": outcome.segments_json("new"),
            "gone": outcome.segments_json("gone"),
            "grown": outcome.segments_json("grown"),
            "shrunk": outcome.segments_json("shrunk"),
        },
        "settings_diff": outcome.settings.iter().map(Difference::json).collect::<Vec<_>>(),
    })
}

impl CompareOutcome {
    fn device_json(&self, device_index: i64) -> Value {
        let own = || self.counters.iter().filter(|row| row.device_index == device_index);
        let mut json = Map::new();
        json.insert("device_index".to_owned(), json!(device_index));
        for row in own() {
            json.insert(row.counter.clone(), pair(row.value, row.base_value, row.change));
        }
        let peaks = own().filter(|row| COUNTERS.contains(&row.counter.as_str())).map(|row| {
            let mut peak = pair(row.peak, row.base_peak, row.peak_change);
            if let Some(peak) = peak.as_object_mut() {
                peak.insert("a_trace_index".to_owned(), json!(row.peak_index));
                peak.insert("b_trace_index".to_owned(), json!(row.base_index));
            }
            (row.counter.clone(), peak)
        });
        json.insert("peaks".to_owned(), Value::Object(peaks.collect()));
        let timeline = self.timeline.iter().filter(|step| step.device_index == device_index);
        json.insert("timeline".to_owned(), timeline.map(step_json).collect());
        Value::Object(json)
    }

    fn segments_json(&self, change: &str) -> Vec<Value> {
        self.segments.iter().filter(|segment| segment.change == change).map(segment_json).collect()
    }
}

/// A value of both snapshots and its change.
fn pair(a: Option<i64>, b: Option<i64>, delta: Option<i64>) -> Value {
    json!({"a": a, "b": b, "delta": delta})
}

fn step_json(step: &TimelineStep) -> Value {
    json!({
        "position": step.position,
        "a": {
            "trace_index": step.trace_index,
            "reserved": step.reserved,
            "allocated": step.allocated,
            "active": step.active,
        },
        "b": {
            "trace_index": step.base_trace_index,
            "reserved": step.base_reserved,
            "allocated": step.base_allocated,
            "active": step.base_active,
        },
    })
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
        "stack_count": {"a": stack.stack_count, "b": stack.base_stack_count},
        "live_bytes": {"a": stack.live_bytes, "b": stack.base_bytes, "delta": stack.live_change},
        "peak_bytes": {"a": stack.peak_bytes, "b": stack.base_peak, "delta": stack.peak_change},
        "live_count": {"a": stack.live_count, "b": stack.base_count, "delta": stack.live_count - stack.base_count},
        "frames": frames(stack.frames_json.as_deref()),
    })
}
