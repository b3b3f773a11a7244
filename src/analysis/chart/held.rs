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
const SMALLEST_SHARE: i64 = 400;
/// Frames of a path that a flame graph shows.
const DEEPEST: usize = 48;

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
    if rows.is_empty() {
        return Vec::new();
    }
    let counted = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let known: Vec<(i64, StackWords)> = rows
        .iter()
        .filter_map(|row| {
            let words = StackWords::parse(row.stack_id?, row.frames_json.as_deref()?);
            Some((row.total_size, words))
        })
        .collect();
    let root = flame(&known, total);
    let bars: Vec<StackBar> = rows
        .iter()
        .take(BARS)
        .map(|row| StackBar {
            stack_id: row.stack_id,
            bytes: row.total_size,
            requested: row.requested_size,
            block_count: row.block_count,
        })
        .collect();
    let shown: i64 = bars.iter().map(|bar| bar.bytes).sum();
    let others = counted - i64::try_from(bars.len()).unwrap_or(0);
    let all: i64 = rows.iter().map(|row| row.total_size).sum();
    let other = (total > shown).then(|| ((all == total).then_some(others), total - shown));
    let stacks: Vec<StackWords> = known
        .into_iter()
        .map(|(_, words)| words)
        .filter(|words| bars.iter().any(|bar| bar.stack_id == Some(words.stack_id)))
        .collect();
    let [title, path] = titles;
    let figure = |name, title, chart| ChartFigure { name, device: Some(device_index), title, chart };
    let bars = Stacks { bars, other, total, stacks };
    let mut figures = vec![figure("stacks", title, Chart::Stacks(bars))];
    if !root.children.is_empty() {
        figures.push(figure("flame", path, Chart::Flame(Flame { root })));
    }
    figures
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

/// Frames from the outermost on; between Python's frames, those of the interpreter itself say nothing.
fn paths(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    let has_python = frames.iter().any(|frame| !frame.is_native());
    frames.iter().rev().filter(move |frame| !has_python || !frame.is_native()).take(DEEPEST)
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
    fn a_path_too_narrow_to_be_read_is_left_out() {
        let tree = flame(&[(996, stack(1, &["f"])), (2, stack(2, &["g"]))], 1000);
        assert_eq!(tree.children.iter().map(|child| child.bytes).collect::<Vec<_>>(), [996]);
    }
}
