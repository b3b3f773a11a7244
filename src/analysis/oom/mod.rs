//! Oom: why a request failed, who had grown before, and which setting would have helped.
//!
//! A dump that an out-of-memory handler wrote can lack the event itself: the allocator refuses some requests without one.
//! Where the file's name says that it is such a dump, its final state is looked at instead.

mod advice;
mod cause;
mod figures;
mod findings;
mod json;
mod rows;
mod sequence;
mod setup;
mod state;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::chart::ChartFigure;
use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome};
use super::outside::Components;
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{Engine, Value as Param};
use crate::error::Result;

use advice::{Background, Lack};
use cause::Cause;
pub use rows::{LastEvent, OomContext, OomEvent, OomGrowth, OomPreceding};
use setup::Setup;
use state::State;

/// See the module.
#[derive(Debug)]
pub struct Oom;

impl Analysis for Oom {
    fn name(&self) -> &'static str {
        "oom"
    }

    fn relations(&self) -> &'static [&'static str] {
        &[
            "oom_context",
            "oom_preceding",
            "oom_growth",
            "last_events",
            "device_fragmentation",
            "memory_outside_pool",
        ]
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        let setup = Setup::read(engine, scope)?;
        // Laying the pool out at every failure is much work to plan, also where there is none, as in most snapshots.
        let failed = !scope.rows::<OomEvent>(engine)?.is_empty();
        let contexts: Vec<OomContext> = if failed { scope.rows(engine)? } else { Vec::new() };
        let events = if contexts.is_empty() {
            unrecorded(engine, &setup, scope)?
        } else {
            recorded(engine, &setup, contexts, scope)?
        };
        let events = events.into_iter().map(|event| Failure::judge(event, &setup, thresholds)).collect();
        Ok(Box::new(OomOutcome { events, setup }))
    }
}

/// A failed request before it is judged.
#[derive(Debug)]
struct Event {
    device_index: i64,
    /// `None` where the failure itself was not recorded.
    trace_index: Option<i64>,
    /// 1 for the newest failure of the device.
    newest: i64,
    time_us: Option<i64>,
    state: State,
    stack_id: Option<i64>,
    frames_json: Option<String>,
    /// `None` where nobody looked.
    growth: Option<Vec<OomGrowth>>,
    /// `None` where nobody looked.
    preceding: Option<Vec<LastEvent>>,
}

fn recorded(
    engine: &Engine,
    setup: &Setup,
    contexts: Vec<OomContext>,
    scope: Scope<'_>,
) -> Result<Vec<Event>> {
    let preceded = setup.preceded();
    let mut params: Vec<(String, Param)> =
        scope.params.iter().filter(|(name, _)| name != "newest").cloned().collect();
    params.push(("newest".to_owned(), preceded.into()));
    let mut growth = by_event(scope.rows(engine)?, |row: &OomGrowth| (row.device_index, row.oom_index));
    let mut preceding = by_event(Scope { params: &params, ..scope }.rows(engine)?, |row: &OomPreceding| {
        (row.device_index, row.oom_index)
    });
    let mut newest: HashMap<i64, i64> = HashMap::new();
    let mut events = Vec::with_capacity(contexts.len());
    // They are sorted by device and time.
    for context in contexts.into_iter().rev() {
        let place = newest.entry(context.device_index).and_modify(|place| *place += 1).or_insert(1);
        let is_among = |most: Option<i64>| most.is_none_or(|most| *place <= most);
        let key = (context.device_index, context.trace_index);
        let before = preceding.remove(&key).unwrap_or_default();
        events.push(Event {
            device_index: context.device_index,
            trace_index: Some(context.trace_index),
            newest: *place,
            time_us: context.time_us,
            state: State::from(&context),
            stack_id: context.stack_id,
            frames_json: context.frames_json,
            growth: is_among(setup.grown).then(|| growth.remove(&key).unwrap_or_default()),
            preceding: is_among(preceded).then(|| before.into_iter().map(LastEvent::from).collect()),
        });
    }
    events.reverse();
    Ok(events)
}

/// Rows by the device and the event that they belong to, in their order.
fn by_event<R>(rows: Vec<R>, key: impl Fn(&R) -> (i64, i64)) -> HashMap<(i64, i64), Vec<R>> {
    let mut grouped: HashMap<(i64, i64), Vec<R>> = HashMap::new();
    for row in rows {
        grouped.entry(key(&row)).or_default().push(row);
    }
    grouped
}

/// The final state of every device in the place of the failure that was not recorded.
fn unrecorded(engine: &Engine, setup: &Setup, scope: Scope<'_>) -> Result<Vec<Event>> {
    if !setup.is_oom_dump {
        return Ok(Vec::new());
    }
    let mut newest: Vec<LastEvent> = scope.rows(engine)?;
    let held = setup.devices.iter().filter(|device| device.device_index >= 0 && device.reserved > 0);
    let events = held.map(|device| Event {
        device_index: device.device_index,
        trace_index: None,
        newest: 1,
        time_us: None,
        state: State::from(device),
        stack_id: None,
        frames_json: None,
        growth: None,
        preceding: Some(newest.extract_if(.., |row| row.device_index == device.device_index).collect()),
    });
    Ok(events.collect())
}

/// A failed request, judged.
#[derive(Debug)]
struct Failure {
    event: Event,
    cause: Cause,
    advice: Vec<Text>,
    outside: Components,
}

impl Failure {
    fn judge(mut event: Event, setup: &Setup, thresholds: &Thresholds) -> Self {
        let is_expandable = setup.is_expandable(event.device_index);
        event.state.is_expandable = is_expandable == Some(true);
        let outside = Components::of(event.device_index, &setup.outside);
        event.state.counted_outside_bytes = outside.bytes();
        event.state.largest_outside = outside.largest().map(|(component, held)| (component.to_owned(), held));
        let cause = Cause::of(&event.state, thresholds);
        let background = Background {
            is_npu: setup.is_npu,
            is_expandable,
            settings: setup.settings.as_ref(),
            lack: Lack::of(&event, setup.event_count),
        };
        let advice = advice::of(cause, &event.state, &background);
        Self { event, cause, advice, outside }
    }
}

/// The failures of all devices.
#[derive(Debug)]
struct OomOutcome {
    events: Vec<Failure>,
    setup: Setup,
}

/// Failures of each device that a person gets to see one by one.
const SHOWN: usize = 16;

impl OomOutcome {
    /// The newest failures of each device, which are sorted by device and time.
    fn newest(&self, count: usize) -> impl Iterator<Item = &Failure> {
        self.events.iter().enumerate().filter_map(move |(place, failure)| {
            let later = self.events.get(place + count);
            later
                .is_none_or(|later| later.event.device_index != failure.event.device_index)
                .then_some(failure)
        })
    }

    /// Those that are shown one by one.
    fn shown(&self) -> impl Iterator<Item = &Failure> {
        self.newest(SHOWN)
    }
}

impl Outcome for OomOutcome {
    fn json(&self, lang: Lang) -> Value {
        json!({ "events": self.events.iter().map(|failure| failure.json(lang)).collect::<Vec<_>>() })
    }

    fn findings(&self) -> Vec<Finding> {
        findings::all(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn charts(&self, _engine: &Engine, _wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        Ok(sequence::charts(self))
    }
}
