//! What the command line asks of a report: parts, pictures, redaction, other formats beside it.

use std::fs;
use std::process::Command;

use npusnap::engine::{Engine, Options};
use npusnap::store::{Cache, Silent, Store};
use serde_json::Value;

use super::{data, fixture, report, report_of, run};

#[test]
fn a_page_has_only_the_parts_asked_for() {
    let page = report(&fixture("npu_leak.pickle"), &["--mode", "all", "--section", "overview,reading"]);
    for (part, is_there) in [
        ("health", true),
        ("overview", true),
        ("reading", true),
        ("peak", false),
        ("fragment", false),
        ("advice", false),
    ] {
        assert_eq!(page.contains(&format!("<section id=\"{part}\"")), is_there, "{part}");
    }
}

#[test]
fn a_part_that_is_not_there_is_told_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&fixture("npu_leak.pickle"), &folder.path().join("r.html"), &["--section", "overveiw"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("overview") && message.contains("reading"), "{message}");
    let output = run(&fixture("npu_leak.pickle"), &folder.path().join("r.txt"), &["--section", "overview"]);
    assert_eq!(output.status.code(), Some(2), "text has no parts");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn every_chart_is_an_svg_file_in_one_language() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("svg");
    let name = pictures.to_str().unwrap();
    let page =
        report(&fixture("cuda_oom_expandable.pickle"), &["--mode", "all", "--lang", "zh", "--svg", name]);
    let charts = data(&page)["charts"].as_array().unwrap().len();
    let mut written = 0;
    for entry in fs::read_dir(&pictures).unwrap() {
        let path = entry.unwrap().path();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{}", path.display());
        assert!(!svg.contains("<tspan"), "one language: {}", path.display());
        written += 1;
    }
    assert_eq!(written, charts);
    assert!(charts >= 5, "only {charts} charts");
}

#[test]
fn no_output_names_a_users_folder_when_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("s.json");
    let frames =
        serde_json::json!([{"name": "f", "filename": "/home/mallory/secret/train/run.py", "line": 3}]);
    let snapshot = serde_json::json!({
        "segments": [{
            "device": 0, "address": 0, "total_size": 2_097_152, "allocated_size": 2_097_152, "active_size": 2_097_152,
            "requested_size": 2_097_152, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0],
            "is_expandable": false, "frames": frames,
            "blocks": [{"size": 2_097_152, "requested_size": 2_097_152, "state": "active_allocated", "frames": frames}],
        }],
        "device_traces": [[
            {"action": "segment_alloc", "addr": 0, "size": 2_097_152, "stream": 0, "frames": frames},
            {"action": "alloc", "addr": 0, "size": 2_097_152, "stream": 0, "frames": frames},
        ]],
    });
    fs::write(&source, snapshot.to_string()).unwrap();
    for format in ["text", "json", "csv"] {
        let analyze = |redact: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
                .args(["--quiet", "analyze", "--no-cache", "--mode", "peak", "--format", format])
                .arg(&source)
                .args(redact)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let redacted = analyze(&["--redact"]);
        assert!(!redacted.contains("mallory"), "{format}: {redacted}");
        if format == "json" {
            assert!(analyze(&[]).contains("mallory"), "the folder is there to be left out");
            let frames =
                serde_json::from_str::<Value>(&redacted).unwrap()["result"]["devices"][0]["contributors"][0]
                    ["frames"][0]["filename"]
                    .clone();
            assert_eq!(frames, "…/train/run.py");
        }
    }
}

#[test]
fn a_finding_that_reaches_fail_on_is_exit_code_1_also_for_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let output = run(&fixture("cuda_oom_expandable.pickle"), &page, &["--fail-on", "critical"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(page.exists());
}

/// Queries that a page shows are run as they stand there.
#[test]
fn the_queries_of_a_page_can_be_run() {
    let page = report_of("npu_two_devices.pickle", &["--mode", "all", "--lang", "en"]);
    let mut queries: Vec<&str> = page
        .split("<code>npusnap sql ")
        .skip(1)
        .map(|rest| rest.split("</code>").next().unwrap().split("&quot;").nth(1).unwrap())
        .collect();
    queries.sort_unstable();
    queries.dedup();
    assert!(queries.len() > 8, "{queries:?}");
    let store = Store::open_with(&fixture("npu_two_devices.pickle"), Cache::Off, &Silent).unwrap();
    let engine = Engine::open(store, Options::default()).unwrap();
    for query in queries {
        let batches = engine.query(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        assert!(rows > 0 || query.contains("oom") || query.contains("growth"), "{query} has no rows");
    }
}
