//! What the walk over the events of a device adds up to, and what did not fit.

use super::event::{Action, Event};
use super::open::{NO_SIZE, Open};
use super::row::{Fate, NO_INDEX, Origin, Proof, Row};
use super::rules::{Rules, SMALL};
use super::sizes::Cutting;
use super::state::Block;

/// So many frees with the stack of their alloc, and none with another, are no coincidence.
const SAME_STACKS: u64 = 8;

/// Bytes of the four counters that allocations make up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) allocated: i128,
    pub(super) active: i128,
    pub(super) allocated_requested: i128,
    pub(super) active_requested: i128,
}

impl Sums {
    /// Counts an allocation so many times in the two pairs of counters.
    fn add(&mut self, row: &Row, times: Times) {
        let (block, size) = (i128::from(row.block), i128::from(row.size));
        self.allocated += block * times.allocated;
        self.active += block * times.active;
        self.allocated_requested += size * times.allocated;
        self.active_requested += size * times.active;
    }
}

/// How often something is counted: -1, 0 or 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    allocated: i128,
    active: i128,
}

/// In which counters of the final state an allocation is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) allocated: bool,
    pub(super) active: bool,
}

/// What an allocation lacks that keeps base and initial allocations from agreeing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Never freed in the trace, and not in the final state.
    End,
    /// Its free was requested and not completed, and it is not in the final state.
    Completion,
    /// Its free was completed without having been requested.
    Request,
    /// Freed twice: the alloc between is missing.
    Alloc,
    /// Freed by the trace, active in the final state.
    AllocOfBlock,
}

/// Kinds of [`Gap`], in their order.
pub(super) const GAPS: [Gap; 5] = [Gap::End, Gap::Completion, Gap::Request, Gap::Alloc, Gap::AllocOfBlock];

/// Allocations and what they add to the residuals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gaps {
    pub(super) count: i64,
    pub(super) sums: Sums,
}

/// An earlier dump's mark: what was active then.
#[derive(Debug, Clone, Copy)]
struct Mark {
    index: i64,
    place: u32,
    /// Bytes the allocator counted.
    told: i64,
    /// Bytes by which those that lived then differ from those that lived at the mark before in the list.
    step: i128,
}

/// Blocks by how their size is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) count: i64,
    pub(super) bytes: i128,
}

/// The sums of a walk.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Changes of the counters by the events, rounded sizes by the rows they belong to.
    pub(super) changes: Sums,
    pub(super) reserved_change: i128,
    /// Allocations from before the window.
    pub(super) before: Sums,
    gaps: [Gaps; GAPS.len()],
    /// The last one first.
    marks: Vec<Mark>,
    /// Bytes of the allocations that began since the last mark, of those that lived then.
    began: i128,
    by_rule: Blocks,
    by_geometry: Blocks,
    pub(super) unproven: Blocks,
    pub(super) all: Blocks,
    /// Bytes of segments that begin where there is one already, and that end where there is none.
    pub(super) range_twice: i128,
    pub(super) range_missing: i128,
    /// Allocations in no known segment.
    pub(super) outside_ranges: i64,
    /// Allocations of whatever size in no known segment, where they are looked for.
    pub(super) outside_pool: i64,
    /// Blocks that are not as the rules have it.
    pub(super) rule_broken: i64,
    /// Pending blocks that the final state shows as inactive.
    pub(super) hidden: Gaps,
    /// Frees with the stack of their alloc, and with another.
    same_stack: u64,
    other_stack: u64,
    pub(super) geometry_broken: i64,
}

impl Tally {
    /// Counts an event.
    pub(super) fn event(&mut self, event: &Event) {
        let size = i128::from(event.size);
        match event.action {
            Action::Alloc => {
                self.changes.allocated_requested += size;
                self.changes.active_requested += size;
            }
            Action::FreeRequested => self.changes.allocated_requested -= size,
            Action::FreeCompleted => self.changes.active_requested -= size,
            Action::SegmentAlloc | Action::SegmentMap => self.reserved_change += size,
            Action::SegmentFree | Action::SegmentUnmap => self.reserved_change -= size,
            Action::Snapshot => {
                let step = -std::mem::take(&mut self.began);
                self.marks.push(Mark { index: event.index, place: event.place, told: event.size, step });
            }
            Action::Other => {}
        }
    }

    /// Counts a finished allocation.
    pub(super) fn row(&mut self, row: &Row, open: &Open, has_alloc: bool) {
        // Nearly all begin and end at events: what one adds the others take away.
        let is_round = row.requested != NO_INDEX && row.completed != NO_INDEX && row.origin == Origin::Window;
        if !(is_round && has_alloc && open.part == Part::default()) {
            self.balance(row, open, has_alloc);
        }
        if !self.marks.is_empty() {
            self.mark(row);
        }
        if has_alloc && row.stack != 0 && row.free_stack != 0 {
            let same = row.stack == row.free_stack;
            self.same_stack += u64::from(same);
            self.other_stack += u64::from(!same);
        }
        self.count_block(row);
    }

    /// Counts what an allocation changes from the beginning to the end, and what it lacks.
    fn balance(&mut self, row: &Row, open: &Open, has_alloc: bool) {
        let one = |is_there: bool| i128::from(is_there);
        // An event that is implied, because its like is missing, changes nothing.
        let has_request = row.requested != NO_INDEX;
        let has_completion = row.completed != NO_INDEX;
        let change = Times {
            allocated: one(has_alloc) - one(has_request),
            active: one(has_alloc) - one(has_completion),
        };
        self.changes.allocated += i128::from(row.block) * change.allocated;
        self.changes.active += i128::from(row.block) * change.active;
        let is_before = row.origin == Origin::BeforeWindow;
        let was_pending = is_before && (has_completion || row.fate == Fate::PendingFree) && !has_request;
        let before = Times { allocated: one(is_before && !was_pending), active: one(is_before) };
        self.before.add(row, before);
        let gap = Times {
            allocated: one(open.part.allocated) - change.allocated - before.allocated,
            active: one(open.part.active) - change.active - before.active,
        };
        if gap != Times::default() {
            self.gap(row, open, has_alloc, gap);
        }
    }

    /// Adds an allocation to the marks in its life: all that have come so far, the last one first, without those behind its
    /// end.
    fn mark(&mut self, row: &Row) {
        let end = if row.completed == NO_INDEX { i64::MAX } else { row.completed };
        let first = self.marks.partition_point(|mark| mark.index >= end);
        if let Some(mark) = self.marks.get_mut(first) {
            mark.step += i128::from(row.block);
            self.began += i128::from(row.block);
        }
    }

    /// The largest difference between active bytes as found here and as an earlier dump counted them, among the marks of
    /// places that count.
    pub(super) fn deviation(&self, counts: impl Fn(u32) -> bool) -> (usize, i128) {
        let mut active = 0;
        let mut used = 0;
        let differences = self.marks.iter().filter_map(|mark| {
            active += mark.step;
            counts(mark.place).then(|| active - i128::from(mark.told))
        });
        let largest = differences.inspect(|_| used += 1).max_by_key(|difference| difference.abs());
        (used, largest.unwrap_or_default())
    }

    #[cold]
    fn gap(&mut self, row: &Row, open: &Open, has_alloc: bool, times: Times) {
        let gap = match (has_alloc, row.requested != NO_INDEX, row.completed != NO_INDEX) {
            (false, ..) if open.part.active => Gap::AllocOfBlock,
            (false, ..) if row.origin == Origin::Window => Gap::Alloc,
            (_, true, false) => Gap::Completion,
            (_, false, true) => Gap::Request,
            _ => Gap::End,
        };
        if let Some(gaps) =
            GAPS.iter().position(|other| *other == gap).and_then(|place| self.gaps.get_mut(place))
        {
            gaps.count += 1;
            gaps.sums.add(row, times);
        }
    }

    fn count_block(&mut self, row: &Row) {
        let bytes = i128::from(row.block);
        let blocks = match row.proof {
            Proof::None => Some(&mut self.unproven),
            Proof::Rule => Some(&mut self.by_rule),
            Proof::Neighbour | Proof::Geometry => Some(&mut self.by_geometry),
            Proof::Final | Proof::Host => None,
        };
        for blocks in blocks.into_iter().chain([&mut self.all]) {
            blocks.count += 1;
            blocks.bytes += bytes;
        }
    }

    /// Compares a block of the final state with the rule for its size.
    pub(super) fn check_rule(&mut self, rules: &Rules, cutting: Cutting, open: &Open) {
        if open.size == NO_SIZE || rules.padding.is_none() || cutting == Cutting::Host {
            return;
        }
        let rounded = rules.rounding.round(open.size);
        if rounded <= SMALL || cutting == Cutting::Exact {
            self.rule_broken += i64::from(open.block != rounded);
        } else {
            let most = if rules.max_split_size.is_some() { i64::MAX } else { rounded.saturating_add(SMALL) };
            self.geometry_broken += i64::from(!(rounded..=most).contains(&open.block));
        }
    }

    /// Counts a block that is pending and shown as inactive.
    pub(super) fn count_hidden(&mut self, block: &Block) {
        self.hidden.count += 1;
        self.hidden.sums.active += i128::from(block.size);
        self.hidden.sums.active_requested += i128::from(block.requested.unwrap_or_default());
    }

    /// Whether frees were recorded with the stack of the alloc, as `context="alloc"` does it.
    pub(super) fn frees_have_alloc_stack(&self) -> bool {
        self.same_stack >= SAME_STACKS && self.other_stack == 0
    }

    /// Whether something was active for a time that is not known, so that the room around other blocks is not known either.
    pub(super) fn hides_blocks(&self) -> bool {
        self.hidden.count > 0 || GAPS.iter().any(|gap| *gap != Gap::Request && self.gaps(*gap).count > 0)
    }

    /// The gaps of a kind.
    pub(super) fn gaps(&self, gap: Gap) -> Gaps {
        GAPS.iter()
            .position(|other| *other == gap)
            .and_then(|place| self.gaps.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// Blocks whose size is not proven, if the rules that were seen broken prove nothing.
    pub(super) fn unproven(&self, doubts_rule: bool, doubts_geometry: bool) -> Blocks {
        let mut sum = self.unproven;
        for (blocks, is_doubted) in [(self.by_rule, doubts_rule), (self.by_geometry, doubts_geometry)] {
            if is_doubted {
                sum.count += blocks.count;
                sum.bytes += blocks.bytes;
            }
        }
        sum
    }
}
