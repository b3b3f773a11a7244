//! What is known to go wrong with snapshots elsewhere: rows of the peers' bug log that no other file has a test for, and
//! the proof that every row has one. A test has its row's number in its name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::analyze::{NPUSNAP, fixture, json, rules, text};
use crate::support::pickler::{Py, int, list, tuple};
use crate::support::pool::{MIB, event, segment, snapshot, written};

const BASE: i128 = 1 << 30;

fn rows(source: &Path, query: &str) -> Vec<Value> {
    let output = Command::new(NPUSNAP)
        .args(["--quiet", "sql", "--no-cache", "--format", "ndjson"])
        .arg(source)
        .arg(query)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn made_by_synth(folder: &Path, events: &str) -> std::path::PathBuf {
    let path = folder.join("run.pickle");
    let made = Command::new(NPUSNAP)
        .args(["--quiet", "synth", "--events", events, "-o"])
        .arg(&path)
        .stdout(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    path
}

/// Peak memory of an ingest in KiB, as the kernel counts it for the process (Linux).
#[cfg(target_os = "linux")]
fn peak_of_ingest(path: &Path) -> u64 {
    use std::os::unix::process::ExitStatusExt as _;
    let mut child = Command::new(NPUSNAP)
        .args(["--quiet", "ingest", "--no-sqlite", "--force", "-o"])
        .arg(path.parent().unwrap())
        .arg(path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak).max(peak);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(ended.success(), "signal {:?}", ended.signal());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn b07_memory_grows_by_a_small_share_of_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let peaks = ["100000", "600000"].map(|events| {
        let path = made_by_synth(folder.path(), events);
        (fs::metadata(&path).unwrap().len() / 1024, peak_of_ingest(&path))
    });
    let [(small, low), (large, high)] = peaks;
    // Batches fill up to 256 K rows; behind them only what later objects refer to and what is alive grows.
    assert!(high < low + (large - small) / 2 + 48 * 1024, "{peaks:?} KiB of file and of memory");
}

#[test]
fn b08_no_event_is_left_out_of_tables_and_a_chart_says_how_many_it_stands_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = made_by_synth(folder.path(), "20000");
    let found = rows(&path, "SELECT COUNT(*) AS n, MAX(trace_index) AS last FROM traces");
    let count = found[0]["n"].as_i64().unwrap();
    assert!(count >= 20_000 && found[0]["last"] == count - 1, "{found:?}");
    let page = folder.path().join("page.html");
    let made = Command::new(NPUSNAP)
        .args(["--quiet", "analyze", "--no-cache", "--mode", "all", "--section", "peak", "-o"])
        .arg(&page)
        .arg(&path)
        .status();
    assert!(made.unwrap().success());
    let page = fs::read_to_string(page).unwrap();
    let grouped = format!("{},{:03}", count / 1000, count % 1000);
    assert!(page.contains(&grouped), "the page says how many events there are: {grouped}");
}

#[test]
fn b16_events_that_contradict_each_other_are_counted_and_stop_nothing() {
    let traces = vec![
        event("free_requested", BASE + 512 * MIB, MIB),
        event("free_completed", BASE + 512 * MIB, MIB),
        event("segment_free", BASE + 900 * MIB, 2 * MIB),
        event("alloc", BASE, MIB),
        event("free_requested", BASE, MIB).with("stream", int(77)),
    ];
    let blocks = [(MIB, "active_allocated"), (19 * MIB, "inactive")];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, BASE, "large", &blocks)], vec![traces]));
    assert_eq!(rows(&path, "SELECT COUNT(*) AS n FROM traces")[0]["n"], 5, "every event has its row");
    let checks = rows(&path, "SELECT counter, residual FROM replay_checks ORDER BY counter");
    assert_eq!(checks.len(), 5);
    // What fits nowhere is set aside with its number, and so is what it costs.
    let wanted = [
        ("blocks_without_alloc", "data_loss", 1),
        ("frees_on_other_streams", "data_loss", 1),
        ("frees_without_completion", "data_loss", 1),
        ("residual_allocated", "error", 1 << 20),
        ("residual_allocated_requested", "error", 1 << 20),
    ];
    let query = "SELECT name, severity, value FROM import_stats WHERE severity <> 'info' ORDER BY name";
    let expected =
        wanted.map(|(name, severity, value)| json!({"name": name, "severity": severity, "value": value}));
    assert_eq!(rows(&path, query), expected);
    for mode in ["peak", "leak", "oom", "fragment"] {
        let stats = json(&path, mode, &[])["import_stats"].clone();
        let losses = stats.as_array().unwrap().iter().filter(|row| row["severity"] != "info").count();
        assert_eq!(losses, wanted.len(), "{mode}");
    }
    // And it is a warning, with the counts.
    let peak = json(&path, "peak", &[]);
    let said = |rule: &str| {
        let found = peak["findings"].as_array().unwrap().iter().find(|it| it["rule"] == rule).unwrap();
        assert_eq!(found["severity"], "warning", "{rule}");
        found["message"].as_str().unwrap().to_owned()
    };
    assert!(said("peak/unexplained").contains("1.00 MiB"));
    let doubt = said("peak/in_doubt");
    for part in ["1 free that was requested", "1 live block that the events freed last"] {
        assert!(doubt.contains(part), "{doubt}");
    }
    let page = text(&path, "peak", &[]);
    assert!(
        page.contains("blocks_without_alloc (1)") && page.contains("frees_without_completion (1)"),
        "{page}"
    );
}

#[test]
fn b17_the_same_address_on_two_devices_and_streams_is_two_segments() {
    let blocks = [(2 * MIB, "active_allocated")];
    let other = segment(1, BASE, "small", &blocks).with("stream", int(5));
    let traces = |stream: i128| {
        vec![event("segment_alloc", BASE, 2 * MIB), event("alloc", BASE, 2 * MIB)]
            .into_iter()
            .map(|row| row.with("stream", int(stream)))
            .collect::<Vec<Py>>()
    };
    let both = snapshot(vec![segment(0, BASE, "small", &blocks), other], vec![traces(0), traces(5)]);
    let (_place, path) = written("s.pickle", &both);
    let peaks = json(&path, "peak", &[]);
    for device in peaks["result"]["devices"].as_array().unwrap() {
        assert_eq!(device["peaks"]["reserved"]["bytes"], 2 << 20, "{device}");
        assert_eq!(device["base"]["reserved"], 0);
    }
    let live = rows(&path, "SELECT device_id, stream FROM allocations ORDER BY device_id");
    assert_eq!(live, [json!({"device_id": 1, "stream": 0}), json!({"device_id": 2, "stream": 5})]);
}

#[test]
fn b19_a_private_pool_keeps_its_size_while_blocks_inside_it_come_and_go() {
    let pool = |row: Py| row.with("pool_id", tuple([int(0), int(7)]));
    let events = vec![
        pool(event("segment_alloc", BASE, 20 * MIB)),
        pool(event("alloc", BASE, 8 * MIB)),
        pool(event("free_requested", BASE, 8 * MIB)),
        pool(event("free_completed", BASE, 8 * MIB)),
        pool(event("alloc", BASE, 4 * MIB)),
    ];
    let blocks = [(4 * MIB, "active_allocated"), (16 * MIB, "inactive")];
    let segment = segment(0, BASE, "large", &blocks).with("segment_pool_id", tuple([int(0), int(7)]));
    let (_place, path) = written("s.pickle", &snapshot(vec![segment], vec![events]));
    let query = "SELECT trace_index, reserved, allocated_requested FROM memory_timeline(0) WHERE trace_index >= 0 \
                 ORDER BY trace_index";
    let curve: Vec<[i64; 2]> = rows(&path, query)
        .iter()
        .map(|row| ["reserved", "allocated_requested"].map(|key| row[key].as_i64().unwrap() >> 20))
        .collect();
    assert_eq!(curve, [[20, 0], [20, 8], [20, 0], [20, 0], [20, 4]]);
    assert_eq!(
        rows(&path, "SELECT DISTINCT pool_id_0, pool_id_1 FROM traces"),
        [json!({"pool_id_0": 0, "pool_id_1": 7})]
    );
}

#[test]
fn b21_requested_and_rounded_bytes_are_two_ledgers() {
    let events = vec![
        event("segment_alloc", BASE, 2 * MIB),
        event("alloc", BASE, 1000),
        event("alloc", BASE + 1024, 512),
        event("free_requested", BASE, 1000),
        event("free_completed", BASE, 1000),
    ];
    let blocks = [(1024, "inactive"), (512, "active_allocated"), (2 * MIB - 1536, "inactive")];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, BASE, "small", &blocks)], vec![events]));
    let device = &json(&path, "peak", &[])["result"]["devices"][0];
    let peaks = &device["peaks"];
    assert_eq!(
        (&peaks["allocated"]["bytes"], &peaks["allocated_requested"]["bytes"]),
        (&json!(1536), &json!(1512))
    );
}

#[test]
fn b37_a_reader_that_goes_away_ends_the_writer_quietly() {
    for arguments in [
        vec!["sql", "--no-cache", "--format", "csv", "--max-rows", "0", "SELECT * FROM traces"],
        vec!["analyze", "--no-cache", "--mode", "all", "--format", "json"],
    ] {
        let mut command = Command::new(NPUSNAP);
        command.args(["--quiet", arguments[0]]).arg(fixture("npu_leak.pickle")).args(&arguments[1..]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn b38_filters_narrow_each_other_and_ids_may_be_negative() {
    let folder = tempfile::tempdir().unwrap();
    let ingest = |arguments: &[&str]| {
        let done = Command::new(NPUSNAP)
            .args(["--quiet", "ingest", "--no-sqlite", "--force", "-o"])
            .arg(folder.path())
            .arg(fixture("npu_two_devices.pickle"))
            .args(arguments)
            .stdout(Stdio::null())
            .status();
        assert!(done.unwrap().success(), "{arguments:?}");
        let query = "SELECT trace_index, size, device_index FROM traces AS t JOIN devices AS d ON d.id = t.device_id \
                     ORDER BY device_index, trace_index";
        rows(&folder.path().join("npu_two_devices.npusnap"), query)
    };
    let all = ingest(&[]);
    let wanted: Vec<Value> = all
        .iter()
        .filter(|row| {
            let at = |key: &str| row[key].as_i64();
            at("device_index") == Some(1)
                && at("trace_index").is_some_and(|index| (100..300).contains(&index))
                && at("size").is_some_and(|size| size >= 1 << 20)
        })
        .cloned()
        .collect();
    assert!(!wanted.is_empty() && wanted.len() < 200);
    assert_eq!(ingest(&["--device", "1", "--events", "100..300", "--min-size", "1048576"]), wanted);
    assert_eq!(ingest(&[]), all, "the same import again");
    let (_place, host) = written(
        "host.pickle",
        &snapshot(vec![], vec![])
            .with("host_segments", list([segment(-1, 1 << 40, "large", &[(4 * MIB, "active_allocated")])]))
            .with("host_traces", list([])),
    );
    let found = json(&host, "overview", &["--device", "-1"]);
    assert_eq!(found["mode"], "overview");
}

#[test]
fn b39_b41_a_dump_without_history_says_so_shows_what_lives_and_how_to_record() {
    let blocks = [(8 * MIB, "active_allocated"), (12 * MIB, "inactive")];
    let (_place, path) =
        written("s.pickle", &snapshot(vec![segment(0, BASE, "large", &blocks)], vec![vec![]]));
    let output = Command::new(NPUSNAP).args(["info", "--no-cache"]).arg(&path).output().unwrap();
    let info = String::from_utf8(output.stdout).unwrap();
    assert!(info.contains("_record_memory_history("), "{info}");
    let page = text(&path, "overview", &[]);
    assert!(page.contains("8.00 MiB"), "what lives is shown: {page}");
    for (mode, rule) in [("peak", "peak/no_history"), ("leak", "leak/no_history")] {
        let rules = rules(&json(&path, mode, &[]));
        assert!(rules.iter().any(|(found, _)| found == rule), "{mode}: {rules:?}");
    }
}

#[test]
fn b42_without_pool_ids_and_with_streams_as_handles_nothing_is_missing_but_the_pool() {
    let handle: i128 = 0xffff_8c0c_2f60;
    let segment = segment(0, BASE, "large", &[(20 * MIB, "active_allocated")])
        .without("segment_pool_id")
        .with("stream", int(handle));
    let events = [event("segment_alloc", BASE, 20 * MIB), event("alloc", BASE, 20 * MIB)];
    let events = events.into_iter().map(|row| row.with("stream", int(handle))).collect();
    let (_place, path) = written("s.pickle", &snapshot(vec![segment], vec![events]));
    let expected = json!({"stream": i64::try_from(handle).unwrap(), "pool_id_0": null});
    assert_eq!(rows(&path, "SELECT DISTINCT stream, pool_id_0 FROM traces"), [expected]);
    assert_eq!(rows(&path, "SELECT pool_id_1 FROM segments"), [json!({"pool_id_1": null})]);
    let found = json(&path, "all", &[]);
    assert_eq!(found["result"]["peak"]["devices"][0]["peaks"]["allocated"]["bytes"], 20 << 20);
}

#[test]
fn every_row_of_the_bug_log_has_a_test_with_its_number() {
    fn sources(folder: &Path, found: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"), &mut text);
    let names = text.lines().filter_map(|line| line.strip_prefix("fn "));
    let numbers: BTreeSet<u8> = names
        .flat_map(|name| name.split('_').map_while(|part| part.strip_prefix('b')?.parse().ok()))
        .collect();
    let missing: Vec<u8> = (1..=45).filter(|number| !numbers.contains(number)).collect();
    assert_eq!(missing, Vec::<u8>::new());
}
