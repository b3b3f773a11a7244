//! `npusnap sql` as users run it, over Parquet.

mod errors;
mod formats;
mod integers;
mod joins;
mod limits;
mod sums;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use arrow::compute::cast;
use arrow::record_batch::RecordBatch;
use npusnap::engine::{BASE, Engine, Options};
use npusnap::schema::{self, TABLES};
use npusnap::snapshot::RowSink as _;
use npusnap::store::{ParquetSink, Store};
use tempfile::{TempDir, tempdir};

use crate::slt::{batch, sqlite};

const ROWS: &str = r#"
INSERT INTO devices VALUES (1, 0, 'Ascend-NPU'), (2, 1, 'Ascend-NPU');
INSERT INTO call_stacks VALUES (1, 'a', '[{"filename":"a.py","line":1,"name":"f"}]');
INSERT INTO segments (id, device_id, address, total_size, allocated_size, active_size, requested_size) VALUES
  (1, 1, 4096, 2048, 512, 512, 500);
INSERT INTO blocks VALUES
  (1, 1, 4096, 512, 500, 'active_allocated', 1), (2, 1, 4608, 1536, NULL, 'inactive', NULL);
INSERT INTO traces (id, device_id, trace_index, action, addr, size, user_metadata, is_workspace) VALUES
  (1, 1, 0, 'segment_alloc', 4096, 2048, NULL, 0),
  (2, 1, 1, 'alloc', 4096, 500, 'step "1", ' || char(10) || 'warm', 0),
  (3, 2, 0, 'oom', NULL, 9223372036854775807, '', 0);
"#;

/// A store of the rows that `inserts` makes.
fn store(inserts: &str) -> (TempDir, PathBuf) {
    let rows = sqlite();
    rows.execute_batch(inserts).unwrap();
    let place = tempdir().unwrap();
    let dir = place.path().join("run.npusnap");
    fs::create_dir(&dir).unwrap();
    let mut sink = ParquetSink::create(&dir).unwrap();
    for table in TABLES {
        let plain = batch(&rows, table);
        let columns = table.columns.iter().zip(plain.columns());
        let columns = columns.map(|(column, array)| cast(array, &(column.batch_type)()).unwrap()).collect();
        sink.write(table, RecordBatch::try_new(table.batch(), columns).unwrap()).unwrap();
    }
    sink.finish().unwrap();
    (place, dir)
}

fn npusnap(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npusnap"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn sql(dir: &Path, arguments: &[&str]) -> Output {
    npusnap(&["sql", dir.to_str().unwrap()]).args(arguments).output().unwrap()
}

/// Standard output of a run that did what it was asked to and had nothing to say about it.
fn done(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a run that could not do it, and wrote no data.
fn refused(output: Output) -> String {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Names of all files, also of those that are not whole yet.
fn names(dir: &Path) -> Vec<String> {
    let names = entries(dir).into_iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Files that are not whole yet.
fn hidden(dir: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with('.');
    entries(dir).into_iter().filter(is_hidden).collect()
}

#[test]
fn a_name_that_would_be_a_pattern_is_a_name() {
    let (place, dir) = store(ROWS);
    let odd = place.path().join("a[1]*?#%20 {b}.npusnap");
    fs::rename(&dir, &odd).unwrap();
    assert_eq!(done(sql(&odd, &["SELECT COUNT(*) AS n FROM traces", "--format", "csv"])), "n\n3\n");
}

#[test]
fn macros_answer_over_parquet() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT o.device_index, o.reserved, o.fragmentation_ratio, t.stack_id
        FROM device_overview AS o LEFT JOIN top_allocations(1) AS t ON t.device_id = o.device_id
        ORDER BY o.device_index";
    assert_eq!(
        done(sql(&dir, &[query, "--format", "csv"])),
        "device_index,reserved,fragmentation_ratio,stack_id\n0,2048,0.75,1\n1,0,,\n"
    );
}

#[test]
fn the_query_comes_from_a_file_or_standard_input_too() {
    let (place, dir) = store(ROWS);
    let file = place.path().join("q.sql");
    fs::write(&file, "-- how many\nSELECT COUNT(*) AS n\nFROM traces;\n").unwrap();
    let from_file = sql(&dir, &["-f", file.to_str().unwrap(), "--format", "csv"]);
    assert_eq!(done(from_file), "n\n3\n");
    for place in [&["-"][..], &["-f", "-"]] {
        let mut child = npusnap(&["sql", dir.to_str().unwrap(), "--format", "csv"])
            .args(place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"SELECT COUNT(*) AS n FROM traces").unwrap();
        assert_eq!(done(child.wait_with_output().unwrap()), "n\n3\n");
    }
    let nothing = refused(sql(&dir, &["-f", "/nonexistent/q.sql"]));
    assert!(nothing.starts_with("error: `/nonexistent/q.sql`: cannot read the query\n"), "{nothing}");
}

#[test]
fn a_second_snapshot_is_attached_with_all_its_relations() {
    let (_place, dir) = store(ROWS);
    let (_base_place, base) = store(
        "INSERT INTO devices VALUES (1, 0, 'Ascend-NPU');
         INSERT INTO segments (id, device_id, address, total_size, allocated_size, active_size, requested_size)
         VALUES (1, 1, 4096, 1000, 0, 0, 0);
         INSERT INTO blocks VALUES (1, 1, 4096, 1000, NULL, 'inactive', NULL)",
    );
    let base = base.to_str().unwrap();
    let query = "SELECT a.reserved, b.reserved AS before,
          (SELECT COUNT(*) FROM traces) AS events, (SELECT COUNT(*) FROM base.traces) AS events_before,
          (SELECT COUNT(*) FROM top_allocations(9)) AS top, (SELECT COUNT(*) FROM base.top_allocations(9)) AS top_before
        FROM device_overview AS a JOIN base.device_overview AS b ON b.device_index = a.device_index";
    assert_eq!(
        done(sql(&dir, &[query, "--ref", base, "--format", "csv"])),
        "reserved,before,events,events_before,top,top_before\n2048,1000,3,0,1,0\n"
    );
    let unknown = refused(sql(&dir, &["SELECT 1 FROM base.block", "--ref", base]));
    assert!(unknown.ends_with("hint: did you mean `base.blocks`?\n"), "{unknown}");
    let read_only = refused(sql(&dir, &["DROP TABLE base.blocks", "--ref", base]));
    assert!(read_only.starts_with("error: npusnap only reads: DROP is not allowed\n"), "{read_only}");
    let mut engine = Engine::open(Store::open(&dir).unwrap(), Options::default()).unwrap();
    engine.attach(BASE, Store::open(Path::new(base)).unwrap()).unwrap();
    assert_eq!(engine.relation("base.device_overview", &[]).unwrap().len(), 1);
    assert_eq!(engine.relation("device_overview", &[]).unwrap().len(), 2);
    let twice = engine.attach(BASE, Store::open(&dir).unwrap()).unwrap_err();
    assert_eq!(twice.to_string(), "schema `base`: there is one of this name already");
}

#[test]
fn running_sums_over_the_events_need_no_sort() {
    let (_place, dir) = store(ROWS);
    for partitions in [1, 4] {
        let engine = Engine::open(Store::open(&dir).unwrap(), Options { partitions, ..Options::default() });
        let engine = engine.unwrap();
        let plan: String = engine
            .query(
                "EXPLAIN SELECT device_id, MAX(run) FROM (
                   SELECT device_id, SUM(size) OVER (
                     PARTITION BY device_id ORDER BY trace_index
                     ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run
                   FROM traces) GROUP BY device_id",
            )
            .unwrap()
            .map(|batch| arrow::util::pretty::pretty_format_batches(&[batch.unwrap()]).unwrap().to_string())
            .collect();
        assert!(plan.contains("BoundedWindowAggExec") && !plan.contains("SortExec"), "{plan}");
    }
}

#[test]
fn the_schema_of_every_table_is_what_the_declaration_says() {
    let (_place, dir) = store(ROWS);
    let engine = Engine::open(Store::open(&dir).unwrap(), Options::default()).unwrap();
    for table in schema::TABLES {
        let batches = engine.query(&format!("SELECT * FROM {}", table.name)).unwrap();
        let found: Vec<_> = batches.schema().fields().iter().map(|field| field.name().clone()).collect();
        let declared: Vec<_> = table.columns.iter().map(|column| column.name.to_owned()).collect();
        assert_eq!(found, declared);
        for batch in batches {
            batch.unwrap();
        }
    }
}

#[test]
fn a_filter_above_an_aggregate_of_everything_filters_its_row() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT * FROM (SELECT 'a' AS t, COUNT(*) AS n FROM traces) WHERE t = ";
    assert_eq!(done(sql(&dir, &["--format", "csv", &format!("{query}'b'")])), "t,n\n");
    assert_eq!(done(sql(&dir, &["--format", "csv", &format!("{query}'a'")])), "t,n\na,3\n");
}
