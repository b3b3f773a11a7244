//! An event as the replay needs it: what it does, to what, and where.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// What an event does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    /// A mark of an earlier dump.
    Snapshot,
    /// Nothing.
    Other,
}

/// Actions by the number that stands for each in a spooled column.
pub(super) const ACTIONS: [Action; 9] = [
    Action::Alloc,
    Action::FreeRequested,
    Action::FreeCompleted,
    Action::SegmentAlloc,
    Action::SegmentFree,
    Action::SegmentMap,
    Action::SegmentUnmap,
    Action::Snapshot,
    Action::Other,
];

impl Action {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "alloc" => Self::Alloc,
            "free_requested" => Self::FreeRequested,
            "free_completed" => Self::FreeCompleted,
            "segment_alloc" => Self::SegmentAlloc,
            "segment_free" => Self::SegmentFree,
            "segment_map" => Self::SegmentMap,
            "segment_unmap" => Self::SegmentUnmap,
            "snapshot" => Self::Snapshot,
            _ => Self::Other,
        }
    }

    pub(super) fn number(self) -> u8 {
        ACTIONS.iter().zip(0_u8..).find(|(action, _)| **action == self).map_or(u8::MAX, |(_, number)| number)
    }
}

/// An event as the replay needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) action: Action,
    /// `trace_index`.
    pub(super) index: i64,
    pub(super) addr: i64,
    pub(super) size: i64,
    /// [`NO_TIME`](super::columns::NO_TIME) without a clock.
    pub(super) time: i64,
    /// `stack_id`, 0 without one.
    pub(super) stack: i64,
    pub(super) place: u32,
}

/// Stream and memory pool of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Place {
    pub(super) stream: Option<i64>,
    pub(super) pool: Option<(i64, i64)>,
}

impl Place {
    /// Whether it is known to be in another pool than this one.
    pub(super) fn is_outside(self, pool: (i64, i64)) -> bool {
        self.pool.is_some_and(|other| other != pool)
    }
}

/// The different places, numbered as they come.
#[derive(Debug, Default)]
pub(super) struct Places {
    numbers: HashMap<Place, u32, FixedState>,
    list: Vec<Place>,
    last: Option<(Place, u32)>,
}

impl Places {
    /// The number of a place.
    pub(super) fn number(&mut self, place: Place) -> u32 {
        if let Some((last, number)) = self.last
            && last == place
        {
            return number;
        }
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.list.push(place);
        }
        self.last = Some((place, number));
        number
    }

    /// Whether any place is in another pool than this one.
    pub(super) fn have_another_pool(&self, pool: (i64, i64)) -> bool {
        self.list.iter().any(|place| place.is_outside(pool))
    }

    /// Whether any place says its pool.
    pub(super) fn tell_pools(&self) -> bool {
        self.list.iter().any(|place| place.pool.is_some())
    }

    /// The place behind a number.
    pub(super) fn get(&self, number: u32) -> Place {
        usize::try_from(number).ok().and_then(|number| self.list.get(number)).copied().unwrap_or_default()
    }
}
