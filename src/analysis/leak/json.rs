//! Growth and suspects as JSON.

use serde_json::{Value, json};

use super::judge::Suspect;
use super::{Attribution, DeviceLeak, Named, SegmentGrowth, StackGrowth};
use crate::analysis::frames::frames;

impl DeviceLeak {
    pub(super) fn json(&self) -> Value {
        // Of a device without events nothing is known of how it came to its state: no figure of that is 0.
        let is_recorded = self.event_count() > 0;
        let known = |value: i64| is_recorded.then_some(value);
        json!({
            "device_index": self.device_index,
            "verdict": self.verdict.name(),
            "history": self.steps.as_ref().map(|steps| json!({
                "origin": steps.origin,
                "event_count": steps.event_count,
                "step_count": steps.step_count,
                "interval_count": steps.interval_count,
                "allocated_bytes": known(steps.allocated_size),
            })),
            "monotone": self.segments.as_ref().map(|segments| segments.json(&self.attribution, is_recorded)),
            "attribution": is_recorded.then(|| self.attribution.both_json()),
            "live_bytes": self.live_size,
            "live_count": self.live_count,
            "long_lived": {
                "bytes": known(self.early_size),
                "count": known(self.early_count),
                "stacks": is_recorded.then(|| self.long_lived.iter().map(|stack| json!({
                    "stack_id": stack.what.stack_id,
                    "bytes": stack.what.early_size,
                    "count": stack.what.early_count,
                    "frames": frames(stack.frames_json.as_deref()),
                })).collect::<Vec<_>>()),
            },
            "suspect_count": is_recorded.then_some(self.suspect_count),
            "retained_bytes": known(self.retained_size),
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
    fn json(&self, attribution: &Attribution, is_recorded: bool) -> Value {
        let known = |value: i64| is_recorded.then_some(value);
        json!({
            "is_monotone": is_recorded.then(|| self.only_grew()),
            "grow_count": known(self.grow_count),
            "shrink_count": known(self.shrink_count),
            "grown_bytes": known(self.grown_size),
            "shrunk_bytes": known(self.shrunk_size),
            "late_grown_bytes": known(self.late_grown_size),
            "first_index": self.first_grow_index,
            "last_index": self.last_grow_index,
            "stacks": is_recorded.then(|| attribution.grown_json()),
            "late_stacks": is_recorded.then(|| attribution.late_json()),
        })
    }
}
