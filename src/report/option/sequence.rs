//! Events before a moment, newest first: what was taken to the right, what was given back to the left.

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, call, color, name_axis, with, words};
use crate::analysis::Text;
use crate::analysis::chart::{EventKind, Sequence};
use crate::quantity;

/// Kinds of event with their words, colour, and the side they go to.
const KINDS: [(EventKind, &str, &str, &str, i64); 4] = [
    (EventKind::Trigger, "failed request", "失败的请求", "critical", 1),
    (EventKind::Alloc, "taken", "分配", "alloc", 1),
    (EventKind::Free, "given back", "释放", "release", -1),
    (EventKind::Other, "other", "其他", "free", 1),
];

pub(super) fn draw(sequence: &Sequence) -> Drawing {
    let events = &sequence.events;
    let names: Vec<Value> = events
        .iter()
        .map(|event| json!(format!("{} · {}", quantity::count(event.trace_index), event.action)))
        .collect();
    let used: Vec<_> =
        KINDS.iter().filter(|(kind, ..)| events.iter().any(|event| event.kind == *kind)).collect();
    let legend: Vec<Text> = used.iter().map(|(_, en, zh, ..)| Text::new(*en, *zh)).collect();
    let series: Vec<Value> = used
        .iter()
        .map(|(kind, en, zh, tone, side)| {
            let data: Vec<Value> = events
                .iter()
                .map(|event| {
                    if event.kind != *kind {
                        return Value::Null;
                    }
                    json!({
                        "value": event.size * side,
                        "stack": event.stack_id,
                        "index": event.trace_index,
                        "action": event.action,
                        "address": event.address.map(quantity::address),
                        "time": event.time_us,
                    })
                })
                .collect();
            // What was asked for and not had is an outline.
            let style = if *kind == EventKind::Trigger {
                json!({
                    "color": color("critical-wash"),
                    "borderColor": color(tone),
                    "borderWidth": 1.5,
                    "borderType": "dashed",
                })
            } else {
                json!({"color": color(tone)})
            };
            json!({
                "name": words(&Text::new(*en, *zh)),
                "type": "bar",
                "stack": "events",
                "barMaxWidth": 12,
                "barMinHeight": 2,
                "itemStyle": style,
                "label": {
                    "show": *kind == EventKind::Trigger,
                    "position": "left",
                    "color": color(tone),
                    "fontSize": 11,
                    "fontWeight": 600,
                    "formatter": call("trigger"),
                },
                "cursor": "pointer",
                "data": data,
            })
        })
        .collect();
    let most = |side: EventKind| {
        events
            .iter()
            .filter(|event| (event.kind == EventKind::Free) == (side == EventKind::Free))
            .map(|event| event.size)
            .max()
    };
    let (left, right) = (most(EventKind::Free).unwrap_or(0), most(EventKind::Alloc).unwrap_or(0));
    let axis = ByteAxis::up_to(left.max(right));
    let option = with(
        base(&legend, "tipEvent", "item"),
        json!({
            "grid": {"left": 8, "right": 16, "top": 36, "bottom": 8, "containLabel": true},
            "xAxis": {
                "type": "value",
                "min": if left > 0 { -axis.max } else { 0 },
                "max": axis.max,
                "interval": axis.step,
                "axisLabel": {"formatter": call("bytesAbs"), "color": color("muted"), "hideOverlap": true},
                "axisLine": {"show": false},
                "axisTick": {"show": false},
                "splitLine": {"lineStyle": {"color": color("line")}},
            },
            "yAxis": name_axis(&names, 190),
            "dataZoom": [
                {"type": "inside", "yAxisIndex": 0, "filterMode": "none", "zoomOnMouseWheel": "ctrl"},
            ],
            "series": series,
        }),
    );
    Drawing { option, extra: json!({}), height: 6 + events.len().max(6) * 17 / 10 }
}
