//! `npusnap analyze --mode oom`: the state at a failed request, its cause, and what would have helped.

use serde_json::{Value, json};

use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, text};
use crate::support::pickler::{Py, dict, int, tuple};
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

/// Segments with blocks that live from before the window, and nothing recorded but failures.
fn failed(segments: Vec<Py>, failures: Vec<Py>) -> Py {
    snapshot(segments, vec![failures])
}

/// 20 MiB in use, on stream 0 in the default pool.
fn full() -> Py {
    segment(0, 1 << 28, "large", &[(20 * MIB, "active_allocated")])
}

/// 60 MiB of which the first is in use.
fn nearly_free() -> Py {
    segment(0, 2 << 28, "large", &[(2 * MIB, "active_allocated"), (58 * MIB, "inactive")])
}

fn advice(event: &Value) -> String {
    let advice = event["advice"].as_array().unwrap();
    advice.iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn memory_that_is_free_for_another_stream_is_told_as_such_whether_segments_expand_or_not() {
    for is_expandable in [false, true] {
        let of_kind = |segment: Py| segment.with("is_expandable", Py::Bool(is_expandable));
        let other = of_kind(nearly_free()).with("stream", int(8));
        let json = of("s.pickle", &failed(vec![of_kind(full()), other], vec![oom(30 * MIB, 4 * MIB)]));
        let event = &json["result"]["events"][0];
        assert_eq!(event["cause"], "other_stream", "expandable: {is_expandable}");
        assert_eq!(
            (&event["kind_free_bytes"], &event["kind_other_bytes"]),
            (&json!(58 << 20), &json!(58 << 20))
        );
        assert!(advice(event).starts_with("58.00 MiB was free for other streams"), "{}", advice(event));
        assert_eq!(rules(&json), [("oom/other_stream".to_owned(), "critical".to_owned())]);
    }
}

#[test]
fn a_hole_in_what_an_expandable_segment_has_mapped_cannot_be_grown() {
    let middle = segment(
        0,
        1 << 28,
        "large",
        &[(20 * MIB, "active_allocated"), (90 * MIB, "inactive"), (10 * MIB, "active_allocated")],
    );
    let middle = middle.with("is_expandable", Py::Bool(true));
    // 20 MiB of the driver's and the 90 would make up 100 in one piece, but not behind the last block.
    let json = of("s.pickle", &failed(vec![middle], vec![oom(100 * MIB, 20 * MIB)]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "fragmentation");
    let said = advice(event);
    assert!(
        said.contains("expandable segments are on already, and still 90.00 MiB was free in 1 block"),
        "{said}"
    );
    assert!(
        !said.contains("garbage_collection_threshold:") && !said.contains("max_split_size_mb:"),
        "{said}"
    );
}

#[test]
fn memory_that_is_free_in_private_pools_is_told_as_such() {
    let in_pool = |event: Py, pool: i128| event.with("pool_id", tuple([int(0), int(pool)]));
    let private = || nearly_free().with("segment_pool_id", tuple([int(0), int(3)]));
    let failure = |oom: Py| of("s.pickle", &failed(vec![full(), private()], vec![oom]));
    // Before PyTorch 2.12 an event does not say its pool, and here its stream has memory in both.
    let json = failure(oom(30 * MIB, 4 * MIB));
    let event = &json["result"]["events"][0];
    assert_eq!((&event["pool_id"], &event["kind_free_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(event["cause"], "unknown");
    assert!(advice(event).contains("memory was held for private pools too"), "{}", advice(event));
    // What is free in one private pool serves no other.
    let json = failure(in_pool(oom(30 * MIB, 4 * MIB), 4));
    let event = &json["result"]["events"][0];
    assert_eq!((&event["pool_id"], &event["kind_free_bytes"]), (&json!([0, 4]), &json!(0)));
    assert_eq!((&event["cause"], &event["kind_private_bytes"]), (&json!("private_pools"), &json!(58 << 20)));
    let said = json["findings"][0]["message"].as_str().unwrap();
    assert!(said.contains("0 B was free in the request's private pool"), "{said}");

    let json = failure(in_pool(oom(30 * MIB, 4 * MIB), 0));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "private_pools");
    assert_eq!((&event["pool_free_bytes"], &event["kind_private_bytes"]), (&json!(0), &json!(58 << 20)));
    assert!(advice(event).starts_with("private pools held 60.00 MiB, of which 58.00 MiB was free"));
    assert_eq!(rules(&json), [("oom/private_pools".to_owned(), "critical".to_owned())]);
}

#[test]
fn a_request_is_too_large_only_for_a_device_that_never_had_more() {
    let json = of("s.pickle", &failed(vec![full()], vec![oom(30 * MIB, 4 * MIB)]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "request_too_large");
    assert!(advice(event).starts_with("a single request of 30.00 MiB is more than the 24.00 MiB"));
    assert_eq!(rules(&json), [("oom/request_too_large".to_owned(), "critical".to_owned())]);
    // An earlier failure saw 120 MiB: 96 of them are held beside the pool at the later one.
    let failures = vec![oom(200 * MIB, 100 * MIB), oom(30 * MIB, 4 * MIB)];
    let json = of("s.pickle", &failed(vec![full()], failures));
    let events = &json["result"]["events"];
    assert_eq!(events[0]["cause"], "request_too_large");
    assert_eq!(events[1]["outside_pool_bytes"], 96 << 20);
    assert_eq!(events[1]["cause"], "outside_pool");
}

#[test]
fn a_driver_that_the_event_is_silent_on_is_taken_for_neither_empty_nor_full() {
    let bare = |size: i128| oom(size, 0).without("device_free");
    // All of the pool is in use: that much is known.
    let json = of("s.pickle", &failed(vec![full()], vec![bare(30 * MIB)]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "capacity");
    assert!(!advice(event).contains("driver") && !advice(event).contains('?'), "{}", advice(event));
    // Of this pool most is free, but not enough; what the driver had may have been a lot.
    let json = of("s.pickle", &failed(vec![full(), nearly_free()], vec![bare(200 * MIB)]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "unknown");
    assert!(advice(event).contains("does not say what the driver had left"), "{}", advice(event));
    assert_eq!(rules(&json), [("oom/unknown".to_owned(), "critical".to_owned())]);
}

#[test]
fn holes_in_small_segments_are_no_fragmentation_of_a_large_request() {
    let small = |place: i128| {
        let blocks = [(MIB, "active_allocated"), (MIB, "inactive")];
        segment(0, (1 << 28) + place * 2 * MIB, "small", &blocks)
    };
    let json = of("s.pickle", &failed((0..40).map(small).collect(), vec![oom(30 * MIB, 0)]));
    let event = &json["result"]["events"][0];
    assert_eq!((&event["pool_free_bytes"], &event["kind_free_bytes"]), (&json!(40 << 20), &json!(0)));
    assert_eq!(event["cause"], "other_kind");
    assert!(advice(event).starts_with("40.00 MiB was free in segments for requests of up to 1 MiB"));
    assert_eq!(rules(&json), [("oom/other_kind".to_owned(), "critical".to_owned())]);
    // A small request takes from them; from large ones it does not.
    let json = of("s.pickle", &failed(vec![full(), nearly_free()], vec![oom(MIB, 0)]));
    let event = &json["result"]["events"][0];
    assert_eq!(event["cause"], "other_kind");
    assert!(advice(event).contains("expandable_segments:True"), "{}", advice(event));
}

#[test]
fn the_largest_block_of_the_sentence_is_one_that_the_request_could_take() {
    let sentence = |json: &Value| json["findings"][0]["message"].as_str().unwrap().to_owned();
    // 58 MiB are free in one piece for stream 7, 10 for the request's own.
    let own = segment(0, 1 << 28, "large", &[(10 * MIB, "active_allocated"), (10 * MIB, "inactive")]);
    let other = nearly_free().with("stream", int(7));
    let (_place, path) = written("s.pickle", &failed(vec![own, other], vec![oom(30 * MIB, 4 * MIB)]));
    let json = json(&path, "oom", &[]);
    let evidence = &json["findings"][0]["evidence"];
    assert_eq!(evidence["largest_usable_block"], 10 << 20);
    assert_eq!(evidence["largest_free_block"], 58 << 20);
    assert_eq!(json["result"]["events"][0]["largest_usable_block"], 10 << 20);
    let said = sentence(&json);
    let words = "the largest block that it could take 10.00 MiB, the largest of the default pool 58.00 MiB)";
    assert!(said.ends_with(words), "{said}");
    let chinese = self::json(&path, "oom", &["--lang", "zh"]);
    let said = sentence(&chinese);
    assert!(said.contains("请求可用的最大空闲块 10.00 MiB，默认池的最大空闲块 58.00 MiB"), "{said}");
    // Where they are one block, it is named once.
    let json = of("s.pickle", &fragmented(vec![oom(30 * MIB, 4 * MIB)]));
    assert!(sentence(&json).ends_with("the largest block 10.00 MiB)"), "{}", sentence(&json));
}

#[test]
fn a_block_that_max_split_size_keeps_from_the_request_is_told_as_such() {
    let expandable = nearly_free().with("is_expandable", Py::Bool(true));
    let settings = dict([("max_split_size", int(40 * MIB)), ("expandable_segments", Py::Bool(true))]);
    let failure = |size: i128| {
        let snapshot = failed(vec![full(), expandable.clone()], vec![oom(size, 0)]);
        of("s.pickle", &snapshot.with("allocator_settings", settings.clone()))
    };
    let json = failure(30 * MIB);
    let event = &json["result"]["events"][0];
    assert_eq!((&event["kind_free_bytes"], &event["kind_oversize_bytes"]), (&json!(0), &json!(58 << 20)));
    assert_eq!((&event["largest_usable_block"], &event["cause"]), (&json!(0), &json!("other_kind")));
    let said = advice(event);
    assert!(
        said.starts_with("58.00 MiB was free in blocks that the setting max_split_size of 40.00 MiB"),
        "{said}"
    );
    // A request of 40 MiB takes whole blocks, of less than 60 MiB: this one is none that it was refused.
    let event = &failure(40 * MIB)["result"]["events"][0];
    assert_eq!(
        (&event["kind_oversize_bytes"], &event["largest_usable_block"]),
        (&json!(0), &json!(58 << 20))
    );
}

#[test]
fn a_request_of_0_bytes_is_one_that_is_not_known() {
    let json = of("s.pickle", &failed(vec![full(), nearly_free()], vec![oom(0, 4 * MIB)]));
    let event = &json["result"]["events"][0];
    for key in ["requested", "kind_free_bytes", "largest_usable_block"] {
        assert_eq!(event[key], Value::Null, "{key}");
    }
    let said = json["findings"][0]["message"].as_str().unwrap();
    assert!(said.starts_with("a request of unknown size failed"), "{said}");
    let full = of("s.pickle", &failed(vec![nearly_free()], vec![oom(0, 4 * MIB)]));
    assert!(!full["result"]["events"][0]["advice"].to_string().contains("0 B"));
}

#[test]
fn splitting_is_limited_where_large_blocks_were_cut_up_and_the_settings_allow_it() {
    let cut = |place: i128| {
        let blocks = [(15 * MIB, "inactive"), (10 * MIB, "active_allocated"), (15 * MIB, "inactive")];
        segment(0, place << 28, "large", &blocks)
    };
    let failure = || failed((1..=3).map(cut).collect(), vec![oom(30 * MIB, 0)]);
    let with = |limit: i128| {
        let settings = dict([("max_split_size", int(limit)), ("expandable_segments", Py::Bool(false))]);
        let json = of("s.pickle", &failure().with("allocator_settings", settings));
        advice(&json["result"]["events"][0])
    };
    let said = with(-1);
    assert!(said.contains("max_split_size_mb:30 keeps blocks as large as this request"), "{said}");
    assert!(said.contains("90.00 MiB was free around blocks in segments of 30.00 MiB or more"), "{said}");
    assert!(with(64 * MIB).contains("max_split_size_mb:30 in place of 64.00 MiB"));
    assert!(!with(25 * MIB).contains("max_split_size_mb"), "it is set already");
    // No block of the 20 MiB segments was as large as the request.
    let json = of("s.pickle", &fragmented(vec![oom(30 * MIB, 4 * MIB)]));
    assert!(!advice(&json["result"]["events"][0]).contains("max_split_size_mb"));
}

#[test]
fn of_many_failures_the_earlier_ones_are_judged_by_what_is_known_of_them() {
    let failures = || (0..18).map(|_| oom(30 * MIB, 4 * MIB)).collect::<Vec<Py>>();
    let json = of("s.pickle", &fragmented(failures()));
    let events = json["result"]["events"].as_array().unwrap();
    assert_eq!(events.len(), 18);
    // 25 events build the pool up; each failure is an event of the next one's history.
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["preceding"].as_array().unwrap().len(), 25 + place);
    }
    let (early, late) = (&events[1], &events[2]);
    assert_eq!((&early["cause"], &late["cause"]), (&json!("unknown"), &json!("fragmentation")));
    assert_eq!((&early["reserved"], &early["pool_free_bytes"]), (&json!(100 << 20), &Value::Null));
    assert_eq!(early["grew_last"], Value::Null, "nobody looked");
    assert!(late["grew_last"].as_array().is_some_and(|rows| !rows.is_empty()));
    let said = advice(early);
    assert!(said.contains("segments_at(newest => 17)") && !said.contains("_record_memory_history"), "{said}");
    let last = json["findings"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["rule"], &last["evidence"]["earlier_count"]), (&json!("oom/earlier"), &json!(2)));
    let said = last["message"].as_str().unwrap();
    assert!(said.contains("--param newest=18") && said.contains("segments_at(newest => 18)"), "{said}");

    // The parameter does what the sentence says.
    let (_place, path) = written("s.pickle", &fragmented(failures()));
    let more = self::json(&path, "oom", &["--param", "newest=18"]);
    let events = more["result"]["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["grew_last"].as_array().is_some_and(|rows| !rows.is_empty())));
    let fewer = self::json(&path, "oom", &["--param", "newest=1"]);
    let events = fewer["result"]["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["preceding"].is_array()), "that is promised of every failure");

    // So many events before each that a page of JSON stays readable.
    let brief = self::json(&path, "oom", &["--param", "newest=18", "--param", "count=5"]);
    let events = brief["result"]["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["preceding"].as_array().is_some_and(|rows| rows.len() == 5)));
    assert!(!said.contains("count=5"), "{said}");
    let loops = (0..1001).map(|_| oom(30 * MIB, 4 * MIB)).collect();
    let json = of("s.pickle", &fragmented(loops));
    let said = json["findings"].as_array().unwrap().last().unwrap()["message"].as_str().unwrap();
    assert!(
        said.contains("`--param newest=1001` of all (some 15 KB of JSON for each; `--param count=5`"),
        "{said}"
    );

    // Where the curves are enough for a cause it is told of the earlier ones too.
    let failures = (0..18).map(|_| oom(70 * MIB, 4 * MIB)).collect();
    let json = of("s.pickle", &fragmented(failures));
    assert_eq!(json["result"]["events"][0]["cause"], "capacity");
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
