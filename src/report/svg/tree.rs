//! A flame graph: a rectangle for each frame, callers above what they called.

use super::paper::{Anchor, WIDTH, Wording, fitted, sheet, width};
use crate::analysis::Text;
use crate::analysis::chart::Flame;
use crate::output::Redaction;
use crate::quantity;
use crate::report::option::rectangles;

const ROW: i32 = 18;
/// Rectangles narrower than this have a name only if it is short.
const NAMED: i32 = 56;
const TONES: [&str; 3] = ["flame_light", "flame", "flame_deep"];

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
        // All rectangles of a colour first: one behind the other they are one element.
        for tone in [&["free"], TONES.as_slice()].concat() {
            for (y, from, to, _) in places.clone().filter(|(.., node)| self::tone(&node.name) == tone) {
                paper.rectangle((from, y), ((to - 1).max(from + 1), y + ROW - 1), tone);
            }
        }
        for (y, from, to, node) in places {
            let at = (from + 4, y + ROW / 2);
            if node.name.is_empty() {
                let bytes = quantity::bytes(node.bytes);
                let words = Text::new(format!("all · {bytes}"), format!("全部 · {bytes}"));
                paper.words(&words, at, Anchor::Start, "text");
            } else if let Some(name) = name(&node.name, to - from - 8) {
                paper.text(&name, at, Anchor::Start, "text");
            }
        }
    })
}

/// What there is room for: function and place, the function alone, its beginning, nothing.
fn name(name: &str, room: i32) -> Option<String> {
    let function = function(name);
    if width(name) <= room {
        return Some(name.to_owned());
    }
    (width(function) <= room || room > NAMED).then(|| fitted(function, room))
}

fn function(name: &str) -> &str {
    name.split_once(" (").map_or(name, |(function, _)| function)
}

/// The same function has the same colour wherever it is.
fn tone(name: &str) -> &'static str {
    if name.is_empty() {
        return "free";
    }
    let sum = function(name).bytes().fold(0_usize, |sum, byte| (31 * sum + usize::from(byte)) % 997);
    TONES.get(sum % TONES.len()).copied().unwrap_or("flame")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_what_it_has_room_for() {
        let of = |letters: i32| name("forward_step (schedules.py:297)", 7 * letters);
        assert_eq!(of(31).as_deref(), Some("forward_step (schedules.py:297)"));
        assert_eq!(of(30).as_deref(), Some("forward_step"));
        assert_eq!(of(12).as_deref(), Some("forward_step"));
        assert_eq!(of(11).as_deref(), Some("forward_st…"));
        assert_eq!(of(8), None);
    }
}
