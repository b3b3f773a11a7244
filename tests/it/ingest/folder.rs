//! A folder as the source: every snapshot in it is taken, in whatever it is wrapped, and nothing else.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::tempdir;

use super::handmade::snapshot;
use super::{fails, ingest, names, npusnap, stdout, succeeds};

#[test]
fn every_snapshot_in_a_folder_is_taken_and_nothing_else() {
    let dir = tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("rank0.pickle", &snapshot(3));
    write("no_extension", &snapshot(3));
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(&snapshot(3)).unwrap();
    write("rank1.gz", &zipped.finish().unwrap());
    write("rank2.json", br#" {"segments": [], "device_traces": [[{"action": "alloc", "addr": 512, "size": 512, "stream": 7}]]}"#);
    write("rank0.pickle.steps.jsonl", b"{\"stage\":\"DUMP\"}\n");
    write("device_0_memUsageInfo_20250102030405.csv", b"moduleName,curMemSize(MB),memPeakSize(MB)\n");
    write("settings.json", b"{\"lr\": 1}");
    write("report.html", b"<!doctype html><title>npusnap</title>");
    write("train.log", b"step 1\n");
    write(".hidden.pickle", &snapshot(3));
    fs::create_dir(dir.path().join("nested.pickle")).unwrap();
    let taken = |output: &std::process::Output| {
        let lines: Vec<String> = stdout(output).lines().map(str::to_owned).collect();
        lines
            .iter()
            .map(|line| line.split(' ').next().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let results = tempdir().unwrap();
    let arguments =
        [dir.path().as_os_str(), "-o".as_ref(), results.path().as_os_str(), "--no-sqlite".as_ref()];
    let output = npusnap().arg("ingest").args(arguments).output().unwrap();
    succeeds(&output);
    let expected = ["no_extension.npusnap", "rank0.npusnap", "rank1.npusnap", "rank2.npusnap"];
    assert_eq!(taken(&output), expected);
    assert_eq!(names(results.path()), expected);
    // Beside them, and again: the results are in the folder by then.
    for _ in 0..2 {
        let output = ingest(&[dir.path()]);
        succeeds(&output);
        assert_eq!(taken(&output).len(), 8);
    }
}

#[test]
fn a_folder_without_a_snapshot_and_a_store_are_refused() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("train.log"), "step 1\n").unwrap();
    fails(&ingest(&[dir.path()]), "is a folder without a snapshot in it");
    fs::write(dir.path().join("a.pickle"), snapshot(1)).unwrap();
    succeeds(&ingest(&[dir.path()]));
    fails(&ingest(&[&dir.path().join("a.npusnap")]), "name the snapshot files to ingest");
    let many = [dir.path().to_owned(), dir.path().to_owned()];
    fails(&ingest(&[&many[0], &many[1]]), "would replace the result");
}

#[test]
fn an_empty_dump_in_a_folder_is_not_passed_over() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.pickle"), snapshot(1)).unwrap();
    fs::write(dir.path().join("b.pickle"), b"").unwrap();
    fs::write(dir.path().join("b.log"), b"").unwrap();
    let output = ingest(&[dir.path()]);
    fails(&output, "1 of 2 snapshots could not be ingested");
    fails(&output, "b.pickle");
    assert!(dir.path().join("a.npusnap").exists());
}
