//! Sizes of blocks, which events do not have.
//!
//! Small blocks and those in expandable segments are cut to the size their request is rounded to. A large block in a segment
//! of its own kind keeps a rest of up to 1 MiB. How much that is follows from what lay around it: the allocator cuts a block
//! from the low end of a free one, and free neighbours are always one, so a free block begins where an active one ends and
//! reaches to the next active one or to the end of the segment. Addresses of active blocks and ranges of segments are all
//! it takes.

use super::open::{NO_SIZE, Open};
use super::ranges::Kind;
use super::row::Proof;
use super::rules::SMALL;
use super::walk::Walk;

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
    /// The events do not lead up to the final state, so what lies around a block is not known.
    Unknown,
}

impl Walk<'_> {
    pub(super) fn is_tracked(&self, size: i64) -> bool {
        matches!(self.cutting, Cutting::Rests | Cutting::Mixed) && self.rules.rounding.is_large(size)
    }

    /// Two active blocks with so little between them that no large block fits: the first one has it. Either it was left to it
    /// when it was cut, or the second one begins where the first one ends.
    pub(super) fn insert_large(&mut self, addr: u64, open: &mut Open) {
        let spot = self.large.spot(addr);
        let mut needed = 0;
        if open.block == NO_SIZE {
            needed = self.rules.rounding.round(open.size);
            let next = self.large.at_or_behind(spot).map(|(next, _)| next - addr);
            if let Some(size) = self.all_of(needed, next) {
                (open.block, open.proof, needed) = (size, Proof::Neighbour, 0);
            }
        }
        if let Some((before, needed)) = self.large.before(spot).filter(|(_, needed)| *needed > 0)
            && let Some(size) = self.all_of(needed, Some(addr - before))
            && let Some(open) = self.open.get_mut(&before)
        {
            (open.block, open.proof) = (size, Proof::Neighbour);
            // It is there already: nothing moves.
            self.large.put(self.large.spot(before), 0);
        }
        self.large.put(spot, needed);
    }

    /// The size of a block with so much room, if it has to have all of it.
    pub(super) fn all_of(&self, needed: i64, room: Option<u64>) -> Option<i64> {
        let room = i64::try_from(room?).ok().filter(|_| self.rules.padding.is_some())?;
        let most = if self.cutting == Cutting::Rests { SMALL } else { 0 };
        (0..=most).contains(&room.saturating_sub(needed)).then_some(room)
    }

    /// The size of the block that an allocation got.
    pub(super) fn block_at_alloc(&mut self, addr: u64, open: &Open) -> (i64, Proof) {
        let rounded = self.rules.rounding.round(open.size);
        if !self.is_tracked(open.size) {
            return self.block_by_rule(open, rounded);
        }
        let spot = self.large.take(self.large.spot(addr));
        let Some((start, end, kind)) = self.ranges.find(addr) else {
            self.tally.outside_ranges += 1;
            return if open.block == NO_SIZE { (rounded, Proof::None) } else { (open.block, open.proof) };
        };
        // A free block begins right behind an active one, because free neighbours are merged.
        let (before, next) = (self.large.before(spot), self.large.at_or_behind(spot));
        if let Some((before, _)) = before.filter(|(before, _)| *before >= start) {
            self.prove_neighbour(before, addr);
        }
        let limit = next.map_or(end, |(next, _)| next.min(end));
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

    pub(super) fn block_by_rule(&self, open: &Open, rounded: i64) -> (i64, Proof) {
        if open.block != NO_SIZE {
            (open.block, open.proof)
        } else if self.cutting == Cutting::Host {
            (open.size, Proof::Host)
        } else if self.rules.padding.is_none() || (self.cutting == Cutting::Unknown && rounded > SMALL) {
            (rounded, Proof::None)
        } else {
            (rounded, Proof::Rule)
        }
    }

    /// What is cut from a free block of `room` bytes.
    pub(super) fn cut(&mut self, rounded: i64, room: i64, kind: Kind) -> (i64, Proof) {
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
    pub(super) fn prove_neighbour(&mut self, addr: u64, next: u64) {
        let Some(open) = self.open.get_mut(&addr) else { return };
        let size = i64::try_from(next - addr).unwrap_or(i64::MAX);
        if open.block == NO_SIZE {
            let rest = size.saturating_sub(self.rules.rounding.round(open.size));
            if (0..=SMALL).contains(&rest) || self.rules.max_split_size.is_some() {
                (open.block, open.proof) = (size, Proof::Neighbour);
                self.large.put(self.large.spot(addr), 0);
            } else {
                self.tally.geometry_broken += i64::from(self.rules.padding.is_some());
            }
        } else if open.block != size {
            self.tally.geometry_broken += 1;
        }
    }

    /// What no large block fits behind has all that is left of its segment.
    pub(super) fn prove_by_end(&self, addr: u64, open: &mut Open) {
        let Some(needed) = self.large.get(addr).filter(|needed| *needed > 0) else { return };
        let room = self.ranges.find(addr).map(|(_, end, _)| end - addr);
        if let Some(size) = self.all_of(needed, room) {
            (open.block, open.proof) = (size, Proof::Neighbour);
        }
    }
}
