//! Redacted results name nobody whom a path gives away, wherever else the name stands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

/// Names as they stand in paths of the fixture, and words of them.
const NAMES: [&str; 6] = ["mallory", "evelyn", "hopper", "zhangwei", "root", "trent"];

/// A snapshot that names its user in every text it has, in a folder of somebody else.
fn snapshot(folder: &Path) -> PathBuf {
    let frames = json!([
        {"name": "loss_of_mallory", "filename": "/home/mallory/secret/train/model.py", "line": 7},
        {"name": "Mallory::step<trent>", "filename": "C:\\Users\\Grace Hopper\\proj\\run.py", "line": 8},
        {"name": "main", "filename": "/root/launch.py", "line": 9},
        {"name": "<lambda>", "filename": "/mnt/nfs/homes/trent/exp/main.py", "line": 1},
    ]);
    let block = |size: i64, state: &str| json!({"size": size, "requested_size": size, "state": state, "frames": frames});
    let event = |action: &str, size: i64, time: i64| {
        json!({
            "action": action, "addr": 4_194_304, "size": size, "stream": 0, "time_us": time, "frames": frames,
            "compile_context": "mallory/0", "user_metadata": "job of Mallory on zhangwei-laptop, /home/zhangwei/x",
        })
    };
    let oom = json!({
        "action": "oom", "device_free": 512, "size": 1 << 30, "stream": 0, "time_us": 9, "frames": frames,
    });
    let text = json!({
        "segments": [{
            "device": 0, "address": 4_194_304, "total_size": 2_097_152, "allocated_size": 1_048_576,
            "active_size": 1_048_576, "requested_size": 1_048_576, "stream": 0, "segment_type": "small",
            "segment_pool_id": [0, 0], "is_expandable": false, "frames": frames,
            "blocks": [block(1_048_576, "active_allocated"), block(1_048_576, "inactive")],
        }],
        "device_traces": [[event("segment_alloc", 2_097_152, 2), event("alloc", 1_048_576, 3), oom]],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "host": "mallory-laptop", "owner of mallory": "root"},
        "external_annotations": [
            {"name": "mallory's step", "stage": "START", "device": 0, "time_us": 1},
            {"name": "mallory's step", "stage": "END", "device": 0, "time_us": 8},
        ],
    });
    let home = folder.join("home/evelyn/dumps");
    fs::create_dir_all(&home).unwrap();
    let path = home.join("run of evelyn.json");
    fs::write(&path, text.to_string()).unwrap();
    path
}

fn analyze(source: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["--quiet", "analyze", "--no-cache"])
        .arg(source)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Names that stand as a word in a text, with what is around the first of them.
fn named(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    for name in NAMES {
        let is_word = |at: &usize| {
            let before = lower[..*at].chars().next_back();
            let after = lower[at + name.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        };
        if let Some(at) = lower.match_indices(name).map(|(at, _)| at).find(is_word) {
            let around: String =
                lower[..at].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
            let behind: String = lower[at..].chars().take(40).collect();
            found.push(format!("{around}{behind}"));
        }
    }
    found
}

#[test]
fn no_form_of_a_redacted_result_names_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let source = snapshot(folder.path());
    let asked = [("text", "all"), ("json", "all"), ("html", "all"), ("csv", "peak"), ("arrow", "oom")];
    for (format, mode) in asked {
        let ask = ["--mode", mode, "--format", format, "--redact"];
        let text = String::from_utf8_lossy(&analyze(&source, &ask)).into_owned();
        // Styles and scripts are the same in every page, and speak of roots.
        let text = text.split_once("<body>").map_or(text.as_str(), |(_, body)| body);
        let text = text.split("<script>").next().unwrap();
        assert_eq!(named(text), Vec::<String>::new(), "{format} of {mode}");
    }
    let plain = String::from_utf8(analyze(&source, &["--mode", "all", "--format", "json"])).unwrap();
    for name in ["mallory", "evelyn", "hopper", "root"] {
        assert!(plain.to_lowercase().contains(name), "{name} is there to be left out");
    }
}

#[test]
fn pictures_of_a_redacted_result_name_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let source = snapshot(folder.path());
    let pictures = folder.path().join("svg");
    analyze(&source, &["--mode", "all", "--redact", "--svg", pictures.to_str().unwrap()]);
    let mut count = 0;
    for entry in fs::read_dir(&pictures).unwrap() {
        let path = entry.unwrap().path();
        let text = format!("{} {}", path.file_name().unwrap().display(), fs::read_to_string(&path).unwrap());
        assert_eq!(named(&text), Vec::<String>::new(), "{}", path.display());
        count += 1;
    }
    assert!(count > 4, "{count} pictures");
}

#[test]
fn what_is_no_name_of_a_user_stays() {
    let folder = tempfile::tempdir().unwrap();
    let source = snapshot(folder.path());
    let json =
        String::from_utf8(analyze(&source, &["--mode", "peak", "--format", "json", "--redact"])).unwrap();
    for kept in ["loss_of_user", "…/train/model.py", "contributors", "trace_index"] {
        assert!(json.contains(kept), "{kept}: {json}");
    }
}

#[test]
fn rows_of_a_redacted_query_name_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let source = snapshot(folder.path());
    let sql = |query: &str, arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
            .args(["--quiet", "sql", "--no-cache", source.to_str().unwrap(), query])
            .args(["--ref", source.to_str().unwrap()])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for table in ["call_stacks", "traces", "snapshot", "annotations", "base.call_stacks", "stack_compare"] {
        for format in ["table", "csv", "json", "ndjson", "markdown", "arrow"] {
            let text = sql(&format!("SELECT * FROM {table}"), &["--redact", "--format", format]);
            assert_eq!(named(&text), Vec::<String>::new(), "{format} of {table}");
        }
    }
    let nested = "SELECT frames[1] AS first, frames[1]['filename'] AS file, MAP {'a': frames_json} AS map FROM call_stacks";
    let rows = sql(nested, &["--redact", "--format", "json"]);
    assert_eq!(named(&rows), Vec::<String>::new());
    assert!(rows.contains("…/train/model.py") && rows.contains("loss_of_user"), "{rows}");
    let plain = sql(nested, &["--format", "json"]);
    assert!(plain.contains("/home/mallory/secret/train/model.py"), "{plain}");
}

#[test]
fn exports_of_a_redacted_snapshot_name_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let source = snapshot(folder.path());
    for form in ["memory-viz", "pickle", "perfetto", "speedscope", "folded"] {
        let export = |arguments: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
                .args(["--quiet", "export", "--no-cache", source.to_str().unwrap(), "--to", form, "-o", "-"])
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{form}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).to_lowercase()
        };
        let redacted = export(&["--redact"]);
        for name in NAMES {
            assert!(!redacted.contains(name), "{form}: {name}: {redacted}");
        }
        assert!(redacted.contains("loss_of_user"), "{form}: {redacted}");
        assert!(export(&[]).contains("loss_of_mallory"), "{form}");
    }
}
