//! An allocation that is active at the moment the walk has come to.

use super::columns::NO_TIME;
use super::event::Event;
use super::row::{Fate, NO_INDEX, Proof};
use super::tally::Part;

/// A size that is not known.
pub(super) const NO_SIZE: i64 = -1;

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
    pub(super) fn ended(event: &Event) -> Self {
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

    /// An allocation whose end no event shows, and which the final state does not have.
    pub(super) fn unended(event: &Event) -> Self {
        Self { fate: Fate::Live, free_time: NO_TIME, ..Self::ended(event) }
    }

    pub(super) fn completed_by(event: &Event) -> Self {
        Self { fate: Fate::Freed, completed: event.index, ..Self::ended(event) }
    }

    pub(super) fn requested_by(mut self, event: &Event) -> Self {
        self.requested = event.index;
        self.free_stack = event.stack;
        if self.free_time == NO_TIME {
            self.free_time = event.time;
        }
        self
    }

    pub(super) fn has_size(&self, size: i64) -> bool {
        self.size == size || self.size == NO_SIZE
    }
}
