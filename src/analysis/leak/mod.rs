//! Leak: which call stacks hold more and more memory from step to step, and never give it back.
//!
//! Growth across steps is what decides. What the usual rules look at is reported beside it: whether reserved memory only ever
//! grew, and what of the early allocations is still alive. Weights and optimizer state satisfy both and leak nothing.

mod attribution;
mod history;
mod json;
mod judge;
mod tables;
mod words;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chart::{self, ChartFigure, HeldRow};
use super::fragment::DeviceFragmentation;
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{Analysis, Lang, Scope, Text};
use crate::engine::{Engine, row};
use crate::error::Result;
use attribution::Attribution;
pub use attribution::SegmentStack;
use judge::{Suspect, Verdict};

/// Stacks named by what they hold since early on.
const LONG_LIVED: usize = 3;
/// Suspects whose frames are looked up and shown; those behind them are counted.
const SUSPECTS: usize = 20;

row! {
    /// How the memory of one call stack grew across steps.
    pub struct StackGrowth from "stack_growth" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Call stack; NULL for blocks without one.
        stack_id: Option<i64>,
        /// `annotation`, `inferred` or `time`; NULL where the history is too short.
        origin: Option<String>,
        /// Events of the device's history.
        event_count: i64,
        /// Steps seen to their end.
        step_count: i64,
        /// Steps between the first moment and the last.
        step_span: i64,
        /// Intervals compared.
        interval_count: i64,
        /// Intervals in which the stack held more at the end.
        grew_count: i64,
        /// Intervals in which it held less.
        shrank_count: i64,
        /// Requested bytes it held more at the last moment than at the first.
        growth_size: i64,
        /// Of them, in the second half of the intervals.
        late_growth_size: i64,
        /// Blocks it held more.
        growth_count: i64,
        /// Requested bytes it holds at the end.
        live_size: i64,
        /// Blocks it holds at the end.
        live_count: i64,
        /// Of the bytes, allocated early.
        early_size: i64,
        /// Of the blocks, allocated early.
        early_count: i64,
        /// Event of the oldest of them.
        first_index: Option<i64>,
        /// Event of the newest of them.
        last_index: Option<i64>,
    }
}

row! {
    /// What growth can be told by on a device.
    pub struct StepOverview from "step_overview" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Events of the history.
        event_count: i64,
        /// `annotation`, `inferred` or `time`; NULL where the history is too short.
        origin: Option<String>,
        /// Steps seen to their end.
        step_count: i64,
        /// Intervals compared.
        interval_count: i64,
        /// Requested bytes of all allocations in these intervals.
        allocated_size: i64,
    }
}

row! {
    /// How reserved memory of one device grew and shrank.
    pub struct SegmentGrowth from "segment_growth" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Events that brought bytes.
        grow_count: i64,
        /// Events that took bytes.
        shrink_count: i64,
        /// Bytes that came.
        grown_size: i64,
        /// Bytes that went.
        shrunk_size: i64,
        /// Bytes that came in the second half of the history.
        late_grown_size: i64,
        /// First event that brought bytes.
        first_grow_index: Option<i64>,
        /// Last event that brought bytes.
        last_grow_index: Option<i64>,
        /// Whether bytes came and none went.
        is_monotone: i64,
    }
}

/// See the module.
#[derive(Debug)]
pub struct Leak;

impl Analysis for Leak {
    fn name(&self) -> &'static str {
        "leak"
    }

    fn relations(&self) -> &'static [&'static str] {
        &["stack_growth", "step_overview", "segment_growth", "segment_growth_by_stack"]
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        let devices: Vec<DeviceFragmentation> = scope.rows(engine)?;
        let mut stacks: Vec<StackGrowth> = scope.rows(engine)?;
        let mut segments: Vec<SegmentGrowth> = scope.rows(engine)?;
        let mut grown: Vec<SegmentStack> = scope.rows(engine)?;
        let mut steps: Vec<StepOverview> = scope.rows(engine)?;
        let mut all = Vec::with_capacity(devices.len());
        for device in devices {
            let index = device.device_index;
            let stacks: Vec<StackGrowth> = stacks.extract_if(.., |row| row.device_index == index).collect();
            let steps = steps.extract_if(.., |row| row.device_index == index).next();
            let segments = segments.extract_if(.., |row| row.device_index == index).next();
            let grown: Vec<SegmentStack> = grown.extract_if(.., |row| row.device_index == index).collect();
            let only_grew = segments.as_ref().is_some_and(SegmentGrowth::only_grew);
            let attribution = Attribution::of(&grown, &stacks, only_grew);
            let mut leak = DeviceLeak::judged(&device, stacks, steps, thresholds);
            (leak.segments, leak.attribution) = (segments, attribution);
            all.push(leak);
        }
        let ids = all.iter().flat_map(DeviceLeak::stack_ids);
        let frames = chart::frames_by_stack(engine, ids)?;
        for leak in &mut all {
            leak.name(&frames);
        }
        // Pinned host memory is a domain of its own: it stands beside the devices, never among them.
        let (host, devices) = all.into_iter().partition(|device| device.device_index < 0);
        Ok(Box::new(LeakOutcome { devices, host, thresholds: thresholds.clone() }))
    }
}

#[derive(Debug)]
struct LeakOutcome {
    devices: Vec<DeviceLeak>,
    host: Vec<DeviceLeak>,
    thresholds: Thresholds,
}

/// A stack with its frames.
#[derive(Debug)]
struct Named<T> {
    what: T,
    frames_json: Option<String>,
}

impl<T> Named<T> {
    /// Without frames so far.
    fn of(what: T) -> Self {
        Self { what, frames_json: None }
    }
}

#[derive(Debug)]
struct DeviceLeak {
    device_index: i64,
    steps: Option<StepOverview>,
    segments: Option<SegmentGrowth>,
    attribution: Attribution,
    /// Bytes in allocated blocks of the final state, whatever is known of their history.
    allocated: i64,
    live_size: i64,
    live_count: i64,
    early_size: i64,
    early_count: i64,
    long_lived: Vec<Named<StackGrowth>>,
    suspects: Vec<Named<Suspect>>,
    /// Suspects in all, also those that are not listed.
    suspect_count: usize,
    /// Requested bytes by which all suspects grew.
    retained_size: i64,
    verdict: Verdict,
}

impl DeviceLeak {
    fn judged(
        device: &DeviceFragmentation,
        mut stacks: Vec<StackGrowth>,
        steps: Option<StepOverview>,
        thresholds: &Thresholds,
    ) -> Self {
        let allocated = steps.as_ref().map_or(0, |steps| steps.allocated_size);
        let suspects = judge::suspects(&stacks, allocated, thresholds);
        let verdict = suspects.iter().map(|suspect| suspect.verdict).max().unwrap_or(Verdict::None);
        let suspect_count = suspects.len();
        let retained_size = suspects.iter().map(|suspect| suspect.growth.growth_size).sum();
        let suspects = suspects.into_iter().take(SUSPECTS).map(Named::of).collect();
        let sum = |value: fn(&StackGrowth) -> i64| stacks.iter().map(value).sum();
        let (live_size, live_count) = (sum(|row| row.live_size), sum(|row| row.live_count));
        let (early_size, early_count) = (sum(|row| row.early_size), sum(|row| row.early_count));
        stacks.retain(|row| row.early_size > 0);
        stacks.sort_by_key(|row| std::cmp::Reverse(row.early_size));
        let long_lived = stacks.into_iter().take(LONG_LIVED).map(Named::of).collect();
        Self {
            device_index: device.device_index,
            steps,
            segments: None,
            attribution: Attribution::default(),
            allocated: device.allocated,
            live_size,
            live_count,
            early_size,
            early_count,
            long_lived,
            suspects,
            suspect_count,
            retained_size,
            verdict,
        }
    }

    /// The stacks that are shown.
    fn stack_ids(&self) -> impl Iterator<Item = i64> {
        let suspects = self.suspects.iter().filter_map(|suspect| suspect.what.growth.stack_id);
        let long_lived = self.long_lived.iter().filter_map(|stack| stack.what.stack_id);
        suspects.chain(long_lived).chain(self.attribution.stack_ids())
    }

    /// Gives them their frames.
    fn name(&mut self, frames: &BTreeMap<i64, String>) {
        self.attribution.name(frames);
        let frames = |stack: Option<i64>| frames.get(&stack?).cloned();
        for suspect in &mut self.suspects {
            suspect.frames_json = frames(suspect.what.growth.stack_id);
        }
        for stack in &mut self.long_lived {
            stack.frames_json = frames(stack.what.stack_id);
        }
    }

    /// Suspects by the bytes they grew by.
    fn chart(&self) -> Option<ChartFigure> {
        let rows: Vec<HeldRow> = self
            .suspects
            .iter()
            .map(|suspect| HeldRow {
                stack_id: suspect.what.growth.stack_id,
                total_size: suspect.what.growth.growth_size,
                requested_size: None,
                block_count: suspect.what.growth.growth_count,
                frames_json: suspect.frames_json.clone(),
            })
            .collect();
        let title = Text::new("Suspects by how much they grew", "嫌疑调用栈的增长量");
        chart::bars(self.device_index, &rows, self.retained_size, title)
    }
}

impl SegmentGrowth {
    /// Whether bytes came and none went.
    fn only_grew(&self) -> bool {
        self.is_monotone == 1
    }
}

impl Outcome for LeakOutcome {
    fn json(&self, _lang: Lang) -> Value {
        json!({
            "devices": self.devices.iter().map(DeviceLeak::json).collect::<Vec<_>>(),
            "host": self.host.iter().map(DeviceLeak::json).collect::<Vec<_>>(),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        words::findings(&self.devices, &self.thresholds)
    }

    fn figures(&self) -> Vec<Figure> {
        tables::figures(&self.devices)
    }

    fn charts(&self, _engine: &Engine, _wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        Ok(self.devices.iter().filter_map(DeviceLeak::chart).collect())
    }
}
