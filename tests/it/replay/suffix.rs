//! Random histories of a model allocator, recorded from the beginning or from any later event: what the replay finds is
//! what the allocator did.

use npusnap::snapshot::Options;
use proptest::prelude::*;

use super::model::{Lifetime, Model, Settings, Step};
use super::{Life, MIB, checks, lives};
use crate::support::pickler::{cpython, dict, int};
use crate::support::rows::replayed;

fn size() -> impl Strategy<Value = i128> {
    prop_oneof![
        3 => 1..3000_i128,
        2 => (0..2048_i128).prop_map(|units| units * 512 + 1),
        2 => (MIB - 600)..(MIB + 600),
        4 => (MIB / 512..12 * MIB / 512).prop_map(|units| units * 512),
        2 => (9 * MIB)..(40 * MIB),
        // What leaves rests around 1 MiB in segments of 20 MiB.
        3 => 18 * MIB..20 * MIB,
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => size().prop_map(Step::Malloc),
        4 => (0..64_usize, prop::bool::weighted(0.2))
            .prop_map(|(which, is_used)| Step::Free { which, is_used }),
        1 => Just(Step::Synchronize),
        1 => prop::bool::weighted(0.3)
            .prop_map(|empties| if empties { Step::EmptyCache } else { Step::Snapshot }),
    ]
}

pub(super) fn settings() -> impl Strategy<Value = Settings> {
    let max_split_size = prop::option::weighted(0.2, 20 * MIB..30 * MIB);
    (prop::bool::weighted(0.3), prop::bool::ANY, max_split_size).prop_map(
        |(expandable, is_padded, max_split_size)| Settings {
            expandable,
            padding: if is_padded { 32 } else { 0 },
            max_split_size: max_split_size.filter(|_| !expandable && !is_padded),
        },
    )
}

fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap()
}

/// What `allocations` has to hold for a recording that began at `first`; `None` for what had ended by then.
fn expected(lifetime: &Lifetime, first: usize) -> Option<Life> {
    let seen = |index: Option<usize>| index?.checked_sub(first).map(|index| i64::try_from(index).unwrap());
    let Lifetime { free_requested, free_completed, .. } = *lifetime;
    if free_completed.is_some_and(|index| index < first) {
        return None;
    }
    let fate = match (free_requested, free_completed) {
        (_, Some(_)) => "freed",
        (Some(_), None) => "pending_free",
        (None, None) => "live",
    };
    let origin = if lifetime.alloc < first { "before_window" } else { "window" };
    Some((
        narrow(lifetime.addr),
        narrow(lifetime.requested),
        (narrow(lifetime.size), true),
        [seen(Some(lifetime.alloc)), seen(free_requested), seen(free_completed)],
        origin,
        fate,
    ))
}

fn check(model: &Model, settings: Settings, first: usize) {
    let mut story = model.recorded_from(first);
    if settings.padding == 0 {
        // Only CUDA says so.
        let limit = settings.max_split_size.unwrap_or(-1);
        story = story.settings(dict([("max_split_size", int(limit))]));
    } else {
        story = story.npu();
    }
    let is_empty = story.is_empty();
    let rows = replayed(&cpython(&story.graph(), 4), &Options::default());
    if is_empty {
        assert_eq!(rows.ints("replay_checks", "base"), []);
        return;
    }
    let mut want: Vec<Life> = model.lifetimes.iter().filter_map(|life| expected(life, first)).collect();
    want.sort_by_key(|life| (life.3[0], life.0));
    let mut found = lives(&rows);
    let is_padding_known = rows.stat("block_padding_unknown").is_none();
    let mut all_proven = true;
    for (found, want) in found.iter_mut().zip(&want) {
        if found.2.1 {
            continue;
        }
        // A size that is not proven is not smaller than what was asked for, and only large blocks from before are not.
        all_proven = false;
        let is_excused =
            found.4 == "before_window" && found.5 == "freed" && !settings.expandable && found.1 > 1 << 19;
        assert!(is_excused || !is_padding_known, "{found:?}");
        assert!(found.2.0 >= found.1);
        found.2 = want.2;
    }
    assert_eq!(found, want, "from event {first}");
    let (base, last) = (model.counters[first], model.counters.last().unwrap());
    for (counter, (found, (base, last))) in checks(&rows).into_iter().zip(base.iter().zip(last)).enumerate() {
        let is_rounded = counter == 1 || counter == 2;
        assert_eq!(
            (found.1, found.2),
            (Some(narrow(*last)), Some(0)),
            "counter {counter} from event {first}"
        );
        if !is_rounded || all_proven {
            assert_eq!(
                (found.0, found.3),
                (Some(narrow(*base)), true),
                "counter {counter} from event {first}"
            );
        }
    }
    let odd = ["rounding_rule_broken", "splitting_rule_broken", "allocations_outside_segments"];
    assert_eq!(odd.map(|name| rows.stat(name)), [None; 3]);
    assert!(!all_proven || rows.stat("calibration_deviation").is_none());
}

/// Every history is replayed once for each of its events, so few are enough; `PROPTEST_CASES` asks for more.
pub(super) fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_history_cut_anywhere_goes_on_as_the_whole_one(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut model = Model::new(settings);
        for step in steps {
            model.step(step);
        }
        for first in 0..=model.events.len() {
            check(&model, settings, first);
        }
    }
}
