//! Lifetimes whose end the trace lacks, although their address was used again: a second look at the events finds by when
//! they had ended.
//!
//! Walking backward, an alloc that nothing ends may live to the end of the trace, or may be one whose free was lost. Which
//! of the two shows in what came later at its address, and remembering that for all addresses would not be
//! in proportion to what lives. So only where it matters, the events are read once more.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::event::{Action, Event};
use super::row::NO_INDEX;

/// Lifetimes that are looked after at most.
const MOST: usize = 1 << 20;

/// Events behind which an end is missing, and what comes next at their addresses.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// By address: index of the event that comes next there, as far as the second reading has come.
    next: HashMap<u64, i64, FixedState>,
    /// By index of the event: index of the next event at its address, which is the latest its end can have come.
    latest: HashMap<i64, i64, FixedState>,
    /// Allocs among them that something came after, and their bytes.
    pub(super) lost: (i64, i128),
}

impl Ends {
    /// Notes an event that an end should have followed.
    #[cold]
    pub(super) fn miss(&mut self, addr: u64, index: i64) {
        if self.latest.len() < MOST {
            self.next.insert(addr, NO_INDEX);
            self.latest.insert(index, NO_INDEX);
        }
    }

    /// Whether the events have to be read once more.
    pub(super) fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Looks at an event, in the second reading.
    pub(super) fn look(&mut self, event: &Event) {
        if !matches!(event.action, Action::Alloc | Action::FreeRequested | Action::FreeCompleted) {
            return;
        }
        let Some(next) = self.next.get_mut(&event.addr.cast_unsigned()) else { return };
        let next = std::mem::replace(next, event.index);
        let Some(end) = self.latest.get_mut(&event.index) else { return };
        *end = next;
        if next != NO_INDEX && event.action == Action::Alloc {
            self.lost.0 += 1;
            self.lost.1 += i128::from(event.size);
        }
    }

    /// By when the lifetime had ended whose alloc, or whose free request, has that index.
    pub(super) fn end_of(&self, index: i64) -> Option<i64> {
        self.latest.get(&index).copied().filter(|end| *end != NO_INDEX)
    }
}
