//! Peaks as charts: the counters over time with what lived at its moments, and who held the memory at the peak.

use super::{DevicePeak, Mark, Point};
use crate::analysis::chart::{
    Chart, ChartFigure, Counter, GrowthRow, HeldRow, Level, Mark as Kind, MarkedEvent, Peak, Timeline, held,
    moments, words,
};
use crate::analysis::language::Text;
use crate::engine::{Engine, row};
use crate::error::Result;
use crate::quantity;

row! {
    /// A step of the program.
    pub struct StepRow from "step_boundaries" {
        /// Number of the step.
        step: i64,
        /// Event it begins with.
        first_index: i64,
        /// Name of the annotation; NULL where the step is inferred.
        name: Option<String>,
    }
}

/// Growth of the pool that is marked: the largest of as many stretches.
const GROWTHS: i64 = 120;

/// Charts of every device with a history.
pub(super) fn all<'a>(
    engine: &Engine,
    devices: impl Iterator<Item = &'a DevicePeak>,
) -> Result<Vec<ChartFigure>> {
    let mut charts = Vec::new();
    for device in devices.filter(|device| device.has_history) {
        charts.push(timeline(engine, device)?);
        charts.extend(contributors(device));
    }
    Ok(charts)
}

fn timeline(engine: &Engine, device: &DevicePeak) -> Result<ChartFigure> {
    let levels: Vec<Level> = device.points.iter().map(Point::level).collect();
    let growths: Vec<GrowthRow> =
        engine.rows(&[("device", device.device_index.into()), ("points", GROWTHS.into())])?;
    let mut marks: Vec<MarkedEvent> = growths
        .iter()
        .filter(|row| matches!(row.action.as_str(), "segment_alloc" | "segment_map"))
        .map(|row| MarkedEvent {
            mark: Kind::Growth,
            trace_index: row.trace_index,
            time_us: row.time_us,
            detail: Text::same(format!("+{}", quantity::bytes(row.size))),
        })
        .collect();
    let steps: Vec<StepRow> = engine.rows(&[("device", device.device_index.into())])?;
    marks.extend(steps.iter().map(step));
    marks.extend(device.marks.iter().filter_map(marked));
    marks.sort_by_key(|event| event.trace_index);
    let peaks = Counter::ALL.into_iter().filter_map(|counter| {
        let peak = device.peak(counter.name())?;
        Some(Peak { counter, trace_index: peak.trace_index?, bytes: peak.peak? })
    });
    let moments = moments(engine, device.device_index, &levels)?;
    let stacks =
        words(engine, moments.iter().flat_map(|moment| &moment.live).filter_map(|held| held.stack_id))?;
    Ok(ChartFigure {
        name: "timeline",
        device: Some(device.device_index),
        title: Text::new("Memory over time", "内存随时间的变化"),
        chart: Chart::Timeline(Timeline { levels, marks, peaks: peaks.collect(), moments, stacks }),
    })
}

/// Where a step begins.
fn step(row: &StepRow) -> MarkedEvent {
    let number = quantity::count(row.step);
    let detail = match &row.name {
        Some(name) => Text::same(name.clone()),
        None => Text::new(format!("{number} (inferred from memory)"), format!("{number}（由内存变化推断）")),
    };
    MarkedEvent { mark: Kind::Step, trace_index: row.first_index, time_us: None, detail }
}

fn marked(mark: &Mark) -> Option<MarkedEvent> {
    let kind = match mark.action.as_str() {
        "oom" => Kind::OutOfMemory,
        "snapshot" => Kind::Snapshot,
        _ => return None,
    };
    let detail = mark.size.filter(|_| kind == Kind::OutOfMemory).map(quantity::bytes).unwrap_or_default();
    Some(MarkedEvent {
        mark: kind,
        trace_index: mark.trace_index,
        time_us: mark.time_us,
        detail: Text::same(detail),
    })
}

fn contributors(device: &DevicePeak) -> Vec<ChartFigure> {
    let mut rows: Vec<HeldRow> = device
        .contributors
        .iter()
        .filter(|row| matches!(row.part.as_str(), "stack" | "no_stack"))
        .map(|row| HeldRow {
            stack_id: row.stack_id,
            total_size: row.allocated_size,
            requested_size: Some(row.requested_size),
            block_count: row.block_count,
            frames_json: row.frames_json.clone(),
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_size));
    let total = device.peak("allocated").and_then(|peak| peak.peak).unwrap_or(0);
    let titles = [
        Text::new("Who held the memory at the peak", "峰值时刻谁占用了内存"),
        Text::new("The peak by call path", "峰值按调用路径展开"),
    ];
    held(device.device_index, &rows, total, titles)
}
