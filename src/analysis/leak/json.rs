//! Growth and suspects as JSON.

use serde_json::{Value, json};

use super::judge::Suspect;
use super::{Attribution, DeviceLeak, Named, SegmentGrowth, StackGrowth};
use crate::analysis::frames::frames;

impl DeviceLeak {
    pub(super) fn json(&self) -> Value {
        json!({
            "device_index": self.device_index,
            "verdict": self.verdict.name(),
            "history": self.steps.as_ref().map(|steps| json!({
                "origin": steps.origin,
                "event_count": steps.event_count,
                "step_count": steps.step_count,
                "interval_count": steps.interval_count,
                "allocated_bytes": steps.allocated_size,
            })),
            "monotone": self.segments.as_ref().map(|segments| segments.json(&self.attribution)),
            "attribution": self.attribution.both_json(),
            "live_bytes": self.live_size,
            "live_count": self.live_count,
            "long_lived": {
                "bytes": self.early_size,
                "count": self.early_count,
                "stacks": self.long_lived.iter().map(|stack| json!({
                    "stack_id": stack.what.stack_id,
                    "bytes": stack.what.early_size,
                    "count": stack.what.early_count,
                    "frames": frames(stack.frames_json.as_deref()),
                })).collect::<Vec<_>>(),
            },
            "suspect_count": self.suspect_count,
            "retained_bytes": self.retained_size,
            "suspects": self.suspects.iter().map(|suspect| self.suspect_json(suspect)).collect::<Vec<_>>(),
        })
    }

    fn suspect_json(&self, suspect: &Named<Suspect>) -> Value {
        let growth = &suspect.what.growth;
        let mut evidence = vec![json!({
            "rule": "growth_across_steps",
            "interval_count": growth.interval_count,
            "grew_count": growth.grew_count,
            "shrank_count": growth.shrank_count,
            "growth_bytes": growth.growth_size,
            "growth_count": growth.growth_count,
            "late_growth_bytes": growth.late_growth_size,
        })];
        if growth.early_count > 0 {
            evidence.push(json!({
                "rule": "long_lived_blocks",
                "bytes": growth.early_size,
                "count": growth.early_count,
            }));
        }
        if let Some(rank) = self.rank(growth) {
            evidence.push(json!({ "rule": "top_long_lived_stack", "rank": rank }));
        }
        if self.segments.as_ref().is_some_and(SegmentGrowth::only_grew) {
            evidence.push(json!({ "rule": "reserved_only_grew" }));
            if let Some((rank, share)) = self.attribution.rank(growth.stack_id) {
                evidence.push(json!({
                    "rule": "top_reserving_stack",
                    "rank": rank,
                    "bytes": share.grown_size,
                    "count": share.grow_count,
                }));
            }
        }
        json!({
            "stack_id": growth.stack_id,
            "verdict": suspect.what.verdict.name(),
            "live_bytes": growth.live_size,
            "live_count": growth.live_count,
            "growth_bytes_per_step": suspect.what.growth_per_step,
            "first_index": growth.first_index,
            "last_index": growth.last_index,
            "score": suspect.what.score,
            "evidence": evidence,
            "frames": frames(suspect.frames_json.as_deref()),
        })
    }

    /// Place of a stack among those that hold most since early on, from 1.
    fn rank(&self, growth: &StackGrowth) -> Option<usize> {
        let place = self.long_lived.iter().position(|stack| stack.what.stack_id == growth.stack_id);
        place.map(|place| place + 1)
    }
}

impl SegmentGrowth {
    fn json(&self, attribution: &Attribution) -> Value {
        json!({
            "is_monotone": self.only_grew(),
            "grow_count": self.grow_count,
            "shrink_count": self.shrink_count,
            "grown_bytes": self.grown_size,
            "shrunk_bytes": self.shrunk_size,
            "late_grown_bytes": self.late_grown_size,
            "first_index": self.first_grow_index,
            "last_index": self.last_grow_index,
            "stacks": attribution.grown_json(),
            "late_stacks": attribution.late_json(),
        })
    }
}
