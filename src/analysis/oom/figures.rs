//! Failures as tables: their state, what to do, who grew, and what happened before.

use super::findings::words;
use super::{Failure, LastEvent, OomGrowth, OomOutcome};
use crate::analysis::chart;
use crate::analysis::frames::place;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Cell, Figure, TableFigure};
use crate::analysis::outside;
use crate::quantity;

/// Stacks that a person is shown.
const STACKS: usize = 5;

/// What to show: all failures in a table, the details of the newest of each device.
pub(super) fn all(outcome: &OomOutcome) -> Vec<Figure> {
    if outcome.events.is_empty() {
        return Vec::new();
    }
    let mut figures = vec![Figure::Table(states(outcome))];
    figures.extend(outcome.newest(1).flat_map(|failure| details(failure, outcome.setup.recent)));
    figures.extend(outside::table(&outcome.setup.outside).map(Figure::Table));
    figures
}

fn index(failure: &Failure) -> String {
    failure.event.trace_index.map_or_else(|| "-".to_owned(), quantity::count)
}

/// The failure's event, where it was recorded.
fn event(failure: &Failure) -> Cell {
    let (device_index, trace_index) = (failure.event.device_index, failure.event.trace_index);
    trace_index.map_or_else(|| Cell::name("-"), |trace_index| Cell::event(device_index, trace_index))
}

fn states(outcome: &OomOutcome) -> TableFigure {
    let rows = outcome.shown().map(|failure| {
        let state = &failure.event.state;
        vec![
            Cell::name(failure.event.device_index.to_string()),
            event(failure),
            Cell::bytes(state.requested),
            Cell::bytes(state.device_free),
            Cell::bytes(state.reserved),
            Cell::bytes(state.allocated),
            Cell::bytes(state.pool_free_bytes),
            Cell::bytes(state.largest_free_block),
            Cell::bytes(state.largest_usable_block),
            Cell::bytes(state.pending_free_bytes),
            Cell::Text(words(failure.cause)),
        ]
    });
    TableFigure::new(
        Text::new("Failed requests", "失败的请求"),
        &[
            ("device", "设备"),
            ("event", "事件"),
            ("requested", "请求"),
            ("driver free", "驱动空闲"),
            ("reserved", "预留"),
            ("allocated", "已分配"),
            ("pool free", "池内空闲"),
            ("largest free", "最大空闲块"),
            ("largest usable", "最大可用块"),
            ("pending free", "等待释放"),
            ("cause", "原因"),
        ],
        rows.collect(),
    )
}

fn details(failure: &Failure, recent: Option<i64>) -> Vec<Figure> {
    let device = failure.event.device_index;
    let event = index(failure);
    let about = |en: &str, zh: &str| {
        Text::new(
            format!("{en}, device {device}, event {event}"),
            format!("{zh}，设备 {device}，事件 {event}"),
        )
    };
    let mut figures = Vec::new();
    let advice = failure.advice.iter().map(|text| vec![Cell::Text(text.clone())]);
    figures.push(Figure::Table(TableFigure::new(
        about("What to do", "建议"),
        &[("advice", "措施")],
        advice.collect(),
    )));
    if failure.event.frames_json.is_some() {
        let from = place(failure.event.frames_json.as_deref());
        figures.push(Figure::Note(Text::new(
            format!("The request came from {}", from.get(Lang::En)),
            format!("请求来自 {}", from.get(Lang::Zh)),
        )));
    }
    if let Some(growth) = failure.event.growth.as_ref().filter(|rows| !rows.is_empty()) {
        let rows = growth.iter().take(STACKS).map(grown).collect();
        let grew = lately(recent);
        figures.push(Figure::Table(TableFigure::new(
            about(grew.get(Lang::En), grew.get(Lang::Zh)),
            &[
                ("stack", "调用栈"),
                ("place", "位置"),
                ("lately", "近期分配"),
                ("times", "次数"),
                ("live", "存活"),
                ("blocks", "块数"),
            ],
            rows,
        )));
    }
    // It can have hundreds of frames.
    if failure.event.frames_json.is_some() {
        figures.push(Figure::Table(stack(failure, about("Call stack of the request", "该请求的调用栈"))));
    }
    if let Some(preceding) = failure.event.preceding.as_ref().filter(|rows| !rows.is_empty()) {
        let rows = preceding.iter().map(before).collect();
        figures.push(Figure::Table(TableFigure::new(
            about("Events before, newest first", "此前的事件（由新到旧）"),
            &[
                ("event", "事件"),
                ("action", "动作"),
                ("address", "地址"),
                ("size", "大小"),
                ("stack", "调用栈"),
                ("place", "位置"),
            ],
            rows,
        )));
    }
    figures
}

/// What is called lately.
fn lately(recent: Option<i64>) -> Text {
    match recent.map(quantity::count) {
        Some(events) => Text::new(
            format!("Who grew last (lately: up to {events} events before it)"),
            format!("最近增长者（近期：此前至多 {events} 个事件）"),
        ),
        None => Text::new("Who grew last", "最近增长者"),
    }
}

/// Every frame of the request's call stack, innermost first.
fn stack(failure: &Failure, title: Text) -> TableFigure {
    let frames = chart::frames(failure.event.frames_json.as_deref().unwrap_or_default());
    let rows = frames.into_iter().map(|frame| vec![Cell::name(cut(&frame.name)), Cell::name(frame.place())]);
    TableFigure::new(title, &[("function", "函数"), ("file", "文件")], rows.collect())
}

/// Characters of a function's name that a person is shown at most. A template of C++ can have a thousand; what it is called
/// stands at its beginning, and what it is made for at its end.
const NAME: usize = 120;

/// A name without its middle, if it is long. JSON has all of it.
fn cut(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        return name.to_owned();
    }
    let half = NAME / 2;
    let (head, tail): (String, String) =
        (name.chars().take(half).collect(), name.chars().skip(count - half).collect());
    format!("{head}…{tail}")
}

fn grown(row: &OomGrowth) -> Vec<Cell> {
    vec![
        Cell::stack_id(row.stack_id),
        Cell::stack(place(row.frames_json.as_deref()), row.stack_id),
        Cell::bytes(row.recent_bytes),
        Cell::count(row.recent_count),
        Cell::bytes(row.live_bytes),
        Cell::count(row.live_count),
    ]
}

fn before(row: &LastEvent) -> Vec<Cell> {
    vec![
        Cell::event(row.device_index, row.trace_index),
        Cell::name(row.action.clone()),
        Cell::name(row.addr.map_or_else(|| "-".to_owned(), quantity::address)),
        Cell::bytes(row.size),
        Cell::stack_id(row.stack_id),
        Cell::stack(place(row.frames_json.as_deref()), row.stack_id),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(cut("step"), "step");
        let long = format!("{}{}", "a".repeat(100), "é".repeat(100));
        let short = cut(&long);
        assert_eq!(short.chars().count(), NAME + 1);
        assert!(short.starts_with("aaa") && short.ends_with("éé") && short.contains('…'), "{short}");
        assert_eq!(cut(&"é".repeat(NAME)), "é".repeat(NAME));
    }
}
