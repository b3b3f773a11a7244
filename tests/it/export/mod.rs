//! Exports say what the snapshot says: read again they give the same rows, and other tools' readers take them.

mod readers;
mod slices;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use npusnap::engine::{Engine, Options};
use npusnap::export::{self, Request, Summary, Target, Weight};
use npusnap::store::{Cache, Silent, Store};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::pickler::cpython;
use crate::support::pool::{MIB, segment, snapshot, written};
use crate::support::snapshots::everything;

/// What of a snapshot has to be the same after it was exported and read again, whatever ids its stacks get.
const SAME: &[&str] = &[
    "SELECT dialect, form, trace_lists, event_count, segment_count, block_count, stack_count, block_padding,
       allocator_settings FROM snapshot",
    "SELECT device_index, device_type FROM devices ORDER BY device_index",
    "SELECT stack_hash, frames_json FROM call_stacks ORDER BY stack_hash",
    "SELECT d.device_index, s.address, s.total_size, s.allocated_size, s.active_size, s.requested_size, s.stream,
       s.segment_type, s.pool_id_0, s.pool_id_1, s.is_expandable, c.stack_hash
     FROM segments AS s JOIN devices AS d ON d.id = s.device_id LEFT JOIN call_stacks AS c ON c.id = s.stack_id
     ORDER BY s.id",
    "SELECT d.device_index, s.address, b.address, b.size, b.requested_size, b.state, c.stack_hash
     FROM blocks AS b JOIN segments AS s ON s.id = b.segment_id JOIN devices AS d ON d.id = s.device_id
     LEFT JOIN call_stacks AS c ON c.id = b.stack_id ORDER BY b.id",
    "SELECT d.device_index, t.trace_index, t.action, t.addr, t.device_free, t.size, t.stream, c.stack_hash, t.time_us,
       t.pool_id_0, t.pool_id_1, t.compile_context, t.user_metadata, t.is_workspace
     FROM traces AS t JOIN devices AS d ON d.id = t.device_id LEFT JOIN call_stacks AS c ON c.id = t.stack_id
     ORDER BY t.id",
    "SELECT d.device_index, a.addr, a.size, a.block_size, a.block_size_exact, a.alloc_index, a.free_requested_index,
       a.free_completed_index, c.stack_hash, a.origin, a.fate
     FROM allocations AS a JOIN devices AS d ON d.id = a.device_id LEFT JOIN call_stacks AS c ON c.id = a.stack_id
     ORDER BY a.id",
    "SELECT d.device_index, r.counter, r.base, r.final, r.residual, r.exact
     FROM replay_checks AS r JOIN devices AS d ON d.id = r.device_id ORDER BY d.device_index, r.counter",
    "SELECT d.device_index, a.stage, a.name, a.time_us, a.trace_index
     FROM annotations AS a LEFT JOIN devices AS d ON d.id = a.device_id
     ORDER BY a.time_us, a.trace_index, a.stage, a.name",
];

fn npusnap(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap")).args(arguments).output().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("{name}.pickle"))
}

fn pickles(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pickle"))
        .collect();
    found.sort();
    found
}

fn open(path: &Path) -> Engine {
    Engine::open(Store::open_with(path, Cache::Off, &Silent).unwrap(), Options::default()).unwrap()
}

fn select(engine: &Engine, sql: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in engine.query(sql).unwrap() {
        let batch = batch.unwrap();
        let options = arrow::util::display::FormatOptions::default().with_null("NULL");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| arrow::util::display::ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>()),
        );
    }
    rows
}

fn number(engine: &Engine, sql: &str) -> i64 {
    select(engine, sql)[0][0].parse().unwrap()
}

fn exported(engine: &Engine, target: Target, request: &Request) -> (Vec<u8>, Summary) {
    let mut bytes = Vec::new();
    let summary = export::write(engine, target, request, &mut bytes).unwrap();
    (bytes, summary)
}

/// An export as a file to be read again.
fn reread(engine: &Engine, target: Target, request: &Request) -> (TempDir, PathBuf, Summary) {
    let place = tempdir().unwrap();
    let path = place.path().join("export.pickle");
    let (bytes, summary) = exported(engine, target, request);
    std::fs::write(&path, bytes).unwrap();
    (place, path, summary)
}

fn assert_round_trip(path: &Path) {
    let original = open(path);
    let (_place, copy, _) = reread(&original, Target::Pickle, &Request::default());
    let copy = open(&copy);
    for sql in SAME {
        assert_eq!(select(&copy, sql), select(&original, sql), "{}: {sql}", path.display());
    }
}

#[test]
fn a_pickle_read_again_gives_the_same_rows() {
    for path in pickles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        assert_round_trip(&path);
    }
}

#[test]
fn every_key_of_a_snapshot_goes_round() {
    let place = tempdir().unwrap();
    let path = place.path().join("everything.pickle");
    std::fs::write(&path, cpython(&everything(), 4)).unwrap();
    assert_round_trip(&path);
}

#[test]
fn recordings_go_round() {
    let Some(shared) = crate::oracle::shared("recordings_go_round") else { return };
    for path in pickles(&shared.join("snapshots")) {
        assert_round_trip(&path);
    }
}

#[test]
fn live_stacks_add_up_to_the_allocated_bytes() {
    for path in pickles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        let engine = open(&path);
        if number(&engine, "SELECT event_count FROM snapshot") == 0 {
            continue;
        }
        let allocated = select(
            &engine,
            "SELECT device_index, allocated FROM device_overview WHERE allocated > 0 ORDER BY device_index",
        );
        let (bytes, _) = exported(&engine, Target::Folded, &Request::default());
        let mut sums: Vec<Vec<String>> = Vec::new();
        for line in String::from_utf8(bytes).unwrap().lines() {
            let (stack, bytes) = line.rsplit_once(' ').unwrap();
            let device = stack.split(';').next().unwrap().strip_prefix("device ").unwrap();
            let bytes: i64 = bytes.parse().unwrap();
            match sums.last_mut().filter(|last| last[0] == device) {
                Some(last) => last[1] = (last[1].parse::<i64>().unwrap() + bytes).to_string(),
                None => sums.push(vec![device.to_owned(), bytes.to_string()]),
            }
        }
        assert_eq!(sums, allocated, "{}", path.display());
    }
}

#[test]
fn stacks_at_the_peak_add_up_to_the_peak() {
    for name in ["npu_leak", "npu_ring_wrapped", "cuda_oom_expandable"] {
        let engine = open(&fixture(name));
        let request = Request { weight: Weight::Peak, ..Request::default() };
        let (bytes, _) = exported(&engine, Target::Speedscope, &request);
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        let peaks = select(
            &engine,
            "SELECT peak FROM memory_peaks WHERE counter = 'allocated' ORDER BY device_index",
        );
        let profiles = file["profiles"].as_array().unwrap();
        let sums: Vec<Vec<String>> = profiles
            .iter()
            .map(|profile| {
                let weights = profile["weights"].as_array().unwrap();
                let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
                assert_eq!(profile["endValue"].as_i64(), Some(sum));
                vec![sum.to_string()]
            })
            .collect();
        assert_eq!(sums, peaks, "{name}");
    }
}

#[test]
fn allocated_stacks_count_what_was_freed_again() {
    let engine = open(&fixture("npu_all_freed"));
    let request = Request { weight: Weight::Allocated, ..Request::default() };
    let (bytes, _) = exported(&engine, Target::Folded, &request);
    let lines = String::from_utf8(bytes).unwrap();
    let sum: i64 = lines.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap()).sum();
    assert_eq!(sum, number(&engine, "SELECT sum(block_size) FROM allocations WHERE origin = 'window'"));
    assert_eq!(exported(&engine, Target::Folded, &Request::default()).0, b"");
}

#[test]
fn counters_and_allocations_stand_in_a_perfetto_trace() {
    let engine = open(&fixture("cuda_oom_expandable"));
    let (bytes, summary) = exported(&engine, Target::Perfetto, &Request::default());
    assert_eq!(summary.notes, Vec::<String>::new());
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| {
        let ours = |event: &&Value| event["ph"] == phase && event["cat"] != "annotation";
        events.iter().filter(ours).collect::<Vec<_>>()
    };
    let count = |sql: &str| usize::try_from(number(&engine, sql)).unwrap();
    assert_eq!(of("C").len(), count("SELECT count(*) FROM traces"));
    assert_eq!(of("b").len(), count("SELECT count(*) FROM allocations"));
    assert_eq!(of("e").len(), of("b").len());
    assert_eq!(of("i").len(), count("SELECT count(*) FROM traces WHERE action IN ('oom', 'snapshot')"));
    for device in
        select(&engine, "SELECT device_id, allocated, reserved FROM device_overview WHERE trace_count > 0")
    {
        let last =
            of("C").into_iter().rfind(|event| event["pid"] == device[0].parse::<i64>().unwrap()).unwrap();
        assert_eq!(
            [last["args"]["allocated"].to_string(), last["args"]["reserved"].to_string()],
            device[1..]
        );
    }
    assert!(events.iter().all(|event| event["ts"].as_i64().is_none_or(|ts| ts >= 0)));
    assert!(
        of("b")
            .iter()
            .zip(of("e"))
            .all(|(begin, end)| { begin["id"] == end["id"] && begin["ts"].as_i64() <= end["ts"].as_i64() })
    );
}

#[test]
fn named_ranges_are_paired_in_a_perfetto_trace() {
    let place = tempdir().unwrap();
    let path = place.path().join("everything.pickle");
    std::fs::write(&path, cpython(&everything(), 4)).unwrap();
    let (bytes, _) = exported(&open(&path), Target::Perfetto, &Request::default());
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let ranges: Vec<_> = events
        .iter()
        .filter(|event| event["cat"] == "annotation")
        .map(|event| {
            (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap(), event["id"].as_str().unwrap())
        })
        .collect();
    assert_eq!(ranges, [("b", "Optimizer.step", "a1"), ("e", "Optimizer.step", "a1")]);
    assert!(events.iter().any(|event| event["args"]["name"] == "pinned host memory"));
}

#[test]
fn a_file_has_its_name_when_it_is_whole_and_the_source_is_not_replaced() {
    let place = tempdir().unwrap();
    let source = place.path().join("a.pickle");
    std::fs::copy(fixture("npu_oom"), &source).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let out = path(&place.path().join("out.json"));
    let output = npusnap(&["export", &path(&source), "--to", "perfetto", "-o", &out]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("wrote "), "{output:?}");
    assert!(output.stdout.is_empty());

    let before = std::fs::read(&source).unwrap();
    let output = npusnap(&["export", &path(&source), "--to", "pickle", "-o", &path(&source)]);
    assert_eq!(output.status.code(), Some(2));
    let output = npusnap(&[
        "export",
        &path(&source),
        "--to",
        "pickle",
        "--device",
        "7",
        "-o",
        &path(&place.path().join("b")),
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it has: 0"), "{output:?}");
    assert_eq!(std::fs::read(&source).unwrap(), before);
    let mut names: Vec<String> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.npusnap", "a.pickle", "out.json"]);
}

#[test]
fn events_that_there_are_not_are_refused_with_those_there_are() {
    let place = tempdir().unwrap();
    let out = place.path().join("out.json");
    let export = |arguments: &[&str]| {
        let source = fixture("npu_two_devices");
        let source = source.to_str().unwrap();
        let output = ["export", "--no-cache", source, "--to", "folded", "-o", out.to_str().unwrap()];
        npusnap(&[&output[..], arguments].concat())
    };
    let engine = open(&fixture("npu_two_devices"));
    let last = |device: i64| {
        let sql = "SELECT MAX(trace_index) FROM traces AS t JOIN devices AS d ON d.id = t.device_id WHERE d.device_index =";
        number(&engine, &format!("{sql} {device}"))
    };
    let beyond = export(&["--events", "9000000..9000010"]);
    assert_eq!(beyond.status.code(), Some(2), "{beyond:?}");
    let expected = format!(
        "error: --events: no event has a number in that range; there are: 0..{} of device 0, 0..{} of device 1\n",
        last(0) + 1,
        last(1) + 1
    );
    assert_eq!(String::from_utf8_lossy(&beyond.stderr), expected);
    assert!(!out.exists());
    let one = export(&["--events", &format!("{}..", last(1) + 1), "--device", "1"]);
    assert!(
        String::from_utf8_lossy(&one.stderr)
            .ends_with(&format!("there are: 0..{} of device 1\n", last(1) + 1)),
        "{one:?}"
    );
    for events in ["0..0", &format!("{}..9000000", last(1))] {
        assert!(export(&["--events", events]).status.success(), "{events}");
    }
}

#[test]
fn a_device_number_that_no_machine_has_fills_no_disk() {
    let segment = segment(1 << 40, 1 << 30, "large", &[(20 * MIB, "active_allocated")]);
    let (place, source) = written("s.pickle", &snapshot(vec![segment], vec![]));
    let out = place.path().join("out.pickle");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let output = npusnap(&["export", &path(&source), "--to", "memory-viz", "-o", &path(&out)]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("device 1099511627776"), "{output:?}");
    assert!(!out.exists());
}

#[test]
fn hostile_texts_stay_texts() {
    use crate::support::pickler::{dict, int, list, text};
    use crate::support::snapshots::{event, snapshot};

    let name = "a;b\n\"</script>\u{202e}\u{0}\t";
    let frames = list([dict([("name", text(name)), ("filename", text("x;\ny.py")), ("line", int(3))])]);
    let place = tempdir().unwrap();
    let path = place.path().join("hostile.pickle");
    std::fs::write(&path, cpython(&snapshot([], [vec![event("alloc", 0x1000, 512, &frames)]]), 4)).unwrap();
    let engine = open(&path);
    let (folded, _) =
        exported(&engine, Target::Folded, &Request { weight: Weight::Allocated, ..Request::default() });
    let folded = String::from_utf8(folded).unwrap();
    assert_eq!((folded.lines().count(), folded.matches(';').count()), (1, 1), "{folded}");
    for target in [Target::Perfetto, Target::Speedscope] {
        let request = Request { weight: Weight::Allocated, ..Request::default() };
        let json: Value = serde_json::from_slice(&exported(&engine, target, &request).0).unwrap();
        assert!(json.to_string().contains("</script>"));
    }
    assert_round_trip(&path);
}
