//! The truth file: what a reader of the snapshot must find, as JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::allocator::Allocator;
use super::event::{Counters, Peaks, StackId};
use super::heap::{Segment, State};
use super::ledger::Ledger;
use super::stacks::Stacks;
use super::workspace::Workspace;

/// Call stacks listed at the peak.
const CONTRIBUTORS: usize = 20;
/// Segments listed as worst.
const WORST_SEGMENTS: usize = 5;

/// One device, seen from all sides.
pub(super) struct DeviceTruth<'a> {
    pub(super) device: u64,
    pub(super) allocator: &'a Allocator,
    pub(super) ledger: &'a Ledger,
    pub(super) window_start: u64,
    pub(super) workspaces: &'a [Workspace],
}

impl DeviceTruth<'_> {
    /// The device's part of the file; stacks it names are added to `stacks`.
    pub(super) fn json(&self, stacks: &mut BTreeSet<StackId>) -> Value {
        let segments = self.allocator.heap.segments();
        let contributors = self.ledger.at_allocated_peak();
        let listed = contributors.iter().take(CONTRIBUTORS);
        stacks.extend(listed.clone().map(|(stack, _)| *stack));
        json!({
            "device": self.device,
            "window_start_event": self.window_start,
            "events_in_window": self.allocator.events - self.window_start,
            "start_state": counters(self.ledger.start),
            "peak_window": self.window_peaks(),
            "peak_full_history": full_peaks(&self.allocator.peaks),
            "contributors_at_allocated_peak": listed.map(|(stack, share)| json!({
                "stack": stack.0,
                "bytes": share.bytes,
                "requested": share.requested,
                "blocks": share.blocks,
                "bytes_allocated_in_window": share.bytes_in_window,
            })).collect::<Vec<_>>(),
            "contributors_distinct_stacks": contributors.len(),
            "final": final_state(self.allocator, &segments),
            "fragmentation": fragmentation(&segments),
            "workspace_bytes": self.workspaces.iter().map(|workspace| workspace.size).sum::<u64>(),
            "workspace_events": self.workspace_events(),
            "ooms_full_history": self.allocator.oom_count,
            "oom_events": self.ledger.ooms.iter().map(|oom| json!({
                "trace_index": self.trace_index(Some(oom.index)),
                "requested": oom.requested,
                "device_free": oom.device_free,
                "reserved": oom.counters.reserved,
                "allocated": oom.counters.allocated,
                "active": oom.counters.active,
            })).collect::<Vec<_>>(),
            "action_counts_window": self.ledger.actions.iter()
                .map(|(action, count)| (action.name().to_owned(), json!(count)))
                .collect::<Map<_, _>>(),
        })
    }

    fn window_peaks(&self) -> Value {
        let peaks = self.ledger.peaks.named().map(|(name, bytes, index)| {
            (name.to_owned(), json!({ "bytes": bytes, "trace_index": self.trace_index(index) }))
        });
        Value::Object(peaks.collect())
    }

    fn workspace_events(&self) -> u64 {
        self.workspaces.iter().map(|_| Workspace::ENTRIES).sum()
    }

    /// Index in the file's list of the device; -1 for the state the window begins with.
    fn trace_index(&self, event: Option<u64>) -> Value {
        event.map_or_else(|| json!(-1), |event| json!(event - self.window_start + self.workspace_events()))
    }
}

/// Frames of the stacks that the devices name.
pub(super) fn stacks_json(stacks: &Stacks, named: &BTreeSet<StackId>) -> Value {
    let lists = named.iter().map(|stack| {
        let frames = stacks.stack(*stack).iter().filter_map(|number| stacks.frame(*number));
        let frames: Vec<Value> = frames
            .map(|frame| json!({ "name": frame.name, "filename": frame.filename, "line": frame.line }))
            .collect();
        (stack.0.to_string(), Value::Array(frames))
    });
    Value::Object(lists.collect())
}

fn counters(counters: Counters) -> Value {
    Value::Object(counters.named().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect())
}

fn full_peaks(peaks: &Peaks) -> Value {
    let peaks = peaks.named().map(|(name, bytes, event)| {
        let event = event.map_or_else(|| json!(-1), |event| json!(event));
        (name.to_owned(), json!({ "bytes": bytes, "event": event }))
    });
    Value::Object(peaks.collect())
}

/// The allocator's own counters, and what is in its heap.
fn final_state(allocator: &Allocator, segments: &[Segment<'_>]) -> Value {
    let mut state = counters(allocator.counters);
    let small = segments.iter().filter(|segment| is_small(segment)).count();
    let mut blocks: BTreeMap<State, (u64, u64)> = BTreeMap::new();
    for (_, block) in segments.iter().flat_map(|segment| &segment.blocks) {
        let (count, bytes) = blocks.entry(block.state).or_default();
        *count += 1;
        *bytes += block.size;
    }
    let by_state = [State::Allocated, State::PendingFree, State::Free].map(|state| {
        let (count, bytes) = blocks.get(&state).copied().unwrap_or_default();
        (state.name().to_owned(), json!({ "count": count, "bytes": bytes }))
    });
    if let Value::Object(fields) = &mut state {
        fields.insert("segments".to_owned(), json!(segments.len()));
        fields.insert("segments_small".to_owned(), json!(small));
        fields.insert("segments_large".to_owned(), json!(segments.len() - small));
        fields.insert("blocks".to_owned(), Value::Object(by_state.into_iter().collect()));
    }
    state
}

fn fragmentation(segments: &[Segment<'_>]) -> Value {
    let reserved: u64 = segments.iter().map(Segment::total_size).sum();
    let allocated: u64 = segments.iter().map(Segment::allocated_size).sum();
    let pending =
        segments.iter().map(|segment| segment.size_where(|state| state == State::PendingFree)).sum::<u64>();
    let mut worst: Vec<(u64, u64, u64)> = segments
        .iter()
        .map(|segment| (segment.address, segment.total_size(), segment.allocated_size()))
        .collect();
    // Compared as fractions, without rounding: a's unused share against b's.
    worst.sort_by(|a, b| {
        let unused =
            |of: &(u64, u64, u64), other: &(u64, u64, u64)| u128::from(of.1 - of.2) * u128::from(other.1);
        unused(b, a).cmp(&unused(a, b)).then(a.0.cmp(&b.0))
    });
    json!({
        "rate": share(reserved - allocated, reserved),
        "pending_free_bytes": pending,
        "pending_share_of_gap": share(pending, reserved - allocated),
        "worst_segments": worst.iter().take(WORST_SEGMENTS).map(|(address, total, allocated)| json!({
            "address": address,
            "total_size": total,
            "allocated_size": allocated,
            "rate": share(total - allocated, *total),
        })).collect::<Vec<_>>(),
    })
}

fn is_small(segment: &Segment<'_>) -> bool {
    segment.blocks.first().is_some_and(|(_, block)| block.pool.small)
}

/// A part of a whole; 0 where there is no whole.
#[expect(clippy::cast_precision_loss, reason = "a share is a float, its parts stand beside it exactly")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What the leak of a device holds.
pub(super) fn leak_json(device: u64, ledger: &Ledger, stack: StackId) -> Value {
    let held = ledger.now(stack);
    json!({
        "device": device,
        "live_blocks": held.blocks,
        "live_bytes": held.bytes,
        "live_requested": held.requested,
    })
}
