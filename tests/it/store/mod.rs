//! Stores hold what they were given, say what it is, and are whole or not there.

mod sample;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use npusnap::error::Error;
use npusnap::schema::{CallStack, TABLES, Table, TraceEvent, VERSION, table};
use npusnap::snapshot::RowSink;
use npusnap::store::{Fanout, Indexes, ParquetSink, Source, SqliteOptions, SqliteSink, Store};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::tempdir;

use sample::{ACTIONS, Batches, sample};

fn feed(sink: &mut dyn RowSink, batches: &Batches) -> npusnap::error::Result<()> {
    batches.iter().try_for_each(|(table, batch)| sink.write(table, batch.clone()))
}

fn write_both(dir: &Path, batches: &Batches, options: SqliteOptions) {
    let mut parquet = ParquetSink::create(dir).unwrap();
    let mut sqlite = SqliteSink::create(&dir.join("db"), options).unwrap();
    feed(&mut Fanout::new(vec![&mut parquet, &mut sqlite]), batches).unwrap();
    parquet.finish().unwrap();
    sqlite.finish().unwrap();
}

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// Cells of the columns that both stores have, row by row.
fn cells(table: &Table, batch: &RecordBatch) -> Vec<Vec<Cell>> {
    let columns: Vec<_> = table
        .sqlite_columns()
        .map(|column| {
            let array = batch.column_by_name(column.name).unwrap();
            let plain = cast(array, &(column.data_type)()).unwrap();
            (0..batch.num_rows())
                .map(|row| match plain.data_type() {
                    _ if plain.is_null(row) => Cell::Null,
                    DataType::Int64 => Cell::Integer(plain.as_primitive::<Int64Type>().value(row)),
                    DataType::Float64 => Cell::Real(plain.as_primitive::<Float64Type>().value(row)),
                    _ => Cell::Text(plain.as_string::<i32>().value(row).to_owned()),
                })
                .collect::<Vec<_>>()
        })
        .collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

fn parquet_batches(dir: &Path, table: &Table) -> Vec<RecordBatch> {
    let file = File::open(dir.join(format!("{}.parquet", table.name))).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect()
}

fn parquet_rows(dir: &Path, table: &Table) -> Vec<Vec<Cell>> {
    parquet_batches(dir, table).iter().flat_map(|batch| cells(table, batch)).collect()
}

fn sqlite_rows(db: &Path, table: &Table) -> Vec<Vec<Cell>> {
    let connection = Connection::open(db).unwrap();
    let mut statement = connection.prepare(&format!("SELECT * FROM {} ORDER BY rowid", table.name)).unwrap();
    let names: Vec<&str> = table.sqlite_columns().map(|column| column.name).collect();
    assert_eq!(statement.column_names().collect::<Vec<_>>(), names);
    let mut rows = statement.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push(
            (0..names.len())
                .map(|column| match row.get_ref(column).unwrap() {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(value) => Cell::Integer(value),
                    ValueRef::Real(value) => Cell::Real(value),
                    ValueRef::Text(text) => Cell::Text(String::from_utf8(text.to_vec()).unwrap()),
                    ValueRef::Blob(_) => panic!("a blob in {}", table.name),
                })
                .collect(),
        );
    }
    found
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn both_stores_hold_the_rows_they_were_given() {
    let dir = tempdir().unwrap();
    let batches = sample(1730);
    write_both(dir.path(), &batches, SqliteOptions::default());
    for table in TABLES {
        let given: Vec<Vec<Cell>> = batches
            .iter()
            .filter(|(of, _)| of.name == table.name)
            .flat_map(|(_, batch)| cells(table, batch))
            .collect();
        assert_eq!(given.is_empty(), table.name == "allocations");
        assert_eq!(parquet_rows(dir.path(), table), given, "{} in Parquet", table.name);
        assert_eq!(sqlite_rows(&dir.path().join("db"), table), given, "{} in SQLite", table.name);
    }
}

#[test]
fn frames_are_nested_and_an_empty_stack_is_no_null() {
    let dir = tempdir().unwrap();
    write_both(dir.path(), &sample(1), SqliteOptions::default());
    let batches = parquet_batches(dir.path(), &CallStack::TABLE);
    let frames = batches[0].column_by_name("frames").unwrap().as_list::<i32>();
    let lengths: Vec<Option<usize>> = frames.iter().map(|stack| stack.map(|stack| stack.len())).collect();
    assert_eq!(lengths, [Some(1), Some(2), Some(3), Some(0)]);
    let third = frames.value(2);
    let lines =
        third.as_struct().column_by_name("line").unwrap().as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(lines, [0, 1, 2]);
}

#[test]
fn readers_see_the_declared_schema_with_docs_and_without_dictionaries() {
    let dir = tempdir().unwrap();
    write_both(dir.path(), &sample(10), SqliteOptions::default());
    for table in TABLES {
        let path = dir.path().join(format!("{}.parquet", table.name));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.schema().fields(), table.arrow().fields(), "{}", table.name);

        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let pairs: BTreeMap<String, String> = file
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap()
            .iter()
            .map(|pair| (pair.key.clone(), pair.value.clone().unwrap()))
            .collect();
        assert_eq!(pairs["npusnap.schema_version"], VERSION.to_string());
        assert_eq!(pairs["npusnap.version"], env!("CARGO_PKG_VERSION"));
        assert!(table.doc.contains(pairs["npusnap.doc"].split(". ").next().unwrap().trim_end_matches('.')));
        assert!(
            table.columns.iter().all(|column| !pairs[&format!("npusnap.doc.{}", column.name)].is_empty())
        );
    }
}

#[test]
fn columns_are_encoded_and_sorted_as_declared() {
    let dir = tempdir().unwrap();
    write_both(dir.path(), &sample(1000), SqliteOptions::default());
    let file = SerializedFileReader::new(File::open(dir.path().join("traces.parquet")).unwrap()).unwrap();
    let group = file.metadata().row_group(0);
    let sorting: Vec<(i32, bool)> = group
        .sorting_columns()
        .unwrap()
        .iter()
        .map(|column| (column.column_idx, column.descending))
        .collect();
    assert_eq!(sorting, [(1, false), (2, false)], "device_id, trace_index");
    for chunk in group.columns() {
        let name = chunk.column_path().string();
        let delta = ["id", "trace_index", "time_us", "device_id", "pool_id_0", "pool_id_1", "is_workspace"]
            .contains(&name.as_str());
        assert_eq!(chunk.dictionary_page_offset().is_none(), delta, "{name}");
        let encodings: Vec<Encoding> = chunk.encodings().collect();
        assert_eq!(encodings.contains(&Encoding::DELTA_BINARY_PACKED), delta, "{name}");
        assert!(matches!(chunk.compression(), Compression::ZSTD(_)), "{name}");
        assert_eq!(chunk.statistics().is_some(), delta, "a page of no other column can be left out: {name}");
    }
}

#[test]
fn the_same_batches_give_the_same_bytes() {
    let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
    for dir in [&one, &other] {
        write_both(dir.path(), &sample(1500), SqliteOptions::default());
    }
    assert!(files(one.path()) == files(other.path()));
}

#[test]
fn the_database_has_its_indexes_views_and_versions() {
    let dir = tempdir().unwrap();
    let views = vec![
        ("live".to_owned(), "SELECT id FROM blocks WHERE state = 'inactive'".to_owned()),
        ("live_count".to_owned(), "SELECT count(*) AS n FROM live".to_owned()),
    ];
    write_both(dir.path(), &sample(10), SqliteOptions { views, ..SqliteOptions::default() });
    let connection = Connection::open(dir.path().join("db")).unwrap();
    let names = |kind: &str| -> Vec<String> {
        let sql = "SELECT name FROM sqlite_master WHERE type = ?1 AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([kind], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let indexes = [
        "idx_blocks_segment",
        "idx_blocks_segment_state",
        "idx_blocks_stack",
        "idx_blocks_state",
        "idx_segments_device",
        "idx_segments_device_type",
        "idx_segments_stack",
        "idx_traces_device_action",
        "idx_traces_device_index",
        "idx_traces_stack",
    ];
    assert_eq!(names("index"), indexes);
    assert_eq!(names("view"), ["live", "live_count"]);
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT n FROM live_count"), 150);
    assert_eq!(number("PRAGMA user_version"), VERSION);
    assert_eq!(
        connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
}

#[test]
fn without_indexes_the_rows_are_the_same() {
    let (with, without) = (tempdir().unwrap(), tempdir().unwrap());
    write_both(with.path(), &sample(100), SqliteOptions::default());
    let options = SqliteOptions { indexes: Indexes::LeaveOut, ..SqliteOptions::default() };
    write_both(without.path(), &sample(100), options);
    let db = without.path().join("db");
    let count = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL";
    assert_eq!(Connection::open(&db).unwrap().query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    for table in TABLES {
        assert_eq!(sqlite_rows(&db, table), sqlite_rows(&with.path().join("db"), table));
    }
}

/// Writes `batches` to SQLite and gives the error with its causes.
fn sqlite_error(batches: &Batches, options: SqliteOptions) -> String {
    let dir = tempdir().unwrap();
    let mut sink = SqliteSink::create(&dir.path().join("db"), options).unwrap();
    let error = feed(&mut sink, batches).and_then(|()| sink.finish()).unwrap_err();
    let mut text = Vec::new();
    error.report(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_row_that_refers_to_a_missing_one_is_an_error() {
    let mut batches = sample(10);
    batches.retain(|(table, _)| table.name != "call_stacks");
    let text = sqlite_error(&batches, SqliteOptions::default());
    assert!(text.contains("refers to a row of `call_stacks` that is not there"), "{text}");
}

#[test]
fn a_view_that_means_nothing_is_an_error() {
    let views = vec![("broken".to_owned(), "SELECT nothing FROM blocks".to_owned())];
    let text = sqlite_error(&sample(10), SqliteOptions { views, ..SqliteOptions::default() });
    assert!(text.contains("nothing"), "{text}");
}

#[test]
fn traces_out_of_order_are_refused_because_the_file_says_they_are_sorted() {
    let dir = tempdir().unwrap();
    let mut batches = sample(1000);
    batches.swap(0, 1);
    let mut sink = ParquetSink::create(dir.path()).unwrap();
    let error = feed(&mut sink, &batches).and_then(|()| sink.finish()).unwrap_err();
    assert!(matches!(error, Error::Store { .. }), "{error:?}");
}

#[test]
fn a_full_disk_is_an_error_with_a_hint() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    }
    let dir = tempdir().unwrap();
    symlink("/dev/full", dir.path().join("traces.parquet")).unwrap();
    // Creating the file writes the format's first bytes into a buffer only.
    let mut sink = ParquetSink::create(dir.path()).unwrap();
    let error = feed(&mut sink, &sample(2000)).and_then(|()| sink.finish()).unwrap_err();
    assert!(error.to_string().contains("traces.parquet"), "{error}");
    assert!(error.hint().unwrap().contains("free some space"), "{error:?}");
}

#[test]
fn a_missing_folder_is_an_error() {
    let dir = tempdir().unwrap();
    let missing = dir.path().join("missing");
    assert!(matches!(ParquetSink::create(&missing), Err(Error::Io { .. })));
    assert!(SqliteSink::create(&missing.join("db"), SqliteOptions::default()).is_err());
}

/// Threads of this process that write a store, by the name they carry.
fn writers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "store"))
        .count()
}

#[test]
fn an_abandoned_sink_ends_its_thread() {
    if !Path::new("/proc/self/task").exists() {
        eprintln!("SKIPPED: there is no /proc");
        return;
    }
    let dir = tempdir().unwrap();
    let mut sinks: Vec<ParquetSink> = (0..50)
        .map(|number| {
            let dir = dir.path().join(number.to_string());
            fs::create_dir(&dir).unwrap();
            ParquetSink::create(&dir).unwrap()
        })
        .collect();
    for sink in &mut sinks {
        feed(sink, &sample(10)).unwrap();
    }
    assert!(writers() >= 50);
    drop(sinks);
    // Other tests run stores of their own beside this one, but far fewer.
    assert!(writers() < 50);
}

#[test]
fn a_store_is_opened_in_place_and_a_folder_with_one_store_is_that_store() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("a.npusnap");
    fs::create_dir(&store).unwrap();
    write_both(&store, &sample(10), SqliteOptions::default());
    let traces = store.join("traces.parquet");
    assert_eq!(Store::open(&store).unwrap().table_path("traces"), traces);
    assert_eq!(Store::open(dir.path()).unwrap().table_path("traces"), traces);

    fs::create_dir(dir.path().join("b.npusnap")).unwrap();
    let error = Store::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("holds 2 stores"), "{error}");

    fs::remove_file(store.join("blocks.parquet")).unwrap();
    let error = Store::open(&store).unwrap_err().to_string();
    assert!(error.contains("blocks.parquet"), "{error}");
}

#[test]
fn what_is_no_file_is_no_table_of_a_store() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("a.npusnap");
    fs::create_dir(&store).unwrap();
    write_both(&store, &sample(10), SqliteOptions::default());
    let refused = |text: &str| {
        let error = Store::open(&store).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some(text), "{error}");
    };
    // The engine would take a folder for all files in it, and whoever opens a pipe waits for a writer.
    let (traces, snapshot) = (store.join("traces.parquet"), store.join("snapshot.parquet"));
    let aside = dir.path().join("aside");
    fs::rename(&traces, &aside).unwrap();
    fs::create_dir(&traces).unwrap();
    fs::copy(&aside, traces.join("a.parquet")).unwrap();
    refused("it is no file");
    fs::remove_dir_all(&traces).unwrap();
    fs::rename(&aside, &traces).unwrap();
    fs::rename(&snapshot, &aside).unwrap();
    if !Command::new("mkfifo").arg(&snapshot).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no `mkfifo`");
        return;
    }
    refused("`snapshot.parquet` was not written by npusnap");
}

#[test]
fn what_is_no_snapshot_is_named_for_what_it_is() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("misleading.pickle");
    let heads: [(&[u8], &str); 2] = [(b"PAR1", "single Parquet file"), (b"PK\x03\x04", "zip")];
    for (head, kind) in heads {
        fs::write(&path, head).unwrap();
        let error = Source::find(&path).unwrap_err().to_string();
        assert!(error.contains(kind) && error.contains("npusnap reads"), "{error}");
    }
    for head in [
        b"\x80\x04N.".as_slice(),
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"<!DOCTYPE html>",
        b"{\"segments\": []}",
    ] {
        fs::write(&path, head).unwrap();
        assert_eq!(Source::find(&path).unwrap(), Source::Snapshot(path.clone()));
    }
    fs::write(&path, b"SQLite format 3\0....").unwrap();
    assert_eq!(Source::find(&path).unwrap(), Source::Database(path.clone()));
    assert!(Source::find(&dir.path().join("missing")).is_err());
    let error = Source::find(dir.path()).unwrap_err().to_string();
    assert!(error.contains("without `snapshot.parquet`"), "{error}");
}

#[test]
fn text_of_every_action_survives() {
    let dir = tempdir().unwrap();
    write_both(dir.path(), &sample(4), SqliteOptions::default());
    let action =
        table("traces").unwrap().sqlite_columns().position(|column| column.name == "action").unwrap();
    let found: Vec<Cell> = parquet_rows(dir.path(), &TraceEvent::TABLE)
        .into_iter()
        .take(4)
        .map(|row| row[action].clone())
        .collect();
    assert_eq!(found, ACTIONS.map(|name| Cell::Text(name.to_owned())));
}
