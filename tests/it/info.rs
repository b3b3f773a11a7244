//! `npusnap info` as users run it: what is there, what is not, and what to do about it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

fn info(source: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["info", "--no-cache"])
        .arg(source)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(source: &Path) -> Value {
    serde_json::from_str(&info(source, &["--format", "json"])).unwrap()
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A snapshot in JSON with these lists of events.
fn made(device_traces: &str, more: &str) -> Value {
    let dir = tempdir().unwrap();
    let path = dir.path().join("made.json");
    let segment = r#"{"device": 0, "address": 4096, "total_size": 4096, "stream": 0, "segment_type": "small",
        "blocks": [
            {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated",
             "frames": [{"name": "f", "filename": "a.py", "line": 1}]},
            {"address": 5120, "size": 3072, "requested_size": 3000, "state": "active_allocated", "frames": []}]}"#;
    fs::write(&path, format!("{{\"segments\": [{segment}], \"device_traces\": {device_traces}{more}}}"))
        .unwrap();
    json(&path)
}

#[test]
fn b14_what_an_npu_snapshot_lacks_is_named_with_its_cost() {
    let found = json(&fixture("npu_two_devices.pickle"));
    assert_eq!(found["npusnap"], 1);
    assert_eq!(found["snapshot"]["dialect"], "npu");
    assert_eq!(found["snapshot"]["container"], "pickle");
    let fields = found["info"]["fields"].as_array().unwrap();
    let time = fields.iter().find(|field| field["part"] == "events" && field["field"] == "time_us").unwrap();
    assert_eq!(time["present_count"], 0);
    assert_eq!(time["cost"], "no time_us: the axis is the event number, and devices cannot be aligned");
    assert_eq!(found["info"]["tables"]["devices"], 2);
    assert_eq!(found["info"]["tables"]["traces"], 255);
}

#[test]
fn text_is_there_in_both_languages_and_has_the_words_of_the_producer() {
    let english = info(&fixture("npu_ring_wrapped.pickle"), &[]);
    assert!(english.contains("torch_npu.npu.memory._record_memory_history"), "{english}");
    assert!(english.contains("addresses are freed before they are allocated"), "{english}");
    let chinese = info(&fixture("cuda_empty.pickle"), &["--lang", "zh"]);
    assert!(chinese.contains("采集建议") && chinese.contains("torch.cuda.memory"), "{chinese}");
    assert!(chinese.contains("容器 pickle；格式 cuda，dict 形式，协议 4"), "{chinese}");
    for text in [english, chinese] {
        assert!(!text.contains("\n\n\n"), "one blank line is enough: {text}");
    }
}

#[test]
fn losses_are_told_in_both_languages() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("made.json");
    let event = r#"{"action": "alloc", "addr": 4096, "size": 281474976710656, "stream": 0}"#;
    let unknown = r#"{"action": "novelty", "addr": 4096, "size": 1, "stream": 0}"#;
    fs::write(&path, format!("{{\"segments\": [], \"device_traces\": [[{event}, {unknown}]]}}")).unwrap();
    let english = info(&path, &[]);
    for line in [
        "Read with losses\n",
        "  implausible_sizes (1): sizes of 2^48 bytes and more, which no device has: ",
        "  unknown_action:novelty (1): events with an action this version does not know; ",
    ] {
        assert!(english.contains(line), "{english}");
    }
    let chinese = info(&path, &["--lang", "zh"]);
    for line in [
        "读取时有缺失\n",
        "  implausible_sizes (1): 2^48 字节及以上的大小，任何设备都没有这么大",
        "  unknown_action:novelty (1): 当前版本不认识的事件类型",
    ] {
        assert!(chinese.contains(line), "{chinese}");
    }
}

#[test]
fn b04_a_history_is_absent_one_entry_whole_or_overflowed() {
    let event = |addr: i64, action: &str| {
        format!("{{\"action\": \"{action}\", \"addr\": {addr}, \"size\": 8, \"stream\": 0}}")
    };
    let (first, second) = (event(4096, "alloc"), event(5120, "alloc"));
    let two = format!("[[{first}, {second}]]");
    let limit = ", \"allocator_settings\": {\"trace_alloc_max_entries\": 9}";
    let full = ", \"trace_alloc_max_entries\": [2], \"trace_alloc_overflowed\": [true]";
    for (traces, more, history) in [
        ("[[]]", "", "never_enabled"),
        (format!("[[{first}]]").as_str(), "", "one_entry"),
        (two.as_str(), "", "unknown"),
        (two.as_str(), limit, "not_overflowed"),
        (two.as_str(), full, "overflowed"),
        (format!("[[{}, {second}]]", event(4096, "free_completed")).as_str(), "", "overflowed_or_late"),
    ] {
        let found = made(traces, more);
        let device = &found["info"]["devices"][0];
        assert_eq!(device["history"], history, "{traces} {more}");
        assert_eq!(device["active_bytes"], 4096);
        assert_eq!(device["active_stack_ratio"], 0.25, "1024 of 4096 bytes have a stack");
    }
}

#[test]
fn what_a_filter_left_out_does_not_look_like_a_history_that_is_absent() {
    let dir = tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["ingest", "--events", "..0", "--no-sqlite", "-o"])
        .arg(dir.path())
        .arg(fixture("npu_leak.pickle"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let found = json(&dir.path().join("npu_leak.npusnap"));
    assert_eq!(found["info"]["devices"][0]["event_count"], 0);
    assert_eq!(found["info"]["devices"][0]["events_left_out"], 2096);
    assert_eq!(found["info"]["devices"][0]["history"], "unknown");
}

#[test]
fn what_the_recorder_lacks_is_told_with_effect_and_way_around() {
    for (name, lacks, has) in [
        ("npu_oom", "time_us", "workspace_snapshot"),
        ("cuda_oom_expandable", "workspace_snapshot", "time_us"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_npusnap"))
            .args(["info", "--format", "json", "--no-cache"])
            .arg(fixture(&format!("{name}.pickle")))
            .output()
            .unwrap();
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let gap = info["info"]["dialect_gap"].as_array().unwrap();
        let find = |name: &str| gap.iter().find(|difference| difference["name"] == name);
        let found = find(lacks).unwrap();
        assert!(["kind", "effect", "way_around"].iter().all(|key| !found[key].as_str().unwrap().is_empty()));
        assert!(find(has).is_none(), "{name}");
    }
}
