//! The fast way through entries and the opcode loop mean the same. `support::rows::read` runs both on every test file; here
//! the files are made up, and the fast way has to take what it is for.

use npusnap::snapshot::Options;
use proptest::prelude::*;

use crate::support::pickler::{Py, cpp, cpython, cpython_with_frames, int, list, text, tuple};
use crate::support::rows::{pickle_error, read, read_with};
use crate::support::snapshots::{BASE, TIME, event, npu_event, segment, snapshot, stack};

#[test]
fn the_fast_way_takes_what_both_writers_write() {
    let stacks: Vec<Py> = (0..5).map(|number| stack(&format!("s{number}"), 12)).collect();
    let frames = |number: usize| match &stacks[number % 5] {
        // Every event has a list of its own, of shared frames, as PyTorch's symbolizer makes it.
        Py::List(frames) => list(frames.iter().cloned()),
        other => panic!("{other:?}"),
    };
    let cuda = (0..3000_usize).map(|number| event("alloc", BASE, 512, &frames(number)));
    let npu = (0..3000_usize)
        .map(|number| npu_event("free_requested", BASE, 512).with("frames", frames(number / 2)));
    let segments = || stacks.iter().map(|frames| segment(0, BASE, &[(512, "inactive")], frames));
    for graph in [snapshot(segments(), [cuda.collect()]), snapshot(segments(), [npu.collect()])] {
        for bytes in
            [cpython(&graph, 2), cpython(&graph, 3), cpython(&graph, 4), cpython(&graph, 5), cpp(&graph)]
        {
            let summary = read(&bytes).unwrap().summary;
            assert_eq!(summary.events, 3000);
            assert!(summary.events_read_ahead > 2900, "{}", summary.events_read_ahead);
        }
        assert_eq!(
            read(&cpython(&graph, 0)).unwrap().summary.events_read_ahead,
            0,
            "protocol 0 is left to the loop"
        );
    }
}

/// A list of events whose entries are these bytes, in a snapshot.
fn snapshot_of(entries: &[u8]) -> Vec<u8> {
    let head = [b"\x80\x02}(", word("segments").as_slice(), b"]", &word("device_traces"), b"](]("].concat();
    [&head, entries, b"eeu."].concat()
}

fn word(text: &str) -> Vec<u8> {
    [b"X", u32::try_from(text.len()).unwrap().to_le_bytes().as_slice(), text.as_bytes()].concat()
}

/// Keys and values of an event.
fn items() -> Vec<u8> {
    let pairs: [(&str, &[u8]); 4] =
        [("action", &word("alloc")), ("addr", b"K\x01"), ("size", b"K\x01"), ("stream", b"K\x00")];
    pairs.iter().flat_map(|(key, value)| [word(key).as_slice(), value].concat()).collect()
}

#[test]
fn an_event_that_goes_on_after_it_was_read_is_refused_alike() {
    let entry = |index: u8| [b"}q", [index].as_slice(), b"(", &items(), b"u"].concat();
    let more = |tail: &[u8]| [b"(", word("size").as_slice(), b"K\x02", tail].concat();
    assert_eq!(read(&snapshot_of(&[entry(0), entry(1)].concat())).unwrap().summary.events, 2);
    for tail in [&b"u"[..], b"e", b"q\x02u"] {
        let error = read(&snapshot_of(&[entry(0), entry(1), more(tail)].concat())).unwrap_err();
        assert!(error.hint().unwrap().contains("no PyTorch writes this"), "{error:?}");
    }
}

#[test]
fn a_reference_to_an_event_that_was_read_is_refused_alike() {
    let entry = [b"}q\x00(", items().as_slice(), b"u"].concat();
    // Behind the event MEMOIZE stores it a second time, and an integer is given items, the first of them the event.
    let bytes = snapshot_of(&[entry.as_slice(), b"\x94J\xff\xff\xff\xff(h\x00K\x01u"].concat());
    let at = bytes.windows(2).rposition(|window| window == b"h\x00").unwrap();
    let found = pickle_error(&bytes);
    assert_eq!(found.offset, u64::try_from(at).unwrap());
    assert_eq!(found.kind.to_string(), "reference to memo entry 0, whose content was already handed on");
    let salvaged = |plain_loop| {
        let options = Options { plain_loop, salvage: true, ..Options::default() };
        read_with(&bytes, &options).unwrap().listing()
    };
    assert_eq!(salvaged(false), salvaged(true));
}

#[test]
fn an_event_that_stands_in_its_list_twice_is_read_twice_however_many_were_read_before() {
    let entry = |index: u8| [b"}q", [index].as_slice(), b"(", &items(), b"u"].concat();
    for again in [&b"h\x00"[..], b"h\x01"] {
        let summary = read(&snapshot_of(&[entry(0).as_slice(), &entry(1), again].concat())).unwrap().summary;
        assert_eq!(summary.events, 3);
    }
}

#[test]
fn rows_of_a_small_file_wait_for_its_end_however_many_they_are() {
    let events = 70_000;
    let entry = |index: u8| [b"}q", [index].as_slice(), b"(", &items(), b"u"].concat();
    let entries = [entry(0), entry(1).repeat(events - 1)].concat();
    // The first event once more: the stream does not go on, and the file is read again as a whole.
    let twice = snapshot_of(&[entries.as_slice(), b"h\x00"].concat());
    assert!(twice.len() < 8 << 20);
    assert_eq!(usize::try_from(read(&twice).unwrap().summary.events).unwrap(), events + 1);
    let cut = &snapshot_of(&entries)[..twice.len() - 40];
    let salvaged = read_with(cut, &Options { salvage: true, ..Options::default() }).unwrap();
    assert_eq!(usize::try_from(salvaged.summary.events).unwrap(), events - 1);
    assert_eq!(salvaged.ints("traces", "id").len(), events - 1, "no row is written twice");
}

#[test]
fn a_list_that_is_stored_twice_is_found_under_both_numbers() {
    let entry = |frames: &[u8]| [b"}(", items().as_slice(), &word("frames"), frames, b"u"].concat();
    let entries = [entry(b"]q\x00q\x01"), entry(b"h\x00"), entry(b"h\x01")].concat();
    let rows = read(&snapshot_of(&entries)).unwrap();
    assert_eq!((rows.summary.events, rows.ints("traces", "stack_id")), (3, vec![None; 3]));
}

#[test]
fn dicts_behind_an_item_without_a_mark_are_no_items_in_either_way() {
    let entry = |index: u8| [b"}q", [index].as_slice(), b"(", &items(), b"u"].concat();
    let head = [b"\x80\x02}(", word("segments").as_slice(), b"]", &word("device_traces"), b"]]"].concat();
    // One event is an item of the list below it; a second one above it is a dict that nothing takes.
    let one = [head.as_slice(), &entry(0), b"aau."].concat();
    assert_eq!(read(&one).unwrap().summary.events, 1);
    let two = [head.as_slice(), &entry(0), &entry(1), b"0aau."].concat();
    let salvaged = |plain_loop| {
        let options = Options { plain_loop, salvage: true, ..Options::default() };
        read_with(&two, &options).map(|rows| rows.listing()).map_err(|error| error.to_string())
    };
    assert_eq!(salvaged(false), salvaged(true));
    assert_eq!(read(&two).unwrap().summary.events, 1);
}

#[test]
fn an_event_whose_list_lost_its_mark_is_named_alike_in_both_ways() {
    let head = [b"\x80\x04}(", word("segments").as_slice(), b"]", &word("device_traces"), b"]]("].concat();
    let entry = [b"}(", word("action").as_slice(), &word("alloc")].concat();
    // DICT takes the mark of the event, the next one that of its list.
    for tail in [&b"ddu"[..], b"dde", b"ddK\x01u", b"dddu", b"ddda", b"ddds", b"dddK\x00\x86u"] {
        let bytes = [&head, &entry, tail].concat();
        let salvaged = |plain_loop| {
            let options = Options { plain_loop, salvage: true, ..Options::default() };
            read_with(&bytes, &options).map(|rows| rows.listing()).map_err(|error| error.to_string())
        };
        assert_eq!(salvaged(false), salvaged(true), "{tail:?}");
    }
}

/// What an event has under a key; now and then something odd.
fn value(key: &'static str) -> BoxedStrategy<Option<Py>> {
    let number = prop_oneof![
        (0..300_i128).prop_map(int),
        (0..70_000_i128).prop_map(int),
        (0..1_i128 << 63).prop_map(int),
        Just(int(1_i128 << 63)),
        Just(int(-1)),
    ];
    let usual = match key {
        "action" => prop_oneof![
            Just(text("alloc")),
            Just(text("free_completed")),
            Just(text("oom")),
            Just(text("workspace_snapshot")),
            Just(text("segment_alloc")),
            Just(text("novelty")),
        ]
        .boxed(),
        "addr" | "stream" | "device_free" => number.boxed(),
        "size" => prop_oneof![(0..1_i128 << 40).prop_map(int), Just(int(512))].boxed(),
        "time_us" => (0..1000_i128).prop_map(|time| int(TIME + time)).boxed(),
        "pool_id" => (0..3_i128, 0..3_i128)
            .prop_flat_map(|(a, b)| prop_oneof![Just(tuple([int(a), int(b)])), Just(list([int(a), int(b)]))])
            .boxed(),
        "frames" => (0..4_usize, 0..8_usize)
            .prop_map(|(name, depth)| stack(["a", "b", "c", "d"][name], depth))
            .boxed(),
        _ => {
            prop_oneof![Just(text("")), Just(text("N/A")), "[a-z]{0,6}".prop_map(|name| text(&name))].boxed()
        }
    };
    prop_oneof![8 => usual.prop_map(Some), 1 => Just(None), 1 => Just(Some(Py::None))].boxed()
}

const KEYS: [&str; 10] = [
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "pool_id",
    "frames",
    "device_free",
];

fn any_event() -> impl Strategy<Value = Py> {
    let values: Vec<BoxedStrategy<Option<Py>>> = KEYS.iter().map(|key| value(key)).collect();
    (values, Just(KEYS.to_vec()).prop_shuffle(), 0..20_u8).prop_map(|(values, order, oddity)| {
        let mut made = npu_event("alloc", 1, 1);
        for key in order {
            let position = KEYS.iter().position(|known| *known == key).unwrap();
            made = match &values[position] {
                Some(value) => made.with(key, value.clone()),
                None if matches!(key, "action" | "addr" | "size") => made,
                None => made.without(key),
            };
        }
        match oddity {
            0 => made.with("unheard_of", int(1)),
            1 => made.without("size"),
            _ => made,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn made_up_events_are_read_alike(
        events in prop::collection::vec(any_event(), 1..40),
        shared in prop::collection::vec(0..4_usize, 0..40),
        split in 0..3_usize,
    ) {
        // Some events share a stack that a segment had first, by reference.
        let stacks: Vec<Py> = (0..4).map(|number| stack("shared", number + 1)).collect();
        let events: Vec<Py> = events
            .into_iter()
            .enumerate()
            .map(|(at, event)| match shared.get(at) {
                Some(number) => event.with("frames", stacks[*number].clone()),
                None => event,
            })
            .collect();
        let segments = stacks.iter().map(|frames| segment(0, BASE, &[(512, "inactive")], frames));
        let lists = match split {
            0 => vec![events],
            1 => vec![vec![], events],
            _ => {
                let (first, second) = events.split_at(events.len() / 2);
                vec![first.to_vec(), second.to_vec()]
            }
        };
        let graph = snapshot(segments, lists);
        for bytes in [cpython(&graph, 1), cpython(&graph, 2), cpython(&graph, 4), cpython_with_frames(&graph, 11), cpp(&graph)] {
            // An event the generator made impossible is refused; both ways have to say so.
            let _either = read(&bytes);
        }
    }
}
