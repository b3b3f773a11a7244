//! Bytes by call stack as horizontal bars, the rest of them in a bar of its own.

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, byte_axis, call, color, name_axis, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{StackBar, Stacks};

/// What to call a stack's bar.
pub(in crate::report) fn label(bar: &StackBar, stacks: &Stacks) -> Text {
    let Some(stack_id) = bar.stack_id else {
        return Text::new("no call stack recorded", "未记录调用栈");
    };
    let known = stacks.stacks.iter().find(|words| words.stack_id == stack_id && !words.label.is_empty());
    known.map_or_else(
        || Text::new(format!("stack {stack_id}"), format!("调用栈 {stack_id}")),
        |words| Text::same(words.label.clone()),
    )
}

/// What to call all stacks without a bar.
pub(in crate::report) fn other_label(count: Option<i64>) -> Text {
    count.map_or_else(
        || Text::new("all other stacks", "其余全部调用栈"),
        |count| Text::new(format!("{count} other stacks"), format!("其余 {count} 个调用栈")),
    )
}

/// The axis with what a narrow screen says otherwise said as well, so that a screen that is turned gets it back.
fn with_label(mut axis: Value) -> Value {
    if let Some(label) = axis.get_mut("axisLabel").and_then(Value::as_object_mut) {
        for (key, value) in [
            ("inside", json!(false)),
            ("margin", json!(8)),
            ("align", json!("right")),
            ("verticalAlign", json!("middle")),
            ("padding", json!(0)),
        ] {
            label.insert(key.to_owned(), value);
        }
    }
    axis
}

pub(super) fn draw(stacks: &Stacks) -> Drawing {
    // All others together may be many times the largest: their bar ends with the axis, its label has the number.
    let most = stacks.bars.iter().map(|bar| bar.bytes).max();
    let axis = ByteAxis::up_to(most.unwrap_or(0));
    let mut names: Vec<Value> = stacks.bars.iter().map(|bar| words(&label(bar, stacks))).collect();
    let mut data: Vec<Value> = stacks
        .bars
        .iter()
        .map(|bar| {
            let tone = if bar.stack_id.is_some() { "allocated" } else { "free" };
            json!({
                "value": bar.bytes,
                "bytes": bar.bytes,
                "itemStyle": {"color": color(tone)},
                "stack": bar.stack_id,
                "requested": bar.requested,
                "count": bar.block_count,
            })
        })
        .collect();
    if let Some((count, bytes)) = stacks.other {
        names.push(words(&other_label(count)));
        data.push(
            json!({"value": bytes.min(axis.max), "bytes": bytes, "itemStyle": {"color": color("free")}}),
        );
    }
    let split = json!({"show": true, "lineStyle": {"color": color("line")}});
    let height = 8 + 3 * data.len();
    let option = with(
        base(&[], "tipStack", "item"),
        json!({
            "grid": {"left": 8, "right": 132, "top": 20, "bottom": 8, "containLabel": true},
            "xAxis": with(byte_axis(axis), json!({"position": "bottom", "splitLine": split})),
            "yAxis": with_label(name_axis(&names, 340)),
            "dataZoom": zoom("yAxisIndex", false),
            "series": [{
                "type": "bar",
                "barMaxWidth": 20,
                "itemStyle": {"borderRadius": [0, 3, 3, 0]},
                "label": {
                    "show": true,
                    "position": "right",
                    "color": color("muted"),
                    "formatter": call("barShare"),
                },
                "cursor": "pointer",
                "data": data,
            }],
        }),
    );
    Drawing { option, extra: json!({"total": stacks.total}), height }
}
