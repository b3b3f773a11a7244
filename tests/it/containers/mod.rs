//! Snapshots in gzip, zstd, HTML and JSON, from files and pipes: the same rows as the pickle, and bounded on hostile input.

mod wrap;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use npusnap::schema::TABLES;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::{TempDir, tempdir};

use wrap::{gzip, html, json, zstd};

fn fixtures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pickle"));
    paths.sort();
    assert!(paths.len() > 5, "the fixtures are gone");
    paths
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).unwrap()
}

fn npusnap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npusnap"));
    command.stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs `ingest` on these bytes under a name that says nothing; returns the database.
fn ingest(bytes: &[u8], arguments: &[&str]) -> (TempDir, Output, PathBuf) {
    let dir = tempdir().unwrap();
    let source = dir.path().join("any.name");
    fs::write(&source, bytes).unwrap();
    let output = npusnap().arg("ingest").arg(&source).args(arguments).output().unwrap();
    let database = dir.path().join("any.db");
    (dir, output, database)
}

/// The database made of these bytes, which must be readable.
fn database(bytes: &[u8], arguments: &[&str]) -> Connection {
    let (dir, output, database) = ingest(bytes, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let connection = Connection::open(database).unwrap();
    // An open file stays readable without its name.
    drop(dir);
    connection
}

fn rows(database: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = database.prepare(sql).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| (0..width).map(|column| row.get(column)).collect()).unwrap();
    rows.map(Result::unwrap).collect()
}

fn number(database: &Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// All rows of all tables but what says which file they are from.
fn content(database: &Connection) -> Vec<(&'static str, Vec<Vec<Value>>)> {
    TABLES
        .iter()
        .map(|table| {
            let from_file = ["source_name", "source_bytes", "sha256", "container", "protocol", "producer"];
            let columns: Vec<&str> = table
                .columns
                .iter()
                .filter(|column| !from_file.contains(&column.name) && column.sqlite.is_some())
                .map(|column| column.name)
                .collect();
            (table.name, rows(database, &format!("SELECT {} FROM {}", columns.join(", "), table.name)))
        })
        .collect()
}

fn same(one: &Connection, other: &Connection, what: &str) {
    for ((table, expected), (_, found)) in content(one).into_iter().zip(content(other)) {
        assert!(expected == found, "{what}: table {table} differs: {expected:.300?} and {found:.300?}");
    }
}

#[test]
fn every_container_of_every_fixture_gives_the_rows_of_the_pickle() {
    for path in fixtures() {
        let pickle = fs::read(&path).unwrap();
        let plain = database(&pickle, &[]);
        let mut wrapped = vec![
            ("pickle+gzip", gzip(&pickle)),
            ("pickle+zstd", zstd(&pickle)),
            ("pickle+html", html(&pickle)),
            ("pickle+html+gzip", gzip(&html(&pickle))),
        ];
        if let Some(json) = json(&path) {
            wrapped.push(("json+zstd", zstd(&json)));
            wrapped.push(("json", json));
        }
        for (container, bytes) in wrapped {
            let found = database(&bytes, &[]);
            same(&plain, &found, &format!("{} as {container}", path.display()));
            let facts = rows(&found, "SELECT container, source_bytes FROM snapshot");
            let expected =
                [Value::Text(container.to_owned()), Value::Integer(bytes.len().try_into().unwrap())];
            assert_eq!(facts, [expected]);
        }
    }
}

#[test]
fn the_digest_is_that_of_the_file_as_it_is_on_the_disk() {
    use sha2::Digest as _;
    for bytes in [gzip(&fixture("npu_leak.pickle")), html(&fixture("npu_leak.pickle"))] {
        let expected: String =
            sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(rows(&database(&bytes, &[]), "SELECT sha256 FROM snapshot"), [[Value::Text(expected)]]);
    }
}

#[test]
fn a_pipe_is_a_source_and_leaves_nothing_behind() {
    let dir = tempdir().unwrap();
    let piped = |arguments: &[&str]| {
        let mut child = npusnap()
            .args(arguments)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&gzip(&fixture("npu_two_devices.pickle"))).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = piped(&[
        "sql",
        "-",
        "SELECT count(*) AS n, max(source_name) AS name FROM snapshot",
        "--format",
        "csv",
    ]);
    assert_eq!(text(&output.stdout), "n,name\n1,stdin\n", "{}", text(&output.stderr));
    assert!(piped(&["analyze", "-"]).status.success());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(piped(&["ingest", "-"]).status.success());
    assert!(dir.path().join("stdin.db").exists() && dir.path().join("stdin.npusnap").exists());
    let output = piped(&["sql", "-", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("both the snapshot and the query"));
}

#[test]
fn a_cut_gzip_file_says_where_and_what_helps() {
    let bytes = gzip(&fixture("npu_two_devices.pickle"));
    let (_dir, output, database) = ingest(&bytes[..bytes.len() / 2], &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    for part in [
        "the gzip data is cut short or damaged: it ends too early",
        "at byte ",
        "--salvage",
        "gzip container",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!database.exists());
}

#[test]
fn a_changed_checksum_is_noticed_though_the_pickle_is_whole() {
    let mut bytes = gzip(&fixture("npu_leak.pickle"));
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    assert_eq!(ingest(&bytes, &[]).1.status.code(), Some(2));
}

#[test]
fn pages_without_a_snapshot_and_other_files_are_refused_by_name() {
    for (bytes, part) in [
        (
            b"<html><script>const a = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'</script>".as_slice(),
            "there is no snapshot in the page",
        ),
        (b"{\"a\": 1}", "the top level: expected a snapshot"),
        (b"[1, 2", "at byte 4: the file ends in the middle of a JSON number"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"", "the file is empty"),
    ] {
        let (_dir, output, _) = ingest(bytes, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
        let is_page = bytes.starts_with(b"<");
        assert_eq!(text(&output.stderr).contains("hint: give the snapshot file itself"), is_page);
        assert!(!is_page || !text(&output.stderr).contains("salvage"), "there is nothing to salvage");
    }
}

#[test]
fn what_a_number_in_json_may_not_be_is_said_with_its_place() {
    let page = |size: &str| {
        format!(
            "{{\"segments\": [], \"device_traces\": [[{{\"action\": \"alloc\", \"addr\": 1, \"size\": {size}, \"stream\": 0}}]]}}"
        )
    };
    for (size, part) in [
        (
            "1.5",
            "device_traces[0][0].size (dict ends at byte @): expected a number of bytes from 0 to 2^63 - 1, found the float 1.5",
        ),
        ("9223372036854775808", "found the integer 9223372036854775808"),
        ("99999999999999999999", "at byte 75: an integer of more than 64 bits"),
    ] {
        let (_dir, output, _) = ingest(page(size).as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert!(
            message.contains(part.replace('@', &(75 + size.len() + 13).to_string()).as_str()),
            "{message}"
        );
    }
    let database = database(page("7").as_bytes(), &[]);
    assert_eq!(number(&database, "SELECT size FROM traces"), 7);
}

/// Runs the command with at most this much memory, in KiB.
fn ingest_in_memory(kib: u64, source: &Path) -> Output {
    let script = format!("ulimit -v {kib}; exec \"$0\" ingest \"$1\"");
    Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_npusnap")]).arg(source).output().unwrap()
}

#[test]
fn a_small_file_that_unpacks_to_half_a_gigabyte_costs_no_memory() {
    // A list that begins and never ends, then zeros; and a whole pickle with as many zeros behind it.
    let dir = tempdir().unwrap();
    for (name, head, code) in
        [("zeros", vec![], 2), ("json", b"[".to_vec(), 2), ("tail", fixture("npu_leak.pickle"), 0)]
    {
        let source = dir.path().join(name);
        let mut encoder = zstd_encoder(fs::File::create(&source).unwrap());
        encoder.write_all(&head).unwrap();
        let filler = if name == "json" { b' ' } else { 0 };
        let block = vec![filler; 1 << 20];
        (0..512).for_each(|_| encoder.write_all(&block).unwrap());
        encoder.finish().unwrap();
        assert!(fs::metadata(&source).unwrap().len() < 1 << 20);
        let output = ingest_in_memory(500 * 1024, &source);
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
    }
}

fn zstd_encoder(file: fs::File) -> ::zstd::Encoder<'static, fs::File> {
    ::zstd::Encoder::new(file, 1).unwrap()
}

#[test]
fn salvage_keeps_what_was_complete_at_every_twentieth_of_a_snapshot() {
    for name in [
        "npu_two_devices.pickle",
        "cuda_oom_expandable.pickle",
        "cuda_cpp_writer.pickle",
        "legacy_history.pickle",
    ] {
        let pickle = fixture(name);
        let whole = database(&pickle, &[]);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        for bytes in [Some(pickle), json(&path)].into_iter().flatten() {
            for part in 1..20 {
                let cut = bytes.len() * part / 20;
                let (_dir, output, database) = ingest(&bytes[..cut], &["--salvage"]);
                if output.status.code() == Some(2) {
                    // Nothing was complete: the first segment of the old form is most of the file.
                    assert!(part < 18, "{name} at {cut}: {}", text(&output.stderr));
                    continue;
                }
                assert!(text(&output.stderr).contains("warning: any.name: salvaged up to byte "));
                let found = Connection::open(database).unwrap();
                is_prefix(&whole, &found, &format!("{name} cut at {cut}"));
                let place = number(
                    &found,
                    "SELECT value FROM import_stats WHERE name = 'salvaged_to_byte' AND severity = 'data_loss'",
                );
                assert!((1..=cut.try_into().unwrap()).contains(&place), "{place} of {cut}");
            }
            assert_eq!(ingest(&bytes[..bytes.len() / 2], &[]).1.status.code(), Some(2), "without --salvage");
        }
    }
}

/// Whether `part` has the first rows of `whole`, as far as they were read.
fn is_prefix(whole: &Connection, part: &Connection, what: &str) {
    for sql in [
        "SELECT id, trace_index, action, addr, size, stream, time_us FROM traces ORDER BY id",
        "SELECT id, address, total_size, stream FROM segments ORDER BY id",
        "SELECT id, segment_id, address, size, state FROM blocks ORDER BY id",
    ] {
        let (expected, found) = (rows(whole, sql), rows(part, sql));
        assert!(found.len() <= expected.len() && found == expected[..found.len()], "{what}: {sql}");
    }
    assert_eq!(rows(part, "PRAGMA foreign_key_check"), Vec::<Vec<Value>>::new(), "{what}");
}

#[test]
fn salvage_of_a_small_file_that_unpacks_to_many_rows_keeps_them() {
    let event = b"}(X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0addrK\x01X\x04\0\0\0sizeK\x01u";
    let head = b"\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces](](";
    let events = 600_000;
    let file = gzip(&[head.as_slice(), &event.repeat(events), b"eeu."].concat());
    assert!(file.len() < 1 << 20);
    let (_dir, output, database) = ingest(&file[..file.len() * 9 / 10], &["--salvage"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = number(&Connection::open(database).unwrap(), "SELECT COUNT(*) FROM traces");
    assert!((500_000..600_000).contains(&found), "{found}");
}

#[test]
fn salvage_of_a_whole_snapshot_changes_nothing() {
    let pickle = fixture("npu_two_devices.pickle");
    same(&database(&pickle, &[]), &database(&pickle, &["--salvage"]), "--salvage");
}

#[test]
fn filters_keep_what_sql_would_keep_and_count_the_rest() {
    let pickle = fixture("npu_two_devices.pickle");
    let whole = database(&pickle, &[]);
    let columns = "device_index, trace_index, action, addr, size, stream, is_workspace, stack_hash";
    let events = |database: &Connection, condition: &str| {
        let sql = format!(
            "SELECT {columns} FROM traces JOIN devices ON devices.id = device_id \
             LEFT JOIN call_stacks ON call_stacks.id = stack_id WHERE {condition} ORDER BY traces.id"
        );
        rows(database, &sql)
    };
    for (arguments, condition) in [
        (vec!["--events", "10..20"], "trace_index >= 10 AND trace_index < 20"),
        (vec!["--events", "..3"], "trace_index < 3"),
        (vec!["--events", "100.."], "trace_index >= 100"),
        (vec!["--min-size", "1048576"], "(size >= 1048576 OR size IS NULL)"),
        (vec!["--device", "1"], "device_index = 1"),
        (vec!["--device", "0", "--device", "1"], "1"),
        (
            vec!["--device", "1", "--events", "5..50", "--min-size", "4096"],
            "device_index = 1 AND trace_index >= 5 AND trace_index < 50 AND (size >= 4096 OR size IS NULL)",
        ),
    ] {
        let found = database(&pickle, &arguments);
        let kept = events(&whole, condition);
        assert_eq!(events(&found, "1"), kept, "{arguments:?}");
        let left_out = number(
            &found,
            "SELECT coalesce(sum(value), 0) FROM import_stats WHERE name = 'events_left_out' AND severity = 'info'",
        );
        assert_eq!(left_out, i64::try_from(events(&whole, "1").len() - kept.len()).unwrap(), "{arguments:?}");
        let only_used = "SELECT count(*) FROM call_stacks WHERE id NOT IN (SELECT stack_id FROM traces WHERE stack_id IS NOT NULL \
            UNION SELECT stack_id FROM blocks WHERE stack_id IS NOT NULL UNION SELECT stack_id FROM segments WHERE stack_id IS NOT NULL)";
        assert_eq!(number(&found, only_used), 0, "{arguments:?}");
        let device = if arguments.len() == 4 && arguments[2] == "--device" || !arguments.contains(&"--device")
        {
            "1"
        } else {
            "device_index = 1"
        };
        let state = |database: &Connection, condition: &str| {
            rows(
                database,
                &format!(
                    "SELECT device_index, segments.address, total_size, blocks.address, blocks.size, blocks.state FROM segments \
                 JOIN devices ON devices.id = device_id JOIN blocks ON segment_id = segments.id WHERE {condition} ORDER BY blocks.id"
                ),
            )
        };
        assert_eq!(state(&found, "1"), state(&whole, device), "{arguments:?}: the final state");
    }
    let (_dir, output, _) = ingest(&pickle, &["--events", "5..3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the range ends before it begins"));
}

#[test]
fn a_filtered_result_beside_the_snapshot_is_no_cache() {
    let (dir, output, _) = ingest(&fixture("npu_two_devices.pickle"), &["--events", "..3"]);
    assert!(output.status.success());
    let query = |cache: &Path| {
        let output = npusnap()
            .args(["sql", "--format", "csv"])
            .arg(dir.path().join("any.name"))
            .arg("SELECT count(*) AS n FROM traces")
            .env("XDG_CACHE_HOME", cache)
            .output()
            .unwrap();
        text(&output.stdout).to_owned()
    };
    assert_eq!(query(&dir.path().join("cache")), "n\n255\n");
}

#[test]
fn compressed_snapshots_are_kept_for_the_next_time_by_runs_at_once_too() {
    let dir = tempdir().unwrap();
    let source = dir.path().join("run.pickle.gz");
    fs::write(&source, gzip(&fixture("npu_two_devices.pickle"))).unwrap();
    let start = |more: &[&str]| {
        npusnap()
            .args(["sql", "--format", "csv"])
            .arg(&source)
            .arg("SELECT count(*) AS n FROM traces")
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    assert_eq!(text(&start(&["--no-cache"]).wait_with_output().unwrap().stdout), "n\n255\n");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "--no-cache keeps nothing");
    let children: Vec<_> = (0..4).map(|_| start(&[])).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stdout), "n\n255\n", "{}", text(&output.stderr));
    }
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["run.pickle.gz", "run.pickle.npusnap"], "nothing is left over");
    let table = dir.path().join("run.pickle.npusnap/traces.parquet");
    let made = fs::metadata(&table).unwrap().modified().unwrap();
    assert!(start(&[]).wait().unwrap().success());
    assert_eq!(
        fs::metadata(&table).unwrap().modified().unwrap(),
        made,
        "the second time it is read, not made"
    );
}
