//! Differences between two snapshots as tables.

use serde_json::Value;

use super::{CompareOutcome, SegmentChange, StackChange};
use crate::analysis::facts::SnapshotFacts;
use crate::analysis::frames::place;
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, Figure, TableFigure};
use crate::quantity;

/// Rows that a person is shown: call stacks of each device, and segments. Programs get every segment, and of the call stacks
/// as many of each device as parameter `limit` of `stack_compare` says.
const ROWS: usize = 10;

/// Counters that are no bytes.
const COUNTS: [&str; 2] = ["segment_count", "block_count"];

/// What to show.
pub(super) fn all(outcome: &CompareOutcome) -> Vec<Figure> {
    let name = |facts: Option<&SnapshotFacts>| {
        facts.map_or_else(|| "-".to_owned(), |facts| facts.source_name().to_owned())
    };
    let (a, b) = (name(outcome.a.as_ref()), name(outcome.b.as_ref()));
    let mut figures = vec![Figure::Note(Text::new(
        format!("A is {a}, B is {b}; changes are A - B"),
        format!("A 为 {a}，B 为 {b}；变化为 A - B"),
    ))];
    figures.push(Figure::Table(counters(outcome)));
    figures.extend(
        [stacks(outcome), segments(outcome), settings(outcome)].into_iter().flatten().map(Figure::Table),
    );
    figures
}

/// Bytes or a count, whichever the counter is; `-` where it is not known.
fn amount(counter: &str, value: Option<i64>) -> Cell {
    match value {
        Some(value) if COUNTS.contains(&counter) => Cell::count(value),
        value => Cell::bytes(value),
    }
}

fn counters(outcome: &CompareOutcome) -> TableFigure {
    let rows = outcome.counters.iter().map(|row| {
        vec![
            Cell::name(row.device_index.to_string()),
            Cell::name(row.counter.clone()),
            amount(&row.counter, row.value),
            amount(&row.counter, row.base_value),
            amount(&row.counter, row.change),
            amount(&row.counter, row.peak),
            amount(&row.counter, row.base_peak),
            amount(&row.counter, row.peak_change),
        ]
    });
    TableFigure::new(
        Text::new("Devices at the end and at their peaks", "各设备最终状态与峰值"),
        &[
            ("device", "设备"),
            ("counter", "指标"),
            ("A", "A"),
            ("B", "B"),
            ("change", "变化"),
            ("peak A", "A 峰值"),
            ("peak B", "B 峰值"),
            ("change", "变化"),
        ],
        rows.collect(),
    )
}

fn stacks(outcome: &CompareOutcome) -> Option<TableFigure> {
    let has_changed =
        |stack: &&StackChange| stack.live_change != 0 || stack.peak_change.is_some_and(|change| change != 0);
    let of = |index: i64| outcome.stacks.iter().filter(move |stack| stack.device_index == index);
    let rows: Vec<Vec<Cell>> = outcome
        .device_indexes()
        .into_iter()
        .flat_map(|index| of(index).filter(has_changed).take(ROWS))
        .map(|stack| {
            vec![
                Cell::name(stack.device_index.to_string()),
                Cell::stack(ids(stack.stack_id, stack.stack_count), stack.stack_id),
                // No link: the page has the stacks of `a`.
                Cell::Text(ids(stack.base_stack_id, stack.base_stack_count)),
                Cell::stack(place(stack.frames_json.as_deref()), stack.stack_id),
                Cell::bytes(stack.live_bytes),
                Cell::bytes(stack.base_bytes),
                Cell::bytes(stack.live_change),
                Cell::bytes(stack.peak_bytes),
                Cell::bytes(stack.base_peak),
                Cell::bytes(stack.peak_change),
                Cell::count(stack.live_count),
                Cell::count(stack.base_count),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Call stacks that changed most", "变化最大的调用栈"),
            &[
                ("device", "设备"),
                ("stack in A", "A 的调用栈"),
                ("stack in B", "B 的调用栈"),
                ("place", "位置"),
                ("A", "A"),
                ("B", "B"),
                ("change", "变化"),
                ("peak A", "A 峰值"),
                ("peak B", "B 峰值"),
                ("change", "变化"),
                ("blocks in A", "A 块数"),
                ("blocks in B", "B 块数"),
            ],
            rows,
        )
    })
}

/// The lowest id of call stacks that are the same but for their lines, and how many there are.
fn ids(lowest: Option<i64>, count: i64) -> Text {
    match lowest {
        None => Text::same("-"),
        Some(id) if count <= 1 => Text::same(id.to_string()),
        Some(id) => {
            let (more, all) = (quantity::count(count - 1), quantity::count(count));
            Text::new(format!("{id} and {more} more"), format!("{id} 等 {all} 个"))
        }
    }
}

fn segments(outcome: &CompareOutcome) -> Option<TableFigure> {
    let row = |segment: &SegmentChange| {
        let mut kind = segment.segment_type.clone().unwrap_or_default();
        if segment.is_expandable == 1 {
            kind.push_str(", expandable");
        }
        if segment.is_private == 1 {
            kind.push_str(", private");
        }
        vec![
            Cell::name(segment.device_index.to_string()),
            Cell::Text(change(&segment.change)),
            Cell::name(kind),
            Cell::bytes(segment.total_size),
            Cell::bytes(segment.base_total_size),
            Cell::bytes(segment.size_change),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = outcome.segments.iter().take(ROWS).map(row).collect();
    let more = outcome.segments.len().saturating_sub(ROWS);
    if let Some(more) = i64::try_from(more).ok().filter(|more| *more > 0) {
        let text = quantity::count(more);
        rows.push(vec![
            Cell::name(""),
            Cell::Text(Text::new(format!("and {text} more"), format!("另有 {text} 个"))),
        ]);
    }
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Segments that differ", "有差异的 segment"),
            &[
                ("device", "设备"),
                ("change", "变化"),
                ("kind", "类型"),
                ("A", "A"),
                ("B", "B"),
                ("difference", "差值"),
            ],
            rows,
        )
    })
}

fn change(change: &str) -> Text {
    match change {
        "new" => Text::new("new", "新增"),
        "gone" => Text::new("gone", "消失"),
        "grown" => Text::new("grown", "扩容"),
        "shrunk" => Text::new("shrunk", "缩小"),
        other => Text::same(other),
    }
}

fn settings(outcome: &CompareOutcome) -> Option<TableFigure> {
    let shown = |value: Option<&Value>| match value {
        None => Cell::name("-"),
        Some(Value::String(text)) => Cell::name(text.clone()),
        Some(other) => Cell::name(other.to_string()),
    };
    let rows: Vec<Vec<Cell>> = outcome
        .settings
        .iter()
        .map(|it| vec![Cell::name(it.name.clone()), shown(it.a.as_ref()), shown(it.b.as_ref())])
        .collect();
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Settings that differ", "不同的设置"),
            &[("setting", "设置"), ("A", "A"), ("B", "B")],
            rows,
        )
    })
}
