//! A counter of two snapshots over the share of each recording that has passed: A dashed, B solid.

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, byte_axis, call, color, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{Counter, Level, Overlay};

/// Points along the axis; both curves are read at the same ones.
const POINTS: i32 = 800;

/// Level at each of the points, from the first event to the last; none without levels.
pub(in crate::report) fn resampled(levels: &[Level], counter: Counter) -> Vec<Option<i64>> {
    let place = Counter::ALL.iter().position(|other| *other == counter).unwrap_or(0);
    let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return Vec::new() };
    let length = last.trace_index.saturating_sub(first.trace_index);
    (0..=POINTS)
        .map(|point| {
            let at = i128::from(length) * i128::from(point) / i128::from(POINTS);
            let index = first.trace_index.saturating_add(i64::try_from(at).unwrap_or(length));
            let behind = levels.partition_point(|level| level.trace_index <= index);
            levels.get(behind.checked_sub(1)?)?.bytes.get(place).copied().flatten()
        })
        .collect()
}

pub(super) fn draw(overlay: &Overlay) -> Drawing {
    let a_levels = resampled(&overlay.a, overlay.counter);
    let b_levels = resampled(&overlay.b, overlay.counter);
    let most = a_levels.iter().chain(&b_levels).flatten().copied().max().unwrap_or(0);
    let [a_name, b_name] = &overlay.names;
    let names = [Text::same(format!("A · {a_name}")), Text::same(format!("B · {b_name}"))];
    let [more, less] = [Text::new("more in A", "A 更多"), Text::new("less in A", "A 更少")];
    let at = |values: &[Option<i64>], point: usize| values.get(point).copied().flatten();
    let points = a_levels.len().max(b_levels.len());
    let source: Vec<Value> = (0..points)
        .map(|point| {
            let (a, b) = (at(&a_levels, point), at(&b_levels, point));
            let both = a.zip(b);
            json!([
                point,
                a,
                b,
                both.map(|(a, b)| a.min(b)),
                both.map(|(a, b)| (a - b).max(0)),
                both.map(|(a, b)| (b - a).max(0)),
            ])
        })
        .collect();
    let line = |name: &Text, column: usize, tone: &str, dash: &str| {
        json!({
            "name": words(name),
            "type": "line",
            "step": "end",
            "showSymbol": false,
            "encode": {"x": 0, "y": column},
            "lineStyle": {"color": color(tone), "width": 2, "type": dash},
            "itemStyle": {"color": color(tone)},
            "emphasis": {"disabled": true},
            "z": 4,
        })
    };
    let band = |name: Option<&Text>, column: usize, tone: &str, opacity: f64| {
        json!({
            "name": name.map(words),
            "type": "line",
            "step": "end",
            "showSymbol": false,
            "stack": "difference",
            "encode": {"x": 0, "y": column},
            "lineStyle": {"width": 0, "opacity": 0},
            "itemStyle": {"color": color(tone)},
            "areaStyle": {"color": color(tone), "opacity": opacity},
            "emphasis": {"disabled": true},
            "silent": true,
            "tooltip": {"show": false},
        })
    };
    let legend = [names[0].clone(), names[1].clone(), more.clone(), less.clone()];
    let option = with(
        base(&legend, "tipOverlay", "axis"),
        json!({
            "dataset": {"source": source, "sourceHeader": false},
            "grid": {"left": 8, "right": 20, "top": 44, "bottom": 34, "containLabel": true},
            // Only on an axis of names are curves put on top of each other, which the band is made of.
            "xAxis": {
                "type": "category",
                "boundaryGap": false,
                "data": (0..points).collect::<Vec<_>>(),
                "axisLabel": {
                    "interval": POINTS / 8 - 1,
                    "formatter": call("progress"),
                    "color": color("muted"),
                    "showMaxLabel": true,
                },
                "axisLine": {"lineStyle": {"color": color("faint")}},
                "axisTick": {"show": false},
                "splitLine": {"show": false},
            },
            "yAxis": byte_axis(ByteAxis::up_to(most)),
            "dataZoom": zoom("xAxisIndex", true),
            "series": [
                band(None, 3, "card", 0.0),
                band(Some(&more), 4, "alloc", 0.22),
                band(Some(&less), 5, "release", 0.22),
                line(&names[0], 1, "muted", "dashed"),
                line(&names[1], 2, "allocated", "solid"),
            ],
        }),
    );
    Drawing { option, extra: json!({"points": POINTS}), height: 36 }
}
