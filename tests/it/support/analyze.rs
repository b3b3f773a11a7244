//! `npusnap analyze` as users run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) const NPUSNAP: &str = env!("CARGO_BIN_EXE_npusnap");

/// A bundled snapshot.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Runs `npusnap analyze SOURCE --mode MODE` with further arguments.
pub(crate) fn run(source: &Path, mode: &str, arguments: &[&str]) -> Output {
    Command::new(NPUSNAP)
        .args(["--quiet", "analyze", "--no-cache", "--mode", mode])
        .arg(source)
        .args(arguments)
        .output()
        .unwrap()
}

/// The JSON of a mode.
pub(crate) fn json(source: &Path, mode: &str, arguments: &[&str]) -> Value {
    let output = run(source, mode, &[&["--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The text of a mode.
pub(crate) fn text(source: &Path, mode: &str, arguments: &[&str]) -> String {
    let output = run(source, mode, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The rules of the findings, with their severity.
pub(crate) fn rules(json: &Value) -> Vec<(String, String)> {
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings = json["findings"].as_array().unwrap();
    findings.iter().map(|finding| (word(finding, "rule"), word(finding, "severity"))).collect()
}

/// Compares a page with the one that somebody last looked at; `UPDATE_GOLDEN=1` writes it anew.
pub(crate) fn golden(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, expected, "{} differs", path.display());
}
