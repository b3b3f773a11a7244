//! `npusnap analyze --mode fragment`: the sums are right, and what they mean is told apart.

use std::path::Path;

use serde_json::{Value, json};

use crate::oracle::{python, shared};
use crate::support::analyze::{NPUSNAP, fixture, golden, json, rules, text};
use crate::support::pickler::{Py, int, tuple};
use crate::support::pool::{MIB, event, segment, snapshot, written};

/// Snapshots of a folder, as arguments.
pub(crate) fn pickles(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pickles = entries.filter(|path| path.extension().is_some_and(|extension| extension == "pickle"));
    let mut names: Vec<String> = pickles.map(|path| path.to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn fixtures_have_the_fragmentation_and_failures_that_python_works_out() {
    let paths = pickles(&fixture(""));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    python("measures.py", &[&[NPUSNAP], paths.as_slice()].concat());
}

#[test]
fn recordings_have_the_fragmentation_and_failures_that_python_works_out() {
    let Some(shared) = shared("recordings") else { return };
    let paths = pickles(&shared.join("snapshots"));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    python("measures.py", &[&[NPUSNAP], paths.as_slice()].concat());
}

/// `tests/oracle/measures.py BINARY --tools DIR --runs 200` is the long version.
#[test]
fn generated_snapshots_have_the_fragmentation_and_failures_of_their_truth() {
    let Some(shared) = shared("gen_snapshot.py") else { return };
    let tools = shared.join("tools");
    python("measures.py", &[NPUSNAP, "--tools", tools.to_str().unwrap(), "--runs", "5"]);
}

fn of_segments(segments: Vec<Py>) -> Value {
    let (_place, path) = written("s.pickle", &snapshot(segments, vec![]));
    json(&path, "fragment", &[])
}

fn finding<'a>(json: &'a Value, rule: &str) -> Option<&'a Value> {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == rule)
}

#[test]
fn pending_frees_over_half_of_the_gap_say_that_asynchronous_release_is_the_cause() {
    let with_pending = |pending: i128| {
        let states =
            [(10, "active_allocated"), (pending, "active_pending_free"), (20 - 10 - pending, "inactive")];
        let blocks: Vec<(i128, &str)> = states.iter().map(|(size, state)| (size * MIB, *state)).collect();
        of_segments(vec![segment(0, 4096, "large", &blocks)])
    };
    let over = with_pending(6);
    assert_eq!(over["result"]["devices"][0]["pending_free_share"], json!(0.6));
    let message = finding(&over, "fragment/pending_free").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("asynchronous release is the cause"), "{message}");
    // Half is not over half.
    assert!(finding(&with_pending(5), "fragment/pending_free").is_none());
}

#[test]
fn whole_free_segments_and_private_pools_are_no_fragmentation() {
    let private = segment(0, 1 << 30, "large", &[(10 * MIB, "active_allocated"), (10 * MIB, "inactive")])
        .with("segment_pool_id", tuple([int(0), int(1)]));
    let json = of_segments(vec![
        segment(0, 4096, "large", &[(20 * MIB, "active_allocated")]),
        segment(0, 1 << 28, "large", &[(20 * MIB, "inactive")]),
        private,
    ]);
    assert!(finding(&json, "fragment/unallocated").is_none());
    let device = &json["result"]["devices"][0];
    assert_eq!(device["hole_bytes"], 0);
    assert_eq!(device["unused_segment_bytes"], 20 << 20);
    assert_eq!(device["private_free_bytes"], 10 << 20);
    assert_eq!(device["pools"].as_array().unwrap().len(), 2);
    for rule in ["fragment/cache", "fragment/private_pools", "fragment/ok"] {
        assert!(finding(&json, rule).is_some(), "{rule}");
    }
}

#[test]
fn free_blocks_are_judged_by_what_is_asked_for() {
    // Nine holes of 1.5 MiB between blocks of 2 MiB; the program asks for 8 MiB at a time.
    let blocks: Vec<(i128, &str)> = (0..18)
        .map(|place| if place % 2 == 0 { (2 * MIB, "active_allocated") } else { (3 * MIB / 2, "inactive") })
        .collect();
    let events = (0..5).flat_map(|_| {
        [
            event("alloc", 1 << 40, 8 * MIB),
            event("free_requested", 1 << 40, 8 * MIB),
            event("free_completed", 1 << 40, 8 * MIB),
        ]
    });
    let snapshot = snapshot(vec![segment(0, 4096, "large", &blocks)], vec![events.collect()]);
    let (_place, path) = written("s.pickle", &snapshot);
    let json = json(&path, "fragment", &[]);
    let requests = &json["result"]["devices"][0]["requests"][0];
    assert_eq!(requests["median_request"], 8 << 20);
    assert_eq!(requests["fits_median_bytes"], 0);
    assert_eq!(requests["largest_free_block"], 3 << 19);
    let unfit = finding(&json, "fragment/unfit").unwrap();
    assert_eq!(unfit["evidence"]["unfit_bytes"], 27 << 19);
    assert!(finding(&json, "fragment/unallocated").is_some());
}

#[test]
fn an_empty_snapshot_has_nothing_to_be_fragmented() {
    let json = json(&fixture("cuda_empty.pickle"), "fragment", &[]);
    assert_eq!(rules(&json), [("fragment/nothing_reserved".to_owned(), "info".to_owned())]);
    assert_eq!(json["result"]["devices"], json!([]));
}

#[test]
fn a_pool_that_is_all_free_is_cache() {
    let json = json(&fixture("npu_all_freed.pickle"), "fragment", &[]);
    let rules = rules(&json);
    assert!(rules.contains(&("fragment/cache".to_owned(), "info".to_owned())), "{rules:?}");
    // Event 16 asked for 2,316,800 bytes while 2,521,600 were free in two blocks: that was fragmentation, and is over.
    assert!(
        rules.iter().all(|(rule, _)| rule == "fragment/cache" || rule == "fragment/expansions"),
        "{rules:?}"
    );
}

#[test]
fn pages_look_as_they_did_when_somebody_last_looked() {
    for name in ["npu_leak", "cuda_oom_expandable"] {
        for lang in ["en", "zh"] {
            let page = text(&fixture(&format!("{name}.pickle")), "fragment", &["--lang", lang]);
            golden(&format!("fragment_{name}.{lang}.txt"), &page);
        }
    }
}
