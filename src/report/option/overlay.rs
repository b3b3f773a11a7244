//! A counter of two snapshots over the share of each recording that has passed: A dashed, B solid.

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, byte_axis, call, color, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::Overlay;

pub(super) fn draw(overlay: &Overlay) -> Drawing {
    let courses = &overlay.courses;
    let most = courses.iter().flat_map(|course| [course.a, course.b]).flatten().max().unwrap_or(0);
    let [a_name, b_name] = &overlay.names;
    let names = [Text::same(format!("A · {a_name}")), Text::same(format!("B · {b_name}"))];
    let [more, less] = [Text::new("more in A", "A 更多"), Text::new("less in A", "A 更少")];
    let source: Vec<Value> = courses
        .iter()
        .enumerate()
        .map(|(point, course)| {
            let both = course.a.zip(course.b);
            json!([
                point,
                course.a,
                course.b,
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
                "data": (0..courses.len()).collect::<Vec<_>>(),
                "axisLabel": {
                    "interval": (courses.len() / 10).max(1) - 1,
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
    Drawing { option, extra: json!({"points": courses.len().saturating_sub(1).max(1)}), height: 36 }
}
