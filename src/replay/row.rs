//! A finished allocation, and how it is to be read once all have come.

use super::ends::Ends;

/// An index that is not known.
pub(super) const NO_INDEX: i64 = -1;

/// How the size of a block is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Not known: the rounded request, which the block is not smaller than.
    None,
    /// The block is in the final state.
    Final,
    /// A later allocation began right behind it.
    Neighbour,
    /// A pool that always splits: the rounded request.
    Rule,
    /// The free block it was cut from, by its neighbours then.
    Geometry,
    /// Pinned host memory, whose events have the block's size.
    Host,
}

/// In the order of the numbers rows are spooled with.
pub(super) const PROOFS: [Proof; 6] =
    [Proof::None, Proof::Final, Proof::Neighbour, Proof::Rule, Proof::Geometry, Proof::Host];

/// Where an allocation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// At an event.
    Window,
    /// Before the first event.
    BeforeWindow,
}

/// What became of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Live,
    PendingFree,
    Freed,
}

/// A finished row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) addr: i64,
    pub(super) size: i64,
    pub(super) block: i64,
    pub(super) proof: Proof,
    /// [`NO_INDEX`] where it is not known; so are the next two.
    pub(super) alloc: i64,
    pub(super) requested: i64,
    pub(super) completed: i64,
    /// [`NO_TIME`] where it is not known; so is the next.
    pub(super) alloc_time: i64,
    pub(super) free_time: i64,
    /// 0 where it is not known; so is the next.
    pub(super) stack: i64,
    pub(super) free_stack: i64,
    pub(super) place: u32,
    pub(super) origin: Origin,
    pub(super) fate: Fate,
}

/// How the rows of a device are to be read, as far as that shows only when all have come.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent observation")]
pub(super) struct Reading {
    /// Sizes by rule or geometry are no proof: other blocks were seen to break it.
    pub(super) doubts_rule: bool,
    pub(super) doubts_geometry: bool,
    /// Where the recording skipped one of the two free events, the other stands for both.
    pub(super) frees_are_one: bool,
    /// Frees were recorded with the stack of the alloc.
    pub(super) frees_have_alloc_stack: bool,
    /// Ends that the trace lacks.
    pub(super) ends: Ends,
}

impl Reading {
    /// Whether a size known that way is proven.
    pub(super) fn is_proven(&self, proof: Proof) -> bool {
        match proof {
            Proof::None => false,
            Proof::Final | Proof::Host => true,
            Proof::Rule => !self.doubts_rule,
            Proof::Neighbour | Proof::Geometry => !self.doubts_geometry,
        }
    }

    /// Fills in what follows from events that are there for those that are not. An allocation that was pending when the
    /// window began is no such case: its request came before.
    pub(super) fn apply(&self, mut row: Row) -> Row {
        if self.frees_are_one && row.fate == Fate::PendingFree && row.requested != NO_INDEX {
            row.fate = Fate::Freed;
        }
        if row.completed == NO_INDEX && row.fate != Fate::Freed {
            let begun = if row.requested == NO_INDEX { row.alloc } else { row.requested };
            if let Some(end) = self.ends.end_of(begun) {
                (row.completed, row.fate) = (end, Fate::Freed);
            }
        }
        if row.fate == Fate::Freed && row.completed == NO_INDEX {
            row.completed = row.requested;
        }
        let is_gone = row.completed != NO_INDEX;
        if is_gone && row.requested == NO_INDEX && (self.frees_are_one || row.origin == Origin::Window) {
            row.requested = row.completed;
        }
        if self.frees_have_alloc_stack && row.origin == Origin::BeforeWindow && row.stack == 0 {
            row.stack = row.free_stack;
        }
        row
    }
}
