//! `npusnap analyze --mode compare`: what changed between two snapshots, whatever their addresses and line numbers.

use serde_json::{Value, json};

use crate::support::analyze::{fixture, golden, json, rules, run, text};
use crate::support::pickler::{Py, dict, int, list, text as py};
use crate::support::pool::{MIB, event, segment, snapshot, written};

fn compared(a: &Py, b: &Py) -> Value {
    let (_a, after) = written("after.pickle", a);
    let (_b, before) = written("before.pickle", b);
    json(&after, "compare", &["--ref", before.to_str().unwrap()])
}

/// The segment with a stack on its first block, innermost frame `name` of a file in `folder`.
fn with_stack(segment: &Py, folder: &str, name: &str, line: i128) -> Py {
    let frame =
        dict([("name", py(name)), ("filename", py(&format!("{folder}/nn/linear.py"))), ("line", int(line))]);
    let block = |size: i128, state: &str, frames: Py| {
        dict([("size", int(size)), ("requested_size", int(size)), ("state", py(state)), ("frames", frames)])
    };
    segment.with("blocks", list([block(20 * MIB, "active_allocated", list([frame]))]))
}

#[test]
fn a_snapshot_compared_with_itself_has_no_difference() {
    for name in ["npu_two_devices.pickle", "cuda_empty.pickle", "legacy_history.pickle"] {
        let path = fixture(name);
        let json = json(&path, "compare", &["--ref", path.to_str().unwrap()]);
        let result = &json["result"];
        // The legacy form has no events, so of its peak nothing is known.
        let no_history = ("compare/no_history".to_owned(), "info".to_owned());
        let said: Vec<_> = rules(&json).into_iter().filter(|rule| *rule != no_history).collect();
        assert_eq!(said, [("compare/no_growth".to_owned(), "ok".to_owned())], "{name}");
        assert_eq!(rules(&json).contains(&no_history), name == "legacy_history.pickle", "{name}");
        assert_eq!(result["settings_diff"], json!([]), "{name}");
        assert_eq!(result["segments"], json!({"new": [], "gone": [], "grown": [], "shrunk": []}), "{name}");
        for stack in result["stacks"].as_array().unwrap() {
            assert_eq!(stack["live_bytes"]["delta"], 0, "{name}");
        }
        for device in result["devices"].as_array().unwrap() {
            assert_eq!(device["allocated"]["delta"], 0, "{name}");
        }
    }
}

#[test]
fn b34_stacks_are_the_same_when_lines_and_folders_drift() {
    let plain = |address: i128| segment(0, address, "large", &[(20 * MIB, "active_allocated")]);
    let a = snapshot(
        vec![
            with_stack(&plain(1 << 30), "/new/place", "forward", 14),
            with_stack(&plain(1 << 31), "/new/place", "forward", 15),
        ],
        vec![],
    );
    let b = snapshot(
        vec![
            with_stack(&plain(1 << 33), "/old", "forward", 10),
            with_stack(&plain(1 << 34), "/old", "backward", 10),
        ],
        vec![],
    );
    let json = compared(&a, &b);
    let stacks = json["result"]["stacks"].as_array().unwrap();
    let rows: Vec<(&Value, &Value)> =
        stacks.iter().map(|row| (&row["frames"][0]["name"], &row["live_bytes"])).collect();
    assert_eq!(
        rows,
        [
            (&json!("backward"), &json!({"a": 0, "b": 20 << 20, "delta": -(20 << 20)})),
            (&json!("forward"), &json!({"a": 40 << 20, "b": 20 << 20, "delta": 20 << 20})),
        ]
    );
    // Both of `a` are in one row, whose id is that of the first.
    let counts: Vec<(&Value, &Value)> =
        stacks.iter().map(|row| (&row["stack_id"], &row["stack_count"])).collect();
    assert_eq!(counts, [(&Value::Null, &json!({"a": 0, "b": 1})), (&json!(1), &json!({"a": 2, "b": 1}))]);
    let (_a, after) = written("after.pickle", &a);
    let (_b, before) = written("before.pickle", &b);
    for (lang, said) in [("en", "1 and 1 more"), ("zh", "1 等 2 个")] {
        let page = text(&after, "compare", &["--ref", before.to_str().unwrap(), "--lang", lang]);
        assert!(page.contains(said), "{page}");
    }
    // Other addresses, the same segments.
    assert_eq!(json["result"]["segments"]["new"], json!([]));
    assert_eq!(json["result"]["segments"]["gone"], json!([]));
}

#[test]
fn growth_is_a_minus_b_and_judged_by_the_thresholds() {
    let held = |size: i128| {
        segment(0, 1 << 30, "large", &[(size * MIB, "active_allocated"), ((100 - size) * MIB, "inactive")])
    };
    let (a, b) = (snapshot(vec![held(60)], vec![]), snapshot(vec![held(50)], vec![]));
    let json = compared(&a, &b);
    assert_eq!(
        json["result"]["devices"][0]["allocated"],
        json!({"a": 60 << 20, "b": 50 << 20, "delta": 10 << 20})
    );
    // 10 of 50 is the 20 % that are critical.
    assert_eq!(rules(&json)[0], ("compare/allocated".to_owned(), "critical".to_owned()));
    // Two final states: of their peaks nothing is known, and that is said.
    let without_events = [("compare/no_history", "info"), ("compare/no_growth", "ok")];
    let without_events = without_events.map(|(rule, severity)| (rule.to_owned(), severity.to_owned()));
    assert_eq!(rules(&compared(&b, &a)), without_events);
    let (_a, after) = written("after.pickle", &a);
    let (_b, before) = written("before.pickle", &b);
    let arguments = ["--ref", before.to_str().unwrap(), "--fail-on", "critical"];
    assert_eq!(run(&after, "compare", &arguments).status.code(), Some(1));
    let lenient = [&arguments[..], &["--threshold", "compare.critical=0.3"]].concat();
    assert_eq!(run(&after, "compare", &lenient).status.code(), Some(0));
}

/// The first finding of a rule.
fn finding<'a>(json: &'a Value, rule: &str) -> Option<&'a Value> {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == rule)
}

/// A recording that holds `end` MiB at the end and held `peak` MiB for a moment.
fn recorded(end: i128, peak: i128) -> Py {
    let blocks = [(end * MIB, "active_allocated"), ((100 - end) * MIB, "inactive")];
    let more = (peak - end) * MIB;
    let at = (1 << 30) + end * MIB;
    let events = vec![
        event("segment_alloc", 1 << 30, 100 * MIB),
        event("alloc", 1 << 30, end * MIB),
        event("alloc", at, more),
        event("free_requested", at, more),
        event("free_completed", at, more),
    ];
    snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![events])
}

#[test]
fn a_peak_that_grew_is_told_with_its_event() {
    let json = compared(&recorded(50, 90), &recorded(50, 60));
    let peak = finding(&json, "compare/peak").unwrap();
    assert_eq!(peak["severity"], "critical");
    assert_eq!(
        peak["message"],
        "the peak of allocated memory grew by 30.00 MiB (50.0 %), from 60.00 MiB to 90.00 MiB"
    );
    let found = &json["result"]["devices"][0]["peaks"]["allocated"];
    assert_eq!((&found["delta"], &found["a_trace_index"]), (&json!(30 << 20), &json!(2)));
    assert!(finding(&json, "compare/allocated").is_none() && finding(&json, "compare/no_history").is_none());
}

/// The state is the end of something: what was before it, and how high that rose, nobody wrote down.
#[test]
fn a_final_state_has_no_peak_to_compare() {
    let held = |size: i128| {
        let blocks = [(size * MIB, "active_allocated"), ((100 - size) * MIB, "inactive")];
        snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![vec![]])
    };
    for (a, b, who, zh, peaks) in [
        (held(60), held(50), "either snapshot", "两份快照没有记录事件", json!([null, null])),
        (held(60), recorded(50, 55), "this snapshot (A)", "本快照（A）没有记录事件", json!([null, 55 << 20])),
        (
            recorded(50, 90),
            held(50),
            "the other snapshot (B)",
            "参照快照（B）没有记录事件",
            json!([90 << 20, null]),
        ),
    ] {
        let json = compared(&a, &b);
        assert!(finding(&json, "compare/peak").is_none(), "{who}: {:?}", rules(&json));
        let said = finding(&json, "compare/no_history").unwrap();
        assert_eq!((&said["severity"], &said["subject"]), (&json!("info"), &json!("device 0")));
        let message = said["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("no events were recorded in {who}: ")), "{message}");
        let peak = &json["result"]["devices"][0]["peaks"]["allocated"];
        assert_eq!(json!([peak["a"], peak["b"]]), peaks, "{who}");
        assert_eq!(peak["delta"], Value::Null);
        for stack in json["result"]["stacks"].as_array().unwrap() {
            assert_eq!(stack["peak_bytes"]["delta"], Value::Null, "{who}: {stack}");
            assert_eq!(stack["peak_bytes"]["a"].is_null(), peaks[0].is_null(), "{who}: {stack}");
        }
        let (_a, after) = written("after.pickle", &a);
        let (_b, before) = written("before.pickle", &b);
        let page = text(&after, "compare", &["--ref", before.to_str().unwrap(), "--lang", "zh"]);
        assert!(page.contains(zh) && page.contains("无法比较峰值"), "{page}");
    }
}

#[test]
fn many_changes_of_one_device_do_not_hide_another() {
    // Device 0 has 21 stacks of 30 MiB that the other snapshot lacks, device 1 one of 20 MiB.
    let of = |device: i128, count: i128, size: i128| {
        let names = (0..count).map(move |number| (number, format!("f{device}_{number}")));
        let blocks = names.map(move |(number, name)| {
            let frame = dict([("name", py(&name)), ("filename", py("/a/b.py")), ("line", int(1))]);
            dict([
                ("address", int((1 << 30) + number * size * MIB)),
                ("size", int(size * MIB)),
                ("requested_size", int(size * MIB)),
                ("state", py("active_allocated")),
                ("frames", list([frame])),
            ])
        });
        let whole = segment(device, 1 << 30, "large", &[(count * size * MIB, "active_allocated")]);
        whole.with("blocks", list(blocks.collect::<Vec<_>>()))
    };
    let a = snapshot(vec![of(0, 21, 30), of(1, 1, 20)], vec![]);
    let b = snapshot(vec![of(0, 0, 1), of(1, 0, 1)], vec![]);
    let (_a, after) = written("after.pickle", &a);
    let (_b, before) = written("before.pickle", &b);
    let reference = ["--ref", before.to_str().unwrap()];
    let json = json(&after, "compare", &reference);
    let stacks = json["result"]["stacks"].as_array().unwrap();
    let count = |device: i64| stacks.iter().filter(|row| row["device_index"] == device).count();
    assert_eq!((count(0), count(1)), (20, 1));
    // Each of device 0 is less than a twentieth of it, the one of device 1 is all it has.
    let grew = json["findings"].as_array().unwrap().iter();
    let grew: Vec<&Value> =
        grew.filter(|it| it["rule"] == "compare/stack").map(|it| &it["subject"]).collect();
    assert_eq!(grew, ["device 1"]);
    let page = text(&after, "compare", &reference);
    let table = page.split("Call stacks that changed most").nth(1).unwrap();
    assert!(table.contains("f1_0") && table.matches("f0_").count() == 10, "ten of each device: {page}");
}

#[test]
fn new_gone_and_grown_segments_are_listed() {
    let expandable = |size: i128, address: i128| {
        segment(0, address, "large", &[(size * MIB, "active_allocated")])
            .with("is_expandable", Py::Bool(true))
    };
    let plain = |size: i128, address: i128| segment(0, address, "large", &[(size * MIB, "active_allocated")]);
    let a = snapshot(vec![expandable(400, 1 << 30), plain(20, 1 << 35), plain(30, 1 << 36)], vec![]);
    let b = snapshot(vec![expandable(100, 1 << 40), plain(20, 1 << 41), plain(40, 1 << 42)], vec![]);
    let segments = compared(&a, &b)["result"]["segments"].clone();
    let sizes = |change: &str| -> Vec<(Value, Value)> {
        let rows = segments[change].as_array().unwrap();
        rows.iter().map(|row| (row["total_size"].clone(), row["base_total_size"].clone())).collect()
    };
    assert_eq!(sizes("new"), [(json!(30 << 20), Value::Null)]);
    assert_eq!(sizes("gone"), [(Value::Null, json!(40 << 20))]);
    assert_eq!(sizes("grown"), [(json!(400 << 20), json!(100 << 20))]);
    assert_eq!(sizes("shrunk"), []);
    assert_eq!(segments["grown"][0]["address"], "0x40000000");
}

#[test]
fn settings_are_compared_one_by_one() {
    let with = |conf: &str| {
        snapshot(vec![], vec![]).with(
            "allocator_settings",
            dict([("PYTORCH_CUDA_ALLOC_CONF", py(conf)), ("max_split_size", int(-1))]),
        )
    };
    let json = compared(&with("expandable_segments:True"), &with(""));
    assert_eq!(
        json["result"]["settings_diff"],
        json!([{
            "name": "PYTORCH_CUDA_ALLOC_CONF.expandable_segments", "a": "True", "b": null,
            "is_allocator_setting": true
        }])
    );
    assert!(rules(&json).contains(&("compare/settings".to_owned(), "info".to_owned())));
}

#[test]
fn a_device_that_only_one_snapshot_has_is_no_device_of_zeros() {
    let held = |device: i128| segment(device, 1 << 30, "large", &[(20 * MIB, "active_allocated")]);
    let json = compared(&snapshot(vec![held(0)], vec![]), &snapshot(vec![held(3)], vec![]));
    let devices = json["result"]["devices"].as_array().unwrap();
    assert_eq!(devices[0]["allocated"], json!({"a": 20 << 20, "b": null, "delta": null}));
    assert_eq!(devices[1]["allocated"], json!({"a": null, "b": 20 << 20, "delta": null}));
}

#[test]
fn without_another_snapshot_there_is_nothing_to_compare() {
    let output = run(&fixture("npu_leak.pickle"), "compare", &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("name the other snapshot with `--ref`"), "{message}");
    let other = fixture("npu_oom.pickle");
    let output = run(&fixture("npu_leak.pickle"), "overview", &["--ref", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    let other = fixture("npu_oom.pickle");
    for lang in ["en", "zh"] {
        let arguments = ["--ref", other.to_str().unwrap(), "--lang", lang];
        golden(
            &format!("compare_npu_leak_npu_oom.{lang}.txt"),
            &text(&fixture("npu_leak.pickle"), "compare", &arguments),
        );
    }
}
