//! Takes events back: which segments there were before them, and which blocks lay in those.
//!
//! Segments follow from the final ones by the inverse of each segment event, last one first; blocks are the allocations
//! that lived then, with free blocks in the gaps, so that they tile their segment as in any snapshot.

use std::collections::BTreeMap;

use super::end_state::Segment;
use super::rows::{Allocation, BlockRow, Event, SegmentRow};
use crate::replay::SMALL_SEGMENT;

/// The state, and how many of the events did not fit into it.
#[derive(Debug)]
pub(super) struct Rewound {
    pub(super) segments: Vec<Segment>,
    pub(super) contradictions: u64,
}

/// Addresses in the order of their 64 bits: half of them look negative.
fn unsigned(address: i64) -> u64 {
    address.cast_unsigned()
}

fn length(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

/// The state of one device before the event `end`. `changes` are its segment events from there on, `live` the allocations
/// that stand at that moment.
pub(super) fn rewind(last: Vec<Segment>, changes: &[Event], live: &[Allocation], end: i64) -> Rewound {
    let mut layout = Layout::default();
    for segment in last {
        match segment.row.address {
            Some(address) => drop(layout.segments.insert(unsigned(address), segment.row)),
            None => layout.contradictions += 1,
        }
    }
    for event in changes.iter().rev() {
        let (Some(addr), Some(size)) = (event.addr, event.size) else {
            layout.contradictions += 1;
            continue;
        };
        match event.action.as_str() {
            "segment_alloc" => layout.remove(addr),
            "segment_free" => layout.add(event, addr, size, false),
            "segment_map" => layout.cut(addr, size),
            "segment_unmap" => layout.add(event, addr, size, true),
            _ => {}
        }
    }
    layout.fill(live, end)
}

#[derive(Debug, Default)]
struct Layout {
    segments: BTreeMap<u64, SegmentRow>,
    contradictions: u64,
}

impl Layout {
    fn remove(&mut self, addr: i64) {
        if self.segments.remove(&unsigned(addr)).is_none() {
            self.contradictions += 1;
        }
    }

    /// Puts a range back; mapped memory becomes one with what it touches.
    fn add(&mut self, event: &Event, addr: i64, size: i64, expandable: bool) {
        let mut row = SegmentRow {
            id: 0,
            device_id: event.device_id,
            address: Some(addr),
            total_size: size,
            allocated_size: None,
            active_size: None,
            requested_size: None,
            stream: event.stream,
            segment_type: Some(if size <= SMALL_SEGMENT { "small" } else { "large" }.to_owned()),
            pool_id_0: event.pool_id_0,
            pool_id_1: event.pool_id_1,
            is_expandable: Some(i64::from(expandable)),
            stack_id: None,
        };
        let mut start = unsigned(addr);
        if expandable {
            let before = self.segments.range(..start).next_back();
            let touched = before
                .filter(|(at, known)| {
                    known.is_expandable == Some(1) && at.wrapping_add(length(known.total_size)) == start
                })
                .map(|(at, _)| *at);
            if let Some(before) = touched.and_then(|at| self.segments.remove(&at)) {
                start = start.wrapping_sub(length(before.total_size));
                row = SegmentRow { total_size: before.total_size.saturating_add(row.total_size), ..before };
            }
            let behind = start.wrapping_add(length(row.total_size));
            if self.segments.get(&behind).is_some_and(|known| known.is_expandable == Some(1))
                && let Some(behind) = self.segments.remove(&behind)
            {
                let total_size = row.total_size.saturating_add(behind.total_size);
                // A row of the snapshot says more than one made of an event.
                let address = row.address;
                row = if row.id == 0 { SegmentRow { address, total_size, ..behind } } else { row };
                row.total_size = total_size;
            }
        }
        if self.segments.insert(start, row).is_some() {
            self.contradictions += 1;
        }
    }

    /// Takes a mapped range out of the segment that it lies in.
    fn cut(&mut self, addr: i64, size: i64) {
        let (from, to) = (unsigned(addr), unsigned(addr).saturating_add(length(size)));
        let around = self.segments.range(..=from).next_back().map(|(at, row)| (*at, row.clone()));
        let Some((start, row)) = around else {
            self.contradictions += 1;
            return;
        };
        let stop = start.saturating_add(length(row.total_size));
        if to > stop {
            self.contradictions += 1;
            return;
        }
        self.segments.remove(&start);
        for (first, last) in [(start, from), (to, stop)] {
            let bytes = i64::try_from(last - first).unwrap_or(i64::MAX);
            if bytes > 0 {
                let address = Some(first.cast_signed());
                self.segments.insert(first, SegmentRow { address, total_size: bytes, ..row.clone() });
            }
        }
    }

    /// Puts the allocations into their segments.
    fn fill(mut self, live: &[Allocation], end: i64) -> Rewound {
        let mut live: Vec<&Allocation> = live.iter().collect();
        live.sort_by_key(|allocation| unsigned(allocation.addr));
        let mut live = live.into_iter().peekable();
        let mut segments = Vec::with_capacity(self.segments.len());
        for (start, row) in std::mem::take(&mut self.segments) {
            let stop = start.saturating_add(length(row.total_size));
            let mut segment = Segment { row, blocks: Vec::new() };
            let mut at = start;
            while let Some(allocation) = live.next_if(|allocation| unsigned(allocation.addr) < stop) {
                let from = unsigned(allocation.addr);
                let to = from.saturating_add(length(allocation.bytes()));
                if from < at || to > stop {
                    self.contradictions += 1;
                    continue;
                }
                segment.gap(at, from);
                segment.put(allocation, allocation.is_pending_at(end));
                at = to;
            }
            segment.gap(at, stop);
            segment.sum();
            segments.push(segment);
        }
        self.contradictions += u64::try_from(live.count()).unwrap_or(u64::MAX);
        Rewound { segments, contradictions: self.contradictions }
    }
}

impl Segment {
    /// A free block from one address to another, if they are not the same.
    fn gap(&mut self, from: u64, to: u64) {
        if from < to {
            self.blocks.push(BlockRow {
                segment_id: self.row.id,
                address: Some(from.cast_signed()),
                size: i64::try_from(to - from).unwrap_or(i64::MAX),
                requested_size: Some(0),
                state: "inactive".to_owned(),
                stack_id: None,
            });
        }
    }

    fn put(&mut self, allocation: &Allocation, pending: bool) {
        self.row.stream = self.row.stream.or(allocation.stream);
        self.blocks.push(BlockRow {
            segment_id: self.row.id,
            address: Some(allocation.addr),
            size: allocation.bytes(),
            requested_size: Some(allocation.size),
            state: if pending { "active_pending_free" } else { "active_allocated" }.to_owned(),
            stack_id: allocation.stack_id,
        });
    }

    /// Sets the segment's counters to those of its blocks.
    fn sum(&mut self) {
        let sum = |value: fn(&BlockRow) -> i64, counts: fn(&str) -> bool| {
            let counted = self.blocks.iter().filter(|block| counts(&block.state));
            Some(counted.map(value).fold(0, i64::saturating_add))
        };
        let allocated = sum(|block| block.size, |state| state == "active_allocated");
        let active = sum(|block| block.size, |state| state != "inactive");
        let requested = sum(|block| block.requested_size.unwrap_or(0), |state| state != "inactive");
        self.row.allocated_size = allocated;
        self.row.active_size = active;
        self.row.requested_size = requested;
    }
}
