use super::super::state::MIB;
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
        private_free_bytes: Some(0),
        kind_free_bytes: Some(0),
        kind_other_bytes: Some(0),
        kind_private_bytes: Some(0),
        ..State::default()
    }
}

/// The same with so many bytes free in segments of the request's kind, and in no others.
fn free(bytes: i64) -> State {
    State {
        allocated: Some(20 * GIB - bytes),
        pool_free_bytes: Some(bytes),
        kind_free_bytes: Some(bytes),
        ..state()
    }
}

fn expandable(state: State) -> State {
    State { is_expandable: true, ..state }
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
    assert_eq!(cause(&free(3 * GIB)), Cause::Fragmentation);
}

#[test]
fn enough_for_another_stream_is_not_fragmentation() {
    let state = State { kind_other_bytes: Some(5 * GIB / 2), ..free(3 * GIB) };
    assert_eq!(cause(&state), Cause::OtherStream);
    // Together with what the driver had left it would have been enough, but none of it was the stream's own.
    let state = State { kind_other_bytes: Some(1950 * MIB), ..free(1950 * MIB) };
    assert_eq!(cause(&state), Cause::OtherStream);
}

#[test]
fn what_waits_for_a_stream_is_told_from_holes() {
    let state = State { allocated: Some(16 * GIB), pending_free_bytes: Some(3 * GIB), ..free(GIB) };
    assert_eq!(cause(&state), Cause::PendingFree);
    // In segments of another pool, stream or kind it is of no use.
    assert_eq!(cause(&State { kind_pending_bytes: Some(GIB / 2), ..state }), Cause::Capacity);
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
    let private = State {
        allocated: Some(17 * GIB),
        private_free_bytes: Some(3 * GIB),
        kind_private_bytes: Some(3 * GIB),
        ..state()
    };
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
    // 20 GiB of the pool and 30 beside it: a device of 50 GiB is too small for 51, and full where 31 are asked for.
    let asked = |requested: i64| State { requested: Some(requested * GIB), ..counted(30 * GIB) };
    assert_eq!(cause(&asked(51)), Cause::RequestTooLarge);
    assert_eq!(cause(&asked(31)), Cause::Capacity);
    assert_eq!(cause(&State { requested: None, ..counted(30 * GIB) }), Cause::OutsidePool);
}

#[test]
fn a_request_beyond_the_device_is_too_large() {
    assert_eq!(cause(&State { requested: Some(30 * GIB), ..state() }), Cause::RequestTooLarge);
}

#[test]
fn a_device_that_has_had_more_is_not_too_small() {
    // 60 GiB were seen at another failure; 20 of the pool and 0.1 of the driver are left of them.
    let seen = State { outside_pool_bytes: Some(40 * GIB - 100 * MIB), ..state() };
    assert_eq!(cause(&State { requested: Some(25 * GIB), ..seen.clone() }), Cause::OutsidePool);
    assert_eq!(cause(&State { requested: Some(61 * GIB), ..seen }), Cause::RequestTooLarge);
    let workspace = State { workspace_bytes: 22 * GIB, ..state() };
    assert_eq!(cause(&State { requested: Some(21 * GIB), ..workspace }), Cause::OutsidePool);
}

#[test]
fn expandable_segments_do_not_grow_from_whatever_is_free() {
    // 4 GiB are free, all of them for another stream.
    let others = State { kind_other_bytes: Some(4 * GIB), ..free(4 * GIB) };
    assert_eq!(cause(&expandable(others)), Cause::OtherStream);
    // 990 MiB are free, but not at an end: with 40 of the driver there they would have made up 1 GiB.
    let hole = State { requested: Some(GIB), device_free: Some(40 * MIB), ..free(990 * MIB) };
    assert_eq!(cause(&expandable(hole.clone())), Cause::Fragmentation);
    let less = State { device_free: Some(39 * MIB), ..hole };
    assert_eq!(cause(&expandable(less)), Cause::Capacity, "34 MiB lack, which are two pages");
}

#[test]
fn a_limit_is_claimed_only_where_the_driver_had_every_page() {
    let asked = |driver: i64| State { requested: Some(61 * MIB), device_free: Some(driver), ..state() };
    assert_eq!(cause(&expandable(asked(80 * MIB))), Cause::MemoryLimit);
    assert_eq!(cause(&expandable(asked(79 * MIB))), Cause::Capacity);
    assert_eq!(cause(&asked(62 * MIB)), Cause::MemoryLimit, "a segment of its own is of 62 MiB");
}

#[test]
fn what_the_request_cannot_use_is_not_its_fragmentation() {
    let small = State { requested: Some(30 * MIB), device_free: Some(0), ..state() };
    let small = State { allocated: Some(20 * GIB - 40 * MIB), pool_free_bytes: Some(40 * MIB), ..small };
    assert_eq!(cause(&small), Cause::OtherKind);
    let less = State { requested: Some(41 * MIB), ..small };
    assert_eq!(cause(&less), Cause::Capacity);
    let private = State {
        private_free_bytes: Some(3 * GIB),
        kind_private_bytes: Some(0),
        allocated: Some(17 * GIB),
        ..state()
    };
    assert_eq!(cause(&private), Cause::Capacity, "the private pools' free memory is in small segments");
}

#[test]
fn of_a_private_pool_only_what_it_has_itself_is_of_the_other_kind() {
    // 3 GiB are free in small segments of the default pool, which a large request of a private one could not take at all.
    let private = State { pool: Some((0, 1)), pool_free_bytes: Some(3 * GIB), ..state() };
    let with = |own: i64| State { own_free_bytes: Some(own), allocated: Some(17 * GIB), ..private.clone() };
    assert_eq!(cause(&with(0)), Cause::Capacity);
    assert_eq!(cause(&with(2 * GIB)), Cause::OtherKind);
}

#[test]
fn what_is_not_known_of_the_driver_is_not_claimed() {
    let unknown = |state: State| State { device_free: None, ..state };
    assert_eq!(cause(&unknown(state())), Cause::Capacity, "all of the pool is allocated");
    assert_eq!(cause(&unknown(State { requested: Some(30 * GIB), ..state() })), Cause::Capacity);
    let half = State { requested: Some(30 * GIB), ..free(10 * GIB) };
    assert_eq!(cause(&unknown(half)), Cause::Unknown, "a request of any size may have fitted in");
    assert_eq!(cause(&unknown(free(3 * GIB))), Cause::Fragmentation);
    let others = State { kind_other_bytes: Some(2 * GIB), ..free(3 * GIB) };
    assert_eq!(cause(&unknown(others)), Cause::OtherStream);
    let waiting = State { pending_free_bytes: Some(2 * GIB), allocated: Some(18 * GIB), ..state() };
    assert_eq!(cause(&unknown(waiting)), Cause::PendingFree);
    let private = State { kind_private_bytes: Some(2 * GIB), allocated: Some(18 * GIB), ..state() };
    assert_eq!(cause(&unknown(private)), Cause::PrivatePools);
}

#[test]
fn a_pool_that_was_not_laid_out_is_judged_by_its_curves() {
    let curves = |allocated: i64, pending: i64| State {
        allocated: Some(allocated),
        pending_free_bytes: Some(pending),
        pool_free_bytes: None,
        kind_free_bytes: None,
        kind_other_bytes: None,
        kind_private_bytes: None,
        ..state()
    };
    assert_eq!(cause(&curves(20 * GIB, 0)), Cause::Capacity);
    assert_eq!(cause(&curves(17 * GIB, 0)), Cause::Unknown, "3 GiB were free, but where?");
    assert_eq!(cause(&curves(17 * GIB, 2 * GIB)), Cause::PendingFree, "that waited, wherever the rest was");
    assert_eq!(cause(&curves(17 * GIB, GIB)), Cause::Unknown);
    let limited = State { device_free: Some(2 * GIB), ..curves(17 * GIB, 0) };
    assert_eq!(cause(&limited), Cause::MemoryLimit);
    let large = State { requested: Some(30 * GIB), ..curves(17 * GIB, 0) };
    assert_eq!(cause(&large), Cause::RequestTooLarge);
}

#[test]
fn without_request_or_state_nothing_is_claimed() {
    assert_eq!(cause(&State::default()), Cause::Unknown);
    assert_eq!(cause(&State { requested: Some(GIB), ..State::default() }), Cause::Unknown);
    let full = State { requested: None, ..state() };
    assert_eq!(cause(&full), Cause::Capacity);
}

#[test]
fn blocks_that_a_limit_keeps_from_the_request_come_before_small_pieces() {
    let state = State { kind_oversize_bytes: Some(3 * GIB), own_free_bytes: Some(6 * GIB), ..free(3 * GIB) };
    assert_eq!(cause(&state), Cause::OtherKind);
    assert_eq!(cause(&State { kind_oversize_bytes: Some(0), ..state }), Cause::Fragmentation);
}
