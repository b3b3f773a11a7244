//! Bytes by call path: a rectangle for each frame, as wide as its share, callers above what they called.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Drawing, base, call, color, with};
use crate::analysis::chart::{Flame, FlameNode};

/// Rectangles of a tree by rows from the root, each with its place from 0 to 1 along the width.
pub(in crate::report) fn rectangles(root: &FlameNode) -> Vec<(usize, f64, f64, &FlameNode)> {
    let mut rectangles = Vec::new();
    let mut waiting = vec![(0, 0.0, root)];
    #[expect(clippy::cast_precision_loss, reason = "a width on a screen needs no more than 53 bits")]
    let width = |node: &FlameNode| node.bytes as f64 / root.bytes.max(1) as f64;
    while let Some((depth, left, node)) = waiting.pop() {
        rectangles.push((depth, left, width(node), node));
        let mut left = left;
        for child in &node.children {
            waiting.push((depth + 1, left, child));
            left += width(child);
        }
    }
    rectangles
}

/// A share of the width to a hundredth of a pixel.
fn rounded(share: f64) -> f64 {
    (share * 1e5).round() / 1e5
}

pub(super) fn draw(flame: &Flame) -> Drawing {
    let rectangles = rectangles(&flame.root);
    let depth = rectangles.iter().map(|(depth, ..)| *depth).max().unwrap_or(0);
    // A function stands in many places of the tree: names are kept once.
    let names: BTreeSet<&str> = rectangles.iter().map(|(.., node)| node.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let data: Vec<Value> = rectangles
        .iter()
        .map(|(depth, left, width, node)| {
            let name = names.binary_search(&node.name.as_str()).unwrap_or(0);
            json!([depth, rounded(*left), rounded(left + width), node.bytes, name])
        })
        .collect();
    let option = with(
        base(&[], "tipFlame", "item"),
        json!({
            "grid": {"left": 2, "right": 2, "top": 22, "bottom": 4},
            "xAxis": {"type": "value", "min": 0, "max": 1, "show": false},
            "yAxis": {"type": "value", "min": 0, "max": depth + 1, "inverse": true, "show": false},
            "dataZoom": [{"type": "inside", "xAxisIndex": 0, "filterMode": "none", "zoomOnMouseWheel": "ctrl"}],
            "series": [{
                "type": "custom",
                "renderItem": call("drawFrame"),
                "encode": {"x": [1, 2], "y": 0},
                "clip": true,
                "itemStyle": {"color": color("allocated")},
                "data": data,
            }],
        }),
    );
    Drawing { option, extra: json!({"total": flame.root.bytes, "names": names}), height: 4 + 2 * (depth + 1) }
}
