//! `npusnap analyze --mode leak`: what leaks is found and comes first, what only lives long is no leak.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::oracle::{python, shared};
use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, run, text};
use crate::support::pickler::{dict, int, list, text as py};
use crate::support::pool::{MIB, event, segment, snapshot, written};

/// A run of the built-in simulator, and its truth.
fn synth(arguments: &[&str]) -> (TempDir, PathBuf, Value) {
    let place = tempdir().unwrap();
    let (path, truth) = (place.path().join("s.pickle"), place.path().join("truth.json"));
    let made = Command::new(NPUSNAP)
        .args(["--quiet", "synth", "-o"])
        .arg(&path)
        .arg("--truth")
        .arg(&truth)
        .args(arguments)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let truth = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
    (place, path, truth)
}

fn device(path: &Path) -> Value {
    json(path, "leak", &[])["result"]["devices"][0].clone()
}

fn has_rule(json: &Value, rule: &str) -> bool {
    rules(json).iter().any(|(found, _)| found == rule)
}

#[test]
fn b30_a_small_leak_beside_large_optimizer_state_comes_first() {
    let (_place, path, truth) = synth(&[
        "--steps",
        "24",
        "--layers",
        "4",
        "--depth",
        "3",
        "--n-stacks",
        "80",
        "--leak",
        "--seed",
        "5",
    ]);
    let device = device(&path);
    assert_eq!(device["verdict"], "likely");
    let first = &device["suspects"][0];
    let leaked = &truth["stacks"][truth["leak"]["stack"].to_string()];
    assert_eq!(first["frames"][0]["name"], leaked[0]["name"]);
    let expected = &truth["leak"]["per_device"][0];
    assert_eq!(first["live_count"], expected["live_blocks"]);
    assert_eq!(first["live_bytes"], expected["live_requested"]);
    assert!(device["live_bytes"].as_i64().unwrap() > 15 * first["live_bytes"].as_i64().unwrap());
    // Two blocks of 192 KiB and a little a step.
    let rate = first["growth_bytes_per_step"].as_f64().unwrap();
    assert!((350_000.0..450_000.0).contains(&rate), "{rate}");
    // What is alive since early on is something else: that rule alone would name the optimizer.
    let long_lived = device["long_lived"]["stacks"].as_array().unwrap();
    assert_eq!(long_lived.len(), 3);
    assert!(long_lived.iter().all(|stack| stack["stack_id"] != first["stack_id"]));
    for key in ["stack_id", "first_index", "last_index", "score", "evidence", "frames"] {
        assert!(first.get(key).is_some(), "no `{key}`");
    }
    assert_eq!(first["evidence"][0]["rule"], "growth_across_steps");
}

#[test]
fn weights_and_optimizer_state_are_no_leak() {
    for seed in ["1", "2"] {
        let (_place, path, _) =
            synth(&["--steps", "24", "--layers", "4", "--depth", "3", "--n-stacks", "80", "--seed", seed]);
        let json = json(&path, "leak", &[]);
        let device = &json["result"]["devices"][0];
        assert_eq!(device["verdict"], "none", "{device}");
        assert_eq!(device["suspects"], json!([]));
        assert!(has_rule(&json, "leak/none"));
    }
}

#[test]
fn steps_of_the_simulator_are_found_and_called_inferred() {
    for (arguments, steps) in [(["--layers", "2", "--seed", "3"], 18), (["--layers", "6", "--seed", "4"], 18)]
    {
        let (_place, path, _) =
            synth(&[&["--steps", "18", "--depth", "3", "--n-stacks", "60"], &arguments[..]].concat());
        let history = &device(&path)["history"];
        assert_eq!(history["origin"], "inferred", "{arguments:?}");
        let found = history["step_count"].as_i64().unwrap();
        assert!((steps - 1..=steps + 1).contains(&found), "{arguments:?}: {found} steps");
    }
}

#[test]
fn annotated_steps_of_the_optimizer_are_taken_as_they_are() {
    let (_place, path, _) = synth(&[
        "--steps",
        "14",
        "--layers",
        "2",
        "--depth",
        "2",
        "--n-stacks",
        "40",
        "--dialect",
        "cuda",
        "--leak",
    ]);
    let device = device(&path);
    assert_eq!(device["history"]["origin"], "annotation");
    assert_eq!(device["history"]["step_count"], 14);
    assert_eq!(device["verdict"], "likely");
}

/// `tests/oracle/history_truth.py BINARY TOOLS leak` does 200 runs.
#[test]
fn the_leaked_stack_of_generated_snapshots_comes_first_and_nothing_else_does() {
    let Some(shared) = shared("gen_snapshot.py") else { return };
    let tools = shared.join("tools");
    python("history_truth.py", &[NPUSNAP, tools.to_str().unwrap(), "leak", "--runs", "4"]);
}

#[test]
fn a_ring_buffer_of_a_few_steps_is_too_short_and_that_is_said() {
    let (_place, path, _) = synth(&[
        "--steps",
        "30",
        "--layers",
        "4",
        "--depth",
        "3",
        "--n-stacks",
        "80",
        "--leak",
        "--max-entries",
        "1200",
    ]);
    let json = json(&path, "leak", &[]);
    let device = &json["result"]["devices"][0];
    assert!(device["history"]["step_count"].as_i64().unwrap() <= 10, "{}", device["history"]);
    assert_ne!(device["verdict"], "likely");
    assert!(has_rule(&json, "leak/short_history"), "{:?}", rules(&json));
}

#[test]
fn b29_where_all_is_freed_nothing_leaks() {
    let json = json(&fixture("npu_all_freed.pickle"), "leak", &[]);
    let device = &json["result"]["devices"][0];
    assert_eq!((&device["verdict"], &device["suspects"]), (&json!("none"), &json!([])));
    assert_eq!(rules(&json), [("leak/all_freed".to_owned(), "ok".to_owned())]);
}

#[test]
fn b31_pending_frees_are_neither_alive_nor_leaked() {
    let blocks = [(4 * MIB, "active_pending_free"), (16 * MIB, "inactive")];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![vec![]]));
    let json = json(&path, "leak", &[]);
    assert_eq!(json["result"]["devices"][0]["live_bytes"], 0);
    assert!(has_rule(&json, "leak/all_freed"));
}

#[test]
fn b23_without_events_growth_cannot_be_told() {
    let state = snapshot(vec![segment(0, 1 << 30, "large", &[(2 * MIB, "active_allocated")])], vec![vec![]]);
    let (_place, path) = written("s.pickle", &state);
    let json = json(&path, "leak", &[]);
    assert_eq!(rules(&json), [("leak/no_history".to_owned(), "info".to_owned())]);
    let device = &json["result"]["devices"][0];
    assert_eq!((&device["verdict"], &device["live_bytes"]), (&json!("none"), &json!(2 << 20)));
}

#[test]
fn too_few_events_to_compare_are_neither_a_leak_nor_none() {
    let blocks = [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")];
    let events = vec![event("segment_alloc", 1 << 30, 20 * MIB), event("alloc", 1 << 30, 2 * MIB)];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]));
    let json = json(&path, "leak", &[]);
    let said = json["findings"].as_array().unwrap();
    let short: Vec<&Value> = said.iter().filter(|it| it["rule"] == "leak/short_history").collect();
    let message = short[0]["message"].as_str().unwrap();
    assert!(message.starts_with("2 events are too few to compare anything"), "{message}");
    assert!(!message.contains("stretches"), "{message}");
    assert_eq!(short[0]["evidence"]["interval_count"], 0);
    assert!(!has_rule(&json, "leak/none"), "{:?}", rules(&json));
    let zh = text(&path, "leak", &["--lang", "zh"]);
    assert!(zh.contains("不足以进行任何比较") && !zh.contains("等长的时间段"), "{zh}");
}

/// Of each function in turn: a segment of so many MiB, which one block of it fills. An empty name is no known stack.
fn reserved_by(asked: &[(&str, i128)]) -> (TempDir, PathBuf) {
    let frames =
        |name: &str| list([dict([("name", py(name)), ("filename", py("/app/model.py")), ("line", int(7))])]);
    let at = |number: i128| (1 << 30) + number * 512 * MIB;
    let mut events = Vec::new();
    let mut segments = Vec::new();
    for (number, (name, size)) in (0..).zip(asked.iter().copied()) {
        let stack = if name.is_empty() { list([]) } else { frames(name) };
        for action in ["segment_alloc", "alloc"] {
            events.push(event(action, at(number), size * MIB).with("frames", stack.clone()));
        }
        let one = segment(0, at(number), "large", &[(size * MIB, "active_allocated")]);
        segments.push(one);
    }
    written("s.pickle", &snapshot(segments, vec![events]))
}

/// Algorithm C: the growth of reserved memory and the blocks alive since early on, by call stack.
#[test]
fn growth_of_reserved_memory_is_attributed_to_the_stacks_that_asked_for_it() {
    // Four segments: two for `cache`, of 40 MiB each, one for `weights` and one for nobody that is known.
    let (_place, path) = reserved_by(&[("weights", 20), ("cache", 40), ("cache", 40), ("", 30)]);
    let found = json(&path, "leak", &[]);
    let monotone = &found["result"]["devices"][0]["monotone"];
    assert_eq!(monotone["is_monotone"], true);
    let named: Vec<(&Value, i64, &Value)> = monotone["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (&row["frames"][0]["name"], row["grown_bytes"].as_i64().unwrap() >> 20, &row["grow_count"])
        })
        .collect();
    let (two, one) = (json!(2), json!(1));
    assert_eq!(named, [(&json!("cache"), 80, &two), (&Value::Null, 30, &one), (&json!("weights"), 20, &one)]);
    // Only the weights are from the first fifth of the events. Their 20 MiB, reserved and requested, are the same memory, not
    // 40 that would pass the 30.
    let both: Vec<(&Value, i64)> = found["result"]["devices"][0]["attribution"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["frames"][0]["name"], row["long_lived_bytes"].as_i64().unwrap() >> 20))
        .collect();
    assert_eq!(both, [(&json!("cache"), 0), (&Value::Null, 0), (&json!("weights"), 20)]);
    let said = found["findings"].as_array().unwrap();
    let only = said.iter().find(|it| it["rule"] == "leak/reserved_only_grew").unwrap();
    let message = only["message"].as_str().unwrap();
    assert!(message.contains("40.00 MiB of that was asked for by cache (model.py:7), stack "), "{message}");
    assert_eq!(only["evidence"]["stack_late_grown_bytes"], 40 << 20);
    let page = text(&path, "leak", &[]);
    assert!(page.contains("who made reserved memory grow"), "{page}");
}

#[test]
fn who_grew_late_is_named_also_where_three_others_grew_more_in_all() {
    // Each is two events: the first four are the first half of the window.
    let early = [("weights", 400), ("optim", 300), ("grads", 200), ("embed", 100)];
    let late = [("leaker", 20), ("leaker", 20), ("leaker", 20), ("buffers", 60)];
    let (_place, path) = reserved_by(&[early, late].concat());
    let found = json(&path, "leak", &[]);
    let monotone = &found["result"]["devices"][0]["monotone"];
    let names = |key: &str| -> Vec<&str> {
        monotone[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["frames"][0]["name"].as_str().unwrap())
            .collect()
    };
    assert_eq!(names("stacks"), ["weights", "optim", "grads"]);
    // Of equals the first that was seen.
    assert_eq!(names("late_stacks"), ["leaker", "buffers"]);
    let said = found["findings"].as_array().unwrap();
    let only = said.iter().find(|it| it["rule"] == "leak/reserved_only_grew").unwrap();
    let message = only["message"].as_str().unwrap();
    assert!(message.contains("by 120.00 MiB in the second half"), "{message}");
    assert!(message.contains("60.00 MiB of that was asked for by leaker (model.py:7), stack "), "{message}");
    assert_eq!(only["evidence"]["stack_late_grown_bytes"], 60 << 20);
    assert_eq!(only["evidence"]["stack_id"], monotone["late_stacks"][0]["stack_id"]);
    for (lang, title, heading) in [
        ("en", "who made reserved memory grow", "alive since early on (requested)"),
        ("zh", "预留内存由谁增长", "早期分配且存活（请求）"),
    ] {
        let page = text(&path, "leak", &["--lang", lang]);
        let (_, table) = page.split_once(title).unwrap();
        let table = table.split_once("\n\n").map_or(table, |(table, _)| table);
        assert!(table.contains(heading), "{table}");
        let (first, second) = (table.find("leaker").unwrap(), table.find("buffers").unwrap());
        assert!(first < second && !table.contains("weights"), "{table}");
    }
}

/// What the recordings of real programs are judged as. Two of them end in an out-of-memory error in the middle of a pass,
/// whose results are alive layer by layer: more than a suspicion would be wrong.
#[test]
fn recordings_are_judged_with_care() {
    let Some(shared) = shared("recordings") else { return };
    for (name, verdicts) in [
        ("cuda_2.0_block_history", &["none"][..]),
        ("cuda_2.1_segment_list", &["none"]),
        ("cuda_2.2_oom", &["suspected"]),
        ("cuda_2.5_five_events", &["none"]),
        ("cuda_2.6_annotations", &["none"]),
        ("cuda_2.6_empty", &[]),
        ("cuda_2.6_private_pools_no_trace", &["none"]),
        ("cuda_2.8_oom_expandable_3gpu", &["none", "none", "suspected"]),
        ("npu_train_all_freed", &["none"]),
        ("npu_two_devices_expandable", &["none", "none"]),
    ] {
        let json = json(&shared.join("snapshots").join(format!("{name}.pickle")), "leak", &[]);
        let devices = json["result"]["devices"].as_array().unwrap();
        let found: Vec<&str> = devices.iter().map(|device| device["verdict"].as_str().unwrap()).collect();
        assert_eq!(found, verdicts, "{name}");
        let retained = has_rule(&json, "leak/retained");
        assert_eq!(retained, verdicts.contains(&"suspected"), "{name}");
    }
}

#[test]
fn a_likely_leak_fails_a_gate() {
    let path = fixture("npu_leak.pickle");
    assert_eq!(run(&path, "leak", &["--fail-on", "critical"]).status.code(), Some(1));
    let strict = ["--fail-on", "critical", "--threshold", "leak.steps=1000"];
    assert_eq!(run(&path, "leak", &strict).status.code(), Some(0));
}

/// Pages as people see them. `UPDATE_GOLDEN=1` writes them anew; read that difference like code.
#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for name in ["npu_leak", "npu_ring_wrapped", "npu_all_freed"] {
        for lang in ["en", "zh"] {
            let page = text(&fixture(&format!("{name}.pickle")), "leak", &["--lang", lang]);
            golden(&format!("leak_{name}.{lang}.txt"), &page);
        }
    }
}
