//! SQLite databases as sources: npusnap's own, those with only the five tables of older tools, and what is neither.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

fn run(args: &[&str], source: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap")).args(args).arg(source).args(more).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The output, whatever the exit code says of findings.
fn analysis(source: &Path) -> Value {
    let output = run(&["analyze", "--no-cache", "--format", "json"], source, &[]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)))
}

fn rows(source: &Path, query: &str) -> Vec<String> {
    let output = run(&["sql", "--no-cache", "--format", "csv"], source, &[query]);
    stdout(&output).lines().skip(1).map(str::to_owned).collect()
}

/// Exit code 2, and says `part`.
fn refuses(source: &Path, part: &str) {
    for (args, more) in
        [(&["sql"][..], &["SELECT 1"][..]), (&["analyze", "--format", "json"], &[]), (&["info"], &[])]
    {
        let output = run(args, source, more);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

fn fixtures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "pickle")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The database that npusnap makes of a snapshot, under a name that says nothing.
fn database(snapshot: &Path) -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("renamed");
    let mut ingest = Command::new(env!("CARGO_BIN_EXE_npusnap"));
    ingest.arg("ingest").arg(snapshot).arg("-o").arg(dir.path()).arg("--sqlite").arg(&path);
    stdout(&ingest.output().unwrap());
    (dir, path)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A database as older tools make it: the five tables, nothing in the header, no indexes.
fn five_tables() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("older.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            r#"
        CREATE TABLE devices (id INTEGER PRIMARY KEY, device_index INTEGER UNIQUE NOT NULL, device_type TEXT);
        CREATE TABLE call_stacks (id INTEGER PRIMARY KEY, stack_hash TEXT UNIQUE, frames_json TEXT);
        CREATE TABLE segments (id INTEGER PRIMARY KEY, device_id INTEGER REFERENCES devices(id), address INTEGER,
            total_size INTEGER, allocated_size INTEGER, active_size INTEGER, requested_size INTEGER, stream INTEGER,
            segment_type TEXT, pool_id_0 INTEGER, pool_id_1 INTEGER, is_expandable BOOLEAN, stack_id INTEGER);
        CREATE TABLE blocks (id INTEGER PRIMARY KEY, segment_id INTEGER, address INTEGER, size INTEGER,
            requested_size INTEGER, state TEXT, stack_id INTEGER);
        CREATE TABLE traces (id INTEGER PRIMARY KEY, device_id INTEGER, trace_index INTEGER, action TEXT, addr INTEGER,
            device_free INTEGER, size INTEGER, stream INTEGER, stack_id INTEGER);
        INSERT INTO devices VALUES (1, 0, 'Ascend-NPU'), (2, 1, 'Ascend-NPU');
        INSERT INTO call_stacks VALUES (1, 'a',
            '[{"line": 18446744073709551615, "name": "f", "filename": "a.cpp"}, {"name": "g", "filename": "b.py", "line": 7}]');
        INSERT INTO segments VALUES (1, 1, 4096, 4096, 1024, 1024, 1000, 3, 'small', 0, 0, 0, NULL);
        INSERT INTO blocks VALUES (1, 1, 4096, 1024, 1000, 'active_allocated', 1), (2, 1, 5120, 3072, 0, 'inactive', NULL);
        -- The second device comes first, and the list of the first stands in reverse.
        INSERT INTO traces VALUES
            (1, 2, 0, 'workspace_snapshot', 64, NULL, 8, 3, NULL),
            (2, 2, 1, 'segment_alloc', 64, NULL, 8, 3, NULL),
            (3, 2, 2, 'alloc', 72, NULL, 8, 3, NULL),
            (4, 1, 6, 'alloc', 4096, NULL, 1000, 3, 1),
            (5, 1, 5, 'alloc', 64, NULL, 8, 3, NULL),
            (6, 1, 4, 'segment_alloc', 64, NULL, 8, 3, NULL),
            (7, 1, 3, 'segment_alloc', 4096, NULL, 4096, 3, NULL),
            (8, 1, 2, 'alloc', 32, NULL, 8, 3, NULL),
            (9, 1, 1, 'segment_alloc', 32, NULL, 8, 3, NULL),
            (10, 1, 0, 'workspace_snapshot', 32, NULL, 8, 3, NULL);
        "#,
        )
        .unwrap();
    (dir, path)
}

#[test]
fn a_database_gives_the_same_analysis_as_its_snapshot() {
    for snapshot in fixtures() {
        let (_dir, database) = database(&snapshot);
        let (from_snapshot, from_database) = (analysis(&snapshot), analysis(&database));
        assert!(from_snapshot["result"].is_object() || from_snapshot["result"].is_array());
        assert_eq!(from_snapshot, from_database, "{}", snapshot.display());
    }
}

#[test]
fn a_database_has_the_rows_of_its_snapshot() {
    for snapshot in [fixture("npu_two_devices.pickle"), fixture("cuda_traces_first.pickle")] {
        let (_dir, database) = database(&snapshot);
        for query in [
            "SELECT * FROM traces ORDER BY id",
            "SELECT * FROM blocks ORDER BY id",
            "SELECT * FROM segments ORDER BY id",
            "SELECT id, stack_hash, frames_json FROM call_stacks ORDER BY id",
            "SELECT id, f['name'], f['filename'], f['line'] FROM (SELECT id, unnest(frames) AS f FROM call_stacks) ORDER BY id, 2, 3, 4",
            "SELECT * FROM annotations",
            "SELECT * FROM import_stats",
            "SELECT * FROM snapshot",
        ] {
            assert_eq!(rows(&snapshot, query), rows(&database, query), "{query}");
        }
        assert_eq!(rows(&database, "SELECT count(*) > 0 FROM traces"), ["true"]);
    }
}

#[test]
fn nothing_is_left_beside_a_database_that_was_read() {
    let (dir, path) = five_tables();
    assert_eq!(rows(&path, "SELECT count(*) FROM traces"), ["10"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn five_tables_of_an_older_tool_are_enough() {
    let (_dir, path) = five_tables();
    assert_eq!(rows(&path, "SELECT id FROM traces LIMIT 3"), ["10", "9", "8"], "in the order of the lists");
    let frame = "SELECT frames[1]['name'], frames[1]['filename'], frames[1]['line'], frames[2]['line'] FROM call_stacks";
    assert_eq!(rows(&path, frame), ["f,a.cpp,-1,7"]);
    assert_eq!(
        rows(&path, "SELECT count(time_us), count(pool_id_0), count(user_metadata) FROM traces"),
        ["0,0,0"]
    );
    let snapshot = "SELECT source_name, dialect, form, event_count, segment_count, block_count, stack_count FROM snapshot";
    assert_eq!(rows(&path, snapshot), ["older.db,npu,dict,10,1,2,1"]);
    assert_eq!(
        rows(&path, "SELECT source_bytes FROM snapshot"),
        [fs::metadata(&path).unwrap().len().to_string()]
    );
    assert_eq!(
        rows(&path, "SELECT name FROM import_stats WHERE severity = 'info'"),
        ["source_is_five_tables"]
    );
    let lifetimes = "SELECT device_id, addr, size, block_size, alloc_index, fate FROM allocations";
    assert_eq!(
        rows(&path, lifetimes),
        ["1,64,8,512,5,live", "1,4096,1000,1024,6,live", "2,72,8,512,2,live"],
        "events are paired also where nobody had done it"
    );
    assert_eq!(rows(&path, "SELECT count(*) FROM annotations"), ["0"]);
    let found = analysis(&path);
    assert_eq!(found["npusnap"], 1);
    assert!(found["error"].is_null(), "{found}");
    let info = stdout(&run(&["info"], &path, &[]));
    assert!(info.contains("database of an older tool"), "{info}");
}

#[test]
fn workspace_entries_of_an_older_database_are_told_by_their_place() {
    let (_dir, path) = five_tables();
    let marked = "SELECT device_id, trace_index FROM traces WHERE is_workspace = 1 ORDER BY 1, 2";
    // The triplet of the first device, and the marker of the second, whose alloc has another address.
    assert_eq!(rows(&path, marked), ["1,0", "1,1", "1,2", "2,0"]);
}

#[test]
fn five_tables_cut_out_of_a_database_give_the_same_marks_and_blocks() {
    let mut marks = 0;
    for name in ["npu_two_devices.pickle", "npu_leak.pickle", "cuda_oom_expandable.pickle"] {
        let snapshot = fixture(name);
        let (dir, whole) = database(&snapshot);
        let path = dir.path().join("five.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute("ATTACH ?1 AS whole", [whole.to_str().unwrap()]).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE devices AS SELECT * FROM whole.devices;
                 CREATE TABLE call_stacks AS SELECT * FROM whole.call_stacks;
                 CREATE TABLE segments AS SELECT * FROM whole.segments;
                 CREATE TABLE blocks AS SELECT * FROM whole.blocks;
                 CREATE TABLE traces AS
                     SELECT id, device_id, trace_index, action, addr, device_free, size, stream, stack_id
                     FROM whole.traces ORDER BY id DESC;
                 DETACH whole;
                 PRAGMA journal_mode = WAL",
            )
            .unwrap();
        for query in [
            "SELECT id, device_id, trace_index, action, addr, size, stack_id, is_workspace FROM traces ORDER BY id",
            "SELECT * FROM blocks ORDER BY id",
            "SELECT dialect FROM snapshot",
        ] {
            assert_eq!(rows(&snapshot, query), rows(&path, query), "{name}: {query}");
        }
        marks += rows(&path, "SELECT id FROM traces WHERE is_workspace = 1").len();
    }
    assert!(marks > 0, "no fixture has workspaces");
}

#[test]
fn a_database_of_something_else_is_refused_with_what_it_lacks() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("other.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE notes (id INTEGER, text TEXT)").unwrap();
    refuses(&path, "there is no table `devices`");
    let (_dir, older) = five_tables();
    let connection = Connection::open(&older).unwrap();
    connection.execute_batch("ALTER TABLE blocks DROP COLUMN state").unwrap();
    refuses(&older, "table `blocks` has no column `state`");
}

#[test]
fn a_view_in_the_place_of_a_table_is_refused_before_its_query_runs() {
    let (_dir, path) = five_tables();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE blocks RENAME TO real_blocks;
            CREATE VIEW Blocks AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                SELECT i AS id, 1 AS segment_id, 4096 AS address, 512 AS size, 512 AS requested_size,
                    'inactive' AS state, NULL AS stack_id FROM n;",
        )
        .unwrap();
    refuses(&path, "`blocks` is a view and not a table; npusnap reads tables only");
    connection
        .execute_batch(
            "DROP VIEW Blocks; ALTER TABLE real_blocks RENAME TO blocks;
            CREATE VIEW other AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
            CREATE TRIGGER t AFTER INSERT ON traces BEGIN DELETE FROM blocks; END;",
        )
        .unwrap();
    drop(connection);
    assert_eq!(
        rows(&path, "SELECT COUNT(*) FROM blocks"),
        ["2"],
        "views and triggers beside them do no harm"
    );
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_place() {
    for (change, part) in [
        ("UPDATE blocks SET size = 'big' WHERE id = 2", "table `blocks`, column `size`, row 2"),
        ("UPDATE blocks SET state = NULL WHERE id = 1", "table `blocks`, column `state`, row 1: is NULL"),
        ("UPDATE call_stacks SET frames_json = '[{'", "table `call_stacks`, column `frames`, row 1"),
    ] {
        let (_dir, path) = five_tables();
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        refuses(&path, part);
    }
}

#[test]
fn a_database_of_another_table_version_is_refused() {
    let (_dir, path) = database(&fixture("npu_leak.pickle"));
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    refuses(&path, "has table version 99");
}

#[test]
fn a_damaged_database_is_refused() {
    let (_dir, path) = database(&fixture("npu_leak.pickle"));
    let bytes = fs::read(&path).unwrap();
    for length in [16, 50, 100, 5000, bytes.len() / 2, bytes.len() - 4096] {
        fs::write(&path, &bytes[..length]).unwrap();
        refuses(&path, "cannot read the SQLite database");
    }
}
