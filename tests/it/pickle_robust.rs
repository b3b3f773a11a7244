//! Any bytes end in rows or in an error with a place: never in a panic, a hang, or memory beyond what the bytes hold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use npusnap::error::Error;

use crate::support::pickler::{Py, cpp, cpython, cpython_with_frames, dict, int, list, text};
use crate::support::rows::read;
use crate::support::snapshots::{BASE, event, everything, npu_event, segment, snapshot, stack};

/// One device with one of each thing, so that every byte of it can be tried.
fn compact() -> Py {
    let frames = stack("f", 2);
    snapshot(
        [segment(0, BASE, &[(512, "active_allocated")], &frames)],
        [vec![event("alloc", BASE, 500, &frames), npu_event("snapshot", 0, 512)], vec![]],
    )
    .with("allocator_settings", dict([("max_split_size", int(-1))]))
}

/// A graph in every encoding, and a list form with legacy blocks.
fn fixtures(graph: &Py) -> Vec<(String, Vec<u8>)> {
    let mut fixtures: Vec<(String, Vec<u8>)> =
        (0..=5).map(|protocol| (format!("protocol {protocol}"), cpython(graph, protocol))).collect();
    fixtures.push(("C++ writer".to_owned(), cpp(graph)));
    fixtures.push(("frames".to_owned(), cpython_with_frames(graph, 3)));
    let history = list([dict([("addr", int(1)), ("real_size", int(500)), ("frames", stack("h", 2))])]);
    let old = dict([("size", int(512)), ("state", text("active_allocated")), ("history", history)]);
    let legacy = segment(0, BASE, &[(512, "inactive")], &list([])).with("blocks", list([old]));
    fixtures.push(("list form".to_owned(), cpython(&list([legacy]), 2)));
    fixtures
}

/// Reads bytes that need not be a snapshot, and checks how that ends.
fn survives(bytes: &[u8], what: &dyn Fn() -> String) {
    let begun = Instant::now();
    let Ok(result) = catch_unwind(AssertUnwindSafe(|| read(bytes))) else { panic!("panicked: {}", what()) };
    assert!(begun.elapsed() < Duration::from_secs(30), "slow: {}", what());
    match result {
        Ok(_) => {}
        Err(Error::Pickle { source, .. }) => {
            assert!(usize::try_from(source.offset).unwrap() <= bytes.len(), "{source}: {}", what());
        }
        Err(Error::Shape { at, expected, found, .. }) => {
            assert!(!at.is_empty() && !expected.is_empty() && !found.is_empty(), "{}", what());
        }
        Err(other) => panic!("{other:?}: {}", what()),
    }
}

#[test]
fn b26_every_truncation_is_an_error_with_an_offset() {
    for (name, bytes) in fixtures(&compact()) {
        for length in 0..bytes.len() {
            match read(&bytes[..length]) {
                Err(Error::Pickle { source, .. }) => {
                    assert!(
                        usize::try_from(source.offset).unwrap() <= length,
                        "{name} cut at {length}: {source}"
                    );
                    assert!(source.hint().is_some(), "{name} cut at {length}");
                }
                other => panic!("{name} cut at {length}: {other:?}"),
            }
        }
    }
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for (name, bytes) in fixtures(&everything()) {
        for round in 0..250 {
            let mut bytes = bytes.clone();
            let flips = 1 + round % 4;
            let mut where_to = Vec::new();
            for _ in 0..flips {
                let (at, bit) = (numbers.below(bytes.len()), numbers.below(8));
                bytes[at] ^= 1 << bit;
                where_to.push((at, bit));
            }
            survives(&bytes, &|| format!("{name}, bits {where_to:?}"));
        }
    }
}

#[test]
fn replaced_removed_and_repeated_bytes_do_no_harm() {
    let mut numbers = Numbers(42);
    for (name, bytes) in fixtures(&everything()) {
        for round in 0..120 {
            let mut changed = bytes.clone();
            let at = numbers.below(bytes.len());
            let length = (1 + numbers.below(40)).min(bytes.len() - at);
            let to = numbers.below(bytes.len());
            match round % 3 {
                0 => changed[at] = u8::try_from(numbers.below(256)).unwrap(),
                1 => {
                    changed.drain(at..at + length);
                }
                _ => {
                    let piece = bytes[at..at + length].to_vec();
                    changed.splice(to..to, piece);
                }
            }
            survives(&changed, &|| format!("{name}, round {round} at {at}, {length} bytes, to {to}"));
        }
    }
}

#[test]
fn inflated_lengths_do_no_harm() {
    let lies: [&[u8]; 4] =
        [b"\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff\xff\x7f"];
    for (name, bytes) in fixtures(&compact()) {
        for at in 0..bytes.len() {
            let lie = lies[at % lies.len()];
            let mut bytes = bytes.clone();
            let end = (at + lie.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&lie[..end - at]);
            survives(&bytes, &|| format!("{name}, {lie:?} at {at}"));
        }
    }
}

#[test]
fn bombs_go_off_without_harm() {
    let many = 300_000;
    let repeated = |piece: &[u8]| [b"\x80\x04", piece.repeat(many).as_slice(), b"."].concat();
    let cases: [(&str, Vec<u8>); 9] = [
        ("depth", repeated(b"]")),
        ("marks", repeated(b"(")),
        ("duplicates", [b"\x80\x04]".to_vec(), b"2".repeat(many), b".".to_vec()].concat()),
        ("memo", repeated(b"]\x940")),
        ("nested", [b"\x80\x04".to_vec(), b"]".repeat(many), b"a".repeat(many - 1), b".".to_vec()].concat()),
        ("tuples", [b"\x80\x04N".to_vec(), b"\x85".repeat(many), b".".to_vec()].concat()),
        ("longs", repeated(b"\x8a\xff")),
        ("lines", [b"\x80\x02I".to_vec(), b"9".repeat(many), b"\n.".to_vec()].concat()),
        ("bytes", [b"\x80\x02".to_vec(), b"\xff".repeat(many)].concat()),
    ];
    for (name, bytes) in cases {
        survives(&bytes, &|| name.to_owned());
        assert!(read(&bytes).is_err(), "{name}");
    }
}

#[test]
fn a_frames_list_built_one_by_one_costs_its_length() {
    // If each APPEND made a new stack, this would be 200,000 stacks of 100,000 frames on average.
    let mut bytes = b"\x80\x04}(\x8c\x08segments\x94]\x8c\x0ddevice_traces\x94]]}(".to_vec();
    bytes.extend(b"\x8c\x06action\x94\x8c\x03oom\x94\x8c\x06frames\x94]");
    bytes.extend(b"}(\x8c\x04name\x94\x8c\x01f\x94\x8c\x08filename\x94h\x05\x8c\x04line\x94K\x01u\x94a");
    bytes.extend(b"h\x09a".repeat(199_999));
    bytes.extend(b"uaau.");
    let rows = read(&bytes).unwrap();
    assert_eq!(rows.summary.stacks, 1);
    assert_eq!(
        rows.texts("call_stacks", "frames_json")[0].as_ref().unwrap().len(),
        2 + 200_000 * 44 + 199_999 * 2
    );
}

#[test]
fn json_that_would_not_fit_anywhere_is_refused() {
    // A name of one megabyte, shared by frames that differ in their line.
    let name = text(&"x".repeat(1_100_000));
    let frame = |line: i32| dict([("name", name.clone()), ("filename", text("f")), ("line", int(line))]);
    let event = npu_event("alloc", 1, 1).with("frames", list((0..100).map(frame)));
    match read(&cpython(&snapshot([], [vec![event]]), 4)) {
        Err(Error::Shape { at, .. }) => assert!(at.starts_with("frame that ends at byte"), "{at}"),
        other => panic!("{other:?}"),
    }
    // Settings that share one list a million times over.
    let shared: Py = (0..3).fold(text(&"x".repeat(1000)), |inner, _| list(vec![inner; 90]));
    let graph = snapshot([], []).with("allocator_settings", dict([("a", shared)]));
    let rows = read(&cpython(&graph, 4)).unwrap();
    assert_eq!(rows.texts("snapshot", "allocator_settings"), [None]);
    assert_eq!(rows.stat("allocator_settings_lost"), Some(1));
}

#[test]
fn a_missing_stop_is_an_error_and_zeros_behind_it_are_not() {
    let mut bytes = cpython(&everything(), 4);
    bytes.extend([0, 0, 0]);
    assert_eq!(read(&bytes).unwrap().stat("trailing_bytes"), None);
    bytes.extend(b"more");
    assert_eq!(read(&bytes).unwrap().stat("trailing_bytes"), Some(4));
}
