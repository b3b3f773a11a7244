//! Pages in a real browser, where there is one: `tests/browser/check_report.py` says what is checked.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::report_of;

#[test]
fn pages_work_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for (name, lang) in [("npu_two_devices", "en"), ("cuda_oom_expandable", "zh"), ("cuda_empty", "en")] {
        let page = folder.path().join(format!("{name}.html"));
        fs::write(&page, report_of(&format!("{name}.pickle"), &["--mode", "all", "--lang", lang])).unwrap();
        pages.push(page);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check_report.py");
    let mut command = Command::new("python3");
    command.arg(script).args(&pages);
    if let Some(axe) = std::env::var_os("NPUSNAP_AXE") {
        command.arg("--axe").arg(axe);
    }
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: no python3 to drive a browser");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(77) {
        eprintln!("{said}");
        return;
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
