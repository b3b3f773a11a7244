//! `npusnap analyze --mode overview` as users run it: right on every fixture, stable for programs, readable in both
//! languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::pickler::Py;
use crate::support::{analyze, pool};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn analyze(fixture: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["--quiet", "analyze", "--no-cache"])
        .arg(fixtures().join(fixture))
        .args(arguments)
        .output()
        .unwrap()
}

fn json(fixture: &str, arguments: &[&str]) -> Value {
    let output = analyze(fixture, &[&["--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_figure_is_what_the_simulated_allocator_counted() {
    let mut compared = 0;
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".truth.json") else { continue };
        let truth: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let ours = json(&format!("{stem}.pickle"), &[]);
        for device in truth["devices"].as_array().unwrap() {
            let index = &device["device"];
            let found =
                ours["result"]["devices"].as_array().unwrap().iter().find(|d| d["device_index"] == *index);
            let last = &device["final"];
            if last["segments"] == 0 && device["events_in_window"] == 0 {
                assert!(found.is_none(), "{stem}: device {index} holds nothing and did nothing");
                continue;
            }
            let found = found.unwrap_or_else(|| panic!("{stem}: no device {index}"));
            for counter in ["reserved", "allocated", "active"] {
                assert_eq!(found[counter], last[counter], "{stem}, device {index}: {counter}");
            }
            if stem != "legacy_history" {
                for counter in ["allocated_requested", "active_requested"] {
                    assert_eq!(found[counter], last[counter], "{stem}, device {index}: {counter}");
                }
            }
            assert_eq!(found["segment_count"], last["segments"], "{stem}, device {index}");
            assert_eq!(found["blocks"], last["blocks"], "{stem}, device {index}");
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} devices were compared");
}

#[test]
fn json_has_the_keys_that_programs_rely_on() {
    let json = json("npu_two_devices.pickle", &[]);
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let promised =
        ["npusnap", "version", "snapshot", "mode", "thresholds", "import_stats", "findings", "result"];
    assert_eq!(keys, promised);
    assert_eq!(json["npusnap"], 1);
    assert_eq!(json["mode"], "overview");
    let device = json["result"]["devices"][0].as_object().unwrap();
    for key in [
        "device_index",
        "reserved",
        "allocated",
        "active",
        "requested",
        "allocated_requested",
        "active_requested",
        "fragmentation_ratio",
        "segment_count",
        "block_count",
        "blocks",
        "trace_count",
        "workspace_bytes",
    ] {
        assert!(device.contains_key(key), "no `{key}`");
    }
    for finding in json["findings"].as_array().unwrap() {
        for key in ["rule", "severity", "subject", "message", "evidence"] {
            assert!(finding.get(key).is_some(), "no `{key}` in {finding}");
        }
    }
}

#[test]
fn an_empty_snapshot_is_no_failure() {
    let json = json("cuda_empty.pickle", &[]);
    assert_eq!(json["result"]["devices"].as_array().unwrap().len(), 0);
    assert_eq!(json["findings"][0]["rule"], "overview/no_devices");
}

#[test]
fn an_empty_pool_is_not_fragmented() {
    let json = json("npu_all_freed.pickle", &[]);
    let rules: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    assert!(rules.contains(&"overview/empty_pool"), "{rules:?}");
    assert!(!rules.contains(&"fragment/unallocated"), "{rules:?}");
    assert_eq!(analyze("npu_all_freed.pickle", &["--fail-on", "warning"]).status.code(), Some(0));
}

#[test]
fn a_finding_that_reaches_fail_on_is_exit_code_1() {
    assert_eq!(analyze("cuda_oom_expandable.pickle", &["--fail-on", "critical"]).status.code(), Some(1));
    assert_eq!(analyze("cuda_oom_expandable.pickle", &[]).status.code(), Some(0));
}

#[test]
fn a_device_can_be_picked() {
    let json = json("npu_two_devices.pickle", &["--device", "1"]);
    let devices = json["result"]["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["device_index"], 1);
}

#[test]
fn a_wrong_threshold_is_told_with_the_nearest_name() {
    let output = analyze("npu_leak.pickle", &["--threshold", "fragment.warnin=1"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("did you mean `fragment.warning`?"), "{message}");
}

/// Pages as people see them. `UPDATE_GOLDEN=1` writes them anew; read that difference like code.
#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for fixture in ["npu_leak", "npu_two_devices", "cuda_oom_expandable", "npu_all_freed", "cuda_empty"] {
        for lang in ["en", "zh"] {
            let output = analyze(&format!("{fixture}.pickle"), &["--lang", lang]);
            let page = String::from_utf8(output.stdout).unwrap();
            let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("tests/snapshots/overview_{fixture}.{lang}.txt"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(golden.parent().unwrap()).unwrap();
                fs::write(&golden, &page).unwrap();
            }
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(page, expected, "{} differs", golden.display());
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_no_empty_device() {
    let output = analyze("npu_two_devices.pickle", &["--device", "99"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("no such device; it has: 0, 1"), "{message}");
}

#[test]
fn what_is_read_is_not_written_over() {
    let place = tempfile::tempdir().unwrap();
    let snapshot = place.path().join("s.pickle");
    fs::copy(fixtures().join("npu_all_freed.pickle"), &snapshot).unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&snapshot, &link).unwrap();
    let before = fs::read(&snapshot).unwrap();
    for output in [&snapshot, &link] {
        let run = Command::new(env!("CARGO_BIN_EXE_npusnap"))
            .args(["analyze", "--no-cache"])
            .args([&snapshot, Path::new("-o"), output])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{}", String::from_utf8_lossy(&run.stderr));
        assert_eq!(fs::read(&snapshot).unwrap(), before);
    }
}

#[test]
fn a_device_file_is_written_to_and_not_replaced() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no mkfifo on this machine");
        return;
    }
    let reader = Command::new("cat").arg(&pipe).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let run = analyze("npu_all_freed.pickle", &["-o", pipe.to_str().unwrap()]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let read = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
    assert!(read.starts_with("npusnap overview"), "{read}");
    assert!(!fs::metadata(&pipe).unwrap().is_file());
}

#[test]
fn a_file_that_was_read_in_part_is_not_called_healthy_before_that_is_said() {
    let place = tempfile::tempdir().unwrap();
    let cut = place.path().join("cut.pickle");
    let whole = fs::read(analyze::fixture("npu_leak.pickle")).unwrap();
    fs::write(&cut, &whole[..60_000]).unwrap();
    let done = Command::new(analyze::NPUSNAP)
        .args(["--quiet", "ingest", "--salvage", "--no-sqlite", "-o"])
        .arg(place.path())
        .arg(&cut)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let found = analyze::json(&place.path().join("cut.npusnap"), "overview", &[]);
    assert_eq!(analyze::rules(&found)[0], ("overview/salvaged".to_owned(), "warning".to_owned()), "{found}");
}

#[test]
fn many_segments_are_blamed_on_what_is_off_only_where_it_is() {
    let of_kind = |is_expandable: bool| {
        let segments = (1..=100).map(|place| {
            let blocks = [(20 * pool::MIB, "active_allocated")];
            pool::segment(0, place << 28, "large", &blocks).with("is_expandable", Py::Bool(is_expandable))
        });
        let (_place, path) = pool::written("s.pickle", &pool::snapshot(segments.collect(), vec![]));
        let json = analyze::json(&path, "overview", &[]);
        let findings = json["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["rule"] == "overview/segments").cloned().unwrap()
    };
    let fixed = of_kind(false);
    assert_eq!(
        fixed["message"],
        "100 segments, none of them expandable: expandable segments would need fewer"
    );
    assert_eq!(fixed["evidence"]["expandable_count"], 0);
    let expandable = of_kind(true);
    assert_eq!(expandable["evidence"]["expandable_count"], 100);
    let message = expandable["message"].as_str().unwrap();
    assert!(message.starts_with("100 segments, though 100 of them are expandable"), "{message}");
}
