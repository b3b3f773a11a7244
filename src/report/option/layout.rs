//! A row for each segment, its blocks at their true position, coloured by state.

use serde_json::{Value, json};

use super::packed::packed;
use super::{Drawing, base, call, color, name_axis, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{BlockState, Layout, OtherSegments, SegmentRow, Span};
use crate::quantity;

/// What a stretch of a segment is, as the legend tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Kind {
    State(BlockState),
    /// Free where little else is in use.
    Unused,
}

impl Kind {
    fn of(segment: &SegmentRow, span: &Span) -> Self {
        if span.state == BlockState::Inactive && segment.is_low_use {
            Self::Unused
        } else {
            Self::State(span.state)
        }
    }

    pub(in crate::report) fn words(self) -> Text {
        match self {
            Self::State(state) => state.words(),
            Self::Unused => Text::new("free, little of the segment in use", "空闲（所在 segment 使用率低）"),
        }
    }

    pub(in crate::report) fn tone(self) -> &'static str {
        match self {
            Self::State(BlockState::Allocated) => "allocated",
            Self::State(BlockState::PendingFree) => "pending",
            Self::State(BlockState::Inactive) => "free",
            Self::Unused => "low",
        }
    }
}

/// What is said of the segments that have no row.
pub(in crate::report) fn others(other: OtherSegments) -> Text {
    let count = quantity::count(other.count);
    let (size, allocated) = (quantity::bytes(other.total_size), quantity::bytes(other.allocated_size));
    let segments = quantity::counted(other.count, "segment is", "segments are");
    Text::new(
        format!("{segments} not drawn: {size}, of which {allocated} is allocated."),
        format!("另有 {count} 个 segment 未画出：共 {size}，其中已分配 {allocated}。"),
    )
}

/// What a layout's legend has: all states, and what stands out if it is there.
pub(in crate::report) fn kinds(layout: &Layout) -> Vec<Kind> {
    let has_low = layout.segments.iter().any(|segment| segment.is_low_use);
    BlockState::ALL.into_iter().map(Kind::State).chain(has_low.then_some(Kind::Unused)).collect()
}

pub(super) fn draw(layout: &Layout) -> Drawing {
    let segments = &layout.segments;
    let names: Vec<Value> = segments
        .iter()
        .map(|segment| json!(format!("#{} · {}", segment.segment_id, quantity::bytes(segment.total_size))))
        .collect();
    let kinds = kinds(layout);
    // One series for each kind, so that the legend can hide it. What the page makes its rows of: row, offset, bytes,
    // blocks, stack.
    let spans: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            let spans: Vec<(i64, &Span)> = (0..)
                .zip(segments)
                .flat_map(|(row, segment)| segment.spans.iter().map(move |span| (row, segment, span)))
                .filter(|(_, segment, span)| Kind::of(segment, span) == *kind)
                .map(|(row, _, span)| (row, span))
                .collect();
            let column =
                |pick: fn(&(i64, &Span)) -> Option<i64>| packed(&spans.iter().map(pick).collect::<Vec<_>>());
            json!([
                column(|(row, _)| Some(*row)),
                column(|(_, span)| Some(span.offset)),
                column(|(_, span)| Some(span.size)),
                column(|(_, span)| Some(span.block_count)),
                column(|(_, span)| span.stack_id),
            ])
        })
        .collect();
    let series: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            json!({
                "name": words(&kind.words()),
                "type": "custom",
                "renderItem": call("drawSpan"),
                "clip": true,
                "encode": {"x": [1], "y": 0},
                "itemStyle": {"color": color(kind.tone())},
            })
        })
        .collect();
    let rows: Vec<Value> = segments
        .iter()
        .map(|segment| {
            json!({
                "id": segment.segment_id,
                "address": segment.address.map(quantity::address),
                "size": segment.total_size,
                "allocated": segment.allocated_size,
                "low": segment.is_low_use,
                "type": segment.segment_type,
                "stream": segment.stream,
            })
        })
        .collect();
    let legend: Vec<Text> = kinds.iter().map(|kind| kind.words()).collect();
    let mut names_axis = name_axis(&names, 128);
    if let Some(label) = names_axis.get_mut("axisLabel").and_then(Value::as_object_mut) {
        label.insert("color".to_owned(), call("segmentColor"));
        label.insert("fontFamily".to_owned(), call("mono"));
        label.insert("fontSize".to_owned(), json!(11));
    }
    let option = with(
        base(&legend, "tipSpan", "item"),
        json!({
            "grid": {"left": 8, "right": 20, "top": 36, "bottom": 8, "containLabel": true},
            "xAxis": {
                "type": "value",
                "min": 0,
                "max": 1,
                "axisLabel": {"formatter": call("percent"), "color": color("muted"), "hideOverlap": true},
                "axisLine": {"show": false},
                "axisTick": {"show": false},
                "splitLine": {"show": false},
            },
            "yAxis": names_axis,
            "dataZoom": zoom("xAxisIndex", false),
            "series": series,
        }),
    );
    Drawing {
        option,
        extra: json!({"rows": rows, "spans": spans}),
        height: 6 + 2 * segments.len().max(3) + 2,
    }
}
