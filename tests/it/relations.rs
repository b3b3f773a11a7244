//! The relations over whole snapshots: what the simulator knows of its own, and the same rows from both stores.

use std::path::{Path, PathBuf};
use std::process::Command;

use npusnap::engine::{self, Dialect, Engine, Options};
use npusnap::store::Store;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::slt::{cells, select};

fn pickles(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pickle"))
        .collect();
    found.sort();
    found
}

fn fixtures() -> Vec<PathBuf> {
    pickles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"))
}

/// Recordings of real jobs, where they are.
fn recordings() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("NPUSNAP_SHARED").map_or(beside, PathBuf::from).join("snapshots");
    if shared.is_dir() {
        return pickles(&shared);
    }
    eprintln!("SKIPPED: no recordings in {}; set NPUSNAP_SHARED", shared.display());
    Vec::new()
}

/// Both stores of a snapshot: the folder and the database.
fn ingested(pickle: &Path) -> (TempDir, PathBuf, PathBuf) {
    let place = tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["ingest", "--quiet", "-o"])
        .arg(place.path())
        .arg(pickle)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", pickle.display());
    let stem = pickle.file_stem().unwrap().to_str().unwrap();
    let folder = place.path().join(format!("{stem}.npusnap"));
    let database = place.path().join(format!("{stem}.db"));
    (place, folder, database)
}

fn open(folder: &Path, partitions: usize) -> Engine {
    let options = Options { partitions, ..Options::default() };
    Engine::open(Store::open(folder).unwrap(), options).unwrap()
}

#[test]
fn relations_have_the_same_rows_over_parquet_and_in_the_database() {
    for pickle in fixtures().into_iter().chain(recordings()) {
        let (_place, folder, database) = ingested(&pickle);
        let connection = Connection::open(database).unwrap();
        let engine = open(&folder, 4);
        let catalog = engine::catalog().unwrap();
        let stored = catalog.iter().filter(|definition| {
            !definition.is_private() && !definition.needs_base && definition.dialect == Dialect::Common
        });
        for definition in stored {
            let sql = format!("SELECT * FROM {}", definition.name);
            let parquet: Vec<Vec<String>> =
                engine.query(&sql).unwrap().flat_map(|batch| cells(&batch.unwrap())).collect();
            let (_, sqlite) = select(&connection, &sql).unwrap();
            assert_eq!(parquet, sqlite, "{sql} of {}", pickle.display());
        }
    }
}

#[test]
fn the_overview_says_what_the_simulator_knows() {
    for pickle in fixtures() {
        let truth = std::fs::read_to_string(pickle.with_extension("truth.json")).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let (_place, folder, _) = ingested(&pickle);
        let engine = open(&folder, 2);
        // The list form has no history.
        let history = truth["info"]["events_in_file"] != 0;
        for device in truth["devices"].as_array().unwrap() {
            let counters = &device["final"];
            let blocks = |state: &str, what: &str| counters["blocks"][state][what].as_i64().unwrap();
            let counter = |name: &str| counters[name].as_i64().unwrap();
            let expected = [
                ("reserved", counter("reserved")),
                ("allocated", counter("allocated")),
                ("active", counter("active")),
                ("allocated_requested", counter("allocated_requested")),
                ("active_requested", counter("active_requested")),
                ("segment_count", counter("segments")),
                ("active_allocated_count", blocks("active_allocated", "count")),
                ("active_allocated_bytes", blocks("active_allocated", "bytes")),
                ("active_pending_free_count", blocks("active_pending_free", "count")),
                ("active_pending_free_bytes", blocks("active_pending_free", "bytes")),
                ("inactive_count", blocks("inactive", "count")),
                ("inactive_bytes", blocks("inactive", "bytes")),
                ("trace_count", if history { device["events_in_window"].as_i64().unwrap() } else { 0 }),
                ("workspace_bytes", device["workspace_bytes"].as_i64().unwrap()),
            ];
            let (columns, expected): (Vec<&str>, Vec<String>) =
                expected.iter().map(|(column, value)| (*column, value.to_string())).unzip();
            let sql = format!(
                "SELECT {} FROM device_overview WHERE device_index = {}",
                columns.join(", "),
                device["device"]
            );
            let found: Vec<Vec<String>> =
                engine.query(&sql).unwrap().flat_map(|batch| cells(&batch.unwrap())).collect();
            // A device that did nothing is not in the file.
            let nothing = expected.iter().all(|value| value == "0");
            let expected = if nothing && found.is_empty() { Vec::new() } else { vec![expected] };
            assert_eq!(found, expected, "{columns:?} of {}", pickle.display());
        }
    }
}
