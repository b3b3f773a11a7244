//! Rows are right when Python's own unpickling says the same, cell by cell: `tests/oracle/` holds the comparison.
//!
//! Three of these need the recordings and the generator that are no part of the repository; they say so and pass where
//! those are absent.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde::Serialize;

const NPUSNAP: &str = env!("CARGO_BIN_EXE_npusnap");

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

/// The folder with recordings and generator, where there is one; else says that `what` is skipped.
pub(crate) fn shared(what: &str) -> Option<PathBuf> {
    let found = shared_folder();
    if found.is_none() {
        say(&format!("SKIPPED: `{what}`: no ../shared/snapshots, and NPUSNAP_SHARED names no other place\n"));
    }
    found
}

fn shared_folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("NPUSNAP_SHARED").map_or_else(beside, PathBuf::from);
    shared.join("snapshots").is_dir().then_some(shared)
}

fn say(message: &str) {
    // Not `eprintln!`: that is captured, and what was skipped must be seen.
    let _closed = write!(std::io::stderr().lock(), "{message}");
}

/// Runs a script of `tests/oracle/`; its report is the message of the failure.
pub(crate) fn python(name: &str, arguments: &[&str]) {
    if Command::new("python3").arg("--version").output().is_err() {
        say(&format!("SKIPPED: {name}: there is no python3 to compare with\n"));
        return;
    }
    let mut command = Command::new("python3");
    command.arg("-B").arg(script(name)).args(arguments);
    if let Some(shared) = shared_folder() {
        command.env("NPUSNAP_SHARED", shared);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{name} {}: {status}\n{stdout}{stderr}", arguments.join(" "));
    say(&stdout);
}

/// Runs one family of snapshots that need the shared folder.
fn drive(family: &str) {
    if shared(family).is_none() {
        return;
    }
    python("drive.py", &["--binary", NPUSNAP, family]);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have UTF-8 names")
}

#[test]
fn the_oracle_sees_damage_of_every_cell_row_and_key() {
    python("selftest.py", &[]);
}

#[test]
fn the_oracle_sees_every_damage_of_a_database_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    python("mutate.py", &["handmade", text(folder.path())]);
    let snapshot = folder.path().join("everything.pickle");
    let database = folder.path().join("rows.db");
    let ingested = Command::new(NPUSNAP)
        .args(["--quiet", "ingest", text(&snapshot), "-o", text(folder.path()), "--sqlite", text(&database)])
        .output()
        .unwrap();
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    python("selftest.py", &[text(&snapshot), text(&database)]);
}

#[test]
fn handmade_snapshots_become_the_rows_that_python_unpickles() {
    python("drive.py", &["--binary", NPUSNAP, "handmade"]);
}

#[test]
fn fixtures_become_the_rows_that_python_unpickles_and_their_truth() {
    python("drive.py", &["--binary", NPUSNAP, "fixtures"]);
}

#[test]
fn simulated_snapshots_become_their_rows_and_their_truth() {
    python("drive.py", &["--binary", NPUSNAP, "synth"]);
}

#[test]
fn recordings_become_the_rows_that_python_unpickles() {
    drive("real");
}

#[test]
fn every_encoding_of_a_recording_becomes_the_same_rows() {
    drive("encodings");
}

#[test]
fn odd_contents_become_the_rows_that_python_unpickles() {
    drive("contents");
}

#[test]
fn generated_snapshots_become_their_rows_and_their_truth() {
    drive("matrix");
}

// serde-pickle writes what these structs hold without a memo and knows nothing of Python: an independent writer.

/// A node's name, or the None that is written where a frame's code has no node.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Node {
    Name(String),
    Nothing,
}

#[derive(Debug, Clone, Serialize)]
struct Frame {
    name: String,
    filename: String,
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fx_node_op: Option<Node>,
}

#[derive(Debug, Clone, Serialize)]
struct Block {
    address: u64,
    size: u64,
    requested_size: u64,
    state: &'static str,
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "these are the keys of the format")]
struct Segment {
    device: i64,
    blocks: Vec<Block>,
    address: u64,
    total_size: u64,
    allocated_size: u64,
    active_size: u64,
    requested_size: u64,
    stream: i64,
    segment_type: &'static str,
    segment_pool_id: (u64, u64),
    is_expandable: bool,
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, Serialize)]
struct Event {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_free: Option<i64>,
    size: i64,
    stream: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool_id: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<Frame>>,
}

#[derive(Debug, Clone, Serialize)]
struct Snapshot {
    segments: Vec<Segment>,
    device_traces: Vec<Vec<Event>>,
}

/// A snapshot whose keys stand in the other order, so that events come before the final state.
#[derive(Debug, Clone, Serialize)]
struct TracesFirst {
    device_traces: Vec<Vec<Event>>,
    segments: Vec<Segment>,
}

/// Numbers around the sizes at which a pickle's opcode changes.
fn size() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..300_i64,
        65_500..65_600_i64,
        (1_i64 << 31) - 3..(1_i64 << 31) + 3,
        (1_i64 << 32) - 3..(1_i64 << 32) + 3,
        i64::MAX - 3..=i64::MAX,
    ]
}

/// Streams are pointers as signed numbers.
fn stream() -> impl Strategy<Value = i64> {
    prop_oneof![size(), size().prop_map(|size| -size), any::<i64>()]
}

/// Addresses, up to 2^64-1.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(u64::MAX), Just(1 << 63), (0..1_u64 << 47)]
}

/// Lines; the symbolizer's -1 is unsigned in a file.
fn line() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_000_u64, Just(u64::MAX)]
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let op = prop::option::of(prop_oneof!["[a-z_]{1,8}".prop_map(Node::Name), Just(Node::Nothing)]);
    let frame = ("\\PC{0,12}", ".{0,20}", line(), op).prop_map(|(name, filename, line, fx_node_op)| Frame {
        name,
        filename,
        line,
        fx_node_op,
    });
    prop::collection::vec(frame, 0..4)
}

fn block() -> impl Strategy<Value = Block> {
    let state = prop::sample::select(vec!["active_allocated", "active_pending_free", "inactive"]);
    (address(), 1..1_u64 << 40, 0..1_u64 << 40, state, frames()).prop_map(
        |(address, size, requested_size, state, frames)| Block {
            address,
            size,
            requested_size,
            state,
            frames,
        },
    )
}

/// A segment whose counters are those of its blocks, as in a real one.
fn segment() -> impl Strategy<Value = Segment> {
    let blocks = prop::collection::vec(block(), 1..4);
    let pool_id = (0..1_u64 << 40, 0..3_u64);
    (-1..4_i64, blocks, address(), stream(), pool_id, any::<bool>(), frames()).prop_map(
        |(device, blocks, address, stream, segment_pool_id, is_expandable, frames)| {
            let sum = |of: fn(&Block) -> u64, states: &[&str]| {
                blocks.iter().filter(|block| states.contains(&block.state)).map(of).sum::<u64>()
            };
            let active = ["active_allocated", "active_pending_free"];
            Segment {
                device,
                address,
                total_size: sum(|block| block.size, &[active[0], active[1], "inactive"]),
                allocated_size: sum(|block| block.size, &active[..1]),
                active_size: sum(|block| block.size, &active),
                requested_size: sum(|block| block.requested_size, &active),
                stream,
                segment_type: if is_expandable { "large" } else { "small" },
                segment_pool_id,
                is_expandable,
                frames,
                blocks,
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let actions = vec![
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_map",
        "oom",
        "snapshot",
        "new",
    ];
    let place = (prop::option::of(address()), prop::option::of(size()), size(), stream());
    let strings = (prop::option::of("\\PC{0,6}"), prop::option::of(".{0,300}"));
    let rest =
        (prop::option::of(size()), prop::option::of((0..9_u64, 0..300_u64)), prop::option::of(frames()));
    (prop::sample::select(actions), place, strings, rest).prop_map(
        |(
            action,
            (addr, device_free, size, stream),
            (compile_context, user_metadata),
            (time_us, pool_id, frames),
        )| Event {
            action,
            // Only `oom` and what we do not know can do without an address.
            addr: if ["oom", "new"].contains(&action) { addr } else { Some(addr.unwrap_or(0)) },
            device_free,
            size,
            stream,
            time_us,
            compile_context,
            user_metadata,
            pool_id,
            frames,
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let traces = prop::collection::vec(prop::collection::vec(event(), 0..12), 0..5);
    (prop::collection::vec(segment(), 0..6), traces)
        .prop_map(|(segments, device_traces)| Snapshot { segments, device_traces })
}

#[test]
fn serde_pickle_and_pythons_pickler_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    // A fixed seed: what fails here fails everywhere.
    let mut runner = TestRunner::deterministic();
    for number in 0..24 {
        let Snapshot { segments, device_traces } = snapshot().new_tree(&mut runner).unwrap().current();
        let options = serde_pickle::SerOptions::new();
        let options = if number % 3 == 0 { options.proto_v2() } else { options };
        let bytes = match number % 4 {
            0 => serde_pickle::to_vec(&TracesFirst { device_traces, segments }, options),
            1 => serde_pickle::to_vec(&segments, options),
            _ => serde_pickle::to_vec(&Snapshot { segments, device_traces }, options),
        };
        fs::write(folder.path().join(format!("serde_{number}.pickle")), bytes.unwrap()).unwrap();
    }
    python("drive.py", &["--binary", NPUSNAP, "folder", text(folder.path())]);
}

#[test]
fn views_of_a_database_take_steps_as_many_as_there_are_events_and_not_their_square() {
    let folder = tempfile::tempdir().unwrap();
    let databases = ["4000", "8000"].map(|events| {
        let [snapshot, database] =
            ["pickle", "db"].map(|kind| folder.path().join(format!("{events}.{kind}")));
        let history = ["--events", events, "--leak", "--oom", "--seed", "3"];
        for (arguments, file, more) in [
            (&["synth", "-q", "-o"][..], &snapshot, &history[..]),
            (&["ingest", "-q"], &snapshot, &["--sqlite", text(&database)]),
        ] {
            let status = Command::new(NPUSNAP).args(arguments).arg(file).args(more).output().unwrap().status;
            assert!(status.success());
        }
        database
    });
    python("view_work.py", &databases.each_ref().map(|path| text(path)));
}
