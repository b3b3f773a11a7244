//! What holds for every mode of `npusnap analyze`: keys, formats, options, and snapshots that hold little.

use std::path::Path;

use arrow::ipc::reader::StreamReader;
use serde_json::{Value, json};

use crate::support::analyze::{fixture, json, rules, run, text};
use crate::support::pickler::{Py, list};
use crate::support::pool::{MIB, event, oom, segment, snapshot, written};

/// Every mode that looks at one snapshot, with the keys that programs rely on.
const MODES: &[(&str, &[&str])] = &[
    ("overview", &["devices"]),
    ("peak", &["devices"]),
    ("fragment", &["devices", "segments"]),
    ("leak", &["devices"]),
    ("oom", &["events"]),
];

const COMPARE: &[&str] = &["a", "b", "devices", "stacks", "segments", "settings_diff"];

fn has(result: &Value, keys: &[&str], what: &str) {
    for key in keys {
        assert!(result.get(key).is_some(), "{what}: no `{key}`");
    }
}

#[test]
fn b40_every_mode_works_on_snapshots_that_hold_little() {
    let (_place, state_only) = written(
        "state.pickle",
        &snapshot(vec![segment(0, 1 << 30, "large", &[(20 * MIB, "active_allocated")])], vec![vec![]]),
    );
    let (_other, no_segments) = written("none.pickle", &list([]));
    let host = segment(-1, 1 << 40, "large", &[(4 * MIB, "active_allocated")]);
    let pinned = snapshot(vec![], vec![]).with("host_segments", list([host])).with("host_traces", list([]));
    let (_host, host_only) = written("host.pickle", &pinned);
    let cases = [
        state_only,
        no_segments,
        host_only,
        fixture("cuda_empty.pickle"),
        fixture("legacy_history.pickle"),
        fixture("npu_two_devices.pickle"),
    ];
    for path in &cases {
        let what = path.display().to_string();
        let all = json(path, "all", &[]);
        assert_eq!(all["mode"], "all");
        for (mode, keys) in MODES {
            has(&all["result"][mode], keys, &what);
        }
        assert!(all["result"].get("compare").is_none(), "{what}");
        let both = json(path, "all", &["--ref", fixture("npu_oom.pickle").to_str().unwrap()]);
        has(&both["result"]["compare"], COMPARE, &what);
    }
    // How a state came to be is not known without events, and no figure of it is 0.
    let leak = json(&cases[0], "leak", &[]);
    let device = &leak["result"]["devices"][0];
    assert_eq!(device["verdict"], "none");
    assert!(device["live_bytes"].as_i64().is_some_and(|bytes| bytes > 0));
    for unknown in [
        "/retained_bytes",
        "/history/allocated_bytes",
        "/long_lived/bytes",
        "/monotone/is_monotone",
        "/monotone/grown_bytes",
    ] {
        assert_eq!(device.pointer(unknown), Some(&Value::Null), "{unknown}");
    }
    for (path, lang) in cases.iter().zip(["en", "zh"]) {
        assert!(text(path, "all", &["--lang", lang]).starts_with("npusnap all"), "{}", path.display());
    }
}

#[test]
fn all_is_every_mode_once() {
    let path = fixture("npu_leak.pickle");
    let all = json(&path, "all", &[]);
    for (mode, keys) in MODES {
        let one = json(&path, mode, &[]);
        has(&one["result"], keys, mode);
        assert_eq!(all["result"][mode], one["result"], "{mode}");
    }
    // The same thing is not judged twice.
    let mut seen: Vec<String> = all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["rule"], it["subject"]))
        .collect();
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

fn csv(path: &Path, mode: &str, arguments: &[&str]) -> Vec<String> {
    text(path, mode, &[&["--format", "csv"], arguments].concat()).lines().map(str::to_owned).collect()
}

#[test]
fn csv_and_arrow_are_the_modes_main_relation() {
    let path = fixture("cuda_oom_expandable.pickle");
    let other = fixture("npu_oom.pickle");
    let reference = ["--ref", other.to_str().unwrap()];
    for (mode, arguments, first, rows) in [
        ("overview", &[][..], "device_id,device_index,device_type,", 2),
        ("fragment", &[], "segment_id,device_id,device_index,address,", 4),
        ("oom", &[], "device_id,device_index,trace_index,time_us,requested,", 2),
        ("compare", &reference, "device_index,stack_id,base_stack_id,live_bytes,", 0),
        ("all", &[], "rule,severity,subject,message,evidence", 0),
    ] {
        let lines = csv(&path, mode, arguments);
        assert!(lines[0].starts_with(first), "{mode}: {}", lines[0]);
        if rows > 0 {
            assert_eq!(lines.len(), rows + 1, "{mode}");
        }
        let arrow = run(&path, mode, &[&["--format", "arrow"], arguments].concat());
        assert!(arrow.status.success(), "{mode}");
        let reader = StreamReader::try_new(arrow.stdout.as_slice(), None).unwrap();
        let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names.join(","), lines[0], "{mode}");
        let found: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found + 1, lines.len(), "{mode}");
    }
}

#[test]
fn an_empty_result_has_its_header() {
    assert_eq!(csv(&fixture("cuda_empty.pickle"), "fragment", &[]).len(), 1);
    assert_eq!(csv(&fixture("npu_leak.pickle"), "oom", &[]).len(), 1);
}

#[test]
fn the_name_of_the_output_file_says_how_it_is_written() {
    let place = tempfile::tempdir().unwrap();
    let path = fixture("npu_leak.pickle");
    for (name, start) in
        [("r.csv", "segment_id,"), ("r.json", "{\n  \"npusnap\": 1"), ("r.txt", "npusnap fragment")]
    {
        let output = place.path().join(name);
        assert!(run(&path, "fragment", &["-o", output.to_str().unwrap()]).status.success());
        assert!(std::fs::read_to_string(&output).unwrap().starts_with(start), "{name}");
    }
}

#[test]
fn a_device_is_picked_in_every_mode() {
    let path = fixture("npu_two_devices.pickle");
    let all = json(&path, "all", &["--device", "1"]);
    for mode in ["overview", "fragment"] {
        let devices = all["result"][mode]["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 1, "{mode}");
        assert_eq!(devices[0]["device_index"], 1, "{mode}");
    }
    let segments = all["result"]["fragment"]["segments"].as_array().unwrap();
    assert!(segments.iter().all(|segment| segment["device_index"] == 1));
    for mode in ["overview", "fragment", "oom", "all"] {
        let output = run(&path, mode, &["--device", "9"]);
        assert_eq!(output.status.code(), Some(2), "{mode}");
    }
}

#[test]
fn pinned_host_memory_is_device_minus_one_and_stands_apart() {
    let host = segment(-1, 1 << 40, "large", &[(4 * MIB, "active_allocated"), (4 * MIB, "inactive")]);
    let device = segment(0, 1 << 30, "large", &[(20 * MIB, "active_allocated")]);
    let both =
        snapshot(vec![device], vec![]).with("host_segments", list([host])).with("host_traces", list([]));
    let (_place, path) = written("host.pickle", &both);
    let all = json(&path, "fragment", &[]);
    assert_eq!(all["result"]["devices"].as_array().unwrap().len(), 1);
    assert_eq!(all["result"]["host"][0]["reserved"], 8 << 20);
    assert_eq!(all["result"]["host_segments"].as_array().unwrap().len(), 1);
    // With a space between, as anybody would write it.
    let only = json(&path, "fragment", &["--device", "-1"]);
    assert_eq!(only["result"]["devices"].as_array().unwrap().len(), 0);
    assert_eq!(only["result"]["host"][0]["hole_bytes"], 4 << 20);
}

#[test]
fn parameters_reach_the_relations_that_have_them() {
    let path = fixture("cuda_oom_expandable.pickle");
    let preceding = |count: &str| {
        let json = json(&path, "oom", &["--param", &format!("count={count}")]);
        json["result"]["events"][0]["preceding"].as_array().unwrap().len()
    };
    assert_eq!(preceding("7"), 7);
    assert_eq!(preceding("60"), 60);
    for (argument, message) in [
        ("cuont=7", "no parameter called `cuont`\n\nhint: did you mean `count`?"),
        ("count=many", "parameter `count` is BIGINT, found 'many'"),
    ] {
        let output = run(&path, "oom", &["--param", argument]);
        assert_eq!(output.status.code(), Some(2), "{argument}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn every_threshold_is_printed_and_carried_by_every_mode() {
    let output =
        std::process::Command::new(crate::support::analyze::NPUSNAP).arg("thresholds").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let path = fixture("npu_leak.pickle");
    let json = json(&path, "fragment", &["--threshold", "expansion.warning=0.9"]);
    for (name, value) in json["thresholds"].as_object().unwrap() {
        assert!(printed.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
        if name == "expansion.warning" {
            assert_eq!(value, 0.9);
        }
    }
    assert!(rules(&json).iter().all(|(rule, _)| rule != "fragment/expansions"));
}

/// What a threshold is tried on.
#[derive(Clone, Copy)]
enum On {
    /// A bundled snapshot.
    Fixture(&'static str),
    /// 60 MiB of 100 held, compared with 50.
    Grown,
    /// No event: 4 MiB wait for a free, 4 are allocated, 12 are free.
    Pending,
    /// Everything allocated belongs to no call stack.
    NoStack,
    /// Nine holes of 1.5 MiB, and requests of 8 MiB.
    Holes,
    /// A full pool, and a failed request of a size that nobody wrote down.
    Failed,
}

impl On {
    fn written(self) -> (tempfile::TempDir, std::path::PathBuf) {
        let one = |blocks: &[(i128, &str)]| segment(0, 1 << 30, "large", blocks);
        let graph = match self {
            Self::Fixture(name) => return (tempfile::tempdir().unwrap(), fixture(name)),
            Self::Grown => {
                snapshot(vec![one(&[(60 * MIB, "active_allocated"), (40 * MIB, "inactive")])], vec![])
            }
            Self::Pending => {
                let pending = (4 * MIB, "active_pending_free");
                snapshot(vec![one(&[pending, (4 * MIB, "active_allocated"), (12 * MIB, "inactive")])], vec![])
            }
            Self::NoStack => {
                let events =
                    vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, 20 * MIB)];
                snapshot(vec![one(&[(20 * MIB, "active_allocated")])], vec![events])
            }
            Self::Holes => {
                let pair = [(2 * MIB, "active_allocated"), (3 * MIB / 2, "inactive")];
                let asked =
                    ["alloc", "free_requested", "free_completed"].map(|it| event(it, 1 << 40, 8 * MIB));
                let events = vec![asked; 5].concat();
                snapshot(vec![one(&vec![pair; 9].concat())], vec![events])
            }
            Self::Failed => {
                let failed = oom(MIB, 0).without("size").without("device_free");
                let events = vec![
                    event("segment_alloc", 1 << 30, 20 * MIB),
                    event("alloc", 1 << 30, 20 * MIB),
                    failed,
                ];
                snapshot(vec![one(&[(20 * MIB, "active_allocated")])], vec![events])
            }
        };
        written("tried.pickle", &graph)
    }
}

/// What is judged, without the words: rules, severities, verdicts and causes.
fn judged(json: &Value) -> Value {
    let mut said: Vec<Value> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["rule"], it["severity"], it["subject"]]))
        .collect();
    for device in json["result"]["devices"].as_array().into_iter().flatten() {
        said.push(device["verdict"].clone());
        said.push(device["suspects"].clone());
        said.push(device["long_lived"].clone());
    }
    for event in json["result"]["events"].as_array().into_iter().flatten() {
        said.push(event["cause"].clone());
        said.push(event["grew_last"].clone());
    }
    Value::Array(said)
}

/// Each by its name, with a value that turns a judgement. A new threshold fails this until it has a row here.
#[test]
fn every_threshold_changes_a_judgement() {
    use On::{Failed, Fixture, Grown, Holes, NoStack, Pending};
    let leak = Fixture("npu_leak.pickle");
    let full = Fixture("cuda_oom_expandable.pickle");
    let table: &[(&str, f64, &str, On)] = &[
        ("fragment.warning", 0.001, "fragment", full),
        ("fragment.critical", 0.001, "fragment", full),
        ("segments.warning", 1.0, "overview", leak),
        ("segments.critical", 1.0, "overview", leak),
        ("segments.low_use", 1.0, "page", leak),
        ("pending.warning", 0.1, "fragment", Pending),
        ("peak.no_stack", 1.5, "peak", NoStack),
        ("leak.intervals", 99.0, "leak", leak),
        ("leak.grew", 0.95, "leak", leak),
        ("leak.shrank", -0.5, "leak", leak),
        ("leak.late", 0.9, "leak", leak),
        ("leak.likely", 0.95, "leak", leak),
        ("leak.steps", 1000.0, "leak", leak),
        ("leak.retained", 0.0, "leak", leak),
        ("leak.early", 0.9, "leak", leak),
        ("unfit.warning", 1.5, "fragment", Holes),
        ("waste.warning", 0.0, "fragment", leak),
        ("expansion.warning", 0.9, "fragment", leak),
        ("oom.full", 1.5, "oom", Failed),
        ("oom.recent", 5.0, "oom", Fixture("npu_oom.pickle")),
        ("compare.warning", 0.5, "compare", Grown),
        ("compare.critical", 0.5, "compare", Grown),
    ];
    let blocks = [(50 * MIB, "active_allocated"), (50 * MIB, "inactive")];
    let (_before, before) =
        written("before.pickle", &snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![]));
    let mut tried = Vec::new();
    for (name, value, mode, on) in table {
        let (place, path) = on.written();
        let assignment = format!("{name}={value}");
        let mut rest = if *mode == "compare" { vec!["--ref", before.to_str().unwrap()] } else { vec![] };
        // Without the other one, 0.5 is below the level that is critical already.
        if *name == "compare.warning" {
            rest.extend(["--threshold", "compare.critical=0.5"]);
        }
        let with = [&rest[..], &["--threshold", &assignment]].concat();
        tried.push((*name).to_owned());
        if *mode == "page" {
            let low = |arguments: &[&str]| {
                let page = place.path().join("page.html");
                let arguments = [arguments, &["-o", page.to_str().unwrap()]].concat();
                assert!(run(&path, "fragment", &arguments).status.success());
                std::fs::read_to_string(page).unwrap().matches("\"low\":true").count()
            };
            assert!(low(&with) > low(&rest), "{name}");
            continue;
        }
        let (usual, other) = (json(&path, mode, &rest), json(&path, mode, &with));
        assert_eq!(other["thresholds"][name], *value, "{name}");
        assert_ne!(judged(&usual), judged(&other), "{name}: nothing is judged in another way");
    }
    let known = json(&fixture("cuda_empty.pickle"), "overview", &[])["thresholds"].clone();
    let mut known: Vec<String> = known.as_object().unwrap().keys().cloned().collect();
    known.sort();
    tried.sort();
    assert_eq!(tried, known, "a row for each");
}

/// The parameter is of the relation itself, and whoever names it means it.
#[test]
fn a_parameter_wins_over_the_threshold_that_stands_for_it() {
    let path = fixture("npu_oom.pickle");
    let grew = |arguments: &[&str]| json(&path, "oom", arguments)["result"]["events"][0]["grew_last"].clone();
    let few = grew(&["--param", "recent=5"]);
    assert_eq!(grew(&["--threshold", "oom.recent=5"]), few);
    assert_eq!(grew(&["--param", "recent=5", "--threshold", "oom.recent=9999"]), few);
    assert_ne!(grew(&[]), few);
}

#[test]
fn what_is_a_method_and_no_threshold_is_pointed_at() {
    let output =
        std::process::Command::new(crate::support::analyze::NPUSNAP).arg("thresholds").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("`npusnap macros step_boundaries`"), "{printed}");
    assert!(printed.contains("there are never fewer than 4"), "{printed}");
}

#[test]
fn a_finding_that_reaches_fail_on_ends_any_mode_with_1() {
    let path = fixture("cuda_oom_expandable.pickle");
    for (mode, format, code) in [
        ("oom", "text", 1),
        ("oom", "csv", 1),
        ("all", "json", 1),
        ("all", "arrow", 1),
        ("fragment", "json", 0),
    ] {
        let output = run(&path, mode, &["--fail-on", "critical", "--format", format]);
        assert_eq!(output.status.code(), Some(code), "{mode} {format}");
    }
}

/// One event is not `1 events`.
#[test]
fn counts_of_one_are_in_the_singular() {
    let event = crate::support::pool::event("snapshot", 0, 0);
    let (_place, path) = written("one.pickle", &snapshot(Vec::<Py>::new(), vec![vec![event]]));
    let page = text(&path, "overview", &[]);
    assert!(page.contains("\n1 trace entry, 0 call stacks\n"), "{page}");
}
