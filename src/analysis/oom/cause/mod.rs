//! Why a request failed: told from what was free, where, and in which pieces.

use super::state::State;
use crate::analysis::outcome::share;
use crate::analysis::thresholds::Thresholds;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The driver had enough: a limit that the program set, or the driver itself, refused.
    MemoryLimit,
    /// Enough had been freed, but waited for another stream.
    PendingFree,
    /// Enough was free in the pool, or with what the driver had left, but not in one piece.
    Fragmentation,
    /// Enough was free in the pool, but for other streams.
    OtherStream,
    /// Enough was free in memory pools that the request could not take from.
    PrivatePools,
    /// Enough was free in the pool, but in segments for requests of the other kind, small or large, or in blocks that
    /// `max_split_size` keeps for larger ones.
    OtherKind,
    /// Enough is held beside the pool: by workspaces, or by what nobody accounts for.
    OutsidePool,
    /// More was asked for than the device has for this program.
    RequestTooLarge,
    /// What is allocated fills the device.
    Capacity,
    /// The request or the state is not known.
    Unknown,
}

impl Cause {
    /// The name that JSON uses.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MemoryLimit => "memory_limit",
            Self::PendingFree => "pending_free",
            Self::Fragmentation => "fragmentation",
            Self::OtherStream => "other_stream",
            Self::PrivatePools => "private_pools",
            Self::OtherKind => "other_kind",
            Self::OutsidePool => "outside_pool",
            Self::RequestTooLarge => "request_too_large",
            Self::Capacity => "capacity",
            Self::Unknown => "unknown",
        }
    }

    /// The first cause that the state bears out, from the one that is easiest to remedy to the one that is not.
    pub(super) fn of(state: &State, thresholds: &Thresholds) -> Self {
        let Some(requested) = state.requested else { return Self::of_unknown_request(state, thresholds) };
        if state.device_free.is_some_and(|driver| driver >= state.needed(requested)) {
            return Self::MemoryLimit;
        }
        let Some(unallocated) = state.unallocated() else { return Self::Unknown };
        if state.device_bytes().is_some_and(|device| requested > device) {
            return Self::RequestTooLarge;
        }
        let in_pool = match state.kind_free_bytes {
            Some(free) => Self::of_free(state, requested, free, thresholds),
            None => Self::of_unallocated(state, requested, unallocated, thresholds),
        };
        in_pool.unwrap_or_else(|| Self::of_what_is_held(state, requested, thresholds))
    }

    /// What `free` bytes in segments of the request's kind say; `None` where nothing in the pool would have been enough.
    fn of_free(state: &State, requested: i64, free: i64, thresholds: &Thresholds) -> Option<Self> {
        // Each such block would have served the request by itself.
        if state.kind_oversize_bytes.is_some_and(|kept| kept > 0) {
            return Some(Self::OtherKind);
        }
        let driver = state.device_free.unwrap_or_default();
        // What waits elsewhere would not have served the request.
        let pending = state.kind_pending_bytes.or(state.pending_free_bytes).unwrap_or_default();
        if pending > 0
            && (waits(state, thresholds) || free + driver < requested)
            && free + driver + pending >= requested
        {
            return Some(Self::PendingFree);
        }
        let others = state.kind_other_bytes.unwrap_or_default();
        if state.would_do(free, requested) {
            let own_would_do = others == 0 || free - others + driver >= requested;
            return Some(if own_would_do { Self::Fragmentation } else { Self::OtherStream });
        }
        let private = state.kind_private_bytes.unwrap_or_default();
        if private > 0 && state.would_do(free + private, requested) {
            return Some(Self::PrivatePools);
        }
        // Pages of the one kind seldom make up a segment of the other: only what was enough by itself is told.
        (state.free_in_pool().unwrap_or_default() >= requested).then_some(Self::OtherKind)
    }

    /// What can be said where nobody laid the pool out: no more than `unallocated` was free, but whose it was and in
    /// which pieces is not known. `None` where that would not have been enough in whatever place.
    fn of_unallocated(
        state: &State,
        requested: i64,
        unallocated: i64,
        thresholds: &Thresholds,
    ) -> Option<Self> {
        let driver = state.device_free.unwrap_or_default();
        let pending = state.pending_free_bytes.unwrap_or_default();
        if pending > 0
            && (waits(state, thresholds) || unallocated + driver < requested)
            && pending + driver >= requested
        {
            return Some(Self::PendingFree);
        }
        state.would_do(unallocated + pending, requested).then_some(Self::Unknown)
    }

    /// Nothing that was free would have been enough: what is held in the pool or beside it took the room.
    fn of_what_is_held(state: &State, requested: i64, thresholds: &Thresholds) -> Self {
        let full = state.is_full(thresholds.oom_full);
        let is_driver_known = state.device_free.is_some();
        // What the driver had left may have been a lot where it is not known, whatever is held beside the pool.
        let leaves_room = is_driver_known && !full;
        if state.outside() >= requested && (leaves_room || state.is_mostly_outside()) {
            Self::OutsidePool
        } else if is_driver_known || full {
            Self::Capacity
        } else {
            Self::Unknown
        }
    }

    /// Without the request only what stands out can be told.
    fn of_unknown_request(state: &State, thresholds: &Thresholds) -> Self {
        let (Some(reserved), Some(allocated), Some(_)) =
            (state.reserved, state.allocated, state.pending_free_bytes)
        else {
            return Self::Unknown;
        };
        if waits(state, thresholds) {
            return Self::PendingFree;
        }
        let split = reserved - allocated - state.unused_segment_bytes.unwrap_or_default();
        if share(split, reserved).is_some_and(|part| part >= thresholds.fragment_critical) {
            return Self::Fragmentation;
        }
        if state.is_mostly_outside() {
            return Self::OutsidePool;
        }
        if state.is_full(thresholds.oom_full) { Self::Capacity } else { Self::Unknown }
    }
}

/// Whether most of what is not allocated waits for another stream.
fn waits(state: &State, thresholds: &Thresholds) -> bool {
    let unallocated = state.reserved.zip(state.allocated).map(|(reserved, allocated)| reserved - allocated);
    let part = state.pending_free_bytes.zip(unallocated).and_then(|(pending, whole)| share(pending, whole));
    part.is_some_and(|part| part > thresholds.pending_warning)
}

#[cfg(test)]
mod tests;
