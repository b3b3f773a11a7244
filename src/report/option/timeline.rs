//! Counters over time as filled steps, the largest behind: what shows between two of them is their difference.

use serde_json::{Value, json};

use super::packed::packed;
use super::{ByteAxis, Drawing, base, byte_axis, call, color, event_axis, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{Counter, Mark, Peak, Timeline};

/// Lines across the chart that stay readable.
const MOST_LINES: usize = 40;

#[expect(clippy::too_many_lines, reason = "one object of options, which reads best in one piece")]
pub(super) fn draw(timeline: &Timeline) -> Drawing {
    let levels = &timeline.levels;
    let known: Vec<(usize, Counter)> = Counter::ALL
        .into_iter()
        .enumerate()
        .filter(|(place, _)| levels.iter().any(|level| level.bytes.get(*place).is_some_and(Option::is_some)))
        .collect();
    let most = levels.iter().flat_map(|level| level.bytes).flatten();
    let most = most.chain(timeline.peaks.iter().map(|peak| peak.bytes)).max().unwrap_or(0);
    let axis = ByteAxis::up_to(most.saturating_add(most / 20));
    let start = levels.iter().find_map(|level| level.time_us);
    let since = |time: Option<i64>| time.zip(start).map(|(time, start)| time.saturating_sub(start));
    let first = levels.first().map_or(0, |level| level.trace_index);
    let last = levels.last().map_or(1, |level| level.trace_index);
    let mut legend: Vec<Text> = known.iter().map(|(_, counter)| counter.words()).collect();
    let mut series: Vec<Value> = known
        .iter()
        .map(|(place, counter)| {
            let peaks: Vec<Value> = timeline
                .peaks
                .iter()
                .filter(|peak| peak.counter == *counter)
                .map(|peak| {
                    let side = side(peak, first, last);
                    json!({
                        "index": peak.trace_index,
                        "value": peak.bytes,
                        "coord": [peak.trace_index, peak.bytes],
                        "label": {"position": side, "offset": apart(side, *counter)},
                    })
                })
                .collect();
            json!({
                "name": words(&counter.words()),
                "type": "line",
                "step": "end",
                "showSymbol": false,
                "symbolSize": 7,
                "encode": {"x": 0, "y": place + 2},
                "lineStyle": {"color": color(counter.name()), "width": 1.5},
                "itemStyle": {"color": color(counter.name())},
                "areaStyle": {"color": color(&format!("{}_fill", counter.name())), "opacity": 1},
                "emphasis": {"disabled": true},
                "markPoint": {
                    "z": 8,
                    "symbol": "circle",
                    "symbolSize": 9,
                    "itemStyle": {"color": color(counter.name()), "borderColor": color("card"), "borderWidth": 2},
                    "label": {
                        "show": *counter != Counter::Active,
                        "formatter": call("peakLabel"),
                        "color": color("text"),
                        "fontWeight": 600,
                        "backgroundColor": color("card"),
                        "borderRadius": 4,
                        "padding": [1, 4],
                    },
                    "data": peaks,
                },
            })
        })
        .collect();
    let marks = [
        (Mark::Growth, "triangle", "growth"),
        (Mark::OutOfMemory, "diamond", "critical"),
        (Mark::Snapshot, "rect", "allocated"),
        (Mark::Step, "pin", "muted"),
    ];
    for (mark, symbol, tone) in marks {
        let data: Vec<Value> = timeline
            .marks
            .iter()
            .filter(|event| event.mark == mark)
            .map(|event| json!({"value": [event.trace_index, 0, since(event.time_us)], "detail": words(&event.detail)}))
            .collect();
        if data.is_empty() {
            continue;
        }
        legend.push(mark.words());
        let crosses = matches!(mark, Mark::OutOfMemory | Mark::Step) && data.len() <= MOST_LINES;
        let lines: Vec<Value> = timeline
            .marks
            .iter()
            .filter(|event| crosses && event.mark == mark)
            .map(|event| json!({"xAxis": event.trace_index, "time": since(event.time_us)}))
            .collect();
        series.push(json!({
            "name": words(&mark.words()),
            "type": "scatter",
            "symbol": symbol,
            "symbolSize": if mark == Mark::OutOfMemory { 14 } else { 9 },
            "z": 6,
            "itemStyle": {"color": color(tone), "borderColor": color("card"), "borderWidth": 1},
            "markLine": {
                "symbol": "none",
                "silent": true,
                "label": {"show": false},
                "lineStyle": {"color": color(tone), "type": "dashed", "width": 1, "opacity": 0.7},
                "data": lines,
            },
            "data": data,
        }));
    }
    let option = with(
        base(&legend, "tipTimeline", "axis"),
        json!({
            "grid": {"left": 8, "right": 28, "top": 44, "bottom": 34, "containLabel": true},
            "xAxis": event_axis(first, last),
            "yAxis": byte_axis(axis),
            "dataZoom": zoom("xAxisIndex", true),
            "series": series,
        }),
    );
    let moments: Vec<Value> = timeline
        .moments
        .iter()
        .map(|moment| {
            let live: Vec<Value> =
                moment.live.iter().map(|held| json!([held.stack_id, held.bytes])).collect();
            json!({"index": moment.trace_index, "live": live, "other": moment.other_bytes})
        })
        .collect();
    // What the page makes its rows of: position, microseconds since the first event, then the counters.
    let column =
        |place: usize| levels.iter().map(|level| level.bytes.get(place).copied().flatten()).collect();
    let columns = [
        levels.iter().map(|level| Some(level.trace_index)).collect(),
        levels.iter().map(|level| since(level.time_us)).collect(),
        column(0),
        column(1),
        column(2),
    ];
    let extra = json!({
        "levels": columns.map(|column: Vec<Option<i64>>| packed(&column)),
        "start": start,
        "span": since(levels.iter().rev().find_map(|level| level.time_us)),
        "moments": moments,
    });
    Drawing { option, extra, height: 38 }
}

/// How far the label of a peak gives way: beside their marks two of nearly the same height would cover each other.
fn apart(side: &str, counter: Counter) -> [i64; 2] {
    match side {
        "left" | "right" if counter == Counter::Allocated => [0, 8],
        "left" | "right" => [0, -8],
        _ => [0, 0],
    }
}

/// Where the label of a peak stands, so that it neither leaves the chart nor covers the curve below it.
fn side(peak: &Peak, first: i64, last: i64) -> &'static str {
    let margin = last.saturating_sub(first) / 8;
    if peak.trace_index > last.saturating_sub(margin) {
        "left"
    } else if peak.trace_index < first.saturating_add(margin) {
        "right"
    } else if peak.counter == Counter::Allocated {
        "bottom"
    } else {
        "top"
    }
}
