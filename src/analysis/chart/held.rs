//! Charts of who holds memory: devices side by side, call stacks, and the same by call path.

use super::stacks::{Frame, StackWords};
use super::{Chart, ChartFigure, DeviceBar, Flame, FlameNode, StackBar, Stacks};
use crate::analysis::language::Text;
use crate::analysis::overview::DeviceOverview;
use crate::engine::{Engine, row};
use crate::error::Result;

/// Stacks that charts are made of.
const MOST_STACKS: i64 = 200;
/// Stacks with a bar of their own.
const BARS: usize = 10;
/// A path of a flame graph with a smaller share of all is left out.
const SMALLEST_SHARE: i64 = 250;
/// Frames of a path that a flame graph shows.
const DEEPEST: usize = 40;

row! {
    /// A call stack and what it holds.
    pub struct HeldRow from "top_allocations" {
        /// `call_stacks.id`.
        stack_id: Option<i64>,
        /// Bytes, rounding included.
        total_size: i64,
        /// Bytes asked for.
        requested_size: Option<i64>,
        /// Blocks.
        block_count: i64,
        /// Frames as JSON, innermost first.
        frames_json: Option<String>,
    }
}

/// Devices side by side.
#[must_use]
pub fn devices(devices: &[DeviceOverview]) -> ChartFigure {
    let bars = devices
        .iter()
        .map(|device| DeviceBar {
            device_index: device.device_index,
            bytes: [device.reserved, device.active, device.allocated],
            fragmentation_ratio: device.fragmentation_ratio,
        })
        .collect();
    let title = Text::new("Devices side by side", "各设备对比");
    ChartFigure { name: "devices", device: None, title, chart: Chart::Devices(bars) }
}

/// Who holds the memory of a device at the moment of the dump: bars, and the same as a flame graph.
///
/// # Errors
/// The relation failed.
pub fn attribution(engine: &Engine, device: &DeviceOverview) -> Result<Vec<ChartFigure>> {
    let rows: Vec<HeldRow> =
        engine.rows(&[("device", device.device_index.into()), ("limit", MOST_STACKS.into())])?;
    let total = device.active_allocated_bytes;
    let titles = [
        Text::new("Who holds the memory", "谁占用了内存"),
        Text::new("The same by call path", "按调用路径展开"),
    ];
    Ok(held(device.device_index, &rows, total, titles))
}

/// Bars and a flame graph of what stacks held, largest first, of a total in which there may be more of them.
#[must_use]
pub fn held(device_index: i64, rows: &[HeldRow], total: i64, titles: [Text; 2]) -> Vec<ChartFigure> {
    let [title, path] = titles;
    let root = flame(&known(rows), total);
    let mut figures: Vec<ChartFigure> = bars(device_index, rows, total, title).into_iter().collect();
    if !root.children.is_empty() {
        let chart = Chart::Flame(Flame { root });
        figures.push(ChartFigure { name: "flame", device: Some(device_index), title: path, chart });
    }
    figures
}

/// Bars of what stacks held, largest first; none without stacks.
#[must_use]
pub fn bars(device_index: i64, rows: &[HeldRow], total: i64, title: Text) -> Option<ChartFigure> {
    if rows.is_empty() {
        return None;
    }
    let shown = rows.get(..BARS.min(rows.len())).unwrap_or(rows);
    let bars = shown.iter().map(|row| StackBar {
        stack_id: row.stack_id,
        bytes: row.total_size,
        requested: row.requested_size,
        block_count: row.block_count,
    });
    let sum = |rows: &[HeldRow]| rows.iter().map(|row| row.total_size).sum::<i64>();
    // How many there are behind the bars is known only where the rows are all there are.
    let others = i64::try_from(rows.len() - shown.len()).ok().filter(|_| sum(rows) == total);
    let chart = Stacks {
        bars: bars.collect(),
        other: (total > sum(shown)).then(|| (others, total - sum(shown))),
        total,
        stacks: known(shown).into_iter().map(|(_, words)| words).collect(),
    };
    Some(ChartFigure { name: "stacks", device: Some(device_index), title, chart: Chart::Stacks(chart) })
}

/// The rows that have a call stack, with its words.
fn known(rows: &[HeldRow]) -> Vec<(i64, StackWords)> {
    let stack =
        |row: &HeldRow| Some((row.total_size, StackWords::parse(row.stack_id?, row.frames_json.as_deref()?)));
    rows.iter().filter_map(stack).collect()
}

/// A tree of call paths, outermost frame first; what is too narrow to be read is joined.
#[must_use]
pub fn flame(stacks: &[(i64, StackWords)], total: i64) -> FlameNode {
    let mut root = FlameNode { name: String::new(), bytes: total, children: Vec::new() };
    for (bytes, words) in stacks {
        let mut node = &mut root;
        for frame in paths(&words.frames) {
            let name = frame.short();
            let place = node.children.iter().position(|child| child.name == name);
            let place = place.unwrap_or_else(|| {
                node.children.push(FlameNode { name, bytes: 0, children: Vec::new() });
                node.children.len() - 1
            });
            let Some(child) = node.children.get_mut(place) else { break };
            child.bytes += bytes;
            node = child;
        }
    }
    prune(&mut root, total / SMALLEST_SHARE);
    root
}

/// Frames from the outermost on, as far as they tell one path from another: the user's own and the innermost of Python; without
/// any of the user's own all of Python, and without Python all.
fn paths(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    let has_own = frames.iter().any(Frame::is_own);
    let innermost = frames.iter().position(|frame| !frame.is_native());
    let tells = move |place: usize, frame: &Frame| match innermost {
        Some(innermost) if has_own => frame.is_own() || place == innermost,
        Some(_) => !frame.is_native(),
        None => true,
    };
    let told = frames.iter().enumerate().filter(move |(place, frame)| tells(*place, frame));
    told.map(|(_, frame)| frame).rev().take(DEEPEST)
}

fn prune(node: &mut FlameNode, smallest: i64) {
    node.children.retain(|child| child.bytes > smallest);
    node.children.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    for child in &mut node.children {
        prune(child, smallest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(id: i64, frames: &[&str]) -> StackWords {
        let list: Vec<String> = frames.iter().map(|name| format!(r#"{{"name": "{name}"}}"#)).collect();
        StackWords::parse(id, &format!("[{}]", list.join(",")))
    }

    #[test]
    fn paths_that_begin_alike_share_their_frames() {
        let node = |name: &str, bytes, children: Vec<FlameNode>| FlameNode {
            name: name.to_owned(),
            bytes,
            children,
        };
        let stacks =
            [(500, stack(1, &["f", "main"])), (300, stack(2, &["g", "main"])), (200, stack(3, &["h"]))];
        let expected = node(
            "",
            1000,
            vec![
                node("main", 800, vec![node("f", 500, vec![]), node("g", 300, vec![])]),
                node("h", 200, vec![]),
            ],
        );
        assert_eq!(flame(&stacks, 1000), expected);
    }

    #[test]
    fn a_path_is_the_users_own_code_and_what_it_called_last() {
        let json = r#"[
            {"name": "at::empty", "filename": "", "line": 0},
            {"name": "relu", "filename": "/x/site-packages/torch/nn/functional.py", "line": 9},
            {"name": "_call_impl", "filename": "/x/site-packages/torch/nn/modules/module.py", "line": 8},
            {"name": "forward", "filename": "/me/model.py", "line": 7},
            {"name": "_call_impl", "filename": "/x/site-packages/torch/nn/modules/module.py", "line": 8},
            {"name": "main", "filename": "/me/run.py", "line": 6}
        ]"#;
        let words = StackWords::parse(1, json);
        let names: Vec<&str> = paths(&words.frames).map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["main", "forward", "relu"]);
        let foreign: Vec<&str> = paths(&words.frames[..3]).map(|frame| frame.name.as_str()).collect();
        assert_eq!(foreign, ["_call_impl", "relu"]);
        let native: Vec<&str> = paths(&words.frames[..1]).map(|frame| frame.name.as_str()).collect();
        assert_eq!(native, ["at::empty"]);
    }

    #[test]
    fn a_path_too_narrow_to_be_read_is_left_out() {
        let tree = flame(&[(996, stack(1, &["f"])), (2, stack(2, &["g"]))], 1000);
        assert_eq!(tree.children.iter().map(|child| child.bytes).collect::<Vec<_>>(), [996]);
    }
}
