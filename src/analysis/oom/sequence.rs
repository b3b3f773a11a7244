//! The events before a failed request as a chart, newest first, the request on top.

use super::{Failure, LastEvent, OomOutcome};
use crate::analysis::chart::{Chart, ChartFigure, EventKind, Sequence, SequenceEvent, StackWords};
use crate::analysis::language::Text;

/// A chart for the newest failed request of every device; failures are sorted by device and time.
pub(super) fn charts(outcome: &OomOutcome) -> Vec<ChartFigure> {
    outcome.newest(1).map(chart).collect()
}

fn chart(failure: &Failure) -> ChartFigure {
    let failed = &failure.event;
    let trigger = failed.trace_index.map(|trace_index| SequenceEvent {
        trace_index,
        time_us: failed.time_us,
        action: "oom".to_owned(),
        kind: EventKind::Trigger,
        size: failed.state.requested.unwrap_or(0),
        address: None,
        stack_id: failed.stack_id,
    });
    let preceding = failed.preceding.as_deref().unwrap_or_default();
    let before = preceding.iter().map(event);
    let known = preceding.iter().map(|event| (event.stack_id, event.frames_json.as_deref()));
    let known = known.chain([(failed.stack_id, failed.frames_json.as_deref())]);
    let mut stacks: Vec<StackWords> =
        known.filter_map(|(id, frames)| Some(StackWords::parse(id?, frames?))).collect();
    stacks.sort_by_key(|words| words.stack_id);
    stacks.dedup_by_key(|words| words.stack_id);
    ChartFigure {
        name: "oom",
        device: Some(failed.device_index),
        title: Text::new("What happened before the request failed", "请求失败之前发生了什么"),
        chart: Chart::Sequence(Sequence { events: trigger.into_iter().chain(before).collect(), stacks }),
    }
}

fn event(event: &LastEvent) -> SequenceEvent {
    SequenceEvent {
        trace_index: event.trace_index,
        time_us: event.time_us,
        action: event.action.clone(),
        kind: kind(&event.action),
        size: event.size.unwrap_or(0),
        address: event.addr,
        stack_id: event.stack_id,
    }
}

fn kind(action: &str) -> EventKind {
    match action {
        "alloc" | "segment_alloc" | "segment_map" => EventKind::Alloc,
        "free_requested" | "free_completed" | "segment_free" | "segment_unmap" => EventKind::Free,
        "oom" => EventKind::Trigger,
        _ => EventKind::Other,
    }
}
