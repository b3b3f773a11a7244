//! Snapshots are written by anybody: none of their strings may become markup, script, or something else than it is.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{data, report, without_echarts};

const SCRIPT: &str = "</script><script>alert(1)</script>";
const TAG: &str = "\"'><img src=x onerror=alert(1)>";
const REVERSED: &str = "model\u{202e}yp.live\u{2066}";

/// A snapshot whose every string is meant badly, in a file whose name is too.
fn snapshot(folder: &std::path::Path) -> PathBuf {
    let long = format!("at::native::very<{}>::call(int)", "long_template_argument, ".repeat(130));
    assert!(long.len() > 3000);
    let frames = json!([
        {"name": long, "filename": "a.cpp", "line": 1},
        {"name": SCRIPT, "filename": format!("/home/mallory/{TAG}/{REVERSED}.py"), "line": 7},
        {"name": "<!--", "filename": "/home/mallory/{{data}}/$call.py", "line": 8},
    ]);
    let block = |size: i64, state: &str| json!({"size": size, "requested_size": size, "state": state, "frames": frames});
    let text = json!({
        "segments": [{
            "device": 0, "address": 4_194_304, "total_size": 2_097_152, "allocated_size": 1_048_576,
            "active_size": 1_048_576, "requested_size": 1_048_576, "stream": 0, "segment_type": TAG,
            "segment_pool_id": [0, 0], "is_expandable": false, "frames": frames,
            "blocks": [block(1_048_576, "active_allocated"), block(1_048_576, "inactive")],
        }],
        "device_traces": [[
            {"action": "segment_alloc", "addr": 4_194_304, "size": 2_097_152, "stream": 0, "frames": frames},
            {"action": "alloc", "addr": 4_194_304, "size": 1_048_576, "stream": 0, "frames": frames},
            {"action": SCRIPT, "addr": 4_194_304, "size": 1, "stream": 0, "frames": frames},
        ]],
        "allocator_settings": {SCRIPT: TAG},
    });
    let path = folder.join(format!("snap<b>{REVERSED}'.json"));
    fs::write(&path, text.to_string()).unwrap();
    path
}

/// The page without ECharts; made once for all tests.
fn page(arguments: &[&'static str]) -> String {
    static PLAIN: OnceLock<String> = OnceLock::new();
    static REDACTED: OnceLock<String> = OnceLock::new();
    let page = if arguments.is_empty() { &PLAIN } else { &REDACTED };
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        without_echarts(&report(&snapshot(folder.path()), &[&["--mode", "all"], arguments].concat()))
    };
    page.get_or_init(make).clone()
}

#[test]
fn no_string_of_a_snapshot_becomes_markup() {
    let page = page(&[]);
    // Data, ECharts and ours: not one more.
    assert_eq!(page.matches("<script").count(), 6);
    assert_eq!(page.matches("</script>").count(), 6);
    for markup in ["<img", "<b>s", "onerror=alert(1)>", "snap<b>"] {
        assert!(!page.contains(markup), "{markup} in the page");
    }
    assert!(page.contains("snap&lt;b&gt;"), "the name of the file is shown as it is");
}

#[test]
fn marks_of_direction_reorder_nothing() {
    let page = page(&[]);
    for mark in ['\u{202e}', '\u{2066}'] {
        assert!(!page.contains(mark));
    }
    assert!(page.contains("⟨U+202E⟩"));
}

#[test]
fn what_looks_like_a_mark_of_the_template_stays_text() {
    let page = page(&[]);
    let stacks = data(&page)["stacks"].to_string();
    assert!(stacks.contains("{{data}}"), "{stacks}");
}

#[test]
fn strings_of_a_snapshot_cannot_call_functions_of_the_page() {
    /// Objects with a `$` key, which the page resolves: all must have a value of our making.
    fn resolved(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| resolved(item, found)),
            Value::Object(map) => {
                for (key, item) in map {
                    if key == "$call" || key == "$color" {
                        found.push(item.clone());
                    }
                    resolved(item, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    resolved(&data(&page(&[])), &mut found);
    assert!(!found.is_empty());
    for name in found {
        let name = name.as_str().unwrap();
        assert!(name.chars().all(|symbol| symbol.is_ascii_alphanumeric() || symbol == '_'), "{name}");
    }
}

#[test]
fn a_name_of_three_thousand_characters_is_cut_where_it_is_shown() {
    let page = page(&[]);
    assert!(!page.contains(&"long_template_argument, ".repeat(30)));
    assert!(page.contains("at::native::very"));
}

#[test]
fn a_redacted_page_names_no_folder_of_a_user() {
    let plain = page(&[]);
    assert!(plain.contains("mallory"));
    let redacted = page(&["--redact"]);
    assert!(!redacted.contains("mallory"));
    assert!(!redacted.contains("/tmp/"), "the command shown has the path of the source");
}
