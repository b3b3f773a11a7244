//! Lifetimes and bases of histories that fit together.

use npusnap::snapshot::{Filter, Options};

use super::{MIB, checks, history, lives, sound};
use crate::support::pickler::{cpython, dict, int, list, text};
use crate::support::rows::replayed;
use crate::support::snapshots::{BASE, npu_event, pool};

#[test]
fn every_event_of_a_lifetime_is_paired_and_ids_follow_the_alloc() {
    let rows = history(&[
        ("segment_alloc", 0, 2 * MIB),
        ("alloc", 0, 500),
        ("alloc", 512, 600),
        ("free_requested", 0, 500),
        ("free_completed", 0, 500),
        ("alloc", 0, 100),
        ("free_requested", 512, 600),
    ])
    .segment(
        0,
        &[
            (512, 100, "active_allocated"),
            (1024, 600, "active_pending_free"),
            (2 * MIB - 1536, 0, "inactive"),
        ],
    )
    .rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(1), Some(3), Some(4)], "window", "freed"),
            (512, 600, (1024, true), [Some(2), Some(6), None], "window", "pending_free"),
            (0, 100, (512, true), [Some(5), None, None], "window", "live"),
        ]
    );
    assert_eq!(rows.ints("allocations", "id"), [Some(1), Some(2), Some(3)]);
    assert_eq!(
        checks(&rows),
        [sound(0, 2 << 20), sound(0, 512), sound(0, 1536), sound(0, 100), sound(0, 700)]
    );
    assert_eq!(rows.ints("snapshot", "block_padding"), [Some(0)]);
}

#[test]
fn padding_that_nothing_shows_is_noted_and_that_which_sizes_were_rounded_with_is_kept() {
    let rows = history(&[("alloc", 0, 500), ("free_requested", 0, 500), ("free_completed", 0, 500)])
        .segment(0, &[(2 * MIB, 0, "inactive")])
        .npu()
        .rows();
    assert_eq!(rows.stat("block_padding_unknown"), Some(1));
    assert_eq!(rows.ints("snapshot", "block_padding"), [Some(32)]);
    assert_eq!(lives(&rows), [(0, 500, (1024, false), [Some(0), Some(1), Some(2)], "window", "freed")]);
}

#[test]
fn what_was_there_before_the_window_is_found_from_its_end() {
    // At 0 allocated before, at 512 pending before, at 1024 and 2048 never touched.
    let rows = history(&[("free_completed", 512, 10), ("free_requested", 0, 20), ("free_completed", 0, 20)])
        .segment(
            0,
            &[
                (1024, 0, "inactive"),
                (1024, 1000, "active_allocated"),
                (512, 30, "active_pending_free"),
                (2 * MIB - 2560, 0, "inactive"),
            ],
        )
        .rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 20, (512, true), [None, Some(1), Some(2)], "before_window", "freed"),
            (512, 10, (512, true), [None, None, Some(0)], "before_window", "freed"),
            (1024, 1000, (1024, true), [None, None, None], "before_window", "live"),
            (2048, 30, (512, true), [None, None, None], "before_window", "pending_free"),
        ]
    );
    assert_eq!(
        checks(&rows),
        [sound(2 << 20, 2 << 20), sound(1536, 1024), sound(2560, 1536), sound(1020, 1000), sound(1060, 1030),]
    );
}

#[test]
fn a_snapshot_without_history_has_what_lives_and_its_counters() {
    let rows =
        history(&[]).segment(0, &[(1024, 1000, "active_allocated"), (2 * MIB - 1024, 0, "inactive")]).rows();
    assert_eq!(lives(&rows), [(0, 1000, (1024, true), [None, None, None], "before_window", "live")]);
    assert_eq!(
        checks(&rows),
        [sound(2 << 20, 2 << 20), sound(1024, 1024), sound(1024, 1024), sound(1000, 1000), sound(1000, 1000)]
    );
}

#[test]
fn b18_segments_that_are_unmapped_in_the_middle_were_there_before() {
    let rows = history(&[
        ("segment_unmap", 20 * MIB, 20 * MIB),
        ("segment_map", 60 * MIB, 20 * MIB),
        ("segment_map", 20 * MIB, 20 * MIB),
        ("segment_unmap", 40 * MIB, 40 * MIB),
    ])
    .mapped(0, &[(40 * MIB, 0, "inactive")])
    .rows();
    // Before: 0..60 MiB.
    assert_eq!(checks(&rows)[0], sound(60 << 20, 40 << 20));
}

#[test]
fn a_freed_segment_from_before_the_window_counts_in_the_base() {
    let rows = history(&[("segment_free", 0, 20 * MIB), ("segment_alloc", 64 * MIB, 2 * MIB)])
        .segment(64 * MIB, &[(2 * MIB, 0, "inactive")])
        .rows();
    assert_eq!(checks(&rows)[0], sound(20 << 20, 2 << 20));
}

#[test]
fn b15_workspaces_are_kept_apart() {
    let triplet = ["workspace_snapshot", "segment_alloc", "alloc"]
        .map(|action| npu_event(action, BASE + 100 * MIB, 4 * MIB));
    let mut story = history(&[("segment_alloc", 0, 2 * MIB), ("alloc", 0, 500)])
        .segment(0, &[(1024, 500, "active_allocated"), (2 * MIB - 1024, 0, "inactive")])
        .segment(100 * MIB, &[(4 * MIB, 4 * MIB - 32, "inactive")]);
    story.events.splice(0..0, triplet);
    let rows = story.rows();
    assert_eq!(lives(&rows), [(0, 500, (1024, true), [Some(4), None, None], "window", "live")]);
    let [reserved, allocated, ..] = checks(&rows);
    assert_eq!((reserved, allocated), (sound(0, 2 << 20), sound(0, 1024)));
    assert_eq!(rows.ints("snapshot", "block_padding"), [Some(32)], "500 bytes in a block of 1024");
}

#[test]
fn host_memory_is_a_domain_of_its_own_with_sizes_as_they_are() {
    let block = |state: &str| {
        dict([
            ("address", int(BASE)),
            ("size", int(4096)),
            ("requested_size", int(4096)),
            ("state", text(state)),
            ("frames", list([])),
        ])
    };
    let host = |state: &str| {
        dict([
            ("device", int(-1)),
            ("address", int(BASE)),
            ("total_size", int(4096)),
            ("allocated_size", int(4096)),
            ("active_size", int(4096)),
            ("requested_size", int(4096)),
            ("stream", int(0)),
            ("segment_type", text("small")),
            ("segment_pool_id", pool(0, 0)),
            ("is_expandable", int(0)),
            ("frames", list([])),
            ("blocks", list([block(state)])),
        ])
    };
    let events =
        [("segment_alloc", 4096), ("alloc", 4096), ("free_requested", 4096), ("free_completed", 4096)]
            .map(|(action, size)| npu_event(action, BASE, size));
    let graph = history(&[("segment_alloc", 0, 2 * MIB), ("alloc", 0, 500)])
        .segment(0, &[(512, 500, "active_allocated"), (2 * MIB - 512, 0, "inactive")])
        .graph()
        .with("host_segments", list([host("inactive")]))
        .with("host_traces", list(events));
    let rows = replayed(&cpython(&graph, 4), &Options::default());
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(1), None, None], "window", "live"),
            (0, 4096, (4096, true), [Some(1), Some(2), Some(3)], "window", "freed"),
        ],
        "the same address on two sides is two allocations"
    );
    assert_eq!(rows.ints("allocations", "device_id"), [Some(1), Some(2)]);
    assert_eq!(rows.ints("replay_checks", "device_id").len(), 10);
    assert_eq!(rows.ints("replay_checks", "residual"), vec![Some(0); 10]);
}

#[test]
fn rows_that_are_left_out_leave_no_base_that_would_be_wrong() {
    let story = || {
        history(&[
            ("segment_alloc", 0, 2 * MIB),
            ("alloc", 0, 500),
            ("alloc", 512, 600),
            ("free_requested", 0, 500),
            ("free_completed", 0, 500),
        ])
        .segment(
            0,
            &[(512, 500, "inactive"), (1024, 600, "active_allocated"), (2 * MIB - 1536, 0, "inactive")],
        )
    };
    let kept = |events: &str| Options {
        filter: Filter { events: events.parse().unwrap(), ..Filter::default() },
        ..Options::default()
    };
    // Without its first events a history is as if the recording had begun later.
    let rows = story().rows_with(&kept("2.."));
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [None, Some(3), Some(4)], "before_window", "freed"),
            (512, 600, (1024, true), [Some(2), None, None], "window", "live"),
        ]
    );
    assert_eq!(checks(&rows)[3], sound(500, 600));
    assert_eq!(rows.stat("replay_not_anchored"), None);
    // Without its last events it does not lead up to the segments.
    let rows = story().rows_with(&kept("..4"));
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(1), Some(3), None], "window", "pending_free"),
            (512, 600, (1024, true), [Some(2), None, None], "window", "live"),
        ]
    );
    assert_eq!(checks(&rows)[3], (None, Some(600), None, false));
    assert_eq!(rows.stat("replay_not_anchored"), Some(1));
    let sizes = Options { filter: Filter { min_size: Some(550), ..Filter::default() }, ..Options::default() };
    let rows = story().rows_with(&sizes);
    assert_eq!(lives(&rows), [(512, 600, (1024, true), [Some(2), None, None], "window", "live")]);
    assert_eq!(checks(&rows).map(|check| check.0), [None; 5]);
}

#[test]
fn a_file_that_is_cut_off_has_lifetimes_and_no_base() {
    let story = history(&[
        ("segment_alloc", 0, 2 * MIB),
        ("alloc", 0, 500),
        ("free_requested", 0, 500),
        ("free_completed", 0, 500),
        ("alloc", 0, 2 * MIB),
    ])
    .segment(0, &[(2 * MIB, 2 * MIB, "active_allocated")]);
    let mut bytes = cpython(&story.graph(), 2);
    // Somewhere in the last event.
    bytes.truncate(bytes.len() - 20);
    let rows = replayed(&bytes, &Options { salvage: true, ..Options::default() });
    assert_eq!(
        lives(&rows),
        [(0, 500, (512, true), [Some(1), Some(2), Some(3)], "window", "freed")],
        "the block of the final state may have come after what was lost"
    );
    assert_eq!(checks(&rows).map(|check| (check.0, check.2, check.3)), [(None, None, false); 5]);
    assert_eq!(rows.stat("replay_not_anchored"), Some(1));
}
