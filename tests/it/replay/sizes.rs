//! Sizes of blocks: proven by the final state, by rounding, by the neighbours; or not proven, and then not exact.

use super::{MIB, checks, history, lives};
use crate::support::pickler::{dict, int};

/// Bytes of the block and whether they are proven, for every allocation.
fn blocks(story: super::History) -> Vec<(i64, bool)> {
    lives(&story.rows()).into_iter().map(|life| life.2).collect()
}

#[test]
fn a_large_block_keeps_a_rest_of_up_to_one_mib() {
    // The first leaves 18 MiB, the second 1 MiB and keeps it; neither is there at the end.
    let story = history(&[
        ("segment_alloc", 0, 20 * MIB),
        ("alloc", 0, 2 * MIB),
        ("alloc", 2 * MIB, 17 * MIB),
        ("free_requested", 2 * MIB, 17 * MIB),
        ("free_completed", 2 * MIB, 17 * MIB),
        ("alloc", 2 * MIB, 17 * MIB - 512),
        ("free_requested", 2 * MIB, 17 * MIB - 512),
        ("free_completed", 2 * MIB, 17 * MIB - 512),
        ("free_requested", 0, 2 * MIB),
        ("free_completed", 0, 2 * MIB),
    ])
    .segment(0, &[(20 * MIB, 0, "inactive")]);
    assert_eq!(blocks(story.clone()), [(2 << 20, true), (18 << 20, true), ((17 << 20) - 512, true)]);
    let [_, allocated, ..] = checks(&story.rows());
    assert_eq!(allocated, (Some(0), Some(0), Some(0), true));
}

#[test]
fn the_next_block_in_use_ends_the_room() {
    // Between the first and the third are 3 MiB free; 2.5 MiB of them are asked for.
    let story = history(&[
        ("segment_alloc", 0, 20 * MIB),
        ("alloc", 0, 2 * MIB),
        ("alloc", 2 * MIB, 3 * MIB),
        ("alloc", 5 * MIB, 3 * MIB),
        ("free_requested", 2 * MIB, 3 * MIB),
        ("free_completed", 2 * MIB, 3 * MIB),
        ("alloc", 2 * MIB, 2 * MIB + MIB / 2),
        ("free_requested", 2 * MIB, 2 * MIB + MIB / 2),
        ("free_completed", 2 * MIB, 2 * MIB + MIB / 2),
    ])
    .segment(
        0,
        &[
            (2 * MIB, 2 * MIB, "active_allocated"),
            (3 * MIB, 0, "inactive"),
            (3 * MIB, 3 * MIB, "active_allocated"),
            (12 * MIB, 0, "inactive"),
        ],
    );
    assert_eq!(blocks(story)[3], (3 << 20, true));
}

#[test]
fn a_large_block_from_before_the_window_is_proven_by_the_one_behind_it_or_not_at_all() {
    // Both were there before. Something is allocated right behind the first, nothing behind the second.
    let story = history(&[
        ("alloc", 3 * MIB, 2 * MIB),
        ("free_requested", 0, 2 * MIB + 100),
        ("free_completed", 0, 2 * MIB + 100),
        ("free_requested", 8 * MIB, 5 * MIB),
        ("free_completed", 8 * MIB, 5 * MIB),
    ])
    .segment(
        0,
        &[(3 * MIB, 0, "inactive"), (2 * MIB, 2 * MIB, "active_allocated"), (15 * MIB, 0, "inactive")],
    );
    let rows = story.clone().rows();
    assert_eq!(blocks(story), [(3 << 20, true), (5 << 20, false), (2 << 20, true)]);
    assert_eq!(rows.stat("block_sizes_unproven"), Some(1));
    let [_, allocated, active, requested, _] = checks(&rows);
    assert_eq!(allocated, (Some(8 << 20), Some(2 << 20), Some(0), false));
    assert_eq!(active, allocated);
    assert_eq!(requested, (Some((7 << 20) + 100), Some(2 << 20), Some(0), true));
}

#[test]
fn expandable_segments_cut_every_block_to_size() {
    let story = history(&[
        ("segment_map", 0, 20 * MIB),
        ("alloc", 0, 19 * MIB + 1),
        ("free_requested", 0, 19 * MIB + 1),
        ("free_completed", 0, 19 * MIB + 1),
    ])
    .mapped(0, &[(20 * MIB, 0, "inactive")]);
    assert_eq!(blocks(story), [((19 << 20) + 512, true)]);
}

#[test]
fn where_both_kinds_of_segments_are_used_a_small_rest_proves_nothing() {
    let story = history(&[
        ("segment_map", 64 * MIB, 20 * MIB),
        ("segment_alloc", 0, 20 * MIB),
        ("alloc", 0, 19 * MIB + 512),
        ("alloc", 64 * MIB, 19 * MIB + 512),
        ("free_requested", 0, 19 * MIB + 512),
        ("free_completed", 0, 19 * MIB + 512),
        ("free_requested", 64 * MIB, 19 * MIB + 512),
        ("free_completed", 64 * MIB, 19 * MIB + 512),
    ])
    .segment(0, &[(20 * MIB, 0, "inactive")])
    .mapped(64 * MIB, &[(20 * MIB, 0, "inactive")]);
    assert_eq!(blocks(story), [(20 << 20, false), ((19 << 20) + 512, false)]);
}

#[test]
fn settings_change_rounding_and_splitting() {
    let events = [
        ("segment_alloc", 0, 20 * MIB),
        ("segment_alloc", 64 * MIB, 2 * MIB),
        ("alloc", 0, 12 * MIB),
        ("alloc", 64 * MIB, 5000),
        ("free_requested", 0, 12 * MIB),
        ("free_completed", 0, 12 * MIB),
        ("free_requested", 64 * MIB, 5000),
        ("free_completed", 64 * MIB, 5000),
    ];
    let story = |settings| {
        history(&events)
            .segment(0, &[(20 * MIB, 0, "inactive")])
            .segment(64 * MIB, &[(2 * MIB, 0, "inactive")])
            .settings(settings)
    };
    let usual = dict([("max_split_size", int(-1))]);
    assert_eq!(blocks(story(usual)), [(12 << 20, true), (5120, true)]);
    let whole = dict([("max_split_size", int(10 * MIB))]);
    assert_eq!(blocks(story(whole)), [(20 << 20, true), (5120, true)]);
    let coarse = dict([("roundup_power2_divisions", dict([("1", int(2)), ("8", int(2))]))]);
    assert_eq!(blocks(story(coarse)), [(12 << 20, true), (6144, true)], "4096, 6144, 8192");
}

#[test]
fn a_block_that_breaks_the_rule_takes_the_proof_from_those_that_rest_on_it() {
    let story =
        history(&[("alloc", 1024, 100), ("free_requested", 1024, 100), ("free_completed", 1024, 100)])
            .segment(0, &[(1024, 100, "active_allocated"), (2 * MIB - 1024, 0, "inactive")]);
    let rows = story.clone().rows();
    assert_eq!(blocks(story), [(1024, true), (512, false)]);
    assert_eq!(rows.stat("rounding_rule_broken"), Some(1));
    assert!(!checks(&rows)[1].3 && checks(&rows)[3].3);
}

#[test]
fn an_earlier_dump_is_compared_with_the_curve() {
    let story = |active| {
        history(&[
            ("segment_alloc", 0, 2 * MIB),
            ("alloc", 0, 500),
            ("alloc", 512, 1000),
            ("snapshot", -super::BASE, active),
            ("free_requested", 0, 500),
            ("free_completed", 0, 500),
        ])
        .segment(
            0,
            &[(512, 0, "inactive"), (1024, 1000, "active_allocated"), (2 * MIB - 1536, 0, "inactive")],
        )
        .rows()
    };
    let rows = story(1536);
    assert_eq!((rows.stat("calibration_points"), rows.stat("calibration_deviation")), (Some(1), None));
    let rows = story(2048);
    assert_eq!(rows.stat("calibration_deviation"), Some(-512));
    assert!(!checks(&rows)[1].3, "and then the rounded curves are not exact");
}
