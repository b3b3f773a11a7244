//! The events of one device, read backward from the final state.
//!
//! Backward, everything is known at every moment: what is active and where, because the end says so and each event says
//! what changed. A `free_completed` makes an allocation active that is freed later, an `alloc` ends it and completes its
//! row. What is still active at the beginning was there before the window.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::columns::NO_TIME;
use super::ends::Ends;
use super::event::{Action, Event};
use super::line::Line;
use super::open::{NO_SIZE, Open};
use super::ranges::{Kind, Ranges};
use super::row::{Fate, NO_INDEX, Origin, Proof, Row};
use super::rows::Rows;
use super::rules::Rules;
use super::sizes::Cutting;
use super::state::Block;
use super::streams::Streams;
use super::tally::{Part, Tally};
use crate::error::Result;

/// The state of a device at the moment the walk has come to.
pub(super) struct Walk<'a> {
    pub(super) rules: &'a Rules,
    pub(super) cutting: Cutting,
    pub(super) open: HashMap<u64, Open, FixedState>,
    /// Where the large ones among the open allocations begin, if their sizes follow from their neighbours: the size their
    /// request is rounded to, or 0 where that of the block is known.
    pub(super) large: Line,
    pub(super) ranges: Ranges,
    pub(super) tally: Tally,
    /// Whether allocations outside of all segments are counted.
    pub(super) looks_outside: bool,
    ends: Ends,
    streams: Streams,
    /// Blocks that are shown as inactive and may be pending.
    unmerged: HashMap<u64, Block, FixedState>,
    rows: &'a mut Rows,
}

/// What a walk leaves.
pub(super) struct Walked {
    pub(super) tally: Tally,
    /// Bytes of the segments at the beginning.
    pub(super) reserved: i128,
    pub(super) ends: Ends,
    pub(super) streams: Streams,
}

/// Addresses are compared as what they are, without a sign.
pub(super) fn unsigned(addr: i64) -> u64 {
    addr.cast_unsigned()
}

/// A size of an event or segment, which the importer has checked to be none below zero.
fn bytes(size: i64) -> u64 {
    u64::try_from(size).unwrap_or_default()
}

impl<'a> Walk<'a> {
    /// A device at the end, with nothing in it yet.
    pub(super) fn new(rules: &'a Rules, cutting: Cutting, rows: &'a mut Rows) -> Self {
        Self {
            rules,
            cutting,
            open: HashMap::default(),
            large: Line::default(),
            ranges: Ranges::default(),
            tally: Tally::default(),
            looks_outside: false,
            ends: Ends::default(),
            streams: Streams::default(),
            unmerged: HashMap::default(),
            rows,
        }
    }

    /// Adds a segment of the final state.
    pub(super) fn add_segment(&mut self, address: i64, size: i64, kind: Kind) {
        let twice = self.ranges.add(unsigned(address), bytes(size), kind);
        self.tally.range_twice += i128::from(twice);
    }

    /// Adds blocks that are shown as inactive and may be pending.
    pub(super) fn add_unmerged(&mut self, blocks: HashMap<u64, Block, FixedState>) {
        self.unmerged = blocks;
    }

    /// Adds an active block of the final state, and checks the rules against it.
    pub(super) fn add_block(&mut self, address: i64, open: Open) {
        self.tally.check_rule(self.rules, self.cutting, &open);
        self.insert(unsigned(address), open);
    }

    fn insert(&mut self, addr: u64, mut open: Open) {
        let size = if open.size == NO_SIZE { open.block } else { open.size };
        if self.is_tracked(size) {
            self.insert_large(addr, &mut open);
        }
        self.open.insert(addr, open);
    }

    /// Goes back over an event.
    pub(super) fn event(&mut self, event: &Event) -> Result<()> {
        self.tally.event(event);
        match event.action {
            Action::Alloc => self.alloc(event),
            Action::FreeCompleted => self.free_completed(event),
            Action::FreeRequested => self.free_requested(event),
            Action::SegmentAlloc | Action::SegmentMap => {
                let missing = self.ranges.remove(unsigned(event.addr), bytes(event.size));
                self.tally.range_missing += i128::from(missing);
                Ok(())
            }
            Action::SegmentFree => {
                self.add_segment(event.addr, event.size, Kind::Segment);
                Ok(())
            }
            Action::SegmentUnmap => {
                self.add_segment(event.addr, event.size, Kind::Mapped);
                Ok(())
            }
            Action::Snapshot | Action::Other => Ok(()),
        }
    }

    fn free_completed(&mut self, event: &Event) -> Result<()> {
        let addr = unsigned(event.addr);
        if !self.is_tracked(event.size)
            && let Entry::Vacant(free) = self.open.entry(addr)
        {
            free.insert(Open::completed_by(event));
            return Ok(());
        }
        if let Some(later) = self.open.remove(&addr) {
            // It is active, so it was allocated again after this, and that event is missing.
            self.finish_without_alloc(event, later)?;
        }
        self.insert(addr, Open::completed_by(event));
        Ok(())
    }

    fn free_requested(&mut self, event: &Event) -> Result<()> {
        let addr = unsigned(event.addr);
        match self.open.get_mut(&addr) {
            Some(open)
                if open.requested == NO_INDEX && open.fate != Fate::Live && open.has_size(event.size) =>
            {
                if open.completed != NO_INDEX && open.place != event.place {
                    self.streams.note(event.place, open.place);
                }
                open.size = event.size;
                *open = open.requested_by(event);
                return Ok(());
            }
            Some(_) => {}
            None => {
                let open = Open::ended(event).requested_by(event);
                let hidden = self.unmerged.remove(&addr).filter(|block| block.requested == Some(event.size));
                if let Some(block) = hidden {
                    self.tally.count_hidden(&block);
                    let part = Part { allocated: false, active: true };
                    self.insert(addr, Open { block: block.size, proof: Proof::Final, part, ..open });
                } else {
                    self.ends.miss(addr, event.index);
                    self.insert(addr, open);
                }
                return Ok(());
            }
        }
        if let Some(later) = self.open.remove(&addr) {
            self.finish_without_alloc(event, later)?;
        }
        // Its completion is missing too; it came between this and the next alloc, which is missing as well.
        let open = Open { fate: Fate::Freed, ..Open::ended(event).requested_by(event) };
        self.insert(addr, open);
        Ok(())
    }

    fn alloc(&mut self, event: &Event) -> Result<()> {
        let addr = unsigned(event.addr);
        let open = match self.open.remove(&addr) {
            Some(open) if open.has_size(event.size) => {
                if open.size == NO_SIZE {
                    self.large.take(self.large.spot(addr));
                }
                let is_freed = open.requested != NO_INDEX || open.completed != NO_INDEX;
                if is_freed && open.place != event.place {
                    self.streams.note(event.place, open.place);
                }
                Open { size: event.size, ..open }
            }
            later => {
                if let Some(later) = later {
                    self.finish_without_alloc(event, later)?;
                }
                self.ends.miss(addr, event.index);
                Open::unended(event)
            }
        };
        self.look_outside(addr);
        let (block, proof) = self.block_at_alloc(addr, &open);
        let row = Row {
            addr: event.addr,
            size: event.size,
            block,
            proof,
            alloc: event.index,
            requested: open.requested,
            completed: open.completed,
            alloc_time: event.time,
            free_time: open.free_time,
            stack: if event.stack == 0 { open.stack } else { event.stack },
            free_stack: open.free_stack,
            place: event.place,
            origin: Origin::Window,
            fate: open.fate,
        };
        self.tally.row(&row, &open, true);
        self.rows.push(&row)
    }

    /// Ends an allocation whose alloc the trace lacks: it came after `event`, which is all that is known.
    fn finish_without_alloc(&mut self, event: &Event, open: Open) -> Result<()> {
        self.large.take(self.large.spot(unsigned(event.addr)));
        let row = self.row_without_alloc(event.addr, &open, Origin::Window, event.index);
        self.tally.row(&row, &open, false);
        self.rows.push(&row)
    }

    fn row_without_alloc(&self, addr: i64, open: &Open, origin: Origin, alloc: i64) -> Row {
        let size = if open.size == NO_SIZE { open.block } else { open.size };
        let rounded = self.rules.rounding.round(size);
        let (block, proof) = if open.block == NO_SIZE && self.is_tracked(size) {
            (rounded, Proof::None)
        } else {
            self.block_by_rule(open, rounded)
        };
        Row {
            addr,
            size,
            block,
            proof,
            alloc,
            requested: open.requested,
            completed: open.completed,
            alloc_time: NO_TIME,
            free_time: open.free_time,
            stack: open.stack,
            free_stack: open.free_stack,
            place: open.place,
            origin,
            fate: open.fate,
        }
    }

    /// Counts an allocation whose memory is in no segment at the moment it began, or at the beginning.
    fn look_outside(&mut self, addr: u64) {
        if self.looks_outside && self.ranges.find(addr).is_none() {
            self.tally.outside_pool += 1;
        }
    }

    /// Comes to the beginning: what is active now was there before the window.
    pub(super) fn finish(mut self) -> Result<Walked> {
        let mut left: Vec<(u64, Open)> = self.open.drain().collect();
        left.sort_unstable_by_key(|(addr, _)| *addr);
        for (addr, mut open) in left.into_iter().rev() {
            self.look_outside(addr);
            self.prove_by_end(addr, &mut open);
            let row = self.row_without_alloc(addr.cast_signed(), &open, Origin::BeforeWindow, NO_INDEX);
            self.tally.row(&row, &open, false);
            self.rows.push(&row)?;
        }
        Ok(Walked {
            tally: self.tally,
            reserved: self.ranges.total(),
            ends: self.ends,
            streams: self.streams,
        })
    }
}
