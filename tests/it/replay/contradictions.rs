//! Histories with events missing: what they break is counted, and base and residual say by how much.

use super::{MIB, checks, history, lives};

const SMALL_SEGMENT: &[super::Block] = &[(2 * MIB, 0, "inactive")];

#[test]
fn an_allocation_without_end_is_a_residual_and_is_named() {
    let rows = history(&[("segment_alloc", 0, 2 * MIB), ("alloc", 0, 500)]).segment(0, SMALL_SEGMENT).rows();
    assert_eq!(lives(&rows), [(0, 500, (512, true), [Some(1), None, None], "window", "live")]);
    assert_eq!(
        checks(&rows).map(|check| (check.2, check.3)),
        [(Some(0), true), (Some(-512), false), (Some(-512), false), (Some(-500), false), (Some(-500), false)]
    );
    assert_eq!(rows.stat("allocations_without_end"), Some(1));
    assert_eq!(rows.stat("residual_allocated_requested"), Some(-500));
}

#[test]
fn a_second_free_means_that_an_alloc_is_missing_between() {
    let events = [
        ("free_requested", 0, 500),
        ("free_completed", 0, 500),
        ("free_requested", 0, 700),
        ("free_completed", 0, 700),
    ];
    let rows = history(&events).segment(0, SMALL_SEGMENT).rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [None, Some(0), Some(1)], "before_window", "freed"),
            (0, 700, (1024, true), [Some(1), Some(2), Some(3)], "window", "freed"),
        ]
    );
    assert_eq!(rows.stat("frees_without_alloc"), Some(1));
    // No alloc at all was recorded although there was one: nothing is known of the curve.
    assert_eq!(checks(&rows)[3], (None, Some(0), None, false));
    assert_eq!(rows.stat("allocs_not_recorded"), Some(1));
    let with_another = [&events[..], &[("alloc", 1024, 40)]].concat();
    let last = [(1024, 0, "inactive"), (512, 40, "active_allocated"), (2 * MIB - 1536, 0, "inactive")];
    let rows = history(&with_another).segment(0, &last).rows();
    assert_eq!(checks(&rows)[3], (Some(1200), Some(40), Some(700), false));
}

#[test]
fn a_block_that_the_trace_freed_last_came_after_it() {
    let rows = history(&[("alloc", 0, 500), ("free_requested", 0, 500), ("free_completed", 0, 500)])
        .segment(0, &[(512, 300, "active_allocated"), (2 * MIB - 512, 0, "inactive")])
        .rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(0), Some(1), Some(2)], "window", "freed"),
            (0, 300, (512, true), [Some(2), None, None], "window", "live"),
        ]
    );
    assert_eq!(rows.stat("blocks_without_alloc"), Some(1));
    assert_eq!(checks(&rows)[4], (Some(300), Some(300), Some(300), false));
}

#[test]
fn where_one_of_the_free_events_is_never_recorded_the_other_stands_for_both() {
    let last = [(512, 0, "inactive"), (1024, 600, "active_allocated"), (2 * MIB - 1536, 0, "inactive")];
    let events = |free| [("alloc", 0, 500), (free, 0, 500), ("alloc", 0, 300), (free, 0, 300)];
    for free in ["free_requested", "free_completed"] {
        let rows = history(&events(free)).segment(0, &last).rows();
        assert_eq!(
            lives(&rows),
            [
                (512, 600, (1024, true), [None, None, None], "before_window", "live"),
                (0, 500, (512, true), [Some(0), Some(1), Some(1)], "window", "freed"),
                (0, 300, (512, true), [Some(2), Some(3), Some(3)], "window", "freed"),
            ]
        );
        assert_eq!(rows.stat("frees_are_one"), Some(1), "{free}");
        assert_eq!(
            checks(&rows).map(|check| (check.0, check.2, check.3)),
            [
                (Some(2 << 20), Some(0), true),
                (Some(1024), Some(0), false),
                (Some(1024), Some(0), false),
                (Some(600), Some(0), false),
                (Some(600), Some(0), false),
            ],
            "{free}"
        );
    }
}

#[test]
fn an_alloc_on_a_live_address_ends_what_was_there() {
    let rows = history(&[("alloc", 0, 500), ("alloc", 512, 40), ("alloc", 0, 300)])
        .segment(
            0,
            &[(512, 300, "active_allocated"), (512, 40, "active_allocated"), (2 * MIB - 1024, 0, "inactive")],
        )
        .rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(0), Some(2), Some(2)], "window", "freed"),
            (512, 40, (512, true), [Some(1), None, None], "window", "live"),
            (0, 300, (512, true), [Some(2), None, None], "window", "live"),
        ]
    );
    assert_eq!(rows.stat("allocs_on_live_addresses"), Some(1));
    assert_eq!(checks(&rows)[3], (Some(-500), Some(340), Some(-500), false));
}

#[test]
fn a_free_that_was_never_completed_ends_when_its_address_is_used_again() {
    let rows = history(&[
        ("alloc", 0, 500),
        ("free_requested", 0, 500),
        ("alloc", 0, 300),
        ("free_requested", 0, 300),
        ("free_completed", 0, 300),
    ])
    .segment(0, SMALL_SEGMENT)
    .rows();
    assert_eq!(
        lives(&rows),
        [
            (0, 500, (512, true), [Some(0), Some(1), Some(2)], "window", "freed"),
            (0, 300, (512, true), [Some(2), Some(3), Some(4)], "window", "freed"),
        ]
    );
    assert_eq!(rows.stat("frees_without_completion"), Some(1));
}

#[test]
fn an_npu_block_that_is_pending_and_shown_as_inactive_stays_active() {
    let last = [
        (512, 400, "inactive"),
        (512, 500, "active_allocated"),
        (512, 200, "inactive"),
        (2 * MIB - 1536, 0, "inactive"),
    ];
    let events = [
        ("alloc", 0, 400),
        ("free_requested", 0, 400),
        ("free_completed", 0, 400),
        ("alloc", 1024, 200),
        ("free_requested", 1024, 200),
    ];
    let rows = history(&events).segment(0, &last).npu().rows();
    assert_eq!(lives(&rows)[2], (1024, 200, (512, true), [Some(3), Some(4), None], "window", "pending_free"));
    assert_eq!(
        checks(&rows)[2..],
        [
            (Some(512), Some(1024), Some(0), true),
            (Some(500), Some(500), Some(0), true),
            (Some(500), Some(700), Some(0), true)
        ]
    );
    assert_eq!(rows.stat("pending_shown_inactive"), Some(1));
    // CUDA shows such blocks as pending, so here the completion is missing.
    let rows = history(&events).segment(0, &last).rows();
    assert_eq!(rows.stat("frees_without_completion"), Some(1));
    assert_eq!(checks(&rows)[4].2, Some(-200));
}
