//! Who is behind the two classic signs: reserved memory that only grew, and blocks that live since early on. Both are summed
//! by call stack, and the stacks with most bytes named. Weights and the first step give both signs: a clue, no verdict.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Named, StackGrowth};
use crate::analysis::frames::{frames, place};
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, TableFigure};
use crate::engine::row;

/// Stacks that are named.
const NAMED: usize = 3;

row! {
    /// By how much one call stack made reserved memory grow.
    pub struct SegmentStack from "segment_growth_by_stack" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Call stack; NULL for events without one.
        stack_id: Option<i64>,
        /// Events that brought bytes.
        grow_count: i64,
        /// Bytes that came.
        grown_size: i64,
        /// Of them, in the second half of the history.
        late_grown_size: i64,
    }
}

/// What a stack has of both signs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) stack_id: Option<i64>,
    pub(super) grow_count: i64,
    pub(super) grown_size: i64,
    pub(super) late_grown_size: i64,
    pub(super) early_size: i64,
    early_count: i64,
}

/// The stacks behind the signs.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    /// By the bytes that reserved memory grew by under them.
    grown: Vec<Named<Share>>,
    /// By those of them that came in the second half of the history. Cut for itself: who grew late need not be among those
    /// who grew most.
    late: Vec<Named<Share>>,
    /// By the larger of what memory grew by, where it only grew, and of the bytes they hold since early on. The one is
    /// reserved and the other requested, often the same memory: their sum would count it twice.
    both: Vec<Named<Share>>,
}

impl Attribution {
    pub(super) fn of(grown: &[SegmentStack], stacks: &[StackGrowth], only_grew: bool) -> Self {
        let mut shares: BTreeMap<Option<i64>, Share> = BTreeMap::new();
        for row in grown {
            let share = shares.entry(row.stack_id).or_default();
            share.grow_count += row.grow_count;
            share.grown_size += row.grown_size;
            share.late_grown_size += row.late_grown_size;
        }
        for row in stacks.iter().filter(|row| row.early_count > 0) {
            let share = shares.entry(row.stack_id).or_default();
            share.early_size += row.early_size;
            share.early_count += row.early_count;
        }
        let shares = || shares.iter().map(|(stack_id, share)| Share { stack_id: *stack_id, ..*share });
        let larger = |share: &Share| share.early_size.max(if only_grew { share.grown_size } else { 0 });
        Self {
            grown: first(shares(), |share| share.grown_size),
            late: first(shares(), |share| share.late_grown_size),
            both: first(shares(), larger),
        }
    }

    pub(super) fn stack_ids(&self) -> impl Iterator<Item = i64> {
        self.grown.iter().chain(&self.late).chain(&self.both).filter_map(|share| share.what.stack_id)
    }

    pub(super) fn name(&mut self, frames: &BTreeMap<i64, String>) {
        for share in self.grown.iter_mut().chain(&mut self.late).chain(&mut self.both) {
            share.frames_json = share.what.stack_id.and_then(|stack| frames.get(&stack)).cloned();
        }
    }

    /// Place of a stack among those under which most came, from 1, and its share.
    pub(super) fn rank(&self, stack_id: Option<i64>) -> Option<(usize, Share)> {
        let found = self.grown.iter().enumerate().find(|(_, share)| share.what.stack_id == stack_id);
        found.map(|(place, share)| (place + 1, share.what))
    }

    /// The stacks under which most came in the second half of the history, most first.
    pub(super) fn late(&self) -> &[Named<Share>] {
        &self.late
    }

    pub(super) fn grown_json(&self) -> Value {
        self.grown.iter().map(share_json).collect()
    }

    pub(super) fn late_json(&self) -> Value {
        self.late.iter().map(share_json).collect()
    }

    pub(super) fn both_json(&self) -> Value {
        self.both.iter().map(share_json).collect()
    }

    /// Shown where reserved memory only grew, and still did in the second half of the history.
    pub(super) fn figure(&self, index: i64) -> TableFigure {
        let row = |share: &Named<Share>| {
            vec![
                Cell::stack_id(share.what.stack_id),
                Cell::bytes(share.what.grown_size),
                Cell::bytes(share.what.late_grown_size),
                Cell::count(share.what.grow_count),
                Cell::bytes(share.what.early_size),
                Cell::stack(place(share.frames_json.as_deref()), share.what.stack_id),
            ]
        };
        TableFigure::new(
            Text::new(
                format!(
                    "Device {index}: who made reserved memory grow in the second half of the window, which alone is no leak"
                ),
                format!("设备 {index}：窗口后半段的预留内存由谁增长（仅此并不说明泄漏）"),
            ),
            &[
                ("stack", "调用栈"),
                ("reserved grew", "预留增长"),
                ("second half", "后半段"),
                ("events", "事件数"),
                ("alive since early on (requested)", "早期分配且存活（请求）"),
                ("where", "位置"),
            ],
            self.late.iter().map(row).collect(),
        )
    }
}

/// The largest by a measure, without those that have nothing of it; of equals those that grew most, the unknown one last.
fn first(shares: impl Iterator<Item = Share>, by: impl Fn(&Share) -> i64) -> Vec<Named<Share>> {
    let mut shares: Vec<Share> = shares.filter(|share| by(share) > 0).collect();
    shares.sort_by_key(|share| {
        (Reverse(by(share)), Reverse(share.grown_size), share.stack_id.is_none(), share.stack_id)
    });
    shares.into_iter().take(NAMED).map(Named::of).collect()
}

fn share_json(share: &Named<Share>) -> Value {
    json!({
        "stack_id": share.what.stack_id,
        "grow_count": share.what.grow_count,
        "grown_bytes": share.what.grown_size,
        "late_grown_bytes": share.what.late_grown_size,
        "long_lived_bytes": share.what.early_size,
        "long_lived_count": share.what.early_count,
        "frames": frames(share.frames_json.as_deref()),
    })
}
