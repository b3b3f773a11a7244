//! Lists in the wrong order, dumps of one pool, and stacks of allocs that frees carry.

use npusnap::snapshot::Options;

use super::{MIB, checks, history, lives};
use crate::support::pickler::{Py, cpython, dict, int, list};
use crate::support::rows::{Rows, replayed};
use crate::support::snapshots::{BASE, TIME, event, pool, snapshot, stack};

const LAST: &[super::Block] =
    &[(512, 0, "inactive"), (512, 300, "active_allocated"), (2 * MIB - 1024, 0, "inactive")];

/// A history whose events happened at these seconds.
fn timed(events: &[(i128, super::Event)]) -> Rows {
    let mut story = history(&events.iter().map(|(_, event)| *event).collect::<Vec<_>>()).segment(0, LAST);
    for (event, (second, _)) in story.events.iter_mut().zip(events) {
        *event = event.with("time_us", int(TIME + second * 1_000_000));
    }
    story.rows()
}

#[test]
fn pieces_of_a_resized_ring_buffer_are_paired_in_the_order_of_time() {
    // The oldest piece, the newest, and what happened between.
    let rows = timed(&[
        (1, ("alloc", 0, 100)),
        (2, ("free_requested", 0, 100)),
        (5, ("free_completed", 0, 200)),
        (6, ("alloc", 512, 300)),
        (2, ("free_completed", 0, 100)),
        (3, ("alloc", 0, 200)),
        (4, ("free_requested", 0, 200)),
    ]);
    assert_eq!(
        lives(&rows),
        [
            (0, 100, (512, true), [Some(0), Some(1), Some(4)], "window", "freed"),
            (0, 200, (512, true), [Some(5), Some(6), Some(2)], "window", "freed"),
            (512, 300, (512, true), [Some(3), None, None], "window", "live"),
        ]
    );
    assert_eq!(rows.stat("events_out_of_order"), Some(1));
    let [_, _, _, allocated, active] = checks(&rows);
    assert_eq!(
        (allocated, active),
        ((Some(0), Some(300), Some(0), false), (Some(0), Some(300), Some(0), false))
    );
}

#[test]
fn every_place_where_the_list_goes_back_in_time_is_counted() {
    // Twelve pairs, each ten seconds before the one that stands in front of it: eleven steps back.
    let pairs = (0..12)
        .rev()
        .flat_map(|turn| [(turn * 10, ("alloc", 0, 100)), (turn * 10 + 1, ("free_completed", 0, 100))]);
    let rows = timed(&pairs.collect::<Vec<_>>());
    assert_eq!(rows.stat("events_out_of_order"), Some(11));
}

#[test]
fn clocks_that_disagree_a_little_change_nothing() {
    let mut story = history(&[
        ("alloc", 0, 100),
        ("free_requested", 0, 100),
        ("free_completed", 0, 100),
        ("alloc", 512, 300),
    ])
    .segment(0, LAST);
    for (event, time) in story.events.iter_mut().zip([10, 3, 12, 11]) {
        *event = event.with("time_us", int(TIME + time));
    }
    let rows = story.rows();
    assert_eq!(rows.stat("events_out_of_order"), None);
    assert!(checks(&rows).iter().all(|check| check.3 && check.2 == Some(0)));
}

#[test]
fn a_dump_of_one_pool_is_anchored_on_the_events_of_that_pool() {
    let at = |pool_id: (i128, i128), mut event: Py| {
        event = event.with("pool_id", pool(pool_id.0, pool_id.1));
        event
    };
    let mut story = history(&[
        ("alloc", 0, 100),
        ("alloc", 64 * MIB, 5000),
        ("alloc", 512, 300),
        ("free_requested", 0, 100),
        ("free_completed", 0, 100),
    ])
    .segment(0, LAST);
    let pools = [(0, 3), (0, 0), (0, 3), (0, 3), (0, 3)];
    story.events = story.events.into_iter().zip(pools).map(|(event, pool)| at(pool, event)).collect();
    story.segments =
        story.segments.into_iter().map(|segment| segment.with("segment_pool_id", pool(0, 3))).collect();
    let rows = story.rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 100, (512, true), [Some(0), Some(3), Some(4)], "window", "freed"),
            (512, 300, (512, true), [Some(2), None, None], "window", "live"),
        ]
    );
    assert_eq!(rows.stat("events_of_other_pools"), Some(1));
    assert_eq!(checks(&rows)[3], (Some(0), Some(300), Some(0), false));
}

/// Before torch 2.12 events do not say their pool, and a dump of one pool has the events of all.
#[test]
fn a_dump_of_one_pool_is_noticed_by_events_outside_of_all_segments() {
    let of_pool = |events: &[(&'static str, i128, i128)], id: i128| {
        let mut story = history(events).segment(0, LAST);
        story.segments =
            story.segments.into_iter().map(|segment| segment.with("segment_pool_id", pool(0, id))).collect();
        story.rows()
    };
    let own =
        [("alloc", 0, 100), ("alloc", 512, 300), ("free_requested", 0, 100), ("free_completed", 0, 100)];
    let with = |others: &[(&'static str, i128, i128)]| of_pool(&[&own, others].concat(), 3);
    let noticed = |rows: &Rows| {
        let exact: Vec<bool> = checks(rows).iter().map(|check| check.3).collect();
        (rows.stat("events_outside_the_pool"), exact)
    };
    // A program all of whose memory is in one pool.
    assert_eq!(noticed(&with(&[])), (None, vec![true; 5]));
    let far = 64 * MIB;
    // Everything adds up, residuals are 0, and yet what the default pool holds is nowhere.
    let transient = [("alloc", far, 5000), ("free_requested", far, 5000), ("free_completed", far, 5000)];
    let rows = with(&transient);
    assert_eq!(noticed(&rows), (Some(1), vec![false; 5]));
    assert!(checks(&rows).iter().all(|check| check.2 == Some(0)));
    // What was there before the window and is freed in it.
    assert_eq!(noticed(&with(&transient[1..])), (Some(1), vec![false; 5]));
    // A segment of another pool, with what is in it, stays to the end.
    let lasting = [("segment_alloc", far, 2 * MIB), ("alloc", far, 5000)];
    assert_eq!(noticed(&with(&lasting)), (Some(2), vec![false; 5]));
    // One that comes and goes tells nothing, as the pool itself gives memory back.
    let gone = [&lasting[..], &transient[1..], &[("segment_free", far, 2 * MIB)]].concat();
    assert_eq!(noticed(&with(&gone)), (None, vec![true; 5]));
    // In the default pool such events are of a recording that lacks segments, which has its own note.
    assert_eq!(of_pool(&[&own[..], &transient].concat(), 0).stat("events_outside_the_pool"), None);
}

#[test]
fn b32_frees_that_carry_the_stack_of_the_alloc_name_the_owner_of_what_was_there_before() {
    let stacks = ["one", "two"].map(|name| stack(name, 2));
    let mut events = Vec::new();
    for round in 0..8_usize {
        let frames = &stacks[round % 2];
        let addr = BASE + 4096;
        events.extend(
            ["alloc", "free_requested", "free_completed"].map(|action| event(action, addr, 100, frames)),
        );
    }
    // This one was there before.
    events.push(event("free_requested", BASE, 100, &stacks[1]));
    events.push(event("free_completed", BASE, 100, &stacks[1]));
    let rows = |events: Vec<Py>| replayed(&cpython(&snapshot([], [events]), 4), &Options::default());
    let found = rows(events.clone());
    assert_eq!(found.texts("allocations", "origin")[0].as_deref(), Some("before_window"));
    assert_eq!(found.ints("allocations", "stack_id")[0], Some(2));
    // With a stack of its own the free says nothing of the alloc.
    events[1] = event("free_requested", BASE + 4096, 100, &stack("three", 1));
    let found = rows(events);
    assert_eq!(found.ints("allocations", "stack_id")[0], None);
    assert_eq!(found.ints("allocations", "free_stack_id")[0], Some(3));
}

#[test]
fn nothing_but_marks_is_no_history() {
    let frames = list([]);
    let graph = snapshot([], [vec![event("snapshot", 0, 0, &frames), event("oom", 0, 1, &frames)]]);
    let rows = replayed(&cpython(&graph, 4), &Options::default());
    assert_eq!(lives(&rows), []);
    assert_eq!(checks(&rows).map(|check| check.0), [Some(0); 5]);
    let graph = dict([("segments", list([])), ("device_traces", list([]))]);
    assert_eq!(replayed(&cpython(&graph, 4), &Options::default()).ints("replay_checks", "base"), []);
}
