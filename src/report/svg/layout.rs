//! Segments as rows, their blocks at their position.

use super::paper::{Anchor, WIDTH, Wording, sheet};
use super::plot::scale;
use crate::analysis::chart::{BlockState, Layout};
use crate::output::Redaction;
use crate::quantity;
use crate::report::option::{kinds, others};

const LEFT: i32 = 190;
const RIGHT: i32 = WIDTH - 90;
const TOP: i32 = 30;
const ROW: i32 = 20;

pub(super) fn draw(layout: &Layout, wording: Wording, redaction: &Redaction) -> String {
    // In the page they are told of above the picture.
    let others = layout.other.filter(|_| matches!(wording, Wording::One(_))).map(others);
    let rows = layout.segments.len() + usize::from(others.is_some());
    let height = TOP + 8 + ROW * i32::try_from(rows).unwrap_or(1);
    sheet(height, wording, redaction, |paper| {
        let mut y = TOP;
        for segment in &layout.segments {
            let name = format!("#{} · {}", segment.segment_id, quantity::bytes(segment.total_size));
            let tone = if segment.is_low_use { "critical" } else { "text" };
            paper.text(&name, (LEFT - 10, y + ROW / 2), Anchor::End, tone);
            paper.rectangle(
                (LEFT, y + 2),
                (RIGHT, y + ROW - 2),
                if segment.is_low_use { "low" } else { "free" },
            );
            // Neighbours of one state are one rectangle: at this width their borders cannot be seen.
            let mut waiting: Option<(i32, i32, BlockState)> = None;
            for span in segment.spans.iter().filter(|span| span.state != BlockState::Inactive) {
                let left = scale(span.offset, segment.total_size, LEFT, RIGHT);
                let right = scale(span.offset + span.size, segment.total_size, LEFT, RIGHT).max(left + 1);
                waiting = match waiting {
                    Some((from, to, state)) if state == span.state && left <= to => {
                        Some((from, right.max(to), state))
                    }
                    other => {
                        rectangle(paper, other, y);
                        Some((left, right, span.state))
                    }
                };
            }
            rectangle(paper, waiting, y);
            let used = quantity::percent(segment.allocated_size, segment.total_size);
            paper.text(&used, (RIGHT + 8, y + ROW / 2), Anchor::Start, tone);
            y += ROW;
        }
        if let Some(words) = others {
            paper.words(&words, (LEFT, y + ROW / 2), Anchor::Start, "muted");
        }
        let kinds = kinds(layout);
        let legend: Vec<_> = kinds.iter().map(|kind| (kind.words(), kind.tone())).collect();
        paper.legend(&legend, LEFT);
    })
}

fn rectangle(paper: &super::paper::Paper<'_>, piece: Option<(i32, i32, BlockState)>, y: i32) {
    let Some((left, right, state)) = piece else { return };
    let tone = if state == BlockState::PendingFree { "pending" } else { "allocated" };
    paper.rectangle((left, y + 2), (right, y + ROW - 2), tone);
}
