//! `npusnap analyze --mode fragment`: the sums are right, and what they mean is told apart.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::oracle::{python, shared};
use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, text};
use crate::support::pickler::{Py, dict, int, list, text as word, tuple};
use crate::support::pool::{MIB, event, segment, snapshot, written};

/// Snapshots of a folder, as arguments.
pub(crate) fn pickles(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pickles = entries.filter(|path| path.extension().is_some_and(|extension| extension == "pickle"));
    let mut names: Vec<String> = pickles.map(|path| path.to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn fixtures_have_the_fragmentation_and_failures_that_python_works_out() {
    let paths = pickles(&fixture(""));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    python("measures.py", &[&[NPUSNAP], paths.as_slice()].concat());
}

#[test]
fn recordings_have_the_fragmentation_and_failures_that_python_works_out() {
    let Some(shared) = shared("recordings") else { return };
    let paths = pickles(&shared.join("snapshots"));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    python("measures.py", &[&[NPUSNAP], paths.as_slice()].concat());
}

/// `tests/oracle/measures.py BINARY --tools DIR --runs 200` is the long version.
#[test]
fn generated_snapshots_have_the_fragmentation_and_failures_of_their_truth() {
    let Some(shared) = shared("gen_snapshot.py") else { return };
    let tools = shared.join("tools");
    python("measures.py", &[NPUSNAP, "--tools", tools.to_str().unwrap(), "--runs", "5"]);
}

fn of_segments(segments: Vec<Py>) -> Value {
    let (_place, path) = written("s.pickle", &snapshot(segments, vec![]));
    json(&path, "fragment", &[])
}

fn finding<'a>(json: &'a Value, rule: &str) -> Option<&'a Value> {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == rule)
}

#[test]
fn pending_frees_over_half_of_the_gap_say_that_asynchronous_release_is_the_cause() {
    let with_pending = |pending: i128| {
        let states =
            [(10, "active_allocated"), (pending, "active_pending_free"), (20 - 10 - pending, "inactive")];
        let blocks: Vec<(i128, &str)> = states.iter().map(|(size, state)| (size * MIB, *state)).collect();
        of_segments(vec![segment(0, 4096, "large", &blocks)])
    };
    let over = with_pending(6);
    assert_eq!(over["result"]["devices"][0]["pending_free_share"], json!(0.6));
    let message = finding(&over, "fragment/pending_free").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("asynchronous release is the cause"), "{message}");
    // Half is not over half.
    assert!(finding(&with_pending(5), "fragment/pending_free").is_none());
}

#[test]
fn whole_free_segments_and_private_pools_are_no_fragmentation() {
    let private = segment(0, 1 << 30, "large", &[(10 * MIB, "active_allocated"), (10 * MIB, "inactive")])
        .with("segment_pool_id", tuple([int(0), int(1)]));
    let json = of_segments(vec![
        segment(0, 4096, "large", &[(20 * MIB, "active_allocated")]),
        segment(0, 1 << 28, "large", &[(20 * MIB, "inactive")]),
        private,
    ]);
    assert!(finding(&json, "fragment/unallocated").is_none());
    let device = &json["result"]["devices"][0];
    assert_eq!(device["hole_bytes"], 0);
    assert_eq!(device["unused_segment_bytes"], 20 << 20);
    assert_eq!(device["private_free_bytes"], 10 << 20);
    assert_eq!(device["pools"].as_array().unwrap().len(), 2);
    for rule in ["fragment/cache", "fragment/private_pools", "fragment/ok"] {
        assert!(finding(&json, rule).is_some(), "{rule}");
    }
}

#[test]
fn free_blocks_are_judged_by_what_is_asked_for() {
    // Nine holes of 1.5 MiB between blocks of 2 MiB; the program asks for 8 MiB at a time.
    let blocks: Vec<(i128, &str)> = (0..18)
        .map(|place| if place % 2 == 0 { (2 * MIB, "active_allocated") } else { (3 * MIB / 2, "inactive") })
        .collect();
    let events = (0..5).flat_map(|_| {
        [
            event("alloc", 1 << 40, 8 * MIB),
            event("free_requested", 1 << 40, 8 * MIB),
            event("free_completed", 1 << 40, 8 * MIB),
        ]
    });
    let snapshot = snapshot(vec![segment(0, 4096, "large", &blocks)], vec![events.collect()]);
    let (_place, path) = written("s.pickle", &snapshot);
    let json = json(&path, "fragment", &[]);
    let requests = &json["result"]["devices"][0]["requests"][0];
    assert_eq!(requests["median_request"], 8 << 20);
    assert_eq!(requests["fits_median_bytes"], 0);
    assert_eq!(requests["largest_free_block"], 3 << 19);
    let unfit = finding(&json, "fragment/unfit").unwrap();
    assert_eq!(unfit["evidence"]["unfit_bytes"], 27 << 19);
    assert!(finding(&json, "fragment/unallocated").is_some());
}

/// The rows of a query.
fn rows(path: &Path, query: &str) -> Vec<Value> {
    let output = Command::new(NPUSNAP)
        .args(["--quiet", "sql", "--no-cache", "--format", "ndjson"])
        .arg(path)
        .arg(query)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn requests_are_rounded_as_the_settings_say_and_the_replay_has_it() {
    let divisions = [("1", 4), ("2", 0), ("4", 8), ("8", 2), ("16", 1), ("64", 4), ("512", 2)];
    let divisions = dict(divisions.map(|(key, steps)| (key, int(steps))));
    let sizes: [i128; 18] = [
        1,
        512,
        513,
        1000,
        2048,
        2049,
        2561,
        5000,
        MIB - 1,
        MIB,
        MIB + 1,
        3 * MIB + 1,
        5 * MIB - 7,
        8 * MIB + 1,
        24 * MIB + 1,
        100 * MIB + 7,
        600 * MIB,
        40000 * MIB,
    ];
    // Each on a stream of its own, which has a segment that is free again at the end.
    let (mut segments, mut events) = (Vec::new(), Vec::new());
    for (stream, size) in (1_i128..).zip(sizes) {
        let (at, kind) = (stream << 40, if size <= MIB { "small" } else { "large" });
        let own = segment(0, at, kind, &[(1 << 36, "inactive")]).with("stream", int(stream));
        segments.push(own.with("is_expandable", Py::Bool(true)));
        let actions = ["alloc", "free_requested", "free_completed"];
        events.extend(actions.map(|action| event(action, at, size).with("stream", int(stream))));
    }
    let snapshot = snapshot(segments, vec![events])
        .with("allocator_settings", dict([("roundup_power2_divisions", divisions)]));
    let (_place, path) = written("s.pickle", &snapshot);
    let found = rows(
        &path,
        "SELECT a.size, a.block_size, f.largest_request
         FROM allocations AS a JOIN free_blocks AS f ON f.stream = a.stream",
    );
    assert_eq!(found.len(), sizes.len());
    for row in &found {
        assert_eq!(row["largest_request"], row["block_size"], "{row}");
    }
    assert!(found.iter().any(|row| row["largest_request"] == 768 << 20));
}

#[test]
fn blocks_of_a_captured_graph_that_wait_for_their_free_are_no_holes() {
    let own = |stream: i128, py: Py| py.with("stream", int(stream));
    let told = |stream: i128, py: Py| own(stream, py).with("pool_id", tuple([int(0), int(0)]));
    let states = [(6 * MIB, "inactive"), (2 * MIB, "inactive"), (12 * MIB, "active_allocated")];
    let segments = vec![
        own(7, segment(0, 1 << 30, "large", &states)),
        own(9, segment(0, 1 << 31, "large", &[(20 * MIB, "active_allocated")])),
    ];
    let events = vec![
        told(9, event("segment_alloc", 1 << 31, 20 * MIB)),
        told(9, event("alloc", 1 << 31, 20 * MIB)),
        told(7, event("alloc", 1 << 30, 6 * MIB)),
        told(7, event("free_requested", 1 << 30, 6 * MIB)),
    ];
    let (_place, path) = written("s.pickle", &snapshot(segments, vec![events]));
    let json = json(&path, "fragment", &[]);
    let device = &json["result"]["devices"][0];
    assert_eq!((&device["pending_free_bytes"], &device["hole_bytes"]), (&json!(6 << 20), &json!(2 << 20)));
    assert_eq!((&device["pending_free_count"], &device["pending_free_share"]), (&json!(1), &json!(0.75)));
    assert_eq!(json["result"]["segments"][0]["largest_free_block"], 2 << 20);
    assert!(finding(&json, "fragment/pending_free").is_some());
    // The file's own words stay in the overview.
    let overview = crate::support::analyze::json(&path, "overview", &[]);
    assert_eq!(overview["result"]["devices"][0]["blocks"]["inactive"]["bytes"], 8 << 20);
    // What streams have adds up to what the device has.
    let whole = rows(&path, "SELECT active FROM memory_timeline WHERE trace_index = 3");
    assert_eq!(whole, [json!({"active": 38 << 20})]);
    for part in ["memory_timeline_by_stream", "memory_timeline_by_pool"] {
        let last = format!("SELECT active FROM {part} WHERE trace_index = 3");
        let of_stream = if part.ends_with("pool") { 38 << 20 } else { 18 << 20 };
        assert_eq!(rows(&path, &last), [json!({"active": of_stream})], "{part}");
    }
}

#[test]
fn whole_free_segments_that_may_be_workspace_are_said_to_be_so() {
    let own = |address: i128, mib: i128, state| {
        segment(0, address, "large", &[(mib * MIB, state)]).with("stream", int(7))
    };
    let message = |segments: Vec<Py>, events: Vec<Py>| {
        let (_place, path) = written("s.pickle", &snapshot(segments, vec![events]));
        let json = json(&path, "fragment", &[]);
        let found = finding(&json, "fragment/cache").unwrap();
        let [en, zh] = ["en", "zh"].map(|lang| text(&path, "fragment", &["--lang", lang]));
        assert_eq!(json["result"]["devices"][0]["workspace_bytes"], 0);
        (found["message"].as_str().unwrap().to_owned(), found["evidence"].clone(), en + &zh)
    };
    let cached = [own(1 << 30, 20, "active_allocated"), own(1 << 32, 20, "inactive")];
    let with = |last| cached.iter().cloned().chain([last]).collect::<Vec<Py>>();
    // Out of order: nothing of the caching allocator is.
    let (en, evidence, page) = message(with(own(1 << 31, 4, "inactive")), vec![]);
    assert!(en.contains("4.00 MiB of it looks like workspace"), "{en}");
    assert!(page.contains("看来是 NPU 的 workspace"), "{page}");
    assert_eq!(
        (&evidence["workspace_guess_bytes"], &evidence["workspace_like_bytes"]),
        (&json!(4 << 20), &json!(24 << 20))
    );
    // In order: both may be.
    let (en, evidence, page) = message(with(own(1 << 33, 4, "inactive")), vec![]);
    assert!(en.contains("up to 24.00 MiB of it may be workspace"), "{en}");
    assert!(page.contains("可能是 NPU 的 workspace"), "{page}");
    assert_eq!(evidence["workspace_guess_bytes"], 0);
    // A history would say it.
    let events = vec![event("segment_alloc", 1 << 33, 4 * MIB).with("stream", int(7))];
    let (en, evidence, _) = message(with(own(1 << 33, 4, "inactive")), events);
    assert!(!en.contains("workspace") && evidence.get("workspace_like_bytes").is_none(), "{en}");
}

#[test]
fn rounding_that_takes_much_of_the_memory_is_told() {
    let of_request = |requested: i128| {
        let block = dict([
            ("address", int(4096)),
            ("size", int(20 * MIB)),
            ("requested_size", int(requested)),
            ("state", word("active_allocated")),
            ("frames", list([])),
        ]);
        of_segments(vec![
            segment(0, 4096, "large", &[(20 * MIB, "active_allocated")]).with("blocks", list([block])),
        ])
    };
    let json = of_request(15 * MIB);
    assert_eq!(json["result"]["devices"][0]["internal_waste_bytes"], 5 << 20);
    let waste = finding(&json, "fragment/internal_waste").unwrap();
    assert_eq!(waste["severity"], "warning");
    assert_eq!(waste["evidence"]["internal_waste_ratio"], 0.25);
    let message = waste["message"].as_str().unwrap();
    assert!(message.starts_with("rounding takes 5.00 MiB, 25.0 % of the memory in use"), "{message}");
    // A tenth is the least that is told.
    assert!(finding(&of_request(18 * MIB), "fragment/internal_waste").is_some());
    let little = of_request(18 * MIB + 1);
    assert!(finding(&little, "fragment/internal_waste").is_none());
    let fine = finding(&little, "fragment/ok").unwrap()["message"].as_str().unwrap();
    assert!(fine.starts_with("only 0.0 % of the reserved memory"), "{fine}");
}

#[test]
fn growth_beside_free_memory_in_small_pieces_is_told_with_what_helps() {
    let of_kind = |expandable: bool| {
        let states = [(8 * MIB, "inactive"), (2 * MIB, "active_allocated"), (10 * MIB, "inactive")];
        let segments = vec![
            segment(0, 4096, "large", &states),
            segment(0, 1 << 30, "large", &[(12 * MIB, "active_allocated")])
                .with("is_expandable", Py::Bool(expandable)),
        ];
        let growth = if expandable { "segment_map" } else { "segment_alloc" };
        let events = vec![event(growth, 1 << 30, 12 * MIB), event("alloc", 1 << 30, 12 * MIB)];
        let (_place, path) = written("s.pickle", &snapshot(segments, vec![events]));
        let json = json(&path, "fragment", &[]);
        let found = finding(&json, "fragment/expansions").unwrap();
        assert_eq!(found["evidence"]["fragmented_bytes"], 12 << 20);
        assert_eq!(found["evidence"]["most_free_before"], 18 << 20);
        found["message"].as_str().unwrap().to_owned()
    };
    let plain = of_kind(false);
    assert!(
        plain.starts_with("1 of 1 expansions (12.00 MiB) came while enough was free in smaller blocks"),
        "{plain}"
    );
    assert!(plain.ends_with("expandable segments avoid that"), "{plain}");
    let expandable = of_kind(true);
    assert!(expandable.ends_with("keep holes together"), "{expandable}");
}

#[test]
fn an_empty_snapshot_has_nothing_to_be_fragmented() {
    let json = json(&fixture("cuda_empty.pickle"), "fragment", &[]);
    assert_eq!(rules(&json), [("fragment/nothing_reserved".to_owned(), "info".to_owned())]);
    assert_eq!(json["result"]["devices"], json!([]));
}

#[test]
fn a_pool_that_is_all_free_is_cache() {
    let json = json(&fixture("npu_all_freed.pickle"), "fragment", &[]);
    let rules = rules(&json);
    assert!(rules.contains(&("fragment/cache".to_owned(), "info".to_owned())), "{rules:?}");
    // Event 16 asked for 2,316,800 bytes while 2,521,600 were free in two blocks: that was fragmentation, and is over.
    assert!(
        rules.iter().all(|(rule, _)| rule == "fragment/cache" || rule == "fragment/expansions"),
        "{rules:?}"
    );
}

#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for name in ["npu_leak", "cuda_oom_expandable"] {
        for lang in ["en", "zh"] {
            let page = text(&fixture(&format!("{name}.pickle")), "fragment", &["--lang", lang]);
            golden(&format!("fragment_{name}.{lang}.txt"), &page);
        }
    }
}

#[test]
fn what_is_free_after_a_failed_request_is_said_to_be_of_the_dump() {
    let few = ["--threshold", "fragment.warning=0.0001", "--threshold", "fragment.critical=0.9"];
    for (name, has_failed) in [("cuda_oom_expandable", true), ("npu_leak", false)] {
        let json = json(&fixture(&format!("{name}.pickle")), "fragment", &few);
        let message = finding(&json, "fragment/unallocated").unwrap()["message"].as_str().unwrap().to_owned();
        assert_eq!(message.contains("at the dump, after a request had failed"), has_failed, "{message}");
    }
}
