//! Oom: why a request failed, who had grown before, and which setting would have helped.
//!
//! A dump that an out-of-memory handler wrote can lack the event itself: the allocator refuses some requests without one.
//! Where the file's name says that it is such a dump, its final state is looked at instead.

mod advice;
mod cause;
mod figures;
mod findings;
mod sequence;

use serde_json::{Value, json};

use super::chart::ChartFigure;
use super::facts::{ImportNote, SnapshotFacts};
use super::fragment::DeviceFragmentation;
use super::frames::{frames, place};
use super::info::Recording;
use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome};
use super::outside::{Components, OutsidePool};
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{Engine, Row as _, Value as Param, row};
use crate::error::Result;
use crate::quantity;

use cause::{Cause, State};

row! {
    /// An out-of-memory event and the state of its device.
    pub struct OomContext from "oom_context" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// Bytes asked for, rounded.
        requested: Option<i64>,
        /// Bytes the driver reported as free.
        device_free: Option<i64>,
        /// Bytes mapped.
        reserved: Option<i64>,
        /// Bytes in allocated blocks.
        allocated: Option<i64>,
        /// Bytes in blocks that waited for a pending free.
        pending_free_bytes: Option<i64>,
        /// Bytes in no block, in the default pool.
        pool_free_bytes: Option<i64>,
        /// Bytes of the largest gap in the default pool.
        largest_free_block: Option<i64>,
        /// Gaps in the default pool.
        hole_count: Option<i64>,
        /// Bytes mapped for private pools.
        private_reserved: Option<i64>,
        /// Bytes in no block there.
        private_free_bytes: Option<i64>,
        /// Bytes in no block, in segments of other streams.
        other_stream_bytes: Option<i64>,
        /// Bytes of mapped ranges without any block.
        unused_segment_bytes: Option<i64>,
        /// Bytes of NPU workspaces at the moment of the dump.
        workspace_bytes: i64,
        /// The most that reserved and driver-free bytes came to.
        capacity_seen: Option<i64>,
        /// Stream of the request.
        stream: Option<i64>,
        /// Call stack of the request.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// An out-of-memory event, and nothing about its device.
    pub struct OomEvent from "_oom_events" {
        /// Row of table `devices`.
        device_id: i64,
        /// Position in the device's history.
        trace_index: i64,
    }
}

row! {
    /// A call stack at an out-of-memory event.
    pub struct OomGrowth from "oom_growth" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the out-of-memory event.
        oom_index: i64,
        /// Call stack; NULL for what has none.
        stack_id: Option<i64>,
        /// Bytes in use that were allocated lately.
        recent_bytes: i64,
        /// Those allocations.
        recent_count: i64,
        /// Bytes in use.
        live_bytes: i64,
        /// Those allocations.
        live_count: i64,
        /// The stack's frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// An event before an out-of-memory event.
    pub struct OomPreceding from "oom_preceding" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the out-of-memory event.
        oom_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// What was done.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// One of the newest events of a device.
    pub struct LastEvent from "last_events" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// What was done.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

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
            recorded(engine, contexts, scope)?
        };
        let events = events.into_iter().map(|event| Failure::judge(event, &setup, thresholds)).collect();
        Ok(Box::new(OomOutcome { events, setup }))
    }
}

/// What the advice depends on.
#[derive(Debug)]
struct Setup {
    is_npu: bool,
    /// Whether expandable segments are in use; `None` where nothing tells.
    is_expandable: Option<bool>,
    /// Whether the file's name says that an out-of-memory handler wrote it.
    is_oom_dump: bool,
    devices: Vec<DeviceFragmentation>,
    outside: Vec<OutsidePool>,
    /// Recorded events of the devices in scope.
    event_count: i64,
    /// Whether events of the recording were left out or lost when it was read.
    is_cut: bool,
    /// Events before a failure that are called lately.
    recent: Option<i64>,
}

impl Setup {
    fn read(engine: &Engine, scope: Scope<'_>) -> Result<Self> {
        let facts = SnapshotFacts::read(engine)?;
        let devices: Vec<DeviceFragmentation> = scope.rows(engine)?;
        let mut recordings: Vec<Recording> = engine.rows(&[])?;
        recordings.retain(|row| scope.device.is_none_or(|wanted| wanted == row.device_index));
        let said = facts
            .as_ref()
            .and_then(SnapshotFacts::settings)
            .and_then(|settings| settings.get("expandable_segments").and_then(Value::as_bool));
        let seen = devices.iter().any(|device| device.expandable_count > 0);
        let known = devices.iter().any(|device| device.segment_count > 0);
        let name = facts.as_ref().map(|facts| facts.source_name().to_ascii_lowercase()).unwrap_or_default();
        Ok(Self {
            is_npu: facts.as_ref().is_some_and(SnapshotFacts::is_npu),
            is_expandable: said.or_else(|| known.then_some(seen)),
            is_oom_dump: name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "oom"),
            event_count: recordings.iter().map(|recording| recording.event_count).sum(),
            is_cut: recordings.iter().any(|recording| recording.left_out_count > 0)
                || ImportNote::damaged_from(engine)?.is_some(),
            devices,
            outside: scope.rows(engine)?,
            recent: recent(engine, scope)?,
        })
    }
}

/// What the command line says lately is, else what it is by default.
fn recent(engine: &Engine, scope: Scope<'_>) -> Result<Option<i64>> {
    let given = scope.params.iter().find(|(name, _)| name == "recent").map(|(_, value)| value);
    let params = engine.parameters(OomGrowth::RELATION)?;
    let default = params.iter().find(|param| param.name == "recent").map(|param| &param.default);
    Ok(match given.or(default) {
        Some(Param::Integer(events)) => Some(*events),
        _ => None,
    })
}

/// A failed request before it is judged.
#[derive(Debug)]
struct Event {
    device_index: i64,
    /// `None` where the failure itself was not recorded.
    trace_index: Option<i64>,
    time_us: Option<i64>,
    state: State,
    stack_id: Option<i64>,
    frames_json: Option<String>,
    growth: Vec<OomGrowth>,
    preceding: Vec<LastEvent>,
}

fn recorded(engine: &Engine, contexts: Vec<OomContext>, scope: Scope<'_>) -> Result<Vec<Event>> {
    let mut growth: Vec<OomGrowth> = scope.rows(engine)?;
    let mut preceding: Vec<OomPreceding> = scope.rows(engine)?;
    let mut events = Vec::with_capacity(contexts.len());
    for context in contexts {
        let is_own = |device: i64, index: i64| device == context.device_index && index == context.trace_index;
        let own: Vec<OomGrowth> =
            growth.extract_if(.., |row| is_own(row.device_index, row.oom_index)).collect();
        let before = preceding.extract_if(.., |row| is_own(row.device_index, row.oom_index));
        let before: Vec<LastEvent> = before.map(LastEvent::from).collect();
        events.push(Event {
            device_index: context.device_index,
            trace_index: Some(context.trace_index),
            time_us: context.time_us,
            state: State::from(&context),
            stack_id: context.stack_id,
            frames_json: context.frames_json,
            growth: own,
            preceding: before,
        });
    }
    Ok(events)
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
        time_us: None,
        state: State::from(device),
        stack_id: None,
        frames_json: None,
        growth: Vec::new(),
        preceding: newest.extract_if(.., |row| row.device_index == device.device_index).collect(),
    });
    Ok(events.collect())
}

impl From<OomPreceding> for LastEvent {
    fn from(event: OomPreceding) -> Self {
        Self {
            device_index: event.device_index,
            trace_index: event.trace_index,
            time_us: event.time_us,
            action: event.action,
            addr: event.addr,
            size: event.size,
            stream: event.stream,
            stack_id: event.stack_id,
            frames_json: event.frames_json,
        }
    }
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
        event.state.is_expandable = setup.is_expandable == Some(true);
        let outside = Components::of(event.device_index, &setup.outside);
        event.state.counted_outside_bytes = outside.bytes();
        event.state.largest_outside = outside.largest().map(|(component, held)| (component.to_owned(), held));
        let cause = Cause::of(&event.state, thresholds);
        let advice = advice::of(cause, &event.state, setup.is_npu, setup.is_expandable);
        Self { event, cause, advice, outside }
    }

    fn json(&self, lang: Lang) -> Value {
        let Event { device_index, trace_index, time_us, state, .. } = &self.event;
        let mut value = json!({
            "device_index": device_index,
            "trace_index": trace_index,
            "is_recorded": trace_index.is_some(),
            "time_us": time_us,
            "requested": state.requested,
            "device_free": state.device_free,
            "reserved": state.reserved,
            "allocated": state.allocated,
            "largest_free_block": state.largest_free_block,
            "hole_count": state.hole_count,
            "pending_free_bytes": state.pending_free_bytes,
            "pool_free_bytes": state.pool_free_bytes,
            "other_stream_bytes": state.other_stream_bytes,
            "private_reserved": state.private_reserved,
            "private_free_bytes": state.private_free_bytes,
            "unused_segment_bytes": state.unused_segment_bytes,
            "workspace_bytes": state.workspace_bytes,
            "outside_pool_bytes": state.outside_pool_bytes,
            "cause": self.cause.name(),
            "advice": self.advice.iter().map(|text| text.get(lang)).collect::<Vec<_>>(),
            "stack_id": self.event.stack_id,
            "frames": frames(self.event.frames_json.as_deref()),
            "grew_last": self.event.growth.iter().map(growth_json).collect::<Vec<_>>(),
            "preceding": self.event.preceding.iter().map(|row| preceding_json(row, lang)).collect::<Vec<_>>(),
        });
        if let (Some(object), Some(outside)) = (value.as_object_mut(), self.outside.json()) {
            object.insert("outside_pool".to_owned(), outside);
        }
        value
    }
}

fn growth_json(row: &OomGrowth) -> Value {
    json!({
        "stack_id": row.stack_id,
        "recent_bytes": row.recent_bytes,
        "recent_count": row.recent_count,
        "live_bytes": row.live_bytes,
        "live_count": row.live_count,
        "frames": frames(row.frames_json.as_deref()),
    })
}

fn preceding_json(row: &LastEvent, lang: Lang) -> Value {
    json!({
        "trace_index": row.trace_index,
        "time_us": row.time_us,
        "action": row.action,
        "addr": row.addr.map(quantity::address),
        "size": row.size,
        "stream": row.stream,
        "stack_id": row.stack_id,
        "place": row.frames_json.as_deref().map(|json| place(Some(json)).get(lang).to_owned()),
    })
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
