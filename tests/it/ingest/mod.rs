//! `npusnap ingest` as users run it: where results go, what stands in the way, and what an interruption leaves.

mod abrupt;
mod folder;
mod handmade;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use npusnap::schema::{TABLES, VERSION};
use npusnap::store::{Cache, Silent, Store};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use handmade::snapshot;

/// A folder with a snapshot of `events` events in it.
fn folder(events: i64) -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("a.pickle");
    fs::write(&path, snapshot(events)).unwrap();
    (dir, path)
}

fn npusnap() -> Command {
    Command::new(env!("CARGO_BIN_EXE_npusnap"))
}

fn ingest(args: &[&Path]) -> Output {
    npusnap().arg("ingest").args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

/// Exit code 2, and says `part`.
fn fails(output: &Output, part: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

/// Events in a database that SQLite finds nothing wrong with.
fn events(database: &Path) -> i64 {
    let connection = Connection::open(database).unwrap();
    assert_eq!(
        connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
    connection.query_row("SELECT count(*) FROM traces", [], |row| row.get(0)).unwrap()
}

#[test]
fn results_stand_beside_the_snapshot_and_stdout_lists_them() {
    let (dir, source) = folder(10);
    let output = ingest(&[&source]);
    succeeds(&output);
    assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle"]);
    let listed = stdout(&output);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines[0][..2], [dir.path().join("a.npusnap").to_str().unwrap(), "parquet"]);
    assert_eq!(lines[1][..2], [dir.path().join("a.db").to_str().unwrap(), "sqlite"]);
    assert_eq!(lines[1][2], fs::metadata(dir.path().join("a.db")).unwrap().len().to_string());
    assert!(
        stderr(&output).starts_with("a.pickle: 10 events, 2 devices, 10 stacks -> "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn quiet_says_nothing_on_stderr() {
    let (_dir, source) = folder(10);
    let output = ingest(&[&source, Path::new("--quiet")]);
    succeeds(&output);
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_dry_run_reads_to_the_end_and_writes_nothing() {
    let (dir, path) = folder(10);
    let output = npusnap().args(["ingest", "--dry-run"]).arg(&path).output().unwrap();
    succeeds(&output);
    assert_eq!((stdout(&output).as_str(), names(dir.path())), ("", vec!["a.pickle".to_owned()]));
    assert!(stderr(&output).starts_with("a.pickle: 10 events, "), "{}", stderr(&output));

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    fails(&npusnap().args(["ingest", "--dry-run"]).arg(&path).output().unwrap(), "byte ");
}

#[test]
fn results_go_where_they_are_told() {
    let (dir, source) = folder(1);
    let out = dir.path().join("out/deep");
    succeeds(&ingest(&[&source, Path::new("-o"), &out]));
    assert_eq!(names(&out), ["a.db", "a.npusnap"]);

    let exact = dir.path().join("x.npusnap");
    let database = dir.path().join("y.sqlite");
    succeeds(&ingest(&[&source, Path::new("-o"), &exact, Path::new("--sqlite"), &database]));
    assert!(exact.join("traces.parquet").exists() && database.exists() && !dir.path().join("x.db").exists());

    let bare = dir.path().join("bare");
    succeeds(&ingest(&[&source, Path::new("-o"), &bare, Path::new("--no-sqlite")]));
    assert_eq!(names(&bare), ["a.npusnap"]);
}

#[test]
fn one_name_for_two_results_is_refused_before_any_work() {
    let (dir, source) = folder(1);
    let other = dir.path().join("a.pkl");
    fs::copy(&source, &other).unwrap();
    fails(&ingest(&[&source, &other]), "would replace the result");
    fails(&ingest(&[&source, &other, Path::new("--sqlite"), Path::new("x.db")]), "several snapshots");
    assert_eq!(names(dir.path()), ["a.pickle", "a.pkl"]);
}

#[test]
fn a_snapshot_that_fails_does_not_stop_the_others() {
    let (dir, source) = folder(1);
    let bad = dir.path().join("bad.pickle");
    fs::write(&bad, b"\x80\x04N.").unwrap();
    let missing = dir.path().join("missing.pickle");
    let output = ingest(&[&bad, &missing, &source]);
    fails(&output, "2 of 3 snapshots could not be ingested");
    assert!(stderr(&output).contains("bad.pickle") && stderr(&output).contains("missing.pickle"));
    assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle", "bad.pickle"]);
}

#[test]
fn b35_ingesting_again_gives_the_same_bytes() {
    let (dir, source) = folder(1000);
    succeeds(&ingest(&[&source]));
    let store = dir.path().join("a.npusnap");
    let before = (bytes(&store), fs::read(dir.path().join("a.db")).unwrap());
    succeeds(&ingest(&[&source]));
    assert!(before == (bytes(&store), fs::read(dir.path().join("a.db")).unwrap()));
    assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle"]);
}

#[test]
fn a_result_elsewhere_depends_on_the_bytes_of_the_snapshot_alone() {
    let (dir, source) = folder(10);
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    succeeds(&ingest(&[&source, Path::new("-o"), &one]));
    fs::remove_file(&source).unwrap();
    thread::sleep(Duration::from_millis(20));
    fs::write(&source, snapshot(10)).unwrap();
    succeeds(&ingest(&[&source, Path::new("-o"), &other]));
    assert!(bytes(&one.join("a.npusnap")) == bytes(&other.join("a.npusnap")));
}

#[test]
fn what_npusnap_did_not_make_is_replaced_only_by_force() {
    let (dir, source) = folder(10);
    let (store, database) = (dir.path().join("a.npusnap"), dir.path().join("a.db"));
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    fails(&ingest(&[&source]), "--force");
    assert!(!store.exists());
    succeeds(&ingest(&[&source, Path::new("--force")]));
    assert_eq!(events(&database), 10);

    // A note inside an own result is somebody's too.
    fs::write(store.join("notes.txt"), "mine").unwrap();
    fails(&ingest(&[&source]), "--force");
    assert!(store.join("notes.txt").exists());
    succeeds(&ingest(&[&source, Path::new("--force")]));
    assert!(!store.join("notes.txt").exists());

    // Each in the place of the other kind.
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "a file").unwrap();
    fs::remove_file(&database).unwrap();
    fs::create_dir(&database).unwrap();
    fails(&ingest(&[&source]), "--force");
    succeeds(&ingest(&[&source, Path::new("--force")]));
    assert_eq!(events(&database), 10);
    assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle"]);
}

#[test]
fn the_snapshot_itself_is_never_replaced() {
    let dir = tempdir().unwrap();
    let source = dir.path().join("a.db");
    fs::write(&source, snapshot(1)).unwrap();
    fails(&ingest(&[&source, Path::new("--force")]), "is the snapshot itself");
    assert_eq!(fs::read(&source).unwrap(), snapshot(1));
}

#[test]
fn a_database_that_is_in_use_is_left_alone() {
    let (dir, source) = folder(1);
    succeeds(&ingest(&[&source]));
    let database = dir.path().join("a.db");
    let connection = Connection::open(&database).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mine (x)").unwrap();
    fails(&ingest(&[&source]), "another program has it open");
    drop(connection);
    succeeds(&ingest(&[&source]));
}

#[test]
fn a_link_stays_a_link() {
    let (dir, source) = folder(10);
    let disk = tempdir().unwrap();
    for name in ["a.db", "a.npusnap"] {
        let target = disk.path().join(name);
        if name == "a.db" {
            fs::write(&target, "").unwrap();
        } else {
            fs::create_dir(&target).unwrap();
        }
        std::os::unix::fs::symlink(&target, dir.path().join(name)).unwrap();
    }
    succeeds(&ingest(&[&source]));
    assert!(dir.path().join("a.npusnap").is_symlink() && dir.path().join("a.db").is_symlink());
    assert_eq!(events(&disk.path().join("a.db")), 10);
    assert!(disk.path().join("a.npusnap/traces.parquet").exists());
}

/// Inode of the store's folder: another one after every ingest.
fn identity(store: &Store) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(store.table_path("traces")).unwrap())
}

#[test]
fn the_parquet_of_a_snapshot_is_used_again_until_the_snapshot_changes() {
    let (dir, source) = folder(10);
    let first = Store::open(&source).unwrap();
    assert_eq!(first.dir(), dir.path().join("a.npusnap"));
    assert_eq!(identity(&Store::open(&source).unwrap()), identity(&first));

    let again = identity(&first);
    thread::sleep(Duration::from_millis(20));
    fs::write(&source, snapshot(10)).unwrap();
    assert_ne!(identity(&Store::open(&source).unwrap()), again, "the same size, another time");

    let explicit = dir.path().join("a.npusnap");
    succeeds(&ingest(&[&source]));
    let made = identity(&Store::open(&explicit).unwrap());
    assert_eq!(identity(&Store::open(&source).unwrap()), made, "what `ingest` wrote is used too");
}

#[test]
fn without_a_cache_nothing_is_left() {
    let (dir, source) = folder(10);
    let store = Store::open_with(&source, Cache::Off, &Silent).unwrap();
    let traces = store.table_path("traces");
    assert!(traces.exists());
    drop(store);
    assert!(!traces.exists());
    assert_eq!(names(dir.path()), ["a.pickle"]);
}

#[test]
fn a_cached_store_of_another_version_or_with_a_table_missing_is_made_again() {
    let (dir, source) = folder(10);
    let first = identity(&Store::open(&source).unwrap());
    let key = dir.path().join("a.npusnap/source.json");
    let text = fs::read_to_string(&key).unwrap();
    fs::write(&key, text.replace(&format!("\"schema_version\":{VERSION}"), "\"schema_version\":0")).unwrap();
    let second = identity(&Store::open(&source).unwrap());
    assert_ne!(second, first);

    fs::remove_file(dir.path().join("a.npusnap/blocks.parquet")).unwrap();
    assert_ne!(identity(&Store::open(&source).unwrap()), second);
}

#[test]
fn a_store_of_another_version_is_refused() {
    let (dir, source) = folder(10);
    succeeds(&ingest(&[&source]));
    let path = dir.path().join("a.npusnap/snapshot.parquet");
    let mut bytes = fs::read(&path).unwrap();
    // Behind the key stands its value: one byte, the digit.
    let key = b"npusnap.schema_version\x18\x01";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    assert_eq!(char::from(bytes[at]).to_string(), VERSION.to_string());
    bytes[at] = b'7';
    fs::write(&path, bytes).unwrap();
    let error = Store::open(&dir.path().join("a.npusnap")).unwrap_err();
    let expected = format!("has table version 7, this npusnap reads version {VERSION}");
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(error.hint().unwrap().contains("npusnap ingest"));
    succeeds(&ingest(&[&source]));
    assert!(Store::open(&dir.path().join("a.npusnap")).is_ok());
}

/// Number of events, by a query on `source` with `cache` as the user's cache folder.
fn count(source: &Path, cache: &Path) -> String {
    let output = npusnap()
        .args(["sql", "--format", "csv"])
        .arg(source)
        .arg("SELECT count(*) AS events FROM traces")
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    succeeds(&output);
    stdout(&output)
}

#[test]
fn what_stands_beside_a_snapshot_is_not_replaced_by_a_cache() {
    let (dir, source) = folder(10);
    let cache = tempdir().unwrap();
    // `a.pkl` wants the same name as `a.pickle`, which was here first.
    let other = dir.path().join("a.pkl");
    fs::write(&other, snapshot(20)).unwrap();
    assert_eq!(count(&source, cache.path()), "events\n10\n");
    assert_eq!(count(&other, cache.path()), "events\n20\n");
    let made = identity(&Store::open(&dir.path().join("a.npusnap")).unwrap());
    let folders = names(&cache.path().join("npusnap"));
    assert_eq!(folders.len(), 1, "{folders:?}");
    let cached = cache.path().join("npusnap").join(&folders[0]);
    let first = identity(&Store::open(&cached).unwrap());

    assert_eq!(count(&source, cache.path()), "events\n10\n");
    assert_eq!(count(&other, cache.path()), "events\n20\n");
    assert_eq!(identity(&Store::open(&dir.path().join("a.npusnap")).unwrap()), made);
    assert_eq!(identity(&Store::open(&cached).unwrap()), first);

    // Where neither place can be had, the Parquet lives as long as the query.
    let nowhere = dir.path().join("nowhere");
    fs::write(&nowhere, "a file").unwrap();
    assert_eq!(count(&other, &nowhere), "events\n20\n");
    assert_eq!(names(dir.path()), ["a.npusnap", "a.pickle", "a.pkl", "nowhere"]);
}

#[test]
fn a_kept_store_with_files_that_are_cut_or_written_over_is_made_again() {
    let (dir, source) = folder(10);
    assert_eq!(count(&source, dir.path()), "events\n10\n");
    let traces = dir.path().join("a.npusnap/traces.parquet");
    let whole = fs::read(&traces).unwrap();
    for damaged in [&b"junk"[..], b"PAR1 and then something else", &whole[..whole.len() / 2]] {
        fs::write(&traces, damaged).unwrap();
        assert_eq!(count(&source, dir.path()), "events\n10\n");
        assert_eq!(fs::read(&traces).unwrap(), whole);
    }
}

/// Queries cannot name files behind such paths, so what is kept is kept elsewhere.
#[test]
fn names_that_are_no_text_are_no_obstacle() {
    let dir = tempdir().unwrap();
    let cache = tempdir().unwrap();
    let odd = dir.path().join(OsStr::from_bytes(b"run\xff"));
    fs::create_dir(&odd).unwrap();
    let sources = [
        dir.path().join(OsStr::from_bytes(b"a\xfe.pickle")),
        dir.path().join("a\tb\n.pickle"),
        odd.join("a"),
    ];
    for (at, source) in sources.iter().enumerate() {
        fs::write(source, snapshot(10)).unwrap();
        for _ in 0..2 {
            assert_eq!(count(source, cache.path()), "events\n10\n");
        }
        assert_eq!(names(&cache.path().join("npusnap")).len(), at + 1);
    }
    let store = odd.join("a.npusnap");
    succeeds(&ingest(&[&sources[2]]));
    let error = Store::open(&store).unwrap_err();
    assert!(error.to_string().contains("give it another name"), "{error}");
}
