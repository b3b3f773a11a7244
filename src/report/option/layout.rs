//! A row for each segment, its blocks at their true position, coloured by state.

use serde_json::{Value, json};

use super::packed::packed;
use super::{Drawing, base, call, color, name_axis, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{BlockState, Layout, Span};
use crate::quantity;

fn state(span: &Span) -> usize {
    BlockState::ALL.iter().position(|state| *state == span.state).unwrap_or(0)
}

pub(super) fn draw(layout: &Layout) -> Drawing {
    let segments = &layout.segments;
    let names: Vec<Value> = segments
        .iter()
        .map(|segment| json!(format!("#{} · {}", segment.segment_id, quantity::bytes(segment.total_size))))
        .collect();
    // One series for each state, so that the legend can hide it. What the page makes its rows of: row, offset, bytes,
    // blocks, stack.
    let spans: Vec<Value> = (0..BlockState::ALL.len())
        .map(|place| {
            let spans: Vec<(i64, &Span)> = (0..)
                .zip(segments)
                .flat_map(|(row, segment)| segment.spans.iter().map(move |span| (row, span)))
                .filter(|(_, span)| state(span) == place)
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
    let series: Vec<Value> = BlockState::ALL
        .iter()
        .enumerate()
        .map(|(place, block_state)| {
            let tone = ["allocated", "pending", "free"].get(place).copied().unwrap_or("free");
            json!({
                "name": words(&block_state.words()),
                "type": "custom",
                "renderItem": call("drawSpan"),
                "clip": true,
                "encode": {"x": [1], "y": 0},
                "itemStyle": {"color": color(tone)},
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
    let legend: Vec<Text> = BlockState::ALL.iter().map(|state| state.words()).collect();
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
