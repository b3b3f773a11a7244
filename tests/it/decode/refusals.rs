//! What is not a snapshot is refused with its place, what was found, and what a snapshot looks like.

use npusnap::error::Error;
use npusnap::pickle::{Lookalike, PickleErrorKind};

use crate::support::pickler::{Py, cpython, dict, int, list, text, tuple};
use crate::support::rows::{pickle_error, read, shape_error};
use crate::support::snapshots::{BASE, everything, npu_event, segment, snapshot};

fn shape(graph: &Py) -> (String, String, String) {
    shape_error(&cpython(graph, 4))
}

#[test]
fn b27_an_empty_file_is_said_to_be_empty() {
    let error = pickle_error(b"");
    assert!(matches!(error.kind, PickleErrorKind::Empty));
    assert!(error.hint().is_some());
}

#[test]
fn other_files_are_called_what_they_are() {
    let cases: [(&[u8], Lookalike); 4] = [
        (b"PK\x03\x04\x14\0\0\0", Lookalike::Zip),
        (b"SQLite format 3\0\x10\0", Lookalike::Sqlite),
        (b"PAR1\x15\x04", Lookalike::Parquet),
        (b"This is a log file\nwith lines\n", Lookalike::Text),
    ];
    for (bytes, expected) in cases {
        match pickle_error(bytes).kind {
            PickleErrorKind::NotAPickle(found) => assert_eq!(found, expected),
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
    assert!(matches!(pickle_error(b"\xff\xfe\x00\x01").kind, PickleErrorKind::NotAPickle(Lookalike::Binary)));
    assert!(matches!(pickle_error(b"\x80\x09}.").kind, PickleErrorKind::Protocol(9)));
}

#[test]
fn b28_opcodes_that_build_something_are_refused_by_name() {
    let cases: [(&[u8], &str, Option<&str>); 16] = [
        (b"cposix\nsystem\n(S'id'\ntR.", "GLOBAL", Some("posix.system")),
        (b"\x80\x02cposix\nsystem\n.", "GLOBAL", Some("posix.system")),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93.", "STACK_GLOBAL", Some("posix.system")),
        (b"\x80\x02(S'id'\niposix\nsystem\n.", "INST", Some("posix.system")),
        (b"\x80\x02NNR.", "REDUCE", None),
        (b"\x80\x02}}b.", "BUILD", None),
        (b"\x80\x02(No.", "OBJ", None),
        (b"\x80\x02NN\x81.", "NEWOBJ", None),
        (b"\x80\x04NNN\x92.", "NEWOBJ_EX", None),
        (b"\x80\x02\x82\x01.", "EXT1", None),
        (b"\x80\x02\x83\x01\x01.", "EXT2", None),
        (b"\x80\x02\x84\x01\x01\x01\x01.", "EXT4", None),
        (b"\x80\x02Pid\n.", "PERSID", None),
        (b"\x80\x02NQ.", "BINPERSID", None),
        (b"\x80\x05\x96\x01\0\0\0\0\0\0\0a.", "BYTEARRAY8", Some("no memory snapshot holds buffers")),
        (b"\x80\x05\x97.", "NEXT_BUFFER", Some("no memory snapshot holds buffers")),
    ];
    for (bytes, name, imported) in cases {
        match pickle_error(bytes).kind {
            PickleErrorKind::Refused { opcode, what } => {
                assert_eq!((opcode, what.as_deref()), (name, imported));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let message = pickle_error(b"\x80\x02cposix\nsystem\n.").to_string();
    assert_eq!(message, "at byte 2: refused opcode GLOBAL (posix.system)");
}

#[test]
fn an_object_inside_a_snapshot_is_refused_too() {
    let mut bytes = cpython(&everything(), 2);
    bytes.pop();
    bytes.extend(b"cnumpy\nndarray\n.");
    let error = pickle_error(&bytes);
    assert_eq!(usize::try_from(error.offset), Ok(bytes.len() - 16));
    assert!(error.to_string().contains("numpy.ndarray"));
}

#[test]
fn other_pickles_are_told_what_they_are() {
    let cases = [
        (int(5), "the integer 5"),
        (text("hello"), "the string `hello`"),
        (Py::None, "None"),
        (Py::Float(1.5), "the float 1.5"),
        (list([int(1), int(2)]), "a list of 2, the first of them an integer"),
        (tuple([int(1), int(2)]), "a tuple"),
        (dict([]), "an empty dict"),
        (dict([("epoch", int(3)), ("model", list([]))]), "a dict with the keys `epoch`, `model`"),
    ];
    for (graph, expected) in cases {
        for protocol in [0, 2, 4] {
            let (at, wanted, found) = shape_error(&cpython(&graph, protocol));
            assert_eq!((at.as_str(), found.as_str()), ("the top level", expected), "protocol {protocol}");
            assert!(wanted.contains("segments"));
        }
    }
    let (at, wanted, found) = shape(&list([dict([("a", int(1)), ("b", int(2))])]));
    assert!(at.starts_with("segments[0]"), "{at}");
    assert!(wanted.contains("total_size"), "{wanted}");
    assert_eq!(found, "a dict with the keys `a`, `b`");
}

#[test]
fn missing_and_wrong_fields_are_named_with_their_path() {
    let fresh = || segment(0, BASE, &[(512, "inactive"), (512, "inactive")], &list([]));
    let good = fresh();
    let block = |key: &str, value: Option<Py>| {
        let bad = dict([("size", int(1)), ("state", text("inactive")), ("address", int(1))]);
        let bad = value.map_or_else(|| bad.without(key), |value| bad.with(key, value));
        snapshot([fresh(), good.with("blocks", list([bad]))], [])
    };
    let event = |key: &str, value: Option<Py>| {
        let bad = npu_event("alloc", 1, 1);
        let bad = value.map_or_else(|| bad.without(key), |value| bad.with(key, value));
        snapshot([], [vec![], vec![npu_event("alloc", 1, 1), bad]])
    };
    let cases = [
        (snapshot([good.without("total_size")], []), "segments[0].total_size", "no such key"),
        (snapshot([fresh(), good.without("device")], []), "segments[1].device", "no such key"),
        (snapshot([good.without("blocks")], []), "segments[0].blocks", "no such key"),
        (snapshot([good.with("device", text("cuda:0"))], []), "segments[0].device", "the string `cuda:0`"),
        (snapshot([good.with("total_size", int(-1))], []), "segments[0].total_size", "the integer -1"),
        (
            snapshot([good.with("total_size", int(1_i128 << 63))], []),
            "segments[0].total_size",
            "the integer 9223372036854775808",
        ),
        (snapshot([good.with("blocks", int(3))], []), "segments[0].blocks", "the integer 3"),
        (
            snapshot([good.with("segment_pool_id", int(3))], []),
            "segments[0].segment_pool_id",
            "the integer 3",
        ),
        (snapshot([good.with("is_expandable", int(3))], []), "segments[0].is_expandable", "the integer 3"),
        (snapshot([good.with("frames", list([int(3)]))], []), "segments[0].frames", "a list of 1"),
        (block("size", None), "segments[1].blocks[0].size", "no such key"),
        (block("state", None), "segments[1].blocks[0].state", "no such key"),
        (block("state", Some(int(1))), "segments[1].blocks[0].state", "the integer 1"),
        (block("history", Some(int(1))), "segments[1].blocks[0].history", "the integer 1"),
        (event("action", None), "device_traces[1][1].action", "no such key"),
        (event("addr", None), "device_traces[1][1].addr", "no such key"),
        (event("size", None), "device_traces[1][1].size", "no such key"),
        (event("size", Some(int(-5))), "device_traces[1][1].size", "the integer -5"),
        (event("action", Some(int(1))), "device_traces[1][1].action", "the integer 1"),
        (event("time_us", Some(text("now"))), "device_traces[1][1].time_us", "the string `now`"),
        (event("pool_id", Some(list([int(1)]))), "device_traces[1][1].pool_id", "a list of 1"),
        (event("user_metadata", Some(dict([("a", int(1))]))), "device_traces[1][1].user_metadata", "a dict"),
    ];
    for (graph, path, finding) in cases {
        for protocol in [0, 4] {
            let (at, _, found) = shape_error(&cpython(&graph, protocol));
            assert!(at.starts_with(&format!("{path} (")), "{at} for {path}");
            assert!(at.contains("byte"), "{at}");
            assert!(found.starts_with(finding), "{path}: {found}");
        }
    }
}

#[test]
fn lists_of_the_wrong_things_are_named() {
    let good = snapshot([], []);
    let cases = [
        (good.with("segments", int(1)), "segments"),
        (good.with("segments", list([int(1)])), "segments"),
        (good.with("device_traces", int(1)), "device_traces"),
        (good.with("device_traces", list([int(1)])), "device_traces[0]"),
        (good.with("device_traces", list([list([]), list([int(1)])])), "device_traces[1]"),
        (good.with("device_traces", list([npu_event("alloc", 1, 1)])), "device_traces[0]"),
        (good.with("external_annotations", list([int(1)])), "external_annotations"),
        (good.with("host_traces", int(1)), "host_traces"),
        (good.with("allocator_settings", int(1)), "allocator_settings"),
    ];
    for (graph, path) in cases {
        let (at, _, _) = shape(&graph);
        assert_eq!(at, path);
    }
    let (_, wanted, found) = shape(&good.without("segments").with("device_traces", list([])));
    assert!(wanted.contains("segments"));
    assert_eq!(found, "a dict with the keys `device_traces`");
}

#[test]
fn a_snapshot_inside_another_dict_is_not_taken_for_one() {
    let inner = everything();
    let (at, _, found) = shape(&dict([("snapshot", inner.clone())]));
    assert_eq!((at.as_str(), found.as_str()), ("the top level", "a dict with the keys `snapshot`"));
    let rows = read(&cpython(&dict([("snapshot", inner), ("segments", list([]))]), 4)).unwrap();
    assert_eq!((rows.summary.segments, rows.summary.events, rows.summary.stacks), (0, 0, 0));
    assert_eq!(rows.stat("unknown_key:snapshot.snapshot"), Some(1));
}

#[test]
fn shape_errors_say_what_a_snapshot_is() {
    let error = read(&cpython(&int(5), 4)).unwrap_err();
    assert!(error.hint().unwrap().contains("_dump_snapshot"));
    assert!(matches!(error, Error::Shape { .. }));
    assert!(error.to_string().contains("`test.pickle`: the top level: expected a snapshot"));
}
