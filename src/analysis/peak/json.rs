//! Peaks, what lived at them and the timeline as JSON.

use serde_json::{Map, Value, json};

use super::{COUNTERS, Contributor, DevicePeak, Mark, Peak, Point};
use crate::analysis::frames::frames;

impl DevicePeak {
    pub(super) fn json(&self) -> Value {
        let base: Map<String, Value> = COUNTERS
            .iter()
            .map(|counter| ((*counter).to_owned(), json!(self.peak(counter).and_then(|peak| peak.base))))
            .collect();
        let peaks: Map<String, Value> =
            COUNTERS.iter().map(|counter| ((*counter).to_owned(), Peak::json(self.peak(counter)))).collect();
        json!({
            "device_index": self.device_index,
            "base": base,
            "peaks": peaks,
            "contributors": self.contributors.iter().map(Contributor::json).collect::<Vec<_>>(),
            "timeline": self.points.iter().map(Point::json).collect::<Vec<_>>(),
            "marks": self.marks.iter().filter(|mark| mark.is_peak == 0).map(Mark::json).collect::<Vec<_>>(),
        })
    }
}

impl Peak {
    fn json(peak: Option<&Self>) -> Value {
        json!({
            "bytes": peak.and_then(|peak| peak.peak),
            "trace_index": peak.and_then(|peak| peak.trace_index),
            "time_us": peak.and_then(|peak| peak.time_us),
            "final": peak.and_then(|peak| peak.at_end),
            // Of a peak that is not known there is nothing to be exact.
            "exact": peak.filter(|peak| peak.peak.is_some()).map(|peak| peak.exact == 1),
        })
    }
}

impl Contributor {
    fn json(&self) -> Value {
        json!({
            "stack_id": self.stack_id,
            "part": self.part,
            "bytes": self.allocated_size,
            "requested": self.requested_size,
            "count": self.block_count,
            "pending_bytes": self.pending_size,
            "frames": frames(self.frames_json.as_deref()),
        })
    }
}

impl Point {
    fn json(&self) -> Value {
        json!({
            "trace_index": self.trace_index,
            "time_us": self.time_us,
            "reserved": self.reserved,
            "allocated": self.allocated,
            "active": self.active,
            "allocated_requested": self.allocated_requested,
            "active_requested": self.active_requested,
        })
    }
}

impl Mark {
    fn json(&self) -> Value {
        json!({
            "trace_index": self.trace_index,
            "time_us": self.time_us,
            "action": self.action,
            "size": self.size,
            "reserved": self.reserved,
            "allocated": self.allocated,
            "active": self.active,
            "allocated_requested": self.allocated_requested,
            "active_requested": self.active_requested,
        })
    }
}
