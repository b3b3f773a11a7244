//! `npusnap analyze --mode peak`: the simulator's truth, and what other tools get wrong. A test named after a row of the
//! peers' bug log has its number.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::oracle::{python, shared};
use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, text};
use crate::support::pickler::{Py, int, list, tuple};
use crate::support::pool::{MIB, event, oom, segment, snapshot, written};

const COUNTERS: [&str; 5] = ["reserved", "allocated", "active", "allocated_requested", "active_requested"];
const FIXTURES: [&str; 11] = [
    "cuda_cpp_writer",
    "cuda_native_frames",
    "cuda_oom_expandable",
    "cuda_traces_first",
    "npu_all_freed",
    "npu_cpp_writer",
    "npu_expandable",
    "npu_leak",
    "npu_oom",
    "npu_ring_wrapped",
    "npu_two_devices",
];

fn bytes(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Frames without the keys that a file may have beside these three.
fn stack(frames: &Value) -> Vec<(String, String, i64)> {
    let text = |frame: &Value, key: &str| frame[key].as_str().unwrap().to_owned();
    let frames = frames.as_array().unwrap().iter();
    frames.map(|frame| (text(frame, "name"), text(frame, "filename"), bytes(&frame["line"]))).collect()
}

#[test]
fn base_and_peaks_are_what_the_simulated_allocator_counted() {
    for name in FIXTURES {
        let truth: Value =
            serde_json::from_slice(&std::fs::read(fixture(&format!("{name}.truth.json"))).unwrap()).unwrap();
        let ours = json(&fixture(&format!("{name}.pickle")), "peak", &[]);
        for device in truth["devices"].as_array().unwrap() {
            let index = &device["device"];
            let found = ours["result"]["devices"].as_array().unwrap();
            let Some(found) = found.iter().find(|found| found["device_index"] == *index) else {
                assert_eq!(device["events_in_window"], 0, "{name}: no device {index}");
                continue;
            };
            for counter in COUNTERS {
                let what = format!("{name}, device {index}: {counter}");
                let peak = &found["peaks"][counter];
                assert_eq!(peak["exact"], true, "{what}");
                assert_eq!(found["base"][counter], device["start_state"][counter], "{what}");
                let expected = &device["peak_window"][counter];
                assert_eq!(peak["bytes"], expected["bytes"], "{what}");
                assert_eq!(peak["trace_index"], expected["trace_index"], "{what}");
                assert_eq!(peak["final"], device["final"][counter], "{what}");
            }
            contributors(found, device, &truth["stacks"], name);
        }
    }
}

/// What lived at the peak adds up to it, and is the simulator's where a stack could be recorded.
fn contributors(found: &Value, device: &Value, stacks: &Value, name: &str) {
    let rows = found["contributors"].as_array().unwrap();
    let sum: i64 = rows.iter().map(|row| bytes(&row["bytes"])).sum();
    assert_eq!(sum, bytes(&found["peaks"]["allocated"]["bytes"]), "{name}");
    let ours: HashMap<_, _> =
        rows.iter().filter(|row| row["part"] == "stack").map(|row| (stack(&row["frames"]), row)).collect();
    for expected in device["contributors_at_allocated_peak"].as_array().unwrap() {
        // A block from before the window that is freed in it has left no stack.
        if expected["bytes"] != expected["bytes_allocated_in_window"] {
            continue;
        }
        let frames = stack(&stacks[expected["stack"].to_string()]);
        let Some(row) = ours.get(&frames) else {
            assert!(frames.is_empty(), "{name}: stack {} is missing", expected["stack"]);
            continue;
        };
        for (key, truth) in [("bytes", "bytes"), ("requested", "requested"), ("count", "blocks")] {
            assert_eq!(row[key], expected[truth], "{name}: {key} of stack {}", expected["stack"]);
        }
    }
}

/// `tests/oracle/history_truth.py BINARY TOOLS peak` does 200 runs.
#[test]
fn generated_snapshots_have_the_peaks_of_their_truth() {
    let Some(shared) = shared("gen_snapshot.py") else { return };
    let tools = shared.join("tools");
    python("history_truth.py", &[NPUSNAP, tools.to_str().unwrap(), "peak", "--runs", "4"]);
}

fn of(segments: Vec<Py>, traces: Vec<Vec<Py>>) -> Value {
    let (_place, path) = written("s.pickle", &snapshot(segments, traces));
    json(&path, "peak", &[])
}

#[test]
fn b01_no_point_of_the_timeline_exceeds_what_is_reserved() {
    for name in FIXTURES {
        let json = json(&fixture(&format!("{name}.pickle")), "peak", &[]);
        for device in json["result"]["devices"].as_array().unwrap() {
            for point in device["timeline"].as_array().unwrap() {
                let [reserved, allocated, active, allocated_requested, active_requested] =
                    COUNTERS.map(|counter| bytes(&point[counter]));
                assert!(reserved >= active && active >= allocated && allocated >= 0, "{name}: {point}");
                assert!(allocated >= allocated_requested && active >= active_requested, "{name}: {point}");
            }
        }
    }
}

#[test]
fn b02_b03_memory_from_before_the_recording_is_the_base_and_its_free_is_no_allocation() {
    let free = |addr| [event("free_requested", addr, 2 * MIB), event("free_completed", addr, 2 * MIB)];
    let events: Vec<Py> =
        free(1 << 30).into_iter().chain([event("alloc", (1 << 30) + 8 * MIB, MIB)]).collect();
    let blocks = [(8 * MIB, "inactive"), (MIB, "active_allocated"), (11 * MIB, "inactive")];
    let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
    let device = &json["result"]["devices"][0];
    assert_eq!(device["base"]["allocated_requested"], 2 << 20);
    let peak = &device["peaks"]["allocated_requested"];
    assert_eq!((&peak["bytes"], &peak["trace_index"]), (&json!(2 << 20), &json!(-1)));
    assert_eq!(peak["time_us"], Value::Null);
    let points = device["timeline"].as_array().unwrap();
    let curve: Vec<(i64, i64)> = points
        .iter()
        .map(|point| (bytes(&point["trace_index"]), bytes(&point["active_requested"])))
        .collect();
    assert_eq!(curve, [(-1, 2 << 20), (0, 2 << 20), (1, 0), (2, 1 << 20)]);
    assert!(rules(&json).contains(&("peak/window".to_owned(), "info".to_owned())), "{json}");
}

#[test]
fn b09_blocks_without_a_stack_are_a_line_of_their_own() {
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let events = vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, 2 * MIB)];
    let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
    let rows = json["result"]["devices"][0]["contributors"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["bytes"], 2 << 20);
    assert!(rows[0]["frames"].as_array().unwrap().is_empty());
    assert!(rules(&json).iter().any(|(rule, _)| rule == "peak/no_stack") || rows[0]["part"] == "stack");
}

#[test]
fn b11_an_oom_is_a_mark_that_changes_no_counter() {
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let events = vec![
        event("segment_alloc", 1 << 30, 20 * MIB),
        event("alloc", 1 << 30, 2 * MIB),
        oom(512 * MIB, 100),
        event("surprise", 1, 1),
    ];
    let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
    let device = &json["result"]["devices"][0];
    let marks: Vec<(&Value, &Value, &Value)> = device["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| (&mark["trace_index"], &mark["action"], &mark["allocated_requested"]))
        .collect();
    let size = json!(2 << 20);
    assert_eq!(marks, [(&json!(2), &json!("oom"), &size), (&json!(3), &json!("surprise"), &size)]);
    assert_eq!(device["peaks"]["reserved"]["bytes"], 20 << 20);
}

#[test]
fn b12_an_oom_without_address_and_without_free_memory_stops_no_mode() {
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let failed = oom(512 * MIB, 100).without("device_free");
    let events = vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, 2 * MIB), failed];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]));
    let other = fixture("npu_oom.pickle");
    let reference = ["--ref", other.to_str().unwrap()];
    for (mode, arguments) in [
        ("overview", &[][..]),
        ("peak", &[]),
        ("fragment", &[]),
        ("leak", &[]),
        ("oom", &[]),
        ("compare", &reference),
        ("all", &reference),
    ] {
        assert_eq!(json(&path, mode, arguments)["mode"], mode);
        assert!(!text(&path, mode, arguments).is_empty(), "{mode}");
    }
    let json = json(&path, "all", &[]);
    let events = json["result"]["oom"]["events"].as_array().unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["device_free"], Value::Null, "not known, and not 0");
    assert_eq!((&events[0]["requested"], &events[0]["trace_index"]), (&json!(512 << 20), &json!(2)));
    let marks = json["result"]["peak"]["devices"][0]["marks"].as_array().unwrap();
    assert_eq!((marks.len(), &marks[0]["action"]), (1, &json!("oom")));
    assert_eq!(json["result"]["peak"]["devices"][0]["peaks"]["reserved"]["bytes"], 20 << 20);
}

/// The finding of a rule.
fn finding<'a>(json: &'a Value, rule: &str) -> Option<&'a Value> {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == rule)
}

#[test]
fn sizes_by_rule_are_said_to_be_estimates() {
    // What was asked for from before the window is known from the free alone, its block only by the rule.
    let events = vec![
        event("segment_alloc", 1 << 30, 2 * MIB),
        event("alloc", 1 << 30, 1000),
        event("snapshot", 0, 1_536),
        event("free_requested", 1 << 30, 1000),
        event("free_completed", 1 << 30, 1000),
    ];
    let json = of(vec![segment(0, 1 << 30, "small", &[(2 * MIB, "inactive")])], vec![events]);
    let device = &json["result"]["devices"][0];
    assert_eq!(device["peaks"]["allocated"]["exact"], false, "an earlier dump counted more");
    assert_eq!(device["peaks"]["allocated_requested"]["exact"], true);
    assert_eq!(finding(&json, "peak/estimated").unwrap()["severity"], "info");
    assert!(finding(&json, "peak/in_doubt").is_none());
}

#[test]
fn without_a_base_no_peak_is_told() {
    let source = fixture("npu_leak.pickle");
    let cut = |events: &str| {
        let place = tempfile::tempdir().unwrap();
        let made = std::process::Command::new(NPUSNAP)
            .args(["--quiet", "ingest", "--no-sqlite", "--force", "--events", events, "-o"])
            .arg(place.path())
            .arg(&source)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let cut = place.path().join("npu_leak.npusnap");
        (place, cut)
    };
    let (_place, half) = cut("0..500");
    let found = json(&half, "peak", &[]);
    assert_eq!(finding(&found, "peak/no_base").unwrap()["severity"], "warning");
    assert_eq!(found["result"]["devices"][0]["peaks"]["allocated"]["bytes"], Value::Null);
    assert!(finding(&found, "peak/allocated").is_none() && finding(&found, "peak/in_doubt").is_none());
    // Against another snapshot only the end can be held.
    let compared = json(&half, "compare", &["--ref", source.to_str().unwrap()]);
    let said = finding(&compared, "compare/not_anchored").unwrap()["message"].as_str().unwrap();
    assert!(said.contains("this snapshot (A)"), "{said}");
    assert!(finding(&compared, "compare/no_history").is_none());
    // Where no alloc is left, nothing is known of what lives, and that is not that nothing does.
    let (_place, first) = cut("6..7");
    let leak = json(&first, "leak", &[]);
    assert_eq!(finding(&leak, "leak/not_known").unwrap()["severity"], "info");
    assert_eq!(rules(&leak).len(), 1);
}

/// The seven events of `replay/order.rs`: the pieces of a ring buffer that was resized.
#[test]
fn a_curve_that_follows_a_list_out_of_order_is_in_doubt() {
    let events: [(i128, &str, i128, i128); 7] = [
        (1, "alloc", 0, 100),
        (2, "free_requested", 0, 100),
        (5, "free_completed", 0, 200),
        (6, "alloc", 512, 300),
        (2, "free_completed", 0, 100),
        (3, "alloc", 0, 200),
        (4, "free_requested", 0, 200),
    ];
    let timed = events.map(|(second, action, at, size)| {
        event(action, (1 << 30) + at, size).with("time_us", int(1_713_558_427_168_556 + second * 1_000_000))
    });
    let blocks = [(512, "inactive"), (512, "active_allocated"), (2 * MIB - 1024, "inactive")];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, 1 << 30, "small", &blocks)], vec![timed.to_vec()]));
    let json = json(&path, "peak", &[]);
    let said = finding(&json, "peak/in_doubt").unwrap();
    assert_eq!((&said["severity"], &said["subject"]), (&json!("warning"), &json!("device 0")));
    let message = said["message"].as_str().unwrap();
    assert!(message.contains("1 place where the list of events goes back in time"), "{message}");
    assert!(message.contains("allocated_requested"), "{message}");
    assert!(finding(&json, "peak/estimated").is_none(), "that would call the requested counters exact");
    assert!(text(&path, "peak", &["--lang", "zh"]).contains("事件列表有 1 处时间倒退"));
}

#[test]
fn b20_pinned_host_memory_stands_beside_the_devices() {
    let host = segment(-1, 1 << 40, "large", &[(4 * MIB, "active_allocated")]);
    let traces = list([event("segment_alloc", 1 << 40, 4 * MIB), event("alloc", 1 << 40, 4 * MIB)]);
    let pinned = snapshot(vec![], vec![]).with("host_segments", list([host])).with("host_traces", traces);
    let (_place, path) = written("s.pickle", &pinned);
    let json = json(&path, "peak", &[]);
    assert_eq!(json["result"]["devices"], json!([]));
    let host = &json["result"]["host"][0];
    assert_eq!(host["device_index"], -1);
    assert_eq!(host["peaks"]["allocated_requested"]["bytes"], 4 << 20);
}

#[test]
fn b22_every_device_has_its_own_peak() {
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let events = |size| vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, size)];
    let json = of(
        vec![
            segment(0, 1 << 30, "large", &blocks),
            segment(2, 1 << 30, "large", &[(4 * MIB, "active_allocated"), (16 * MIB, "inactive")]),
        ],
        vec![events(2 * MIB), vec![], events(4 * MIB)],
    );
    let devices = json["result"]["devices"].as_array().unwrap();
    let peaks: Vec<(&Value, &Value)> = devices
        .iter()
        .map(|device| (&device["device_index"], &device["peaks"]["allocated_requested"]["bytes"]))
        .collect();
    assert_eq!(peaks, [(&json!(0), &json!(2 << 20)), (&json!(2), &json!(4 << 20))]);
}

#[test]
fn b23_without_events_the_state_is_all_there_is_and_that_is_said() {
    let json = of(vec![segment(0, 1 << 30, "large", &[(2 * MIB, "active_allocated")])], vec![vec![]]);
    let device = &json["result"]["devices"][0];
    assert_eq!(device["timeline"], json!([]));
    // A state says nothing of what was before it: no peak is a number, not even its own.
    for counter in COUNTERS {
        let peak = &device["peaks"][counter];
        for key in ["bytes", "trace_index", "time_us", "exact"] {
            assert_eq!(peak[key], Value::Null, "{counter} {key}");
        }
    }
    assert_eq!(device["peaks"]["allocated"]["final"], 2 << 20);
    assert_eq!(device["contributors"], json!([]));
    assert_eq!(rules(&json), [("peak/no_history".to_owned(), "info".to_owned())]);
}

#[test]
fn what_the_events_and_the_state_disagree_by_is_a_line_and_a_warning() {
    // The block that the trace allocates last is not in the segments.
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let events = vec![
        event("segment_alloc", 1 << 30, 20 * MIB),
        event("alloc", 1 << 30, 2 * MIB),
        event("alloc", (1 << 30) + 4 * MIB, 3 * MIB),
    ];
    let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
    let device = &json["result"]["devices"][0];
    let rows = device["contributors"].as_array().unwrap();
    let unexplained: Vec<&Value> = rows.iter().filter(|row| row["part"] == "unexplained").collect();
    assert_eq!(unexplained[0]["requested"], -3 << 20, "{rows:?}");
    let sum: i64 = rows.iter().map(|row| bytes(&row["bytes"])).sum();
    assert_eq!(sum, bytes(&device["peaks"]["allocated"]["bytes"]));
    assert!(rules(&json).contains(&("peak/unexplained".to_owned(), "warning".to_owned())));
}

#[test]
fn where_one_of_the_free_events_is_never_recorded_the_other_ends_both_curves() {
    // Never more than 2 and 4 MiB at once; 4 MiB come and go twice.
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    for free in ["free_completed", "free_requested"] {
        let at = (1 << 30) + 4 * MIB;
        let turn = [event("alloc", at, 4 * MIB), event(free, at, 4 * MIB)];
        let mut events = vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, 2 * MIB)];
        events.extend(turn.iter().chain(&turn).cloned());
        let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
        let device = &json["result"]["devices"][0];
        let last = device["timeline"].as_array().unwrap().last().unwrap();
        for counter in ["allocated_requested", "active_requested"] {
            let peak = &device["peaks"][counter];
            assert_eq!(
                (&peak["bytes"], &peak["trace_index"]),
                (&json!(6 << 20), &json!(2)),
                "{free} {counter}"
            );
            assert_eq!(
                (&last[counter], &peak["final"]),
                (&json!(2 << 20), &json!(2 << 20)),
                "{free} {counter}"
            );
        }
        for counter in ["allocated", "active"] {
            assert_eq!(last[counter], device["peaks"][counter]["final"], "{free} {counter}");
        }
    }
}

#[test]
fn a_free_that_the_trace_lost_changes_no_curve() {
    // Two blocks of 2 MiB live. The first is there for the second time: in it were 1667200 bytes, whose free was lost.
    let blocks = [(2 * MIB, "active_allocated"), (2 * MIB, "active_allocated"), (16 * MIB, "inactive")];
    let events = vec![
        event("segment_alloc", 1 << 30, 20 * MIB),
        event("alloc", (1 << 30) + 2 * MIB, 2 * MIB),
        event("alloc", 1 << 30, 1_667_200),
        event("alloc", 1 << 30, 2 * MIB),
    ];
    let json = of(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]);
    let device = &json["result"]["devices"][0];
    let last = device["timeline"].as_array().unwrap().last().unwrap();
    for counter in COUNTERS.into_iter().filter(|counter| *counter != "reserved") {
        let found = (&last[counter], &device["peaks"][counter]["final"]);
        assert_eq!(found, (&json!(4 << 20), &json!(4 << 20)), "{counter}");
    }
}

#[test]
fn a_dump_of_one_pool_has_the_curves_of_that_pool() {
    // 2 MiB of the pool live, 4 MiB of it were freed; 16 MiB of the default pool are not its own.
    let of_pool = |number: i128, event: Py| event.with("pool_id", tuple([int(0), int(number)]));
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let dumped = segment(0, 1 << 30, "large", &blocks).with("segment_pool_id", tuple([int(0), int(3)]));
    let at = (1 << 30) + 4 * MIB;
    let events = vec![
        of_pool(3, event("segment_alloc", 1 << 30, 20 * MIB)),
        of_pool(0, event("segment_alloc", 1 << 40, 32 * MIB)),
        of_pool(0, event("alloc", 1 << 40, 16 * MIB)),
        of_pool(3, event("alloc", 1 << 30, 2 * MIB)),
        of_pool(3, event("alloc", at, 4 * MIB)),
        of_pool(3, event("free_requested", at, 4 * MIB)),
        of_pool(3, event("free_completed", at, 4 * MIB)),
    ];
    let json = of(vec![dumped], vec![events]);
    let device = &json["result"]["devices"][0];
    let last = device["timeline"].as_array().unwrap().last().unwrap();
    for (counter, bytes, index, end) in
        [("reserved", 20, 0, 20), ("allocated_requested", 6, 4, 2), ("active_requested", 6, 4, 2)]
    {
        let peak = &device["peaks"][counter];
        assert_eq!((&peak["bytes"], &peak["trace_index"]), (&json!(bytes << 20), &json!(index)), "{counter}");
        assert_eq!((&last[counter], &peak["final"]), (&json!(end << 20), &json!(end << 20)), "{counter}");
    }
}

#[test]
fn a_long_timeline_is_thinned_and_keeps_peaks_and_marks() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("long.pickle");
    let made = std::process::Command::new(NPUSNAP)
        .args([
            "--quiet",
            "synth",
            "--events",
            "60000",
            "--layers",
            "4",
            "--n-stacks",
            "60",
            "--seed",
            "7",
            "-o",
        ])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let json = json(&path, "peak", &[]);
    let device = &json["result"]["devices"][0];
    let points = device["timeline"].as_array().unwrap();
    assert!((500..2100).contains(&points.len()), "{} points", points.len());
    let indexes: Vec<i64> = points.iter().map(|point| bytes(&point["trace_index"])).collect();
    assert!(indexes.is_sorted_by(|a, b| a < b));
    for counter in COUNTERS {
        let peak = &device["peaks"][counter];
        let at = points.iter().find(|point| point["trace_index"] == peak["trace_index"]);
        assert_eq!(at.map(|point| &point[counter]), Some(&peak["bytes"]), "{counter}");
        assert!(points.iter().all(|point| bytes(&point[counter]) <= bytes(&peak["bytes"])), "{counter}");
    }
    for mark in device["marks"].as_array().unwrap() {
        assert!(points.iter().any(|point| point["trace_index"] == mark["trace_index"]), "{mark}");
    }
}

/// Pages as people see them. `UPDATE_GOLDEN=1` writes them anew; read that difference like code.
#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for name in ["npu_leak", "npu_ring_wrapped", "cuda_empty"] {
        for lang in ["en", "zh"] {
            let page = text(&fixture(&format!("{name}.pickle")), "peak", &["--lang", lang]);
            golden(&format!("peak_{name}.{lang}.txt"), &page);
        }
    }
}

#[test]
fn more_in_blocks_than_in_segments_is_in_doubt() {
    // Events of the segment that the two allocations lie in are missing.
    let far = (1 << 40) + 512 * MIB;
    let traces = vec![
        event("alloc", far, 300 * MIB),
        event("alloc", far + 300 * MIB, 10 * MIB),
        event("oom", 1 << 20, i128::from(i64::MAX)),
        event("free_requested", far, 300 * MIB),
        event("free_completed", far, 300 * MIB),
        event("free_requested", far + 300 * MIB, 10 * MIB),
        event("free_completed", far + 300 * MIB, 10 * MIB),
    ];
    let found = of(vec![segment(0, 1 << 30, "large", &[(20 * MIB, "inactive")])], vec![traces]);
    let doubt =
        found["findings"].as_array().unwrap().iter().find(|it| it["rule"] == "peak/in_doubt").unwrap();
    let message = doubt["message"].as_str().unwrap();
    assert!(message.contains("310.00 MiB was active where 20.00 MiB was reserved at most"), "{message}");
    // A mark of whatever size is no change.
    assert_eq!(found["result"]["devices"][0]["peaks"]["allocated"]["bytes"], 310 << 20);
}
