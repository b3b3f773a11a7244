//! A flame graph: a rectangle for each frame, callers above what they called.

use super::paper::{Anchor, WIDTH, Wording, fitted, sheet};
use crate::analysis::chart::Flame;
use crate::output::Redaction;
use crate::quantity;
use crate::report::option::rectangles;

const ROW: i32 = 18;
/// Rectangles narrower than this have no name.
const NAMED: i32 = 40;

pub(super) fn draw(flame: &Flame, wording: Wording, redaction: &Redaction) -> String {
    let rectangles = rectangles(&flame.root);
    let depth = rectangles.iter().map(|(depth, ..)| *depth).max().unwrap_or(0);
    let height = 4 + ROW * i32::try_from(depth + 1).unwrap_or(1);
    #[expect(clippy::cast_possible_truncation, reason = "a share of the width is within it")]
    let pixel = |share: f64| (share * f64::from(WIDTH)) as i32;
    sheet(height, wording, redaction, |paper| {
        let places = rectangles.iter().filter_map(|(depth, left, width, node)| {
            let (from, to) = (pixel(*left), pixel(left + width));
            (to > from).then(|| (2 + ROW * i32::try_from(*depth).unwrap_or(0), from, to, node))
        });
        // All rectangles first: one behind the other they are one element.
        for (y, from, to, _) in places.clone() {
            paper.rectangle((from, y), ((to - 1).max(from + 1), y + ROW - 1), "flame");
        }
        for (y, from, to, node) in places.filter(|(_, from, to, _)| to - from >= NAMED) {
            let name = if node.name.is_empty() { quantity::bytes(node.bytes) } else { node.name.clone() };
            paper.text(&fitted(&name, to - from - 8), (from + 4, y + ROW / 2), Anchor::Start, "text");
        }
    })
}
