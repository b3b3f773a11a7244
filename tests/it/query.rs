//! `npusnap sql` as users run it, over Parquet.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use arrow::compute::cast;
use arrow::record_batch::RecordBatch;
use npusnap::engine::{Engine, Options};
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

#[test]
fn rows_come_in_every_format() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT trace_index, action, size, user_metadata FROM traces ORDER BY id";
    assert_eq!(
        done(sql(&dir, &[query])),
        "trace_index  action                        size  user_metadata\n\
         -----------  -------------  -------------------  ----------------\n\
         \x20         0  segment_alloc                 2048  NULL\n\
         \x20         1  alloc                          500  step \"1\", \\nwarm\n\
         \x20         0  oom            9223372036854775807\n"
    );
    assert_eq!(
        done(sql(&dir, &[query, "--format", "json"])),
        r#"[
{"trace_index":0,"action":"segment_alloc","size":2048,"user_metadata":null},
{"trace_index":1,"action":"alloc","size":500,"user_metadata":"step \"1\", \nwarm"},
{"trace_index":0,"action":"oom","size":9223372036854775807,"user_metadata":""}
]
"#
    );
    assert_eq!(
        done(sql(&dir, &[query, "--format", "csv"])),
        "trace_index,action,size,user_metadata\n\
         0,segment_alloc,2048,\n\
         1,alloc,500,\"step \"\"1\"\", \nwarm\"\n\
         0,oom,9223372036854775807,\"\"\n"
    );
}

#[test]
fn an_empty_result_is_a_header_or_an_empty_array() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT id, frames FROM call_stacks WHERE id > 1";
    assert_eq!(done(sql(&dir, &[query])), "id  frames\n--  ------\n");
    assert_eq!(done(sql(&dir, &[query, "--format", "json"])), "[]\n");
    assert_eq!(done(sql(&dir, &[query, "--format", "csv"])), "id,frames\n");
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
fn a_file_has_its_name_only_when_it_is_whole() {
    let (place, dir) = store(ROWS);
    let file = place.path().join("rows.json");
    let target = file.to_str().unwrap();
    fs::write(&file, "old").unwrap();
    refused(sql(&dir, &["SELECT size / trace_index FROM traces", "--format", "json", "-o", target]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(done(sql(&dir, &["SELECT 1 AS a", "--format", "json", "-o", target])), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "[\n{\"a\":1}\n]\n");
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let message = refused(sql(&dir, &["SELECT 1", "-o", "/nonexistent/rows.csv"]));
    assert!(message.starts_with("error: `/nonexistent/rows.csv`: cannot create\n"), "{message}");
}

#[test]
fn rows_beyond_the_limit_are_counted() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT value FROM generate_series(1, 30000)";
    let output = sql(&dir, &[query, "--format", "csv", "--max-rows", "2"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "value\n1\n2\n");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "29,998 more rows; `--max-rows N` sets how many are shown\n"
    );
    assert_eq!(output.status.code(), Some(0));
    // In a pipe nothing is left out, whatever the format.
    assert_eq!(done(sql(&dir, &[query])).lines().count(), 30_002);
    let quiet = sql(&dir, &[query, "--quiet", "--format", "json", "--max-rows", "0"]);
    assert_eq!(done(quiet), "[]\n");
}

#[test]
fn a_query_can_only_read() {
    let (place, dir) = store(ROWS);
    let out = place.path().join("out.csv");
    let csv = place.path().join("in.csv");
    fs::write(&csv, "a\n1\n").unwrap();
    let (out, csv) = (out.display(), csv.display());
    for statement in [
        "DROP TABLE traces".to_owned(),
        "DELETE FROM traces".to_owned(),
        "UPDATE traces SET size = 0".to_owned(),
        "INSERT INTO devices VALUES (9, 9, 'x')".to_owned(),
        "CREATE TABLE t AS SELECT 1".to_owned(),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{csv}'"),
        format!("COPY (SELECT 1) TO '{out}'"),
        format!("EXPLAIN COPY (SELECT 1) TO '{out}'"),
        format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'"),
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1".to_owned(),
        "SET datafusion.execution.batch_size = 1".to_owned(),
        "PREPARE p AS SELECT 1".to_owned(),
        "SELECT 1; SELECT 2".to_owned(),
        format!("SELECT * FROM '{csv}'"),
        format!("SELECT * FROM \"{csv}\""),
        String::new(),
    ] {
        let message = refused(sql(&dir, &[&statement]));
        assert!(message.starts_with("error: "), "{statement}: {message}");
    }
    assert!(!place.path().join("out.csv").exists());
    assert_eq!(done(sql(&dir, &["SELECT COUNT(*) AS n FROM traces", "--format", "csv"])), "n\n3\n");
}

#[test]
fn an_unknown_name_brings_the_nearest() {
    let (_place, dir) = store(ROWS);
    assert_eq!(
        refused(sql(&dir, &["SELECT * FROM segment"])),
        "error: no table or macro called `segment`\n\nhint: did you mean `segments`?\n"
    );
    assert_eq!(
        refused(sql(&dir, &["SELECT * FROM top_allocation(10)"])),
        "error: no table or macro called `top_allocation`\n\nhint: did you mean `top_allocations`?\n"
    );
    let column = refused(sql(&dir, &["SELECT totalsize FROM segments"]));
    assert!(column.contains("`SELECT totalsize FROM segments` failed"), "{column}");
    assert!(column.contains("total_size"), "{column}");
    let argument = refused(sql(&dir, &["SELECT * FROM top_allocations('ten')"]));
    let expected = "`top_allocations(limit BIGINT = 10, device BIGINT = NULL)`: parameter `limit` is BIGINT, found 'ten'";
    assert!(argument.contains(expected), "{argument}");
    let arguments = refused(sql(&dir, &["SELECT * FROM block_state_dist(1, 2)"]));
    assert!(arguments.contains("takes at most 1 argument, found 2"), "{arguments}");
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (_place, dir) = store(ROWS);
    for format in ["table", "json", "csv"] {
        let query = "SELECT value FROM generate_series(1, 1000000)";
        let mut child = npusnap(&["sql", dir.to_str().unwrap(), query, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
        assert_eq!(done(child.wait_with_output().unwrap()), "");
    }
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
