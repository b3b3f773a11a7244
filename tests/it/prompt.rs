//! The prompt of `npusnap sql`, as a terminal sees it: a pseudo-terminal that Python opens.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::{TempDir, tempdir};

/// Key that interrupts, and key that ends the input.
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn python() -> Option<Command> {
    let found = Command::new("python3").args(["-c", "import pty"]).output();
    if found.is_ok_and(|found| found.status.success()) {
        return Some(Command::new("python3"));
    }
    eprintln!("SKIPPED: there is no python3 with `pty` to open a terminal with");
    None
}

/// A folder with a snapshot, which is the home of the user too.
fn home() -> (TempDir, PathBuf) {
    let home = tempdir().unwrap();
    let snapshot = home.path().join("run.pickle");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/npu_leak.pickle"), &snapshot).unwrap();
    (home, snapshot)
}

/// What the program writes to a terminal while someone waits for each first text and then types the second; its exit
/// code. None where there is no terminal to be had.
fn talk(home: &Path, arguments: &[&str], steps: &[(&str, &str)]) -> Option<(String, i32)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/prompt.py");
    let output = python()?
        .arg(script)
        .arg(serde_json::to_string(steps).unwrap())
        .args([env!("CARGO_BIN_EXE_npusnap"), "sql", "--quiet"])
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME")
        .env("TERM", "xterm")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let written = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    let (written, code) = written.trim_end().rsplit_once('\n').unwrap();
    Some((written.to_owned(), code.parse().unwrap()))
}

#[test]
fn a_session_answers_until_the_user_leaves() {
    let (home, snapshot) = home();
    let steps = [
        ("npusnap> ", "SELECT COUNT(*) AS devices,\r"),
        ("devices,", "  'a;b' AS text -- not yet;\r"),
        ("    ...> ", ""),
        ("yet;", "\\d block_state_dist\r"),
        ("Blocks by device and state", ""),
        ("    ...> ", "FROM devices;\r"),
        ("      1  a;b", ""),
        ("npusnap> ", "SELECT totalsize FROM segments;\r"),
        ("hint: did you mean `total_size`?", ""),
        ("npusnap> ", "SELECT 10 AS a; SELECT 20 AS b;\r"),
        ("10\r\n", ""),
        ("20\r\n", ""),
        ("npusnap> ", "\\d\r"),
        ("top_allocations(limit BIGINT = 10, device BIGINT = NULL)", ""),
        ("npusnap> ", "\\d Segments\r"),
        ("Bytes reserved from the driver.", ""),
        ("npusnap> ", "\\d top_allocation\r"),
        ("hint: did you mean `top_allocations`?", ""),
        ("npusnap> ", "\\h\r"),
        ("Ctrl-C ends a query", ""),
        ("npusnap> ", "help\r"),
        ("Ctrl-C ends a query", ""),
        ("npusnap> ", "?\r"),
        ("Ctrl-C ends a query", ""),
        ("npusnap> ", "SELECT value FROM generate_series(1, 1030);\r"),
        ("1,010 more rows; `\\rows N` sets how many are shown", ""),
        ("npusnap> ", "\\rows 2\r"),
        ("npusnap> ", "SELECT value FROM generate_series(1, 1030);\r"),
        ("1,028 more rows", ""),
        ("npusnap> ", "\\q\r"),
    ];
    let Some((written, code)) = talk(home.path(), &[snapshot.to_str().unwrap()], &steps) else { return };
    assert_eq!(code, 0, "{written}");
    let history = fs::read_to_string(home.path().join(".local/share/npusnap/history")).unwrap();
    assert!(history.contains("SELECT totalsize FROM segments;\n"), "{history}");
    // The next session remembers: the newest is `\q`, the one before it the query.
    let steps = [
        ("npusnap> ", "\u{1b}[A\u{1b}[A"),
        ("generate_series(1, 1030);", "\r"),
        ("more rows", ""),
        ("npusnap> ", CTRL_D),
    ];
    let (written, code) = talk(home.path(), &[snapshot.to_str().unwrap()], &steps).unwrap();
    assert_eq!(code, 0, "{written}");
}

#[test]
fn a_prompt_that_waits_for_a_line_ends_when_it_is_told_to() {
    let (home, snapshot) = home();
    let steps = [("npusnap> ", "SELECT 1 AS one;\r"), ("one\r\n", ""), ("npusnap> ", "SIGTERM")];
    let Some((written, code)) = talk(home.path(), &[snapshot.to_str().unwrap()], &steps) else { return };
    assert_eq!(code, -15, "{written}");
}

#[test]
fn names_are_completed() {
    let (home, snapshot) = home();
    let snapshot = snapshot.to_str().unwrap();
    let steps = [
        ("npusnap> ", "SELECT COUNT(*) - 5 AS fewer FROM segments\t"),
        ("FROM segments", ";\r"),
        ("fewer\r\n", ""),
        ("npusnap> ", "SELECT coal\t"),
        ("SELECT coalesce", "(total_s\t"),
        ("(total_size", ", 1) AS size FROM segments LIMIT 1;\r"),
        ("size\r\n", ""),
        ("npusnap> ", "SELECT COUNT(*) AS n FROM base.top_al\t"),
        ("FROM base.top_allocations", "(3);\r"),
        ("n\r\n-\r\n3\r\n", ""),
        ("npusnap> ", "\\d block_\t\r"),
        ("block_state_dist", ""),
        ("arguments:", ""),
        ("npusnap> ", CTRL_D),
    ];
    let Some((written, code)) = talk(home.path(), &[snapshot, "--ref", snapshot], &steps) else { return };
    assert_eq!(code, 0, "{written}");
}

#[test]
fn an_interrupt_ends_the_query_and_not_the_session() {
    let (home, snapshot) = home();
    let endless = "SELECT a.value FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000);\r";
    let steps = [
        ("npusnap> ", endless),
        // In CSV, rows come at once: the query runs.
        ("\n1\r\n", CTRL_C),
        ("error: the query was interrupted", ""),
        ("npusnap> ", "SELECT $x + 1 AS next;\r"),
        ("next\r\n42", ""),
        // What is being typed is dropped, and nothing else.
        ("npusnap> ", "SELECT 'never\r"),
        ("    ...> ", CTRL_C),
        ("npusnap> ", "SELECT 6 * 7 AS answer;\r"),
        ("answer\r\n42", ""),
        ("npusnap> ", "exit\r"),
    ];
    let arguments =
        [snapshot.to_str().unwrap(), "--format", "csv", "--max-rows", "100000000", "--param", "x=41"];
    let Some((written, code)) = talk(home.path(), &arguments, &steps) else { return };
    assert_eq!(code, 0, "{written}");
}

#[test]
fn a_terminal_is_spared_binary_formats() {
    let (home, snapshot) = home();
    let snapshot = snapshot.to_str().unwrap();
    let expected = "error: --format parquet: is nothing for a terminal; write it to a file with `-o FILE`, or into a pipe";
    for arguments in [&[snapshot, "--format", "parquet"][..], &[snapshot, "SELECT 1", "--format", "parquet"]]
    {
        let Some((written, code)) = talk(home.path(), arguments, &[]) else { return };
        assert_eq!((written.trim_end(), code), (expected, 2));
    }
}

#[test]
fn without_a_terminal_there_is_no_prompt() {
    let (home, snapshot) = home();
    let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["sql", snapshot.to_str().unwrap()])
        .env("HOME", home.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: no query: give one as an argument or with `-f FILE`; `-` reads it from standard input\n"
    );
}
