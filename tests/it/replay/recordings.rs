//! Real recordings: every residual is 0, or its reason is known and stands here.

use std::fs;

use npusnap::snapshot::Options;

use crate::oracle::shared;
use crate::support::rows::replayed;

/// A recording, and what the replay has to find in it: base of reserved and residual of `active_requested` by device with
/// events, `block_padding`, and the number of blocks whose size is not proven.
struct Recording {
    name: &'static str,
    devices: &'static [(i64, i64, i64)],
    padding: Option<i64>,
    unproven: Option<i64>,
    /// In words, where something does not add up.
    why: &'static str,
}

const fn sound(name: &'static str, devices: &'static [(i64, i64, i64)]) -> Recording {
    Recording { name, devices, padding: Some(0), unproven: None, why: "" }
}

const RECORDINGS: &[Recording] = &[
    sound("cuda_2.0_block_history", &[(0, 11_844_714_496, 0)]),
    Recording {
        unproven: Some(17),
        why: "cut by its authors: 24 allocations that live at the end of the trace are not in the segments",
        ..sound("cuda_2.10_trimmed", &[(0, 0, -402_719_744)])
    },
    sound("cuda_2.1_segment_list", &[(1, 3_649_044_480, 0)]),
    sound("cuda_2.2_oom", &[(0, 0, 0)]),
    sound("cuda_2.5_five_events", &[(0, 2_097_152, 0)]),
    sound("cuda_2.6_annotations", &[(0, 13_763_608_576, 0)]),
    sound("cuda_2.6_empty", &[]),
    sound("cuda_2.6_private_pools_no_trace", &[(0, 26_189_234_176, 0)]),
    sound("cuda_2.8_oom_expandable_3gpu", &[(0, 0, 0), (1, 0, 0), (2, 0, 0)]),
    // Everything was freed: the events alone show the padding.
    Recording { padding: Some(32), ..sound("npu_train_all_freed", &[(0, 0, 0)]) },
    Recording { padding: Some(32), ..sound("npu_two_devices_expandable", &[(0, 113_246_208, 0), (1, 0, 0)]) },
];

#[test]
fn recordings_add_up_or_the_reason_is_known() {
    let Some(shared) = shared("recordings") else { return };
    for recording in RECORDINGS {
        let Recording { name, why, .. } = recording;
        let bytes = fs::read(shared.join("snapshots").join(format!("{name}.pickle"))).unwrap();
        let rows = replayed(&bytes, &Options::default());
        let ids = rows.ints("devices", "id");
        let indices = rows.ints("devices", "device_index");
        let index_of = |id: &Option<i64>| indices[ids.iter().position(|other| other == id).unwrap()].unwrap();
        let counters = rows.texts("replay_checks", "counter");
        let devices = rows.ints("replay_checks", "device_id");
        let (base, residual) = (rows.ints("replay_checks", "base"), rows.ints("replay_checks", "residual"));
        let exact = rows.ints("replay_checks", "exact");
        let found: Vec<(i64, i64, i64)> = (0..counters.len())
            .step_by(5)
            .map(|row| (index_of(&devices[row]), base[row].unwrap(), residual[row + 4].unwrap()))
            .collect();
        assert_eq!(found, recording.devices, "{name}");
        assert_eq!(rows.ints("snapshot", "block_padding"), [recording.padding], "{name}");
        assert_eq!(rows.stat("block_sizes_unproven"), recording.unproven, "{name}");
        for (row, counter) in counters.iter().enumerate() {
            let is_sound = why.is_empty() || counter.as_deref() == Some("reserved");
            assert!(!is_sound || (residual[row], exact[row]) == (Some(0), Some(1)), "{name} {counter:?}");
        }
        let broken = ["rounding_rule_broken", "splitting_rule_broken"].map(|stat| rows.stat(stat));
        assert_eq!(broken, [None, None], "{name}");
        if !why.is_empty() {
            eprintln!("{name}: {why}");
        }
    }
}
