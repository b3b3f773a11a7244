//! A slice of the history carries the right state at its end: at every event it is what the whole history says.

use npusnap::export::{Request, Target};

use super::{fixture, number, open, reread, select};

/// The counters at the end of a slice, as the slice itself says, must be those of the whole history after that event.
fn assert_states(name: &str, step: usize) {
    let whole = open(&fixture(name));
    for device in select(&whole, "SELECT device_id, device_index FROM device_overview WHERE trace_count > 0")
    {
        let indexes = select(
            &whole,
            &format!(
                "SELECT trace_index FROM traces WHERE is_workspace = 0 AND device_id = {} ORDER BY 1",
                device[0]
            ),
        );
        for index in indexes.iter().step_by(step) {
            let end: i64 = index[0].parse::<i64>().unwrap() + 1;
            let request = Request {
                events: format!("{}..{end}", (end - 40).max(0)).parse().unwrap(),
                device: Some(device[1].parse().unwrap()),
                ..Request::default()
            };
            let (_place, path, summary) = reread(&whole, Target::MemoryViz, &request);
            assert!(
                !summary.notes.iter().any(|note| note.contains("could not be taken back")),
                "{name} before {end}: {summary:?}"
            );
            let slice = open(&path);
            let counters = "reserved, allocated, active, allocated_requested, active_requested";
            assert_eq!(
                select(&slice, &format!("SELECT {counters} FROM device_overview")),
                select(
                    &whole,
                    &format!(
                        "SELECT {counters} FROM memory_timeline({}, {}, {})",
                        device[1],
                        end - 1,
                        end - 1
                    ),
                ),
                "{name}, device {}, before event {end}",
                device[1]
            );
            // And the slice explains itself: what lived before it adds up to where its curves begin.
            let unexplained = "SELECT count(*) FROM replay_checks WHERE residual <> 0 OR base IS NULL";
            assert_eq!(number(&slice, unexplained), 0, "{name} before {end}");
        }
    }
}

#[test]
fn the_state_at_the_end_of_a_slice_is_that_of_the_history() {
    for (name, step) in [("npu_ring_wrapped", 47), ("npu_two_devices", 150), ("cuda_oom_expandable", 110)] {
        assert_states(name, step);
    }
}

#[test]
fn expandable_segments_are_cut_and_joined_again() {
    assert_states("npu_expandable", 79);
}

#[test]
fn the_viewer_gets_a_clock_pools_and_only_events_it_knows() {
    let engine = open(&fixture("npu_oom"));
    let (_place, path, summary) = reread(&engine, Target::MemoryViz, &Request::default());
    let copy = open(&path);
    let missing = "SELECT count(*) FROM traces WHERE time_us IS NULL OR is_workspace = 1";
    assert_eq!(number(&copy, missing), 0);
    assert_eq!(number(&copy, "SELECT count(*) FROM segments WHERE pool_id_0 IS NULL"), 0);
    assert!(summary.notes.iter().any(|note| note.contains("have no time")), "{summary:?}");

    let engine = open(&fixture("npu_two_devices"));
    let (_place, path, summary) = reread(&engine, Target::MemoryViz, &Request::default());
    let copy = open(&path);
    assert_eq!(number(&copy, "SELECT count(*) FROM traces WHERE action = 'workspace_snapshot'"), 0);
    assert_eq!(
        number(&copy, "SELECT sum(reserved) FROM device_overview"),
        number(&engine, "SELECT sum(reserved) FROM device_overview"),
        "the workspace is not in the pool: {summary:?}"
    );
}

#[test]
fn a_list_becomes_what_the_viewer_reads_and_stays_a_list_as_a_pickle() {
    let engine = open(&fixture("legacy_history"));
    let form = "SELECT form FROM snapshot";
    let (_place, path, _) = reread(&engine, Target::MemoryViz, &Request::default());
    assert_eq!(select(&open(&path), form), [["dict"]]);
    let (_place, path, _) = reread(&engine, Target::Pickle, &Request::default());
    assert_eq!(select(&open(&path), form), [["list"]]);
}
