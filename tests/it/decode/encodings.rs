//! One graph, many encodings: protocols 0 to 5, both writers, batches, memo indexes, frames of the pickle.

use crate::support::pickler::{Py, cpp, cpython, cpython_with_frames, dict, int, list, text, tuple};
use crate::support::rows::{Rows, read};
use crate::support::snapshots::{BASE, TIME, event, everything, frame, npu_event, segment, snapshot, stack};

fn same_rows(graph: &Py) -> Rows {
    let first = read(&cpython(graph, 4)).unwrap();
    for protocol in [0, 1, 2, 3, 5] {
        let other = read(&cpython(graph, protocol)).unwrap();
        assert_eq!(other.listing(), first.listing(), "protocol {protocol}");
    }
    for every in [1, 2, 3, 7] {
        let other = read(&cpython_with_frames(graph, every)).unwrap();
        assert_eq!(other.listing(), first.listing(), "a FRAME after every {every} opcodes");
    }
    assert_eq!(read(&cpp(graph)).unwrap().listing(), first.listing(), "the C++ writer");
    first
}

#[test]
fn b05_every_protocol_and_both_writers_give_the_same_rows() {
    let rows = same_rows(&everything());
    // Counted by hand from `everything`.
    assert_eq!(rows.summary.segments, 3);
    assert_eq!(rows.summary.blocks, 4);
    assert_eq!(rows.summary.events, 13);
    assert_eq!(rows.summary.stacks, 2);
    let stack_of = |id| Some(id);
    assert_eq!(
        rows.ints("traces", "stack_id")[..6],
        [stack_of(1), stack_of(1), stack_of(2), None, None, stack_of(2)]
    );
    assert_eq!(rows.ints("devices", "device_index"), [Some(0), Some(2), Some(-1)]);
}

#[test]
fn key_order_does_not_matter() {
    let frames = stack("f", 2);
    let event = event("alloc", BASE, 500, &frames);
    let segment = segment(0, BASE, &[(512, "active_allocated")], &frames);
    let forward = read(&cpython(&snapshot([segment.clone()], [vec![event.clone()]]), 4)).unwrap();
    let backward = snapshot([segment.reversed()], [vec![event.reversed()]]);
    assert_eq!(same_rows(&backward).listing(), forward.listing());
}

#[test]
fn traces_may_come_before_segments() {
    let frames = stack("f", 2);
    let graph = snapshot(
        [segment(3, BASE, &[(512, "inactive")], &frames), segment(0, BASE, &[(512, "inactive")], &frames)],
        [vec![], vec![event("alloc", BASE, 500, &frames)]],
    )
    .reversed();
    let rows = same_rows(&graph);
    assert_eq!(rows.ints("devices", "device_index"), [Some(1), Some(0), Some(3)]);
    assert_eq!(rows.ints("segments", "device_id"), [Some(3), Some(2)]);
}

#[test]
fn the_list_of_an_event_is_found_whatever_stands_before_it() {
    // Lists of events, and where each event is to be found: device and address.
    type Case = (Vec<Vec<Py>>, Vec<(i64, i64)>);
    let one = |addr: i128| npu_event("alloc", addr, 512);
    let cases: [Case; 7] = [
        (vec![vec![one(1)]], vec![(0, 1)]),
        (vec![vec![], vec![one(1)]], vec![(1, 1)]),
        (vec![vec![one(1)], vec![]], vec![(0, 1)]),
        (vec![vec![one(1)], vec![one(2)]], vec![(0, 1), (1, 2)]),
        (vec![vec![], vec![], vec![one(1), one(2)], vec![]], vec![(2, 1), (2, 2)]),
        (vec![vec![one(1), one(2)], vec![], vec![one(3)]], vec![(0, 1), (0, 2), (2, 3)]),
        (vec![vec![], vec![one(1)], vec![one(2), one(3)]], vec![(1, 1), (2, 2), (2, 3)]),
    ];
    for (traces, expected) in cases {
        let rows = same_rows(&snapshot([], traces));
        let index = rows.ints("devices", "device_index");
        let found: Vec<(i64, i64)> = rows
            .ints("traces", "device_id")
            .iter()
            .zip(rows.ints("traces", "addr"))
            .map(|(id, addr)| (index[usize::try_from(id.unwrap() - 1).unwrap()].unwrap(), addr.unwrap()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn more_than_a_thousand_lists_of_events_keep_their_numbers() {
    let traces: Vec<Vec<Py>> = (0..2100).map(|list| vec![npu_event("alloc", list, 512)]).collect();
    let graph = snapshot([], traces);
    for bytes in [cpython(&graph, 4), cpython(&graph, 0)] {
        let rows = read(&bytes).unwrap();
        let expected: Vec<Option<i64>> = (0..2100).map(Some).collect();
        assert_eq!(rows.ints("devices", "device_index"), expected);
        assert_eq!(rows.ints("traces", "addr"), expected);
    }
}

#[test]
fn a_shared_empty_list_is_the_list_of_many_devices() {
    let empty = list([]);
    let graph = dict([("segments", list([])), ("device_traces", list(vec![empty; 8]))]);
    let rows = same_rows(&graph);
    assert_eq!(rows.ints("snapshot", "trace_lists"), [Some(8)]);
    assert!(rows.ints("devices", "id").is_empty());
}

#[test]
fn lists_of_every_length_round_a_batch_are_whole() {
    for count in [0, 1, 2, 999, 1000, 1001, 2000, 2001] {
        let events: Vec<Py> = (0..count).map(|addr| npu_event("alloc", addr, 512)).collect();
        let graph = snapshot([], [events]);
        for bytes in [cpython(&graph, 4), cpython(&graph, 2), cpython(&graph, 0), cpp(&graph)] {
            let rows = read(&bytes).unwrap();
            let expected: Vec<Option<i64>> = (0..i64::try_from(count).unwrap()).map(Some).collect();
            assert_eq!(rows.ints("traces", "addr"), expected, "{count} events");
            assert_eq!(rows.ints("traces", "trace_index"), expected, "{count} events");
        }
    }
}

#[test]
fn stacks_of_every_depth_round_a_batch_are_whole_and_shared() {
    for depth in [1, 2, 999, 1000, 1001, 2000, 2001] {
        let frames = stack("deep", depth);
        let segment = segment(0, BASE, &[(512, "active_allocated")], &frames);
        let graph = snapshot([segment], [vec![event("alloc", BASE, 500, &frames)]]);
        for bytes in [cpython(&graph, 4), cpython(&graph, 1), cpython(&graph, 0), cpp(&graph)] {
            let rows = read(&bytes).unwrap();
            assert_eq!(rows.summary.stacks, 1, "{depth} frames");
            assert_eq!(rows.nested_frames()[0].matches("{name:").count(), depth);
            assert_eq!(rows.ints("segments", "stack_id"), [Some(1)]);
            assert_eq!(rows.ints("blocks", "stack_id"), [Some(1)]);
            assert_eq!(rows.ints("traces", "stack_id"), [Some(1)]);
        }
    }
}

#[test]
fn a_list_of_one_batch_followed_by_nothing_is_closed() {
    let frames = stack("exact", 1000);
    let graph = snapshot([], [vec![event("alloc", 1, 1, &frames), event("alloc", 2, 1, &frames)]]);
    assert_eq!(read(&cpython(&graph, 4)).unwrap().ints("traces", "stack_id"), [Some(1), Some(1)]);
}

#[test]
fn memo_indexes_of_every_width_are_found() {
    // 70,000 distinct strings push the shared stack's index past 255 and 65,535.
    let metadata = |number: usize| text(&format!("step {number}"));
    let frames = stack("f", 2);
    let events = (0..70_000_usize).map(|number| {
        npu_event("alloc", 1, 1).with("user_metadata", metadata(number)).with("frames", frames.clone())
    });
    let graph = snapshot([], [events.collect()]);
    for bytes in [cpython(&graph, 4), cpp(&graph)] {
        let rows = read(&bytes).unwrap();
        assert_eq!(rows.summary.stacks, 1);
        assert!(rows.ints("traces", "stack_id").iter().all(|id| *id == Some(1)));
        let last = rows.texts("traces", "user_metadata").pop().flatten();
        assert_eq!(last.as_deref(), Some("step 69999"));
    }
}

#[test]
fn equal_stacks_of_different_lists_are_one_stack() {
    let frames: Vec<Py> = (0..3).map(|line| frame("f", line)).collect();
    let events = (0..4).map(|addr| event("alloc", addr, 1, &list(frames.clone())));
    let graph = snapshot([], [events.collect()]);
    assert_eq!(same_rows(&graph).summary.stacks, 1);
    // Even when every frame is an object of its own.
    let events = (0..4).map(|addr| event("alloc", addr, 1, &list((0..3).map(|line| frame("f", line)))));
    assert_eq!(same_rows(&snapshot([], [events.collect()])).summary.stacks, 1);
}

#[test]
fn integers_of_every_width_are_read() {
    let numbers: [i128; 11] =
        [0, 255, 256, 65_535, 65_536, (1 << 31) - 1, 1 << 31, BASE, TIME, (1 << 63) - 1, (1 << 63) - 4096];
    let events = numbers.iter().map(|number| npu_event("alloc", *number, *number));
    let rows = same_rows(&snapshot([], [events.collect()]));
    let expected: Vec<Option<i64>> = numbers.iter().map(|number| i64::try_from(*number).ok()).collect();
    assert_eq!(rows.ints("traces", "addr"), expected);
    assert_eq!(rows.ints("traces", "size"), expected);
    let streams: [i128; 6] = [-1, -128, -129, -(1 << 31), -(1 << 31) - 1, -(1 << 63)];
    let events = streams.iter().map(|stream| npu_event("alloc", 1, 1).with("stream", int(*stream)));
    let rows = same_rows(&snapshot([], [events.collect()]));
    let expected: Vec<Option<i64>> = streams.iter().map(|number| i64::try_from(*number).ok()).collect();
    assert_eq!(rows.ints("traces", "stream"), expected);
}

#[test]
fn b06_addresses_from_two_to_the_63_keep_their_bits() {
    let addr = 0xffff_8000_0000_0000_i128;
    let graph = snapshot([], [vec![npu_event("alloc", addr, 1), npu_event("alloc", 1 << 63, 1)]]);
    let rows = same_rows(&graph);
    assert_eq!(rows.ints("traces", "addr"), [Some(-0x8000_0000_0000), Some(i64::MIN)]);
    assert_eq!(rows.stat("high_addresses"), Some(2));
}

#[test]
fn sizes_that_no_device_has_are_counted_where_they_stand() {
    let most = 1_i128 << 48;
    let events = [most - 1, most, i128::from(i64::MAX)].map(|size| npu_event("alloc", 1, size));
    let segment = |sizes: &[(i128, &str)]| segment(0, BASE, sizes, &list([]));
    let segments = [
        segment(&[(most - 1, "inactive")]),
        // Two blocks, and the segment they add up to.
        segment(&[(most, "inactive"), (most, "active_allocated")]),
    ];
    let rows = same_rows(&snapshot(segments, [events.to_vec()]));
    assert_eq!(rows.stat("implausible_sizes"), Some(2 + 3));
    assert_eq!(
        same_rows(&snapshot([], [vec![npu_event("alloc", 1, most - 1)]])).stat("implausible_sizes"),
        None
    );
}

#[test]
fn strings_of_every_length_are_read() {
    let names: Vec<String> = [0, 1, 255, 256, 65_535, 70_000].map(|length| "x".repeat(length)).to_vec();
    let events = names
        .iter()
        .map(|name| npu_event("alloc", 1, 1).with("user_metadata", text(name)))
        .collect::<Vec<_>>();
    let rows = same_rows(&snapshot([], [events]));
    let found: Vec<String> = rows.texts("traces", "user_metadata").into_iter().flatten().collect();
    assert_eq!(found, names);
}

#[test]
fn a_string_larger_than_the_window_is_read() {
    let name = "y".repeat(3_000_000);
    let graph = snapshot([], [vec![npu_event("alloc", 1, 1).with("user_metadata", text(&name))]]);
    assert_eq!(read(&cpython(&graph, 4)).unwrap().texts("traces", "user_metadata"), [Some(name)]);
}

#[test]
fn text_outside_ascii_is_the_same_in_every_protocol() {
    let name = "é\u{1}\n\r\\u0041 \u{1a}雪😀";
    let graph = snapshot([], [vec![npu_event("alloc", 1, 1).with("user_metadata", text(name))]]);
    assert_eq!(same_rows(&graph).texts("traces", "user_metadata"), [Some(name.to_owned())]);
}

#[test]
fn pool_ids_are_read_as_tuples_and_lists() {
    let event = |pool: Py| npu_event("alloc", 1, 1).with("pool_id", pool);
    let graph = snapshot(
        [],
        [vec![event(tuple([int(0), int(7)])), event(list([int(3), int(0)])), npu_event("alloc", 1, 1)]],
    );
    let rows = same_rows(&graph);
    assert_eq!(rows.ints("traces", "pool_id_0"), [Some(0), Some(3), None]);
    assert_eq!(rows.ints("traces", "pool_id_1"), [Some(7), Some(0), None]);
}

#[test]
fn protocol_and_digest_are_those_of_the_file() {
    let graph = everything();
    for protocol in 0..=5 {
        let bytes = cpython(&graph, protocol);
        let rows = read(&bytes).unwrap();
        assert_eq!(rows.ints("snapshot", "protocol"), [Some(i64::from(protocol))]);
        assert_eq!(rows.ints("snapshot", "source_bytes"), [i64::try_from(bytes.len()).ok()]);
    }
    // printf '\x80\x02}q\x00X\x08\x00\x00\x00segmentsq\x01]q\x02s.' | sha256sum
    let bytes = b"\x80\x02}q\x00X\x08\x00\x00\x00segmentsq\x01]q\x02s.";
    let digest = "0cfd3ba57bcf9367dd70e2e6573347104013478c5e4f5d8dabeae19821f4b745";
    assert_eq!(read(bytes).unwrap().texts("snapshot", "sha256"), [Some(digest.to_owned())]);
}
