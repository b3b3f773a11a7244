//! The events of one device, read backward from the final state.
//!
//! Backward, everything is known at every moment: what is active and where, because the end says so and each event says
//! what changed. A `free_completed` makes an allocation active that is freed later, an `alloc` ends it and completes its
//! row. What is still active at the beginning was there before the window.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::columns::NO_TIME;
use super::ends::Ends;
use super::event::{Action, Event};
use super::ranges::{Kind, Ranges};
use super::rows::{Fate, NO_INDEX, Origin, Proof, Row, Rows};
use super::rules::{Rules, SMALL};
use super::tally::{Part, Tally};
use crate::error::Result;

/// A size that is not known.
pub(super) const NO_SIZE: i64 = -1;

/// How the blocks of a device are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cutting {
    /// Every block has the rounded size: all large ones are in expandable segments.
    Exact,
    /// Large blocks keep a rest of up to 1 MiB.
    Rests,
    /// Both kinds of segments are there, and which rule held when is not recorded.
    Mixed,
    /// Pinned host memory: events have the block's size.
    Host,
}

/// An allocation that is active at the moment the walk has come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// Bytes asked for; [`NO_SIZE`] where a block of the final state does not say.
    pub(super) size: i64,
    /// Bytes of the block, [`NO_SIZE`] as long as it is not known.
    pub(super) block: i64,
    pub(super) proof: Proof,
    pub(super) fate: Fate,
    /// What the final state counts of it.
    pub(super) part: Part,
    pub(super) requested: i64,
    pub(super) completed: i64,
    pub(super) free_time: i64,
    /// Stack the final state has for it.
    pub(super) stack: i64,
    pub(super) free_stack: i64,
    pub(super) place: u32,
}

impl Open {
    /// An allocation whose end an event shows.
    fn ended(event: &Event) -> Self {
        Self {
            size: event.size,
            block: NO_SIZE,
            proof: Proof::None,
            fate: Fate::PendingFree,
            part: Part::default(),
            requested: NO_INDEX,
            completed: NO_INDEX,
            free_time: event.time,
            stack: 0,
            free_stack: 0,
            place: event.place,
        }
    }

    fn completed_by(event: &Event) -> Self {
        Self { fate: Fate::Freed, completed: event.index, ..Self::ended(event) }
    }

    fn requested_by(mut self, event: &Event) -> Self {
        self.requested = event.index;
        self.free_stack = event.stack;
        if self.free_time == NO_TIME {
            self.free_time = event.time;
        }
        self
    }

    fn has_size(&self, size: i64) -> bool {
        self.size == size || self.size == NO_SIZE
    }
}

/// The state of a device at the moment the walk has come to.
pub(super) struct Walk<'a> {
    rules: &'a Rules,
    cutting: Cutting,
    open: HashMap<u64, Open, FixedState>,
    /// Where the large ones among the open allocations begin, if their sizes follow from their neighbours: the size their
    /// request is rounded to, or 0 where that of the block is known.
    large: BTreeMap<u64, i64>,
    ranges: Ranges,
    tally: Tally,
    ends: Ends,
    rows: &'a mut Rows,
}

/// What a walk leaves.
pub(super) struct Walked {
    pub(super) tally: Tally,
    /// Bytes of the segments at the beginning.
    pub(super) reserved: i128,
    pub(super) ends: Ends,
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
            large: BTreeMap::new(),
            ranges: Ranges::default(),
            tally: Tally::default(),
            ends: Ends::default(),
            rows,
        }
    }

    /// Adds a segment of the final state.
    pub(super) fn add_segment(&mut self, address: i64, size: i64, kind: Kind) {
        let twice = self.ranges.add(unsigned(address), bytes(size), kind);
        self.tally.range_twice += i128::from(twice);
    }

    /// Adds an active block of the final state, and checks the rules against it.
    pub(super) fn add_block(&mut self, address: i64, open: Open) {
        self.tally.check_rule(self.rules, self.cutting, &open);
        self.insert(unsigned(address), open);
    }

    fn is_tracked(&self, size: i64) -> bool {
        matches!(self.cutting, Cutting::Rests | Cutting::Mixed) && self.rules.rounding.round(size) > SMALL
    }

    fn insert(&mut self, addr: u64, mut open: Open) {
        let size = if open.size == NO_SIZE { open.block } else { open.size };
        if self.is_tracked(size) {
            self.insert_large(addr, &mut open);
        }
        self.open.insert(addr, open);
    }

    /// Two active blocks with so little between them that no large block fits: the first one has it. Either it was left to it
    /// when it was cut, or the second one begins where the first one ends.
    fn insert_large(&mut self, addr: u64, open: &mut Open) {
        let mut needed = 0;
        if open.block == NO_SIZE {
            needed = self.rules.rounding.round(open.size);
            let next = self.large.range(addr..).next().map(|(next, _)| next - addr);
            if let Some(size) = self.all_of(needed, next) {
                (open.block, open.proof, needed) = (size, Proof::Neighbour, 0);
            }
        }
        if let Some((before, needed)) =
            self.large.range(..addr).next_back().filter(|(_, needed)| **needed > 0)
            && let Some(size) = self.all_of(*needed, Some(addr - before))
            && let Some(open) = self.open.get_mut(before)
        {
            (open.block, open.proof) = (size, Proof::Neighbour);
            let before = *before;
            self.large.insert(before, 0);
        }
        self.large.insert(addr, needed);
    }

    /// The size of a block with so much room, if it has to have all of it.
    fn all_of(&self, needed: i64, room: Option<u64>) -> Option<i64> {
        let room = i64::try_from(room?).ok().filter(|_| self.rules.padding.is_some())?;
        let most = if self.cutting == Cutting::Rests { SMALL } else { 0 };
        (0..=most).contains(&room.saturating_sub(needed)).then_some(room)
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
                open.size = event.size;
                *open = open.requested_by(event);
                return Ok(());
            }
            Some(_) => {}
            None => {
                self.ends.miss(addr, event.index);
                self.insert(addr, Open::ended(event).requested_by(event));
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
                    self.large.remove(&addr);
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

    /// The size of the block that an allocation got.
    fn block_at_alloc(&mut self, addr: u64, open: &Open) -> (i64, Proof) {
        let rounded = self.rules.rounding.round(open.size);
        if !self.is_tracked(open.size) {
            return self.block_by_rule(open, rounded);
        }
        self.large.remove(&addr);
        let Some((start, end, kind)) = self.ranges.find(addr) else {
            self.tally.outside_ranges += 1;
            return if open.block == NO_SIZE { (rounded, Proof::None) } else { (open.block, open.proof) };
        };
        // A free block begins right behind an active one, because free neighbours are merged.
        if let Some(before) = self.large.range(start..addr).next_back().map(|(before, _)| *before) {
            self.prove_neighbour(before, addr);
        }
        let limit = self.large.range(addr..end).next().map_or(end, |(next, _)| *next);
        let room = i64::try_from(limit - addr).unwrap_or(i64::MAX);
        let (block, proof) = self.cut(rounded, room, kind);
        if open.block == NO_SIZE {
            return (block, proof);
        }
        if block != open.block && proof == Proof::Geometry {
            self.tally.geometry_broken += 1;
        }
        (open.block, open.proof)
    }

    fn block_by_rule(&self, open: &Open, rounded: i64) -> (i64, Proof) {
        if open.block != NO_SIZE {
            (open.block, open.proof)
        } else if self.cutting == Cutting::Host {
            (open.size, Proof::Host)
        } else if self.rules.padding.is_none() {
            (rounded, Proof::None)
        } else {
            (rounded, Proof::Rule)
        }
    }

    /// What is cut from a free block of `room` bytes.
    fn cut(&mut self, rounded: i64, room: i64, kind: Kind) -> (i64, Proof) {
        let rest = room.saturating_sub(rounded);
        // Without knowing the padding, `rounded` may be 512 bytes too large.
        let doubt = if self.rules.padding.is_some() { 0 } else { 512 };
        if rest < 0 {
            self.tally.geometry_broken += i64::from(doubt == 0);
            return (rounded, Proof::None);
        }
        let is_whole = self.rules.max_split_size.is_some_and(|limit| rounded >= limit);
        let is_split = rest > SMALL && !is_whole;
        let is_clear = match self.cutting {
            // A block that the other kind would have left a rest of.
            Cutting::Mixed => rest == 0 || is_split,
            _ => true,
        };
        let is_clear = is_clear && (doubt == 0 || rest.saturating_add(doubt) <= SMALL);
        let block =
            if is_split || (self.cutting == Cutting::Mixed && kind == Kind::Mapped) { rounded } else { room };
        (block, if is_clear { Proof::Geometry } else { Proof::None })
    }

    /// An allocation at `next` shows where the active block before it ends.
    fn prove_neighbour(&mut self, addr: u64, next: u64) {
        let Some(open) = self.open.get_mut(&addr) else { return };
        let size = i64::try_from(next - addr).unwrap_or(i64::MAX);
        if open.block == NO_SIZE {
            let rest = size.saturating_sub(self.rules.rounding.round(open.size));
            if (0..=SMALL).contains(&rest) || self.rules.max_split_size.is_some() {
                (open.block, open.proof) = (size, Proof::Neighbour);
                self.large.insert(addr, 0);
            } else {
                self.tally.geometry_broken += i64::from(self.rules.padding.is_some());
            }
        } else if open.block != size {
            self.tally.geometry_broken += 1;
        }
    }

    /// Ends an allocation whose alloc the trace lacks: it came after `event`, which is all that is known.
    fn finish_without_alloc(&mut self, event: &Event, open: Open) -> Result<()> {
        self.large.remove(&unsigned(event.addr));
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

    /// Comes to the beginning: what is active now was there before the window.
    pub(super) fn finish(mut self) -> Result<Walked> {
        let mut left: Vec<(u64, Open)> = self.open.drain().collect();
        left.sort_unstable_by_key(|(addr, _)| *addr);
        for (addr, mut open) in left.into_iter().rev() {
            self.prove_by_end(addr, &mut open);
            let row = self.row_without_alloc(addr.cast_signed(), &open, Origin::BeforeWindow, NO_INDEX);
            self.tally.row(&row, &open, false);
            self.rows.push(&row)?;
        }
        Ok(Walked { tally: self.tally, reserved: self.ranges.total(), ends: self.ends })
    }

    /// What no large block fits behind has all that is left of its segment.
    fn prove_by_end(&self, addr: u64, open: &mut Open) {
        let Some(needed) = self.large.get(&addr).copied().filter(|needed| *needed > 0) else { return };
        let room = self.ranges.find(addr).map(|(_, end, _)| end - addr);
        if let Some(size) = self.all_of(needed, room) {
            (open.block, open.proof) = (size, Proof::Neighbour);
        }
    }
}

impl Open {
    /// An allocation whose end no event shows, and which the final state does not have.
    fn unended(event: &Event) -> Self {
        Self { fate: Fate::Live, free_time: NO_TIME, ..Self::ended(event) }
    }
}
