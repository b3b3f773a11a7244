//! Growth of the pool: a bubble for each segment event, large and small apart, and the number of segments as steps.

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, byte_axis, call, color, event_axis, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{Expansion, Growth, PoolEvent};

/// What a bubble may be; the legend has one entry for each.
const KINDS: [(&str, &str, &str, &str); 3] = [
    ("large segment", "大段", "large", "circle"),
    ("small segment", "小段", "small", "circle"),
    ("given back", "归还", "freed", "circle"),
];

/// Place of what was given back among the kinds.
const GIVEN_BACK: usize = 2;

fn kind(event: &PoolEvent) -> usize {
    if event.change < 0 { 2 } else { usize::from(!event.is_large()) }
}

pub(super) fn draw(expansion: &Expansion) -> Drawing {
    let line = Growth::of(expansion);
    let count = line.words();
    let mut legend: Vec<Text> = KINDS.iter().map(|(en, zh, ..)| Text::new(*en, *zh)).collect();
    legend.push(count.clone());
    let events = &expansion.events;
    let mut series: Vec<Value> = KINDS
        .iter()
        .enumerate()
        .map(|(place, (en, zh, tone, symbol))| {
            let data: Vec<Value> = events
                .iter()
                .filter(|event| kind(event) == place)
                .map(|event| {
                    json!([
                        event.trace_index,
                        event.change.abs().max(1),
                        event.net_segments,
                        event.net_size,
                        event.stack_id,
                        event.time_us
                    ])
                })
                .collect();
            // What went is an outline, what came is filled.
            let style = if place == GIVEN_BACK {
                json!({"color": "transparent", "borderColor": color(tone), "borderWidth": 1.5, "opacity": 0.8})
            } else {
                json!({"color": color(tone), "opacity": 0.7})
            };
            json!({
                "name": words(&Text::new(*en, *zh)),
                "type": "scatter",
                "symbol": symbol,
                "symbolSize": call("bubble"),
                "itemStyle": style,
                "emphasis": {"itemStyle": {"opacity": 1}},
                "data": data,
            })
        })
        .collect();
    series.push(json!({
        "name": words(&count),
        "type": "line",
        "yAxisIndex": 1,
        "step": "end",
        "showSymbol": false,
        "lineStyle": {"color": color("reserved"), "width": 1.5},
        "itemStyle": {"color": color("reserved")},
        "data": events.iter().map(|event| json!([event.trace_index, line.at(event)])).collect::<Vec<_>>(),
    }));
    let smallest = events.iter().map(|event| event.change.unsigned_abs()).min().unwrap_or(1).max(1);
    let most = events.iter().map(|event| event.change.unsigned_abs()).max().unwrap_or(1).max(1);
    let first = events.first().map_or(0, |event| event.trace_index);
    let last = events.last().map_or(1, |event| event.trace_index);
    let (step, low, high) = powers(smallest, most);
    let option = with(
        base(&legend, "tipExpansion", "item"),
        json!({
            "grid": {"left": 8, "right": 8, "top": 44, "bottom": 34, "containLabel": true},
            "xAxis": event_axis(first, last),
            "yAxis": [
                {
                    "type": "log",
                    "logBase": 1_i64 << step,
                    "min": 1_i64 << low,
                    "max": 1_i64 << high,
                    "axisLabel": {"formatter": call("bytes"), "color": color("muted"), "hideOverlap": true},
                    "axisLine": {"show": false},
                    "axisTick": {"show": false},
                    "splitLine": {"lineStyle": {"color": color("line")}},
                },
                growth_axis(line, events),
            ],
            "dataZoom": with_slider(zoom("xAxisIndex", true)),
            "series": series,
        }),
    );
    Drawing {
        option,
        extra: json!({"event_count": expansion.event_count, "shown": events.len()}),
        height: 34,
    }
}

/// Powers of two: the step of an axis of sizes, its beginning and its end. An axis of ten steps or more would have labels
/// at its ends only.
fn powers(smallest: u64, most: u64) -> (u32, u32, u32) {
    let (low, high) = (smallest.ilog2().saturating_sub(1), (most.ilog2() + 1).min(62));
    let step = (1..=high).find(|step| high.div_ceil(*step) - low / step < 10).unwrap_or(1);
    (step, low / step * step, (high.div_ceil(step) * step).min(62))
}

/// The axis of the line, on the right.
fn growth_axis(line: Growth, events: &[PoolEvent]) -> Value {
    let plain = json!({
        "type": "value",
        "minInterval": 1,
        "axisLabel": {"formatter": call("count"), "color": color("muted")},
        "axisLine": {"show": false},
        "axisTick": {"show": false},
        "splitLine": {"show": false},
    });
    let levels = || events.iter().map(|event| line.at(event));
    let axis = ByteAxis::up_to(levels().map(i64::saturating_abs).max().unwrap_or(0));
    match line {
        Growth::Segments => plain,
        Growth::Bytes => with(
            byte_axis(axis),
            json!({"min": if levels().any(|level| level < 0) { -axis.max } else { 0 }, "splitLine": {"show": false}}),
        ),
    }
}

/// The slider without a picture in it: bubbles make none.
fn with_slider(mut zoom: Value) -> Value {
    if let Some(slider) = zoom.get_mut(1).and_then(Value::as_object_mut) {
        slider.insert("showDataShadow".to_owned(), json!(false));
    }
    zoom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_sizes_has_fewer_than_ten_steps() {
        // 2 MiB to 100 MiB in powers of 2, 2 MiB to 1 GiB in powers of 4, 1 B to 1 TiB in powers of 32.
        assert_eq!(powers(2 << 20, 100 << 20), (1, 20, 27));
        assert_eq!(powers(2 << 20, 1 << 30), (2, 20, 32));
        assert_eq!(powers(1, 1 << 40), (5, 0, 45));
    }
}
