use serde_json::json;

use super::*;
use crate::analysis::Lang;

const MIB: i64 = 1 << 20;

fn about(is_npu: bool, is_expandable: bool) -> Background<'static> {
    Background { is_npu, is_expandable: Some(is_expandable), settings: None, lack: Lack::History }
}

/// 100 MiB were asked for and 120 free in six blocks, the largest of 30; nothing was left in the driver.
fn split_up() -> State {
    State {
        requested: Some(100 * MIB),
        device_free: Some(0),
        reserved: Some(500 * MIB),
        allocated: Some(380 * MIB),
        pending_free_bytes: Some(0),
        pool_free_bytes: Some(125 * MIB),
        kind_free_bytes: Some(120 * MIB),
        kind_largest_free: Some(30 * MIB),
        kind_hole_count: Some(6),
        kind_cut_bytes: Some(90 * MIB),
        ..State::default()
    }
}

fn words(cause: Cause, state: &State, about: &Background<'_>) -> String {
    let advice = of(cause, state, about);
    assert!(!advice.is_empty(), "{cause:?}");
    let said: Vec<&str> = advice.iter().map(|text| text.get(Lang::En)).collect();
    said.join("\n")
}

#[test]
fn fragmentation_is_answered_with_the_setting_of_the_device() {
    for (is_npu, variable) in [(true, "PYTORCH_NPU_ALLOC_CONF"), (false, "PYTORCH_CUDA_ALLOC_CONF")] {
        let advice = of(Cause::Fragmentation, &split_up(), &about(is_npu, false));
        for lang in [Lang::En, Lang::Zh] {
            let first = advice.first().map(|text| text.get(lang).to_owned()).unwrap_or_default();
            assert!(first.contains(&format!("{variable}=expandable_segments:True")), "{first}");
            assert!(first.contains("120.00 MiB") && first.contains("30.00 MiB"), "{first}");
        }
    }
}

#[test]
fn nobody_is_told_to_switch_on_what_is_on() {
    for cause in [Cause::Fragmentation, Cause::OtherStream, Cause::OtherKind, Cause::Capacity] {
        let said = words(cause, &split_up(), &about(true, true));
        assert!(!said.contains("expandable_segments:True"), "{said}");
    }
}

#[test]
fn settings_that_do_nothing_for_expandable_segments_are_no_remedy_for_them() {
    for cause in [Cause::Fragmentation, Cause::OtherStream] {
        let said = words(cause, &split_up(), &about(false, true));
        assert!(
            !said.contains("garbage_collection_threshold:") && !said.contains("max_split_size_mb:"),
            "{said}"
        );
        assert!(said.contains("120.00 MiB was free in 6 blocks, the largest of 30.00 MiB"), "{said}");
    }
}

#[test]
fn splitting_is_limited_to_what_the_request_needed_whole() {
    let said = words(Cause::Fragmentation, &split_up(), &about(false, false));
    assert!(said.contains("max_split_size_mb:100 keeps") && said.contains("90.00 MiB was free"), "{said}");
    let none = State { kind_cut_bytes: Some(0), ..split_up() };
    assert!(!words(Cause::Fragmentation, &none, &about(false, false)).contains("max_split_size_mb"));
    let small = State { requested: Some(20 * MIB), ..split_up() };
    assert!(!words(Cause::Fragmentation, &small, &about(false, false)).contains("max_split_size_mb"));
}

#[test]
fn splitting_that_is_limited_already_is_not_limited_again() {
    let with = |limit: i64| {
        let settings = json!({"max_split_size": limit});
        let about = Background { settings: settings.as_object(), ..about(false, false) };
        words(Cause::Fragmentation, &split_up(), &about)
    };
    assert!(!with(64 * MIB).contains("max_split_size_mb"));
    assert!(!with(100 * MIB).contains("max_split_size_mb"));
    assert!(with(200 * MIB).contains("max_split_size_mb:100 in place of 200.00 MiB"));
    assert!(with(-1).contains("max_split_size_mb:100 keeps"), "no limit is written as -1");
}

#[test]
fn expandable_segments_are_advised_only_where_their_pages_would_have_been_enough() {
    // 12 MiB are a segment of the pool's 3 and the driver's 9, but a page has 20.
    let state = State {
        requested: Some(12 * MIB),
        device_free: Some(9 * MIB),
        kind_free_bytes: Some(3 * MIB),
        pool_free_bytes: Some(3 * MIB),
        ..split_up()
    };
    assert!(!words(Cause::Fragmentation, &state, &about(false, false)).contains("set PYTORCH"));
    let said = words(Cause::Capacity, &state, &about(false, false));
    assert!(said.contains("would not have been enough") && said.contains("9.00 MiB"), "{said}");
}

#[test]
fn a_driver_that_nothing_is_known_of_is_not_spoken_of() {
    let state = State { device_free: None, requested: Some(2 << 30), ..split_up() };
    let said = words(Cause::Capacity, &state, &about(false, false));
    assert!(said.contains("125.00 MiB") && !said.contains("driver") && !said.contains('?'), "{said}");
    let unknown = State { requested: None, ..state };
    assert!(!words(Cause::Capacity, &unknown, &about(false, false)).contains("expandable_segments"));
}

#[test]
fn a_default_is_not_sold_as_a_remedy() {
    let state = State { pending_free_bytes: Some(50 * MIB), ..split_up() };
    let npu = words(Cause::PendingFree, &state, &about(true, false));
    assert!(npu.contains("50.00 MiB was freed") && npu.contains("by default (1)"), "{npu}");
    let cuda = words(Cause::PendingFree, &state, &about(false, false));
    assert!(cuda.contains("before PyTorch 2.8 set TORCH_NCCL_AVOID_RECORD_STREAMS=1"), "{cuda}");
    let settings = json!({"graph_capture_record_stream_reuse": false});
    let newer = Background { settings: settings.as_object(), ..about(false, false) };
    let newer = words(Cause::PendingFree, &state, &newer);
    assert!(newer.contains("changes nothing") && !newer.contains("STREAMS=1"), "{newer}");
}

#[test]
fn only_where_no_history_is_somebody_is_told_to_record_it() {
    let lacks = [Lack::Event, Lack::Replay, Lack::Request, Lack::Pool, Lack::Layout(20), Lack::Driver];
    for lack in lacks {
        let said = words(Cause::Unknown, &split_up(), &Background { lack, ..about(true, false) });
        assert!(!said.contains("_record_memory_history"), "{lack:?}: {said}");
    }
    assert!(words(Cause::Unknown, &split_up(), &about(true, false)).contains("_record_memory_history"));
}

#[test]
fn small_and_large_requests_are_told_apart_where_the_other_kind_was_free() {
    let state = State { kind_free_bytes: Some(0), ..split_up() };
    let large = words(Cause::OtherKind, &state, &about(false, false));
    assert!(large.contains("125.00 MiB was free in segments for requests of up to 1 MiB"), "{large}");
    let state = State { requested: Some(512), ..state };
    let small = words(Cause::OtherKind, &state, &about(false, false));
    assert!(small.contains("above 1 MiB") && small.contains("expandable_segments:True"), "{small}");
}

#[test]
fn what_a_setting_keeps_from_the_request_is_answered_with_the_setting() {
    let settings = json!({"max_split_size": 110 * MIB});
    let about = Background { settings: settings.as_object(), ..about(false, true) };
    let kept = State { kind_free_bytes: Some(0), kind_oversize_bytes: Some(125 * MIB), ..split_up() };
    let said = words(Cause::OtherKind, &kept, &about);
    assert!(
        said.starts_with("125.00 MiB was free in blocks that the setting max_split_size of 110.00 MiB"),
        "{said}"
    );
    assert!(said.contains("Raise max_split_size_mb in PYTORCH_CUDA_ALLOC_CONF"), "{said}");
}

#[test]
fn a_request_of_a_private_pool_is_not_told_to_share_it() {
    let state = State {
        pool: Some((0, 3)),
        own_free_bytes: Some(0),
        kind_free_bytes: Some(0),
        kind_private_bytes: Some(120 * MIB),
        ..split_up()
    };
    let said = words(Cause::PrivatePools, &state, &about(true, false));
    assert!(
        said.contains("120.00 MiB was free in other pools") && said.contains("torch_npu.npu.empty_cache()"),
        "{said}"
    );
    // What was free in the default pool says nothing of a private one.
    let unknown = State { requested: None, kind_free_bytes: None, ..state };
    let said = words(Cause::Fragmentation, &unknown, &about(true, false));
    assert!(!said.contains("was free in"), "{said}");
}
