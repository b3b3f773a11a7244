//! Histories that lost events: what lived and the curves still add up at every event, because what no block accounts for
//! is told.

use std::fs;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use npusnap::engine::{Engine, Options};
use npusnap::store::{Cache, Silent, Store};
use proptest::prelude::*;

use super::History;
use super::model::{Model, Settings};
use super::suffix::{config, settings, step};
use crate::support::pickler::cpython;

/// The one row of a query, all of integers; `None` where there is none.
fn row<const COLUMNS: usize>(engine: &Engine, sql: &str) -> Option<[i64; COLUMNS]> {
    let batches: Vec<_> = engine.query(sql).unwrap().map(Result::unwrap).collect();
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    Some(std::array::from_fn(|column| batch.column(column).as_primitive::<Int64Type>().value(0)))
}

/// Compares what lived with the curves, behind every so many events and at the peak.
fn check(story: History, count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lost.pickle");
    fs::write(&path, cpython(&story.graph(), 4)).unwrap();
    let store = Store::open_with(&path, Cache::Off, &Silent).unwrap();
    let engine = Engine::open(store, Options::for_analyses()).unwrap();
    let lived = "SELECT CAST(SUM(allocated_size) AS BIGINT), CAST(SUM(requested_size) AS BIGINT), \
                 CAST(SUM(allocated_size + pending_size) AS BIGINT)";
    for event in (0..count).step_by(count.div_ceil(5).max(1)) {
        let curves: Option<[i64; 3]> = row(
            &engine,
            &format!(
                "SELECT allocated, allocated_requested, active FROM memory_timeline(0, {event}, {event}) \
                 WHERE allocated IS NOT NULL"
            ),
        );
        let Some(curves) = curves else { continue };
        let lived = row(&engine, &format!("{lived} FROM live_at({event}, 0, NULL) HAVING COUNT(*) > 0"));
        assert_eq!(lived.unwrap_or_default(), curves, "behind event {event}");
    }
    let peak =
        row(&engine, "SELECT peak FROM memory_peaks(0) WHERE counter = 'allocated' AND peak IS NOT NULL");
    let Some([peak]) = peak else { return };
    let sums: Option<[i64; 3]> =
        row(&engine, &format!("{lived} FROM peak_contributors(0, 2) HAVING COUNT(*) > 0"));
    assert_eq!(sums.unwrap_or_default()[0], peak, "what lived at the peak");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases.div_ceil(4), ..config() })]

    #[test]
    fn what_lived_adds_up_where_events_are_missing(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..40),
        lost in prop::collection::vec(prop::bool::weighted(0.15), 200),
    ) {
        let mut model = Model::new(settings);
        for step in steps {
            model.step(step);
        }
        let mut story = model.recorded_from(0);
        let mut lost = lost.into_iter().cycle();
        story.events.retain(|_| !lost.next().unwrap_or_default());
        let count = story.events.len();
        check(story, count);
    }
}

#[test]
fn what_lived_adds_up_where_a_piece_of_the_list_stands_before_another() {
    let steps = [512, 3000, 40, 2000].map(super::model::Step::Malloc);
    let mut model = Model::new(Settings::default());
    for step in steps {
        model.step(step);
        model.step(super::model::Step::Free { which: 1, is_used: false });
    }
    let mut story = model.recorded_from(0);
    for (second, event) in story.events.iter_mut().enumerate() {
        let time = 1_700_000_000_000_000 + i128::try_from(second).unwrap() * 1_000_000;
        *event = event.with("time_us", crate::support::pickler::int(time));
    }
    story.events.rotate_left(3);
    let count = story.events.len();
    check(story, count);
}
