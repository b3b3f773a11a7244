//! `npusnap analyze --mode oom`: the state at a failed request, its cause, and what would have helped.

use serde_json::{Value, json};

use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, text};
use crate::support::pickler::Py;
use crate::support::pool::{MIB, event, oom, segment, snapshot, written};

/// 100 MiB in five segments of 20; of each, 10 are freed again: 50 MiB are free, in pieces of 10.
fn fragmented(tail: Vec<Py>) -> Py {
    fragmented_with("active_allocated", tail)
}

/// The same, with the other half of each segment in that state at the end.
fn fragmented_with(state: &str, tail: Vec<Py>) -> Py {
    let mut events = Vec::new();
    let mut segments = Vec::new();
    for place in 1..=5 {
        let address = place << 28;
        events.push(event("segment_alloc", address, 20 * MIB));
        events.push(event("alloc", address, 10 * MIB));
        events.push(event("alloc", address + 10 * MIB, 10 * MIB));
        events.push(event("free_requested", address, 10 * MIB));
        events.push(event("free_completed", address, 10 * MIB));
        segments.push(segment(0, address, "large", &[(10 * MIB, "inactive"), (10 * MIB, state)]));
    }
    events.extend(tail);
    snapshot(segments, vec![events])
}

fn of(name: &str, snapshot: &Py) -> Value {
    let (_place, path) = written(name, snapshot);
    json(&path, "oom", &[])
}

#[test]
fn free_memory_in_pieces_is_told_as_fragmentation_with_the_setting_that_helps() {
    let json = of("s.pickle", &fragmented(vec![oom(30 * MIB, 4 * MIB)]));
    let event = &json["result"]["events"][0];
    for (key, value) in [
        ("device_index", json!(0)),
        ("trace_index", json!(25)),
        ("requested", json!(30 << 20)),
        ("device_free", json!(4 << 20)),
        ("reserved", json!(100 << 20)),
        ("allocated", json!(50 << 20)),
        ("pool_free_bytes", json!(50 << 20)),
        ("largest_free_block", json!(10 << 20)),
        ("pending_free_bytes", json!(0)),
        ("cause", json!("fragmentation")),
    ] {
        assert_eq!(event[key], value, "{key}");
    }
    // The default stream of CUDA is 0, which that of torch_npu never is.
    let advice = event["advice"][0].as_str().unwrap();
    assert!(
        advice.starts_with("set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: 50.00 MiB was free"),
        "{advice}"
    );
    assert_eq!(rules(&json), [("oom/fragmentation".to_owned(), "critical".to_owned())]);
}

#[test]
fn the_fifty_events_before_come_newest_first() {
    let json =
        of("s.pickle", &fragmented((0..40).map(|_| event("snapshot", 0, 0)).chain([oom(MIB, 0)]).collect()));
    let preceding = json["result"]["events"][0]["preceding"].as_array().unwrap();
    let indexes: Vec<i64> = preceding.iter().map(|row| row["trace_index"].as_i64().unwrap()).collect();
    assert_eq!(indexes, (15..65).rev().collect::<Vec<i64>>());
    let last = &preceding[49];
    assert_eq!(last["action"], "segment_alloc");
    assert_eq!(last["addr"], "0x40000000");
    assert_eq!(last["size"], 20 << 20);
}

#[test]
fn a_failure_that_waits_for_a_stream_is_told_as_asynchronous_release() {
    let pending = (1..=5).map(|place| event("free_requested", (place << 28) + 10 * MIB, 10 * MIB));
    let mut events: Vec<Py> = pending.collect();
    events.push(oom(60 * MIB, 0));
    let json = of("s.pickle", &fragmented_with("active_pending_free", events));
    let event = &json["result"]["events"][0];
    assert_eq!(event["pending_free_bytes"], 50 << 20);
    assert_eq!(event["allocated"], 0);
    assert_eq!(event["cause"], "pending_free");
}

#[test]
fn a_failure_without_address_and_free_memory_is_still_a_failure() {
    let bare = oom(30 * MIB, 0).without("device_free").without("stream");
    let json = of("s.pickle", &fragmented(vec![bare]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["device_free"], Value::Null);
    assert_eq!(event["cause"], "fragmentation");
}

#[test]
fn where_the_last_events_were_left_out_nothing_is_said_of_the_state_at_a_failure() {
    let marks = [oom(30 * MIB, 4 * MIB), event("snapshot", 0, 0), event("snapshot", 0, 0)];
    let (place, path) = written("s.pickle", &fragmented(marks.to_vec()));
    let store = place.path().join("s.npusnap");
    let made = std::process::Command::new(NPUSNAP)
        .args(["ingest", "--quiet", "--no-sqlite", "--events", "0..26", "-o"])
        .args([&store, &path])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let event = &json(&store, "oom", &[])["result"]["events"][0];
    assert_eq!((&event["trace_index"], &event["device_free"]), (&json!(25), &json!(4 << 20)));
    for key in ["reserved", "allocated", "pool_free_bytes", "largest_free_block", "pending_free_bytes"] {
        assert_eq!(event[key], Value::Null, "{key}");
    }
    let fragment = json(&store, "fragment", &[]);
    assert_eq!(fragment["result"]["devices"][0]["expansions"], json!([]), "nor of what was free at a growth");
    let whole = json(&path, "fragment", &[]);
    assert_ne!(whole["result"]["devices"][0]["expansions"], json!([]));
}

#[test]
fn a_driver_with_enough_memory_points_at_a_limit() {
    let json = of("s.pickle", &fragmented(vec![oom(30 * MIB, 64 * MIB)]));
    assert_eq!(json["result"]["events"][0]["cause"], "memory_limit");
}

#[test]
fn a_dump_named_after_a_failure_is_looked_at_without_the_event() {
    let json = of("oom_snapshot_17_20250101.pickle", &fragmented(vec![]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["is_recorded"], false);
    assert_eq!(event["trace_index"], Value::Null);
    assert_eq!(event["requested"], Value::Null);
    assert_eq!(event["reserved"], 100 << 20);
    assert_eq!(event["largest_free_block"], 10 << 20);
    assert_eq!(event["preceding"][0]["trace_index"], 24);
    assert_eq!(event["cause"], "fragmentation");
    // Any other name says nothing of the kind.
    let json = of("zoom.pickle", &fragmented(vec![]));
    assert_eq!(json["result"]["events"], json!([]));
    assert_eq!(rules(&json), [("oom/none".to_owned(), "ok".to_owned())]);
}

#[test]
fn those_who_allocated_last_are_named_first() {
    let json = json(&fixture("cuda_oom_expandable.pickle"), "oom", &["--device", "0", "--param", "recent=3"]);
    // Events 98 to 101: the alloc of event 99 is the only one.
    let grew = json["result"]["events"][0]["grew_last"].as_array().unwrap();
    assert_eq!(grew[0]["recent_count"], 1);
    assert_eq!(grew[1]["recent_bytes"], 0);
    assert!(grew[0]["frames"].as_array().unwrap().len() > 1);
}

#[test]
fn a_snapshot_without_history_cannot_know() {
    let json = json(&fixture("cuda_empty.pickle"), "oom", &[]);
    assert_eq!(json["result"]["events"], json!([]));
    assert_eq!(rules(&json), [("oom/no_history".to_owned(), "info".to_owned())]);
}

#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for name in ["npu_oom", "cuda_oom_expandable"] {
        for lang in ["en", "zh"] {
            let page = text(&fixture(&format!("{name}.pickle")), "oom", &["--lang", lang]);
            golden(&format!("oom_{name}.{lang}.txt"), &page);
        }
    }
}
