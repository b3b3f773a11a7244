//! The simulators' truth.

use std::fs;
use std::path::Path;

use npusnap::snapshot::Options;
use serde_json::Value;

use crate::oracle::{python, shared};
use crate::support::rows::replayed;

const NPUSNAP: &str = env!("CARGO_BIN_EXE_npusnap");

/// `tests/oracle/replay_truth.py BINARY TOOLS` does 200 of them.
#[test]
fn b45_allocations_are_what_the_simulated_allocator_did() {
    let Some(tools) = shared("replay_truth.py") else { return };
    let tools = tools.join("tools");
    python("replay_truth.py", &[NPUSNAP, tools.to_str().unwrap(), "--runs", "25"]);
}

/// What a fixture's truth says of a device, in the order of `replay_checks`.
fn counters(device: &Value, state: &str) -> [Option<i64>; 5] {
    ["reserved", "allocated", "active", "allocated_requested", "active_requested"]
        .map(|counter| device[state][counter].as_i64())
}

#[test]
fn fixtures_start_and_end_as_their_truth_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (mut compared, mut exact) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pickle") {
            continue;
        }
        let truth: Value =
            serde_json::from_slice(&fs::read(path.with_extension("truth.json")).unwrap()).unwrap();
        let rows = replayed(&fs::read(&path).unwrap(), &Options::default());
        if rows.ints("snapshot", "event_count") == [Some(0)] {
            // The list form has no history, and so the end only.
            continue;
        }
        let indices = rows.ints("devices", "device_index");
        let [base, last, residual, is_exact] =
            ["base", "final", "residual", "exact"].map(|column| rows.ints("replay_checks", column));
        for (row, device_id) in rows.ints("replay_checks", "device_id").into_iter().enumerate() {
            let index = indices[usize::try_from(device_id.unwrap()).unwrap() - 1];
            let device =
                truth["devices"].as_array().unwrap().iter().find(|device| device["device"].as_i64() == index);
            let device = device.unwrap();
            let name = path.display();
            assert_eq!((last[row], residual[row]), (counters(device, "final")[row % 5], Some(0)), "{name}");
            compared += 1;
            if is_exact[row] == Some(1) {
                assert_eq!(base[row], counters(device, "start_state")[row % 5], "{name}");
                exact += 1;
            }
        }
    }
    assert!(compared >= 60 && exact + 4 >= compared, "{exact} of {compared} are exact");
}
