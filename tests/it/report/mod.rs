//! `npusnap analyze -o report.html`: one file, safe to open, that says the same as every other output.

mod browser;
mod hostile;
mod many;
mod options;
mod page;
mod redact;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

/// The page of a fixture. Each is made once for all tests.
fn report_of(name: &str, arguments: &[&str]) -> String {
    type Pages = Mutex<BTreeMap<String, Arc<OnceLock<String>>>>;
    static PAGES: Pages = Mutex::new(BTreeMap::new());
    let key = format!("{name} {}", arguments.join(" "));
    let page = Arc::clone(PAGES.lock().unwrap().entry(key).or_default());
    page.get_or_init(|| report(&fixture(name), arguments)).clone()
}

/// Runs `npusnap analyze` on a source and gives back the page it wrote.
fn report(source: &Path, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let output = run(source, &page, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(page).unwrap()
}

fn run(source: &Path, page: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["--quiet", "analyze", "--no-cache"])
        .arg(source)
        .arg("-o")
        .arg(page)
        .args(arguments)
        .output()
        .unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The text between two marks; the first mark that there is.
fn between<'a>(page: &'a str, before: &str, behind: &str) -> &'a str {
    let start = page.find(before).unwrap_or_else(|| panic!("no {before}")) + before.len();
    let length = page[start..].find(behind).unwrap_or_else(|| panic!("no {behind} after {before}"));
    &page[start..start + length]
}

/// The island of data.
fn data(page: &str) -> Value {
    serde_json::from_str(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"))
        .unwrap()
}

/// The page without ECharts, which is a megabyte of somebody else's.
fn without_echarts(page: &str) -> String {
    let library = between(page, "</script>\n<script>", "</script>");
    assert!(library.len() > 400_000, "ECharts has {} bytes", library.len());
    page.replace(library, "/* ECharts */")
}
