//! What stands for SOURCE and is none, or more than one: the error says what else could be meant.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::tempdir;

use crate::support::analyze::{NPUSNAP, fixture};

fn npusnap(arguments: &[&str]) -> Output {
    Command::new(NPUSNAP).args(arguments).output().unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Standard error of a run that could not do it, and wrote no data.
fn refused(arguments: &[&str]) -> String {
    let output = npusnap(arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Standard output and standard error of a run that did what it was asked to.
fn told(arguments: &[&str]) -> (String, String) {
    let output = npusnap(arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_source_that_is_not_there_brings_the_nearest_that_is() {
    let place = tempdir().unwrap();
    for name in ["rank0.pickle", "rank0.db", "train.log", ".rank1.pickle"] {
        fs::write(place.path().join(name), "").unwrap();
    }
    let wrong = place.path().join("rank1.pickle");
    let is_said = "SOURCE is a snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the \
                   `.npusnap` folder or `.db` made of one\n";
    let out = place.path().join("out");
    for command in [
        &["analyze", path(&wrong)][..],
        &["info", path(&wrong)],
        &["sql", path(&wrong), "SELECT 1"],
        &["export", path(&wrong), "--to", "folded", "-o", path(&out)],
        &["ingest", path(&wrong)],
    ] {
        let said = refused(command);
        let begin = format!("error: `{}`: cannot open\n  caused by: ", wrong.display());
        let nearest = place.path().join("rank0.pickle");
        let end = format!("\n\nhint: did you mean `{}`? {is_said}", nearest.display());
        assert!(said.starts_with(&begin) && said.ends_with(&end), "{said}");
    }
    let far = place.path().join("zzz");
    assert!(refused(&["analyze", path(&far)]).ends_with(&format!("\n\nhint: {is_said}")));
    let no_folder = place.path().join("nowhere/rank0.pickle");
    let said = refused(&["analyze", path(&no_folder)]);
    assert!(
        said.ends_with(&format!("hint: there is no folder `{}/nowhere`; {is_said}", place.path().display()))
    );
}

#[test]
fn a_result_without_a_folder_for_it_names_the_folder_and_how_to_make_it() {
    let place = tempdir().unwrap();
    let (source, folder) = (fixture("npu_leak.pickle"), place.path().join("no/where"));
    let file = folder.join("result.out");
    let (source, file) = (path(&source), path(&file));
    for command in [
        &["analyze", "--no-cache", source, "-o", file][..],
        &["sql", "--no-cache", source, "SELECT 1", "-o", file],
        &["export", "--no-cache", source, "--to", "folded", "-o", file],
        &["synth", "--steps", "1", "-o", file],
    ] {
        let expected = format!(
            "error: `{file}`: cannot create\n  caused by: No such file or directory (os error 2)\n\n\
             hint: there is no folder `{0}`: make it first, as with `mkdir -p {0}`\n",
            folder.display()
        );
        assert_eq!(refused(command), expected);
    }
    // Where a folder is what is asked for, it is made.
    let (_, said) = told(&["ingest", "--no-sqlite", source, "-o", path(&folder)]);
    assert!(folder.join("npu_leak.npusnap").is_dir(), "{said}");
}

#[test]
fn a_second_source_is_told_how_two_are_compared() {
    let (one, other) = (fixture("npu_leak.pickle"), fixture("npu_oom.pickle"));
    let (one, other) = (path(&one), path(&other));
    let expected = format!(
        "error: `{other}`: is one SOURCE too many; to compare two: `--mode compare --ref {other}`, else one run for each\n"
    );
    assert_eq!(refused(&["analyze", one, other]), expected);
    let said = refused(&["sql", one, other]);
    assert!(said.contains("is a file and no query; a second snapshot: `--ref "), "{said}");
    let said = refused(&["sql", one, other, "SELECT 1"]);
    assert!(said.contains("is a file and no query; a second snapshot: `--ref "), "{said}");
    let said = refused(&["sql", one, "SELECT", "1"]);
    assert!(
        said.starts_with("error: `SELECT`: the query is one argument, in quotes; behind it stands `1`;"),
        "{said}"
    );
    for command in ["analyze", "sql"] {
        let (help, _) = told(&[command, "--help"]);
        assert!(!help.contains("OTHERS"), "{help}");
    }
}

#[test]
fn what_is_read_of_a_folder_is_said() {
    let place = tempdir().unwrap();
    let folder = path(place.path());
    for name in ["npu_leak.pickle", "npu_oom.pickle"] {
        fs::copy(fixture(name), place.path().join(name)).unwrap();
    }
    let said = refused(&["analyze", folder]);
    let names = format!(
        "name one: `{folder}/npu_leak.pickle`, `{folder}/npu_oom.pickle`; `npusnap ingest` takes them all"
    );
    assert!(said.contains(&names), "{said}");

    told(&["--quiet", "ingest", path(&place.path().join("npu_leak.pickle"))]);
    let query = ["sql", folder, "SELECT source_name FROM snapshot", "--format", "csv"];
    let note = format!("note: reading `{folder}/npu_leak.npusnap`, the only store in `{folder}`");
    let other = "; 1 other snapshot in the folder: name the one to read\n";
    let name = "source_name\nnpu_leak.pickle\n".to_owned();
    assert_eq!(told(&query), (name.clone(), format!("{note}{other}")));
    assert_eq!(told(&[&["--quiet"], &query[..]].concat()), (name.clone(), String::new()));
    fs::remove_file(place.path().join("npu_oom.pickle")).unwrap();
    assert_eq!(told(&query), (name, format!("{note}\n")));
    let store = format!("{folder}/npu_leak.npusnap");
    assert_eq!(told(&["sql", &store, "SELECT 1 AS a", "--format", "csv"]).1, "");
}

#[test]
fn a_query_for_a_device_or_an_event_that_is_not_there_says_so() {
    let (one, other) = (fixture("npu_two_devices.pickle"), fixture("npu_leak.pickle"));
    let run = |query: &str| {
        let arguments =
            ["sql", "--no-cache", path(&one), "--ref", path(&other), "--format", "csv", "--param", "d=9"];
        told(&[&arguments[..], &[query]].concat())
    };
    for (call, expected) in [
        ("top_allocations(3, $d)", "note: the snapshot has no device 9; it has: 0, 1\n"),
        ("peak_contributors($d - 8)", ""),
        ("peak_contributors(-$d)", "note: the snapshot has no device -9; it has: 0, 1\n"),
        (
            "base.peak_contributors(device => $d - 8)",
            "note: the second snapshot has no device 1; it has: 0\n",
        ),
        ("device_compare(device => $d)", ""),
        ("live_at(event => $d)", ""),
        ("live_at(-1, $d - 9)", ""),
        ("live_at($d * 14 + 1, 1)", ""),
        (
            "live_at($d * 14 + 1, 0)",
            "note: the snapshot has no event 127, the last one is 126: this is how it ended\n",
        ),
        (
            "live_at(event => $d * 1000000)",
            "note: the snapshot has no event 9000000, the last one is 127: this is how it ended\n",
        ),
        (
            "live_at(2 - $d)",
            "note: the snapshot has no event -7, the first one is 0: this is the state before it, for which -1 stands too\n",
        ),
        (
            "segments_at(device => 1, event => 7 - $d)",
            "note: the snapshot has no event -2, the first one is 0: this is the state before it, for which -1 stands too\n",
        ),
        ("growth_since(8 - $d)", ""),
        (
            "growth_since(-2)",
            "note: the snapshot has no event -2, the first one is 0: this is the state before it, for which -1 stands too\n",
        ),
    ] {
        let query = if call.contains("$d") { call.to_owned() } else { format!("{call} WHERE $d = 9") };
        let (_, said) = run(&format!("SELECT device_index FROM {query}"));
        assert_eq!(said, expected, "{call}");
    }
}

/// The events of a slice keep their numbers, so that it has no event 3.
#[test]
fn a_query_for_an_event_before_those_that_were_kept_says_so() {
    let place = tempfile::tempdir().unwrap();
    let store = place.path().join("part.npusnap");
    let source = fixture("npu_leak.pickle");
    told(&["--quiet", "ingest", path(&source), "--events", "20..", "--no-sqlite", "-o", path(&store)]);
    for (event, expected) in [
        (
            3,
            "note: the snapshot has no event 3, the first one is 20: this is the state before it, for which -1 stands too\n",
        ),
        (-1, ""),
        (19, ""),
        (20, ""),
    ] {
        let query = format!("SELECT device_index FROM live_at({event})");
        assert_eq!(told(&["sql", path(&store), &query, "--format", "csv"]).1, expected, "{event}");
    }
}

/// All in one way, and `--help` of each says which.
#[test]
fn a_result_replaces_a_file_only_when_it_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let (source, out) = (fixture("npu_leak.pickle"), place.path().join("out"));
    let (source, to) = (path(&source), path(&out));
    let commands: [&[&str]; 4] = [
        &["sql", "--no-cache", source, "SELECT 1 AS a", "--format", "csv", "-o", to],
        &["analyze", "--no-cache", source, "--format", "csv", "-o", to],
        &["export", "--no-cache", source, "--to", "folded", "-o", to],
        &["synth", "--steps", "1", "-o", to],
    ];
    for command in commands {
        let help = String::from_utf8(npusnap(&[command[0], "--help"]).stdout).unwrap();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "which has its name only when it is whole; a file that is there is replaced then";
        assert!(help.contains(said), "{}: {help}", command[0]);
        fs::write(&out, "old").unwrap();
        assert!(npusnap(command).status.success(), "{command:?}");
        assert_ne!(fs::read(&out).unwrap(), b"old", "{command:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing stands beside it");
    }
    fs::write(&out, "old").unwrap();
    for failing in [
        &[
            "sql",
            "--no-cache",
            source,
            "SELECT 1 / (n - n) FROM (SELECT COUNT(*) AS n FROM traces) AS t",
            "-o",
            to,
        ][..],
        &["export", "--no-cache", source, "--to", "folded", "--device", "7", "-o", to],
    ] {
        assert_eq!(npusnap(failing).status.code(), Some(2), "{failing:?}");
        assert_eq!(fs::read(&out).unwrap(), b"old", "{failing:?}");
    }
}
