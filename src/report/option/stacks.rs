//! Bytes by call stack as horizontal bars, the rest of them in a bar of its own.

use std::path::Path;

use serde_json::{Value, json};

use super::{ByteAxis, Drawing, base, byte_axis, call, color, name_axis, with, words, zoom};
use crate::analysis::chart::{Frame, StackBar, StackWords, Stacks};
use crate::analysis::{Lang, Text};

/// What to call a stack's bar.
pub(in crate::report) fn label(bar: &StackBar, stacks: &Stacks) -> Text {
    let Some(stack_id) = bar.stack_id else {
        return Text::new("no call stack recorded", "未记录调用栈");
    };
    let known = stacks.stacks.iter().find(|words| words.stack_id == stack_id && !words.label.is_empty());
    let unnamed = || Text::new(format!("stack {stack_id}"), format!("调用栈 {stack_id}"));
    let Some(known) = known else { return unnamed() };
    let alike: Vec<&StackWords> = stacks
        .stacks
        .iter()
        .filter(|other| other.stack_id != stack_id && other.label == known.label)
        .filter(|other| stacks.bars.iter().any(|bar| bar.stack_id == Some(other.stack_id)))
        .collect();
    let told = distinct(known, &alike);
    let is_told_apart = alike.iter().all(|other| {
        let others: Vec<&StackWords> =
            alike.iter().copied().chain([known]).filter(|third| third.stack_id != other.stack_id).collect();
        distinct(other, &others) != told
    });
    if is_told_apart {
        return Text::same(told);
    }
    let number = unnamed();
    let with = |lang| format!("{told} · {}", number.get(lang));
    Text::new(with(Lang::En), with(Lang::Zh))
}

/// A stack's label; where others have the same one, with the nearest frame that tells it from most of them: one that
/// is called (`→`) or one that calls (`←`).
fn distinct(words: &StackWords, alike: &[&StackWords]) -> String {
    for is_kept in [is_python, |_: &Frame| true] {
        let path = path(words, is_kept);
        let others: Vec<_> = alike.iter().map(|other| self::path(other, is_kept)).collect();
        if let Some(frame) = telling(&path, &others) {
            return format!("{} {frame}", words.label);
        }
        if !others.contains(&path) {
            break;
        }
    }
    words.label.clone()
}

/// The frames of a stack in few words, as seen from the one that stands for it: those that it calls, the nearest
/// first, and those that call it.
fn path(words: &StackWords, is_kept: fn(&Frame) -> bool) -> [Vec<String>; 2] {
    let own = words.frames.iter().position(|frame| frame.short() == words.label);
    let (called, calling) = words.frames.split_at(own.unwrap_or(0));
    let short = |frame: &&Frame| is_kept(frame).then(|| frame.short());
    [
        called.iter().rev().filter_map(|frame| short(&frame)).collect(),
        calling.iter().skip(1).filter_map(|frame| short(&frame)).collect(),
    ]
}

/// The nearest frame of a path that is in the fewest of the others, with an arrow; none if it is in all of them.
fn telling(path: &[Vec<String>; 2], others: &[[Vec<String>; 2]]) -> Option<String> {
    let mut best = (0, None);
    for ((side, frames), arrow) in path.iter().enumerate().zip(['→', '←']) {
        for (place, frame) in frames.iter().enumerate() {
            let has = |other: &&[Vec<String>; 2]| {
                other.get(side).and_then(|frames| frames.get(place)) == Some(frame)
            };
            let differing = others.len() - others.iter().filter(has).count();
            if differing > best.0 {
                best = (differing, Some(format!("{arrow} {frame}")));
            }
        }
    }
    best.1
}

fn is_python(frame: &Frame) -> bool {
    Path::new(&frame.filename).extension().is_some_and(|extension| extension == "py")
}

/// What to call all stacks without a bar.
pub(in crate::report) fn other_label(count: Option<i64>) -> Text {
    count.map_or_else(
        || Text::new("all other stacks", "其余全部调用栈"),
        |count| Text::new(format!("{count} other stacks"), format!("其余 {count} 个调用栈")),
    )
}

/// The axis with its names shortened, and with what a narrow screen says otherwise said as well, so that a screen that is
/// turned gets it back.
fn with_label(mut axis: Value) -> Value {
    if let Some(label) = axis.get_mut("axisLabel").and_then(Value::as_object_mut) {
        for (key, value) in [
            ("inside", json!(false)),
            ("margin", json!(8)),
            ("align", json!("right")),
            ("verticalAlign", json!("middle")),
            ("padding", json!(0)),
            ("formatter", call("stackName")),
        ] {
            label.insert(key.to_owned(), value);
        }
    }
    axis
}

pub(super) fn draw(stacks: &Stacks) -> Drawing {
    // All others together may be many times the largest: their bar ends with the axis, its label has the number and
    // an arrow.
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
            "yAxis": with_label(name_axis(&names, 480)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stack_id: i64, lines: &[(&str, &str, i64)]) -> StackWords {
        let frames: Vec<Value> = lines
            .iter()
            .map(|(name, filename, line)| json!({"name": name, "filename": filename, "line": line}))
            .collect();
        StackWords::parse(stack_id, &json!(frames).to_string())
    }

    const ADAM: &str = "/usr/lib/python3/site-packages/torch/optim/adam.py";

    #[test]
    fn bars_of_one_line_say_what_tells_them_apart() {
        let step = ("train", "/home/me/train.py", 17);
        let list = vec![
            words(1, &[("_init_group", ADAM, 174), step, ("main", "/home/me/train.py", 35)]),
            words(2, &[("_init_group", ADAM, 178), step, ("main", "/home/me/train.py", 35)]),
            words(3, &[("linear", "/home/me/model.py", 9), ("main", "/home/me/train.py", 35)]),
            words(4, &[("linear", "/home/me/model.py", 9), ("main", "/home/me/train.py", 36)]),
            words(12, &[("again", "/home/me/again.py", 1)]),
            words(13, &[("again", "/home/me/again.py", 1)]),
            words(5, &[("loss", "/home/me/model.py", 3)]),
            // One differs from the next, the other from all but that: the frame that differs from both is farther.
            words(6, &[("zeros", ADAM, 1), ("step", ADAM, 2), ("init", "/home/me/model.py", 8)]),
            words(7, &[("ones", ADAM, 1), ("step", ADAM, 2), ("init", "/home/me/model.py", 8)]),
            words(9, &[("at::empty", "", 0), ("relu", "/home/me/act.py", 1)]),
            words(10, &[("at::zeros", "", 0), ("relu", "/home/me/act.py", 1)]),
            words(11, &[("at::zeros", "", 0), ("fill", ADAM, 7), ("relu", "/home/me/act.py", 1)]),
            words(8, &[("ones", ADAM, 1), ("stop", ADAM, 3), ("init", "/home/me/model.py", 8)]),
        ];
        let bars = list.iter().map(|words| StackBar {
            stack_id: Some(words.stack_id),
            bytes: 512,
            requested: None,
            block_count: 1,
        });
        let stacks = Stacks { bars: bars.collect(), stacks: list, other: None, total: 13 * 512 };
        let labels: Vec<String> =
            stacks.bars.iter().map(|bar| label(bar, &stacks).get(Lang::En).to_owned()).collect();
        assert_eq!(
            labels,
            [
                "train (train.py:17) → _init_group (adam.py:174)",
                "train (train.py:17) → _init_group (adam.py:178)",
                "linear (model.py:9) ← main (train.py:35)",
                "linear (model.py:9) ← main (train.py:36)",
                "again (again.py:1) · stack 12",
                "again (again.py:1) · stack 13",
                "loss (model.py:3)",
                "init (model.py:8) → zeros (adam.py:1)",
                "init (model.py:8) → step (adam.py:2)",
                "relu (act.py:1) → at::empty",
                "relu (act.py:1) → at::zeros",
                "relu (act.py:1) → fill (adam.py:7)",
                "init (model.py:8) → stop (adam.py:3)",
            ]
        );
    }
}
