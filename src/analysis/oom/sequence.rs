//! The events before a failed request as a chart, newest first, the request on top.

use super::{OomContext, OomPreceding};
use crate::analysis::chart::{Chart, ChartFigure, EventKind, Sequence, SequenceEvent, StackWords};
use crate::analysis::language::Text;

/// A chart for the newest failed request of every device.
pub(super) fn charts(failures: &[OomContext], before: &[OomPreceding]) -> Vec<ChartFigure> {
    let newest = failures.iter().filter(|failure| {
        let later = |other: &OomContext| {
            other.device_index == failure.device_index && other.trace_index > failure.trace_index
        };
        !failures.iter().any(later)
    });
    newest.map(|failure| chart(failure, before)).collect()
}

fn chart(failure: &OomContext, before: &[OomPreceding]) -> ChartFigure {
    let device = failure.device_index;
    let own: Vec<&OomPreceding> = before
        .iter()
        .filter(|event| event.device_index == device && event.oom_index == failure.trace_index)
        .collect();
    let trigger = SequenceEvent {
        trace_index: failure.trace_index,
        time_us: failure.time_us,
        action: "oom".to_owned(),
        kind: EventKind::Trigger,
        size: failure.requested.unwrap_or(0),
        address: None,
        stack_id: failure.stack_id,
    };
    let events = own.iter().map(|event| SequenceEvent {
        trace_index: event.trace_index,
        time_us: event.time_us,
        action: event.action.clone(),
        kind: kind(&event.action),
        size: event.size.unwrap_or(0),
        address: event.addr,
        stack_id: event.stack_id,
    });
    let known = own.iter().map(|event| (event.stack_id, event.frames_json.as_deref()));
    let known = known.chain([(failure.stack_id, failure.frames_json.as_deref())]);
    let mut stacks: Vec<StackWords> =
        known.filter_map(|(id, frames)| Some(StackWords::parse(id?, frames?))).collect();
    stacks.sort_by_key(|words| words.stack_id);
    stacks.dedup_by_key(|words| words.stack_id);
    ChartFigure {
        name: "oom",
        device: Some(device),
        title: Text::new("What happened before the request failed", "请求失败之前发生了什么"),
        chart: Chart::Sequence(Sequence { events: [trigger].into_iter().chain(events).collect(), stacks }),
    }
}

fn kind(action: &str) -> EventKind {
    match action {
        "alloc" | "segment_alloc" | "segment_map" => EventKind::Alloc,
        "free_requested" | "free_completed" | "free" | "segment_free" | "segment_unmap" => EventKind::Free,
        "oom" => EventKind::Trigger,
        _ => EventKind::Other,
    }
}
