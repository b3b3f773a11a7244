//! What is known of a snapshot beside its failures, and how much of them is looked into.

use serde_json::{Map, Value};

use super::OomGrowth;
use crate::analysis::devices::Device;
use crate::analysis::facts::{ImportNote, SnapshotFacts};
use crate::analysis::fragment::DeviceFragmentation;
use crate::analysis::outcome::Quantity;
use crate::analysis::outside::OutsidePool;
use crate::analysis::{DeviceOverview, Scope};
use crate::engine::{Engine, Row as _, Value as Param};
use crate::error::Result;

/// Failures of each device of which the events before are read: 50 rows each, from one slice of the history or two. What
/// fails more often than that fails in a loop.
const PRECEDED: i64 = 1000;

/// What the advice depends on.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) is_npu: bool,
    /// The allocator's settings; `None` where the snapshot has none.
    pub(super) settings: Option<Map<String, Value>>,
    /// Whether the file's name says that an out-of-memory handler wrote it.
    pub(super) is_oom_dump: bool,
    pub(super) devices: Vec<DeviceFragmentation>,
    pub(super) outside: Vec<OutsidePool>,
    /// Recorded events of the devices in scope.
    pub(super) event_count: i64,
    /// Whether events of the recording were left out or lost when it was read.
    pub(super) is_cut: bool,
    /// Events before a failure that are called lately.
    pub(super) recent: Option<i64>,
    /// Of each device's failures, so many of the newest have the pool laid out; `None` for all.
    pub(super) laid_out: Option<i64>,
    /// And of so many is told who had grown; `None` for all.
    pub(super) grown: Option<i64>,
}

impl Setup {
    /// Reads it.
    pub(super) fn read(engine: &Engine, scope: Scope<'_>) -> Result<Self> {
        let facts = SnapshotFacts::read(engine)?;
        let devices: Vec<DeviceFragmentation> = scope.rows(engine)?;
        let settings = facts.as_ref().and_then(SnapshotFacts::settings);
        let name = facts.as_ref().map(|facts| facts.source_name().to_ascii_lowercase()).unwrap_or_default();
        Ok(Self {
            is_npu: facts.as_ref().is_some_and(SnapshotFacts::is_npu),
            settings,
            is_oom_dump: name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "oom"),
            event_count: DeviceOverview::read(engine, scope)?.iter().map(|device| device.trace_count).sum(),
            is_cut: are_left_out(engine, scope)? || ImportNote::damaged_from(engine)?.is_some(),
            devices,
            outside: scope.rows(engine)?,
            recent: integer(engine, scope, OomGrowth::RELATION, "recent")?,
            laid_out: integer(engine, Scope::default(), "segments_at", "newest")?,
            // Every allocation is looked at for each of them.
            grown: integer(engine, scope, OomGrowth::RELATION, "newest")?,
        })
    }

    /// Of each device's failures, so many of the newest have the events before them; `None` for all.
    pub(super) fn preceded(&self) -> Option<i64> {
        self.grown.map(|newest| newest.max(PRECEDED))
    }

    /// Whether a device uses expandable segments; `None` where nothing tells.
    pub(super) fn is_expandable(&self, device_index: i64) -> Option<bool> {
        let said = self.settings.as_ref().and_then(|settings| settings.get("expandable_segments")?.as_bool());
        let device = self.devices.iter().find(|device| device.device_index == device_index);
        let seen = device.filter(|device| device.segment_count > 0).map(|device| device.expandable_count > 0);
        said.or(seen)
    }

    /// Expandable segments of a device in the final state; `None` where the settings say something else.
    pub(super) fn expandable_count(&self, device_index: i64) -> Option<(&'static str, Quantity)> {
        let device = self.devices.iter().find(|device| device.device_index == device_index)?;
        let agrees = self.is_expandable(device_index) == Some(device.expandable_count > 0);
        agrees.then_some(("expandable_count", Quantity::Count(device.expandable_count)))
    }
}

/// Whether events of the devices in scope were left out when the snapshot was read.
fn are_left_out(engine: &Engine, scope: Scope<'_>) -> Result<bool> {
    let devices = Device::in_scope(engine, scope)?;
    let is_of_them = |id: i64| devices.iter().any(|device| device.id == id);
    let notes = ImportNote::read(engine)?;
    Ok(notes.iter().any(|note| note.name == "events_left_out" && note.device_id.is_some_and(is_of_them)))
}

/// What the command line gives as a parameter of a relation, else what it is by default; `None` for NULL.
fn integer(engine: &Engine, scope: Scope<'_>, relation: &str, wanted: &str) -> Result<Option<i64>> {
    let given = scope.params.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let params = engine.parameters(relation)?;
    let default = params.iter().find(|param| param.name == wanted).map(|param| &param.default);
    Ok(match given.or(default) {
        Some(Param::Integer(value)) => Some(*value),
        _ => None,
    })
}
