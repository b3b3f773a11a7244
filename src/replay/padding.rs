//! Whether an NPU's allocator adds 32 bytes to each request, which no snapshot says.
//!
//! Live blocks show it where there are any. Where everything was freed the events do: a new block begins where the active
//! one before it ends, so the distance of the two is the size of the first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::event::{Action, Event};
use super::events::{Events, Seen};
use super::ranges::{Kind, Ranges};
use super::rules::{Rounding, SMALL};
use super::state::{FinalState, Share};
use crate::error::Result;

/// Bytes that `torch_npu` may add to a request before it rounds.
pub(super) const NPU: i64 = 32;

/// Blocks of one size or the other that settle it.
const ENOUGH: u64 = 64;

/// Blocks that only padding explains, and blocks that it does not.
#[derive(Debug, Clone, Copy, Default)]
struct Votes {
    padded: u64,
    bare: u64,
}

impl Votes {
    fn add(&mut self, request: i64, size: i64, is_cut_to_size: bool) {
        let with = Rounding::padded(NPU).round(request);
        let without = Rounding::padded(0).round(request);
        if with != without {
            self.padded += u64::from(is_cut_to_size && size == with);
            self.bare += u64::from(size == without);
        }
    }

    fn is_enough(self) -> bool {
        self.padded + self.bare >= ENOUGH
    }

    /// Both at once show that it is something else.
    fn result(self) -> Option<i64> {
        match (self.padded, self.bare) {
            (1.., 0) => Some(NPU),
            (0, 1..) => Some(0),
            _ => None,
        }
    }
}

/// What the active blocks of the final state show.
pub(super) fn of_blocks(state: &FinalState, is_host: impl Fn(i64) -> bool) -> Option<i64> {
    let mut votes = Votes::default();
    for block in &state.blocks {
        let (Some(request), Some(segment)) = (block.requested, state.segment(block.segment_id)) else {
            continue;
        };
        if !is_host(segment.device_id) {
            votes.add(request, block.size, block.size <= SMALL || segment.is_expandable);
        }
    }
    votes.result()
}

/// What the events of a device show, read backward from its final state.
pub(super) fn of_events(events: &Events, seen: &Seen, share: &Share<'_>) -> Result<Option<i64>> {
    let mut walk = Walk::default();
    for segment in &share.segments {
        let kind = if segment.is_expandable { Kind::Mapped } else { Kind::Segment };
        if let Some(address) = segment.address {
            walk.ranges.add(address.cast_unsigned(), segment.size.cast_unsigned(), kind);
        }
    }
    for (block, _) in &share.blocks {
        if let Some((address, request)) = block.address.zip(block.requested) {
            walk.active.insert(address.cast_unsigned(), request);
        }
    }
    events.backward(seen, |event| {
        walk.event(event);
        Ok(if walk.votes.is_enough() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(walk.votes.result())
}

/// The layout at the moment the walk has come to.
#[derive(Default)]
struct Walk {
    ranges: Ranges,
    /// What was asked for, by address.
    active: BTreeMap<u64, i64>,
    votes: Votes,
}

impl Walk {
    fn event(&mut self, event: &Event) {
        let (addr, size) = (event.addr.cast_unsigned(), event.size.cast_unsigned());
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => drop(self.ranges.remove(addr, size)),
            Action::SegmentFree => drop(self.ranges.add(addr, size, Kind::Segment)),
            Action::SegmentUnmap => drop(self.ranges.add(addr, size, Kind::Mapped)),
            Action::FreeRequested | Action::FreeCompleted => drop(self.active.insert(addr, event.size)),
            Action::Alloc => {
                self.active.remove(&addr);
                self.look_below(addr);
            }
            Action::Snapshot | Action::Other => {}
        }
    }

    /// The active block below a new one ends where that one begins.
    fn look_below(&mut self, addr: u64) {
        let Some((start, _, kind)) = self.ranges.find(addr) else { return };
        let Some((below, request)) = self.active.range(start..addr).next_back() else { return };
        let Ok(size) = i64::try_from(addr - below) else { return };
        // Blocks of the small pool are cut to size in any segment.
        let is_cut_to_size = kind == Kind::Mapped || Rounding::padded(NPU).round(*request) <= SMALL;
        self.votes.add(*request, size, is_cut_to_size);
    }
}
