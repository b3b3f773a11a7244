//! Why a request failed: told from what was free, where, and in which pieces.

use super::OomContext;
use crate::analysis::fragment::DeviceFragmentation;
use crate::analysis::outcome::share;
use crate::analysis::thresholds::Thresholds;

/// A device at the moment a request failed; `None` is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Bytes asked for, rounded.
    pub(super) requested: Option<i64>,
    /// Bytes the driver had left.
    pub(super) device_free: Option<i64>,
    /// Bytes in segments.
    pub(super) reserved: Option<i64>,
    /// Bytes in allocated blocks.
    pub(super) allocated: Option<i64>,
    /// Bytes that waited for another stream.
    pub(super) pending_free_bytes: Option<i64>,
    /// Bytes free in the default pool.
    pub(super) pool_free_bytes: Option<i64>,
    /// Bytes of the largest free block of it.
    pub(super) largest_free_block: Option<i64>,
    /// Free blocks of it.
    pub(super) hole_count: Option<i64>,
    /// Bytes in segments of private pools.
    pub(super) private_reserved: Option<i64>,
    /// Bytes free in them.
    pub(super) private_free_bytes: Option<i64>,
    /// Bytes free in the default pool for other streams.
    pub(super) other_stream_bytes: Option<i64>,
    /// Bytes of whole free segments.
    pub(super) unused_segment_bytes: Option<i64>,
    /// Bytes of NPU workspaces.
    pub(super) workspace_bytes: i64,
    /// Whether segments are expandable: they grow by pages.
    pub(super) is_expandable: bool,
    /// Bytes that neither the pool nor the driver's free memory accounts for, as far as the device is known.
    pub(super) outside_pool_bytes: Option<i64>,
    /// Bytes outside the pool that the driver counts by component when the snapshot is dumped; without workspaces.
    pub(super) counted_outside_bytes: Option<i64>,
    /// The largest of those components, and its bytes.
    pub(super) largest_outside: Option<(String, i64)>,
}

impl From<&OomContext> for State {
    fn from(context: &OomContext) -> Self {
        let seen = context.reserved.zip(context.device_free).map(|(reserved, free)| reserved + free);
        Self {
            requested: context.requested,
            device_free: context.device_free,
            reserved: context.reserved,
            allocated: context.allocated,
            pending_free_bytes: context.pending_free_bytes,
            pool_free_bytes: context.pool_free_bytes,
            largest_free_block: context.largest_free_block,
            hole_count: context.hole_count,
            private_reserved: context.private_reserved,
            private_free_bytes: context.private_free_bytes,
            other_stream_bytes: context.other_stream_bytes,
            unused_segment_bytes: context.unused_segment_bytes,
            workspace_bytes: context.workspace_bytes,
            is_expandable: false,
            outside_pool_bytes: context.capacity_seen.zip(seen).map(|(most, seen)| most - seen),
            ..Self::default()
        }
    }
}

impl From<&DeviceFragmentation> for State {
    fn from(device: &DeviceFragmentation) -> Self {
        Self {
            reserved: Some(device.reserved),
            allocated: Some(device.allocated),
            pending_free_bytes: Some(device.pending_free_bytes),
            pool_free_bytes: Some(device.hole_bytes + device.unused_segment_bytes),
            largest_free_block: Some(device.largest_hole.max(device.largest_unused_segment)),
            hole_count: Some(device.hole_count + device.unused_segment_count),
            private_reserved: Some(device.private_reserved),
            private_free_bytes: Some(device.private_free_bytes),
            unused_segment_bytes: Some(device.unused_segment_bytes),
            workspace_bytes: device.workspace_bytes,
            ..Self::default()
        }
    }
}

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
    /// Enough was free in private pools.
    PrivatePools,
    /// Enough is held beside the pool: by workspaces, or by what nobody accounts for.
    OutsidePool,
    /// More was asked for than the device has for this program.
    RequestTooLarge,
    /// What is allocated fills the device.
    Capacity,
    /// The request or the state is not known.
    Unknown,
}

const MIB: i64 = 1 << 20;

impl State {
    /// Bytes held beside the pool, by whichever account knows of most.
    pub(super) fn outside(&self) -> i64 {
        let counted = self.counted_outside_bytes.unwrap_or_default();
        counted.saturating_add(self.workspace_bytes).max(self.outside_pool_bytes.unwrap_or_default())
    }

    /// Whether more is counted outside the pool than in it.
    fn is_mostly_outside(&self) -> bool {
        self.counted_outside_bytes.zip(self.reserved).is_some_and(|(outside, reserved)| outside > reserved)
    }

    /// Bytes that the allocator asks the driver for to serve a request: a segment, or the pages that an expandable one
    /// lacks if its last free block is the largest there is.
    fn needed(&self, requested: i64) -> i64 {
        let up_to = |size: i64, unit: i64| size.saturating_add(unit - 1) / unit * unit;
        if self.is_expandable {
            let page = if requested <= MIB { 2 * MIB } else { 20 * MIB };
            let lacking = requested - self.largest_free_block.unwrap_or_default();
            return up_to(lacking.max(1), page);
        }
        if requested <= MIB {
            2 * MIB
        } else if requested < 10 * MIB {
            20 * MIB
        } else {
            up_to(requested, 2 * MIB)
        }
    }
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
            Self::OutsidePool => "outside_pool",
            Self::RequestTooLarge => "request_too_large",
            Self::Capacity => "capacity",
            Self::Unknown => "unknown",
        }
    }

    /// The first cause that the state bears out, from the one that is easiest to remedy to the one that is not.
    pub(super) fn of(state: &State, thresholds: &Thresholds) -> Self {
        let Some(requested) = state.requested else { return Self::of_unknown_request(state, thresholds) };
        let driver = state.device_free.unwrap_or_default();
        if driver >= state.needed(requested) {
            return Self::MemoryLimit;
        }
        let (Some(reserved), Some(allocated), Some(free), Some(pending)) =
            (state.reserved, state.allocated, state.pool_free_bytes, state.pending_free_bytes)
        else {
            return Self::Unknown;
        };
        let counted = state.counted_outside_bytes.unwrap_or_default();
        if requested > reserved.saturating_add(driver).max(counted) {
            return Self::RequestTooLarge;
        }
        let waits =
            share(pending, reserved - allocated).is_some_and(|part| part > thresholds.pending_warning);
        if pending > 0 && (waits || free + driver < requested) && free + driver + pending >= requested {
            return Self::PendingFree;
        }
        let others = state.other_stream_bytes.unwrap_or_default();
        if free >= requested && free - others + driver < requested {
            return Self::OtherStream;
        }
        // What the driver had left helps only where it makes up a segment together with pages of the pool.
        if free >= requested || free > 0 && free + driver >= state.needed(requested) {
            return Self::Fragmentation;
        }
        let private = state.private_free_bytes.unwrap_or_default();
        let with_private = free + private;
        if private > 0 && (with_private >= requested || with_private + driver >= state.needed(requested)) {
            return Self::PrivatePools;
        }
        let full = share(allocated, reserved + driver).is_some_and(|part| part >= thresholds.oom_full);
        if state.outside() >= requested && (!full || state.is_mostly_outside()) {
            Self::OutsidePool
        } else {
            Self::Capacity
        }
    }

    /// Without the request only what stands out can be told.
    fn of_unknown_request(state: &State, thresholds: &Thresholds) -> Self {
        let (Some(reserved), Some(allocated), Some(pending)) =
            (state.reserved, state.allocated, state.pending_free_bytes)
        else {
            return Self::Unknown;
        };
        let unallocated = reserved - allocated;
        if share(pending, unallocated).is_some_and(|part| part > thresholds.pending_warning) {
            return Self::PendingFree;
        }
        let split = unallocated - state.unused_segment_bytes.unwrap_or_default();
        if share(split, reserved).is_some_and(|part| part >= thresholds.fragment_critical) {
            return Self::Fragmentation;
        }
        if state.is_mostly_outside() {
            return Self::OutsidePool;
        }
        if share(allocated, reserved).is_some_and(|part| part >= thresholds.oom_full) {
            return Self::Capacity;
        }
        Self::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    /// 2 GiB are asked for, 20 GiB are reserved, 100 MiB are left in the driver.
    fn state() -> State {
        State {
            requested: Some(2 * GIB),
            device_free: Some(100 * MIB),
            reserved: Some(20 * GIB),
            allocated: Some(20 * GIB),
            pending_free_bytes: Some(0),
            pool_free_bytes: Some(0),
            largest_free_block: Some(0),
            private_free_bytes: Some(0),
            other_stream_bytes: Some(0),
            ..State::default()
        }
    }

    fn cause(state: &State) -> Cause {
        Cause::of(state, &Thresholds::default())
    }

    #[test]
    fn a_device_that_is_allocated_is_full() {
        assert_eq!(cause(&state()), Cause::Capacity);
    }

    #[test]
    fn enough_in_small_pieces_is_fragmentation() {
        let state = State { allocated: Some(17 * GIB), pool_free_bytes: Some(3 * GIB), ..state() };
        assert_eq!(cause(&state), Cause::Fragmentation);
    }

    #[test]
    fn enough_for_another_stream_is_not_fragmentation() {
        let state = State {
            allocated: Some(17 * GIB),
            pool_free_bytes: Some(3 * GIB),
            other_stream_bytes: Some(5 * GIB / 2),
            ..state()
        };
        assert_eq!(cause(&state), Cause::OtherStream);
    }

    #[test]
    fn what_waits_for_a_stream_is_told_from_holes() {
        let state = State {
            allocated: Some(16 * GIB),
            pool_free_bytes: Some(GIB),
            pending_free_bytes: Some(3 * GIB),
            ..state()
        };
        assert_eq!(cause(&state), Cause::PendingFree);
    }

    #[test]
    fn a_driver_that_has_enough_points_at_a_limit() {
        assert_eq!(cause(&State { device_free: Some(3 * GIB), ..state() }), Cause::MemoryLimit);
        // A request of 2 MiB needs a segment of 20 MiB: 5 MiB in the driver are not enough for it.
        let small = State { requested: Some(2 * MIB), device_free: Some(5 * MIB), ..state() };
        assert_eq!(cause(&small), Cause::Capacity);
    }

    #[test]
    fn private_pools_and_workspaces_are_named() {
        let private = State { allocated: Some(17 * GIB), private_free_bytes: Some(3 * GIB), ..state() };
        assert_eq!(cause(&private), Cause::PrivatePools);
        let workspace = State { allocated: Some(16 * GIB), workspace_bytes: 4 * GIB, ..state() };
        assert_eq!(cause(&workspace), Cause::OutsidePool);
    }

    #[test]
    fn what_the_driver_counts_outside_the_pool_is_a_cause_where_it_is_most_or_the_pool_has_room() {
        let counted = |bytes: i64| State { counted_outside_bytes: Some(bytes), ..state() };
        assert_eq!(cause(&counted(5 * GIB)), Cause::Capacity, "the pool is full, and larger");
        assert_eq!(cause(&counted(30 * GIB)), Cause::OutsidePool);
        assert_eq!(cause(&State { allocated: Some(16 * GIB), ..counted(5 * GIB) }), Cause::OutsidePool);
        assert_eq!(cause(&State { allocated: Some(16 * GIB), ..counted(GIB) }), Cause::Capacity);
        let large = State { requested: Some(25 * GIB), ..counted(30 * GIB) };
        assert_eq!(cause(&large), Cause::OutsidePool, "the device has that much");
        assert_eq!(cause(&State { requested: Some(31 * GIB), ..counted(30 * GIB) }), Cause::RequestTooLarge);
        assert_eq!(cause(&State { requested: None, ..counted(30 * GIB) }), Cause::OutsidePool);
    }

    #[test]
    fn a_request_beyond_the_device_is_too_large() {
        assert_eq!(cause(&State { requested: Some(30 * GIB), ..state() }), Cause::RequestTooLarge);
    }

    #[test]
    fn without_request_or_state_nothing_is_claimed() {
        assert_eq!(cause(&State::default()), Cause::Unknown);
        assert_eq!(cause(&State { requested: Some(GIB), ..State::default() }), Cause::Unknown);
        let full = State { requested: None, ..state() };
        assert_eq!(cause(&full), Cause::Capacity);
    }

    #[test]
    fn segments_have_the_sizes_that_the_allocator_asks_for() {
        let plain = State::default();
        assert_eq!(plain.needed(512), 2 * MIB);
        assert_eq!(plain.needed(MIB + 512), 20 * MIB);
        assert_eq!(plain.needed(10 * MIB), 10 * MIB);
        assert_eq!(plain.needed(11 * MIB), 12 * MIB);
        // 61 MiB with 1 MiB at the end of what is mapped: three pages of 20 MiB.
        let expandable = State { is_expandable: true, largest_free_block: Some(MIB), ..State::default() };
        assert_eq!(expandable.needed(61 * MIB), 60 * MIB);
        assert_eq!(expandable.needed(62 * MIB), 80 * MIB);
    }
}
