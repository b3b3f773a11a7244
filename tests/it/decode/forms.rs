//! Forms of a snapshot: list, legacy blocks, NPU workspace, host memory, annotations; and who wrote it.

use crate::support::pickler::{Py, cpp, cpython, dict, int, list, text};
use crate::support::rows::{Rows, read};
use crate::support::snapshots::{BASE, GIB, TIME, event, everything, npu_event, segment, snapshot, stack};

fn rows_of(graph: &Py) -> Rows {
    read(&cpython(graph, 4)).unwrap()
}

fn dialect(rows: &Rows) -> [String; 4] {
    let text = |table, column| rows.texts(table, column).into_iter().flatten().next().unwrap_or_default();
    [
        text("snapshot", "dialect"),
        text("snapshot", "form"),
        text("snapshot", "producer"),
        text("devices", "device_type"),
    ]
}

#[test]
fn b24_a_list_of_segments_is_a_snapshot_without_history() {
    let frames = stack("f", 2);
    let graph = list([segment(1, BASE, &[(512, "active_allocated"), (512, "inactive")], &frames)]);
    for bytes in [cpython(&graph, 0), cpython(&graph, 2), cpython(&graph, 4), cpp(&graph)] {
        let rows = read(&bytes).unwrap();
        assert_eq!(rows.ints("segments", "address"), [i64::try_from(BASE).ok()]);
        assert_eq!(rows.ints("blocks", "segment_id"), [Some(1), Some(1)]);
        assert_eq!(rows.ints("devices", "device_index"), [Some(1)]);
        assert_eq!(rows.ints("snapshot", "trace_lists"), [None]);
        assert_eq!(rows.stat("no_device_traces"), Some(1));
        assert_eq!(dialect(&rows)[..2], ["legacy_list", "list"]);
    }
}

#[test]
fn b33_blocks_of_torch_1_13_get_their_address_frames_and_size_from_what_there_is() {
    let frames = stack("f", 2);
    let past = dict([("addr", int(BASE)), ("real_size", int(700)), ("frames", stack("old", 1))]);
    let history = list([dict([("addr", int(BASE)), ("real_size", int(500)), ("frames", frames)]), past]);
    let old = |size: i128, state: &str| dict([("size", int(size)), ("state", text(state))]);
    let segment = dict([
        ("device", int(0)),
        ("address", int(BASE)),
        ("total_size", int(2048)),
        ("allocated_size", int(512)),
        ("active_size", int(512)),
        ("stream", int(0)),
        ("segment_type", text("small")),
        (
            "blocks",
            list([
                old(1024, "inactive"),
                old(512, "active_allocated").with("history", history),
                old(512, "inactive"),
            ]),
        ),
    ]);
    for bytes in [cpython(&list([segment.clone()]), 2), cpython(&snapshot([segment], []), 4)] {
        let rows = read(&bytes).unwrap();
        let base = i64::try_from(BASE).unwrap();
        assert_eq!(rows.ints("blocks", "address"), [Some(base), Some(base + 1024), Some(base + 1536)]);
        assert_eq!(rows.ints("blocks", "requested_size"), [None, Some(500), None]);
        assert_eq!(rows.ints("blocks", "stack_id"), [None, Some(1), None]);
        assert_eq!(rows.summary.stacks, 1, "past allocations have no row");
        assert_eq!(rows.stat("block_addresses_added_up"), Some(3));
        assert_eq!(rows.stat("blocks_with_history"), Some(1));
        assert_eq!(dialect(&rows)[3], "CUDA-GPU");
    }
}

/// A history that begins with workspace triplets of two streams, as `torch_npu` writes it.
fn workspace_trace() -> Vec<Py> {
    let triplet = |addr: i128, size: i128| {
        ["workspace_snapshot", "segment_alloc", "alloc"].map(|action| npu_event(action, addr, size))
    };
    let mut events: Vec<Py> = triplet(BASE + GIB, 4 << 20).into();
    events.extend(triplet(BASE + 2 * GIB, 2 << 20));
    events.extend([npu_event("segment_alloc", BASE, 2 << 20), npu_event("alloc", BASE, 500)]);
    events
}

fn workspace_segment(address: i128, size: i128) -> Py {
    let empty = list([]);
    let mut row = segment(0, address, &[(size, "inactive")], &empty).with("stream", int(BASE));
    for key in ["allocated_size", "active_size", "requested_size"] {
        row = row.with(key, int(0));
    }
    row
}

#[test]
fn b15_workspace_triplets_at_the_head_are_marked_and_their_segments_counted() {
    let own = segment(0, BASE, &[(2 << 20, "active_allocated")], &list([])).with("stream", int(BASE));
    let graph = snapshot(
        [own, workspace_segment(BASE + GIB, 4 << 20), workspace_segment(BASE + 2 * GIB, 2 << 20)],
        [workspace_trace()],
    );
    let rows = rows_of(&graph);
    let marks: Vec<i64> = rows.ints("traces", "is_workspace").into_iter().flatten().collect();
    assert_eq!(marks, [1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(rows.ints("traces", "trace_index"), (0..8).map(Some).collect::<Vec<_>>());
    assert_eq!(rows.stat("workspace_bytes"), Some(6 << 20));
    assert_eq!(rows.stat("workspace_incomplete"), None);
    assert_eq!(dialect(&rows), ["npu", "dict", "torch_npu >= 7.1, CPython pickle", "Ascend-NPU"]);
}

#[test]
fn an_incomplete_triplet_marks_only_its_first_entry() {
    let marker = || npu_event("workspace_snapshot", 1, 512);
    let cases = [
        (vec![marker()], vec![1]),
        (vec![marker(), npu_event("segment_alloc", 1, 512)], vec![1, 0]),
        (vec![marker(), npu_event("segment_alloc", 2, 512), npu_event("alloc", 1, 512)], vec![1, 0, 0]),
        (vec![marker(), npu_event("segment_alloc", 1, 512), npu_event("alloc", 1, 256)], vec![1, 0, 0]),
        (vec![marker(), npu_event("segment_alloc", 1, 512), npu_event("oom", 1, 512)], vec![1, 0, 0]),
        (vec![npu_event("alloc", 1, 512), marker(), npu_event("segment_alloc", 1, 512)], vec![0, 1, 0]),
        (
            vec![marker(), marker(), npu_event("segment_alloc", 1, 512), npu_event("alloc", 1, 512)],
            vec![1, 1, 0, 0],
        ),
    ];
    for (events, expected) in cases {
        let rows = rows_of(&snapshot([], [events, vec![npu_event("alloc", 9, 9)]]));
        let marks: Vec<i64> = rows.ints("traces", "is_workspace").into_iter().flatten().collect();
        assert_eq!(marks[..marks.len() - 1], expected);
        assert!(rows.stat("workspace_incomplete").is_some(), "{expected:?}");
        let order: Vec<i64> = rows.ints("traces", "trace_index").into_iter().flatten().collect();
        assert!(order[..expected.len()].is_sorted(), "{order:?}");
    }
}

#[test]
fn workspace_without_history_is_a_guess_and_said_to_be_one() {
    let own = |address| segment(0, address, &[(512, "inactive")], &list([])).with("stream", int(BASE));
    let graph = snapshot([own(BASE), own(BASE + GIB), workspace_segment(BASE + 1024, 4 << 20)], [vec![]]);
    assert_eq!(rows_of(&graph).stat("workspace_guess_bytes"), Some(4 << 20));
    let in_order = snapshot([own(BASE), workspace_segment(BASE + GIB, 4 << 20)], [vec![]]);
    assert_eq!(rows_of(&in_order).stat("workspace_guess_bytes"), None);
}

#[test]
fn host_memory_is_a_device_of_its_own_behind_the_others() {
    let rows = rows_of(&everything());
    assert_eq!(rows.ints("devices", "device_index"), [Some(0), Some(2), Some(-1)]);
    assert_eq!(rows.ints("segments", "device_id"), [Some(1), Some(2), Some(3)]);
    assert_eq!(rows.ints("traces", "device_id").last(), Some(&Some(3)));
    assert_eq!(rows.ints("traces", "trace_index").last(), Some(&Some(0)));
    // The same with the host's lists first.
    let rows = rows_of(&everything().reversed());
    assert!(rows.ints("traces", "device_id").is_sorted());
}

#[test]
fn devices_without_segments_and_events_have_no_row() {
    let graph = snapshot(
        [segment(5, BASE, &[(512, "inactive")], &list([]))],
        [vec![], vec![npu_event("alloc", 1, 1)], vec![], vec![]],
    );
    let rows = rows_of(&graph);
    assert_eq!(rows.ints("devices", "device_index"), [Some(1), Some(5)]);
    assert_eq!(rows.ints("traces", "device_id"), [Some(1)]);
    assert_eq!(rows.ints("segments", "device_id"), [Some(2)]);
    assert_eq!(rows.ints("snapshot", "trace_lists"), [Some(4)]);
}

#[test]
fn annotations_find_the_last_event_before_them() {
    let at = |time: i128| event("alloc", 1, 1, &list([])).with("time_us", int(TIME + time));
    let note = |device: i128, time: i128| {
        dict([
            ("stage", text("START")),
            ("name", text("step")),
            ("device", int(device)),
            ("time_us", int(TIME + time)),
        ])
    };
    let graph = snapshot([], [vec![at(10), at(20), at(20), at(30)], vec![at(5)]]).with(
        "external_annotations",
        list([note(0, 9), note(0, 10), note(0, 20), note(0, 29), note(0, 99), note(1, 99), note(7, 99)]),
    );
    for graph in [graph.clone(), graph.reversed()] {
        let rows = rows_of(&graph);
        assert_eq!(
            rows.ints("annotations", "trace_index"),
            [None, Some(0), Some(2), Some(2), Some(3), Some(0), None]
        );
        assert_eq!(
            rows.ints("annotations", "device_id"),
            [Some(1), Some(1), Some(1), Some(1), Some(1), Some(2), None]
        );
        assert_eq!(rows.stat("annotations_without_device"), Some(1));
        assert_eq!(rows.texts("annotations", "stage")[0], Some("START".to_owned()));
    }
}

#[test]
fn the_producer_is_told_from_the_fields() {
    let frames = stack("f", 1);
    let with = |event: Py| rows_of(&snapshot([], [vec![event]]));
    let full = event("alloc", 1, 1, &frames);
    let no_pool = full.without("pool_id");
    let cases = [
        (with(full), "cuda", "torch >= 2.12, CPython pickle", "CUDA-GPU"),
        (with(no_pool.clone()), "cuda", "torch >= 2.10, CPython pickle", "CUDA-GPU"),
        (with(no_pool.without("user_metadata")), "cuda", "torch >= 2.8, CPython pickle", "CUDA-GPU"),
        (
            with(no_pool.without("user_metadata").without("compile_context")),
            "cuda",
            "torch >= 2.2, CPython pickle",
            "CUDA-GPU",
        ),
        (with(npu_event("alloc", 1, 1)), "npu", "torch_npu, CPython pickle", "Ascend-NPU"),
        (rows_of(&everything()), "cuda", "torch >= 2.14, CPython pickle", "CUDA-GPU"),
        (read(&cpp(&everything())).unwrap(), "cuda", "torch >= 2.14, C++ pickler", "CUDA-GPU"),
        (
            rows_of(&snapshot([segment(0, BASE, &[(512, "inactive")], &list([]))], [vec![]])),
            "cuda",
            "torch >= 2.1, CPython pickle",
            "CUDA-GPU",
        ),
    ];
    for (rows, expected, producer, device_type) in cases {
        let [dialect, _, found, device] = dialect(&rows);
        assert_eq!((dialect.as_str(), found.as_str(), device.as_str()), (expected, producer, device_type));
    }
}

#[test]
fn an_xpu_snapshot_says_so() {
    let graph = snapshot([], [vec![event("alloc", 1, 1, &list([]))]])
        .with("allocator_settings", dict([("PYTORCH_ALLOC_CONF", text(""))]));
    assert_eq!(rows_of(&graph).stat("producer_is_xpu"), Some(1));
}

#[test]
fn an_empty_snapshot_is_one() {
    let rows = rows_of(&snapshot([], [vec![], vec![]]));
    assert_eq!((rows.summary.segments, rows.summary.events), (0, 0));
    assert_eq!(rows.stat("device_type_guessed"), Some(1));
}

#[test]
fn rows_that_a_script_shares_are_read_as_often_as_they_stand_there() {
    let frames = stack("f", 2);
    let one = event("alloc", BASE, 500, &frames);
    let two = npu_event("free_requested", BASE, 500);
    let blocks = segment(0, BASE, &[(512, "inactive"), (256, "inactive")], &frames);
    let shared = [blocks.clone(), blocks.with("device", int(3)), blocks];
    let trace = list([one.clone(), two.clone(), one.clone()]);
    let graph =
        dict([("segments", list(shared)), ("device_traces", list([trace.clone(), list([two]), trace]))])
            .with("host_traces", list([one.clone(), one]))
            .with("external_annotations", list(vec![dict([("name", text("n")), ("device", int(0))]); 2]));
    let expected = |bytes: &[u8]| {
        let rows = read(bytes).unwrap();
        let summary = &rows.summary;
        assert_eq!((summary.segments, summary.blocks, summary.events), (3, 6, 9));
        rows
    };
    let first = expected(&cpython(&graph, 4));
    assert_eq!(first.ints("blocks", "segment_id"), [1, 1, 2, 2, 3, 3].map(Some));
    assert_eq!(first.ints("traces", "trace_index"), [0, 1, 2, 0, 0, 1, 2, 0, 1].map(Some));
    assert_eq!(first.ints("devices", "device_index"), [0, 1, 2, 3, -1].map(Some));
    assert_eq!(first.ints("annotations", "device_id"), [Some(1), Some(1)]);
    for bytes in [cpython(&graph, 0), cpython(&graph, 1), cpython(&graph, 2), cpp(&graph)] {
        assert_eq!(expected(&bytes).listing(), first.listing());
    }
    let segment = segment(0, BASE, &[(512, "inactive")], &list([]));
    assert_eq!(rows_of(&list([segment.clone(), segment])).summary.segments, 2);
}

#[test]
fn lists_and_dicts_made_of_what_stands_on_the_stack_are_read() {
    // (d with its items, (l with its items: pickle's oldest way, which CPython no longer writes.
    let bytes = b"(Vsegments\n(lVdevice_traces\n(((Vaction\nValloc\nVaddr\nI5\nVsize\nI7\ndlld.";
    let rows = read(bytes).unwrap();
    assert_eq!(rows.ints("traces", "addr"), [Some(5)]);
    assert_eq!(rows.ints("traces", "size"), [Some(7)]);
}
