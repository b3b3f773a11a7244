//! Fields: what is absent, odd or unknown is kept, counted or refused, and never a zero.

use crate::support::pickler::{Py, cpython, dict, int, list, text};
use crate::support::rows::{Rows, read};
use crate::support::snapshots::{
    BASE, TIME, block, event, everything, frame, npu_event, segment, snapshot, stack,
};

fn rows_of(graph: &Py) -> Rows {
    read(&cpython(graph, 4)).unwrap()
}

fn owned(value: &str) -> String {
    value.to_owned()
}

#[test]
fn every_column_of_an_event_comes_from_its_key() {
    let rows = rows_of(&everything());
    let first = |column| rows.ints("traces", column)[0];
    assert_eq!(rows.texts("traces", "action")[0], Some(owned("segment_alloc")));
    assert_eq!(first("addr"), i64::try_from(BASE).ok());
    assert_eq!(first("size"), Some(2 << 20));
    assert_eq!(first("stream"), Some(0));
    assert_eq!(first("time_us"), i64::try_from(TIME).ok());
    assert_eq!(first("pool_id_0"), Some(0));
    assert_eq!(first("device_free"), None);
    assert_eq!(rows.texts("traces", "compile_context")[0], Some(owned("N/A")));
    assert_eq!(rows.texts("traces", "user_metadata")[0], Some(owned("")));
    let oom = 5;
    assert_eq!(rows.texts("traces", "action")[oom], Some(owned("oom")));
    assert_eq!(rows.ints("traces", "addr")[oom], None);
    assert_eq!(rows.ints("traces", "device_free")[oom], Some(123_456_789));
}

#[test]
fn absent_is_null_and_not_zero() {
    let graph = snapshot([], [vec![npu_event("alloc", BASE, 500)]]);
    let rows = rows_of(&graph);
    for column in ["device_free", "stack_id", "time_us", "pool_id_0", "pool_id_1"] {
        assert_eq!(rows.ints("traces", column), [None], "{column}");
    }
    assert_eq!(rows.texts("traces", "compile_context"), [None]);
    assert_eq!(rows.texts("traces", "user_metadata"), [None]);
    let bare = segment(0, BASE, &[(512, "inactive")], &list([]));
    let bare =
        ["allocated_size", "active_size", "requested_size", "stream", "segment_type", "segment_pool_id"]
            .iter()
            .fold(bare, |segment, key| segment.without(key))
            .without("is_expandable")
            .without("frames");
    let rows = rows_of(&snapshot([bare], []));
    for column in ["allocated_size", "active_size", "requested_size", "stream", "pool_id_0", "is_expandable"]
    {
        assert_eq!(rows.ints("segments", column), [None], "{column}");
    }
    assert_eq!(rows.texts("segments", "segment_type"), [None]);
}

#[test]
fn none_counts_as_absent() {
    let graph = snapshot(
        [],
        [vec![npu_event("alloc", BASE, 500).with("time_us", Py::None).with("frames", Py::None)]],
    );
    let rows = rows_of(&graph);
    assert_eq!(rows.ints("traces", "time_us"), [None]);
    assert_eq!(rows.stat("events_without_frames_key"), Some(1));
}

#[test]
fn b10_no_frames_key_an_empty_list_and_a_stack_are_three_things() {
    let frames = stack("f", 2);
    let events = vec![
        npu_event("alloc", 1, 1),
        npu_event("alloc", 2, 1).with("frames", list([])),
        npu_event("alloc", 3, 1).with("frames", list([])),
        npu_event("alloc", 4, 1).with("frames", frames),
    ];
    let rows = rows_of(&snapshot([], [events]));
    assert_eq!(rows.ints("traces", "stack_id"), [None, None, None, Some(1)]);
    assert_eq!(rows.stat("events_without_frames_key"), Some(1));
    assert_eq!(rows.stat("events_with_empty_frames"), Some(2));
}

#[test]
fn a_line_without_a_number_is_minus_one_in_the_list_and_itself_in_the_json() {
    let odd = frame("f", (1 << 64) - 1);
    let rows = rows_of(&snapshot([], [vec![event("alloc", 1, 1, &list([odd]))]]));
    assert_eq!(rows.nested_frames(), ["[{name: f, filename: /app/f.py, line: -1}]"]);
    // What Python's json.dumps(frames, ensure_ascii=False, sort_keys=True) gives, and md5sum of it.
    let json = r#"[{"filename": "/app/f.py", "line": 18446744073709551615, "name": "f"}]"#;
    assert_eq!(rows.texts("call_stacks", "frames_json"), [Some(owned(json))]);
    assert_eq!(rows.texts("call_stacks", "stack_hash"), [Some(owned("93895f2905eab444cf648444c8765f3c"))]);
}

#[test]
fn frames_keep_their_extra_keys_in_the_json() {
    let odd = frame("f", 3).with("fx_node_target", text("a\"b\\")).with("fx_node_op", Py::None).with(
        "fx_more",
        list([int(1), Py::Float(2.5), Py::Bool(true), dict([("b", int(1)), ("a", int(2))])]),
    );
    let plain = frame("f", 3);
    let rows = rows_of(&snapshot([], [vec![event("alloc", 1, 1, &list([odd, plain]))]]));
    let json = concat!(
        r#"[{"filename": "/app/f.py", "fx_more": [1, 2.5, true, {"a": 2, "b": 1}], "fx_node_op": null, "#,
        r#""fx_node_target": "a\"b\\", "line": 3, "name": "f"}, "#,
        r#"{"filename": "/app/f.py", "line": 3, "name": "f"}]"#
    );
    assert_eq!(rows.texts("call_stacks", "frames_json"), [Some(owned(json))]);
}

#[test]
fn b25_lone_surrogates_are_kept_as_escapes_and_counted() {
    let name = Py::Str(std::rc::Rc::new(b"/data/\xed\xb3\xbf.py".to_vec()));
    let odd = dict([("name", text("f")), ("filename", name), ("line", int(1))]);
    let rows = rows_of(&snapshot([], [vec![event("alloc", 1, 1, &list([odd]))]]));
    assert_eq!(rows.nested_frames(), [r"[{name: f, filename: /data/\udcff.py, line: 1}]"]);
    assert_eq!(rows.stat("escaped_strings"), Some(1));
}

#[test]
fn b13_unknown_keys_are_counted_and_their_content_skipped() {
    let nested = list((0..5).map(|n| dict([("deep", list([int(n), text("x")]))])));
    let odd =
        || npu_event("alloc", 1, 1).with("brand_new", nested.clone()).with("internal_metadata", text("m"));
    let graph = snapshot(
        [segment(0, BASE, &[(512, "inactive")], &list([])).with("colour", text("blue"))],
        [vec![odd(), odd(), npu_event("alloc", 2, 1)]],
    )
    .with("future", nested.clone());
    let rows = rows_of(&graph);
    assert_eq!(rows.summary.events, 3);
    assert_eq!(rows.stat("unknown_key:traces.brand_new"), Some(2));
    assert_eq!(rows.stat("no_column:traces.internal_metadata"), Some(2));
    assert_eq!(rows.stat("unknown_key:segments.colour"), Some(1));
    assert_eq!(rows.stat("unknown_key:snapshot.future"), Some(1));
}

#[test]
fn b43_unknown_top_level_content_of_any_size_does_not_matter() {
    let rows = |number: i128| dict([("a", int(number)), ("b", list([int(number)]))]);
    let large = list((0..150_000).map(rows));
    let graph = dict([("aaa", large)])
        .with("segments", list([segment(0, BASE, &[(512, "inactive")], &list([]))]))
        .with("device_traces", list([list([npu_event("alloc", 1, 1)]), list([])]))
        .with("allocator_settings", dict([("max_split_size", int(-1))]));
    let found = rows_of(&graph);
    assert_eq!((found.summary.segments, found.summary.events), (1, 1));
    assert!(found.stat("values_not_kept").is_some());
}

#[test]
fn unknown_actions_and_states_are_kept() {
    let graph = snapshot(
        [segment(0, BASE, &[(512, "melted"), (512, "active_awaiting_free")], &list([]))],
        [vec![
            dict([("action", text("teleport")), ("stream", int(0))]),
            npu_event("user_defined", 0, 0),
            npu_event("annotate", 7, 9),
        ]],
    );
    let rows = rows_of(&graph);
    assert_eq!(
        rows.texts("traces", "action"),
        [Some(owned("teleport")), Some(owned("user_defined")), Some(owned("annotate"))]
    );
    assert_eq!(rows.ints("traces", "size")[0], None);
    assert_eq!(rows.texts("blocks", "state"), [Some(owned("melted")), Some(owned("active_pending_free"))]);
    assert_eq!(rows.stat("unknown_action:teleport"), Some(1));
    assert_eq!(rows.stat("unknown_state:melted"), Some(1));
    assert_eq!(rows.stat("state_renamed"), Some(1));
}

#[test]
fn oom_needs_neither_address_nor_free_memory() {
    let oom = npu_event("oom", 0, 4096).without("addr");
    let rows = rows_of(&snapshot([], [vec![oom.clone(), oom.with("device_free", int(7))]]));
    assert_eq!(rows.ints("traces", "addr"), [None, None]);
    assert_eq!(rows.ints("traces", "device_free"), [None, Some(7)]);
}

#[test]
fn settings_are_json_with_the_unlimited_split_size() {
    let json = concat!(
        r#"{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False", "expandable_segments": false, "#,
        r#""garbage_collection_threshold": 0.8, "max_split_size": -1, "roundup_power2_divisions": {"1": 0, "64": 4}}"#
    );
    assert_eq!(rows_of(&everything()).texts("snapshot", "allocator_settings"), [Some(owned(json))]);
}

#[test]
fn overflow_flags_are_data_loss_wherever_they_stand() {
    let trace = || vec![npu_event("alloc", 1, 1)];
    let graph = snapshot([], [trace(), trace()])
        .with("trace_alloc_max_entries", list([int(100), int(100)]))
        .with("trace_alloc_overflowed", list([Py::Bool(false), Py::Bool(true)]));
    let rows = rows_of(&graph);
    assert_eq!(rows.stat("trace_alloc_overflowed"), Some(1));
    assert_eq!(rows.stat("trace_alloc_max_entries"), Some(200));
    assert_eq!(rows.summary.warnings, 1);
    let inside = snapshot([], [trace()])
        .with("allocator_settings", dict([("trace_alloc_overflowed", list([Py::Bool(true)]))]));
    assert_eq!(rows_of(&inside).stat("trace_alloc_overflowed"), Some(1));
}

#[test]
fn time_that_goes_back_is_said() {
    let at = |time: i128| event("alloc", 1, 1, &list([])).with("time_us", int(TIME + time));
    let rows = rows_of(&snapshot([], [vec![at(0), at(5), at(3), at(4), at(1)]]));
    assert_eq!(rows.stat("time_goes_back"), Some(2));
}

#[test]
fn a_key_that_stands_twice_counts_once_and_is_said() {
    let twice = Py::Dict(std::rc::Rc::new(vec![
        (text("action"), text("alloc")),
        (text("addr"), int(1)),
        (text("size"), int(1)),
        (text("size"), int(2)),
    ]));
    let rows = rows_of(&snapshot([], [vec![twice]]));
    assert_eq!(rows.ints("traces", "size"), [Some(2)]);
    assert_eq!(rows.stat("duplicate_keys"), Some(1));
}

#[test]
fn blocks_that_do_not_fill_their_segment_are_an_error_in_the_file() {
    let short = segment(0, BASE, &[(512, "inactive")], &list([])).with("total_size", int(1024));
    assert_eq!(rows_of(&snapshot([short], [])).stat("segment_size_mismatch"), Some(1));
}

#[test]
fn blocks_belong_to_the_segment_round_them() {
    let frames = list([]);
    let inactive = |size| block(BASE, size, "inactive", frames.clone()).without("requested_size");
    let with = |blocks: Vec<Py>| segment(0, BASE, &[(12, "inactive")], &frames).with("blocks", list(blocks));
    let graph = snapshot([with(vec![inactive(1), inactive(2)]), with(vec![]), with(vec![inactive(3)])], []);
    let rows = rows_of(&graph);
    assert_eq!(rows.ints("blocks", "segment_id"), [Some(1), Some(1), Some(3)]);
    assert_eq!(rows.ints("blocks", "id"), [Some(1), Some(2), Some(3)]);
    assert_eq!(rows.ints("blocks", "size"), [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_list_of_rows_that_stands_twice_is_refused() {
    let segments = || (text("segments"), list([]));
    let twice = Py::Dict(std::rc::Rc::new(vec![segments(), segments()]));
    let error = read(&cpython(&twice, 4)).unwrap_err();
    assert!(format!("{error:?}").contains("`segments` more than once"), "{error:?}");
}
