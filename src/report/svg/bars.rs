//! Devices side by side, bytes by call stack, and the events before a moment.

use super::paper::{Anchor, WIDTH, Wording, fitted, sheet, shortened, width};
use super::plot::{Plot, scale};
use crate::analysis::chart::{Counter, DeviceBar, EventKind, Sequence, Stacks};
use crate::analysis::{Lang, Text};
use crate::output::Redaction;
use crate::quantity;
use crate::report::axis::ByteAxis;
use crate::report::option::{other_label, stack_label};

/// Height of a row of bars.
const ROW: i32 = 24;
const TOP: i32 = 30;

pub(super) fn devices(bars: &[DeviceBar], wording: Wording, redaction: &Redaction) -> String {
    const HEIGHT: i32 = 280;
    const WIDEST: i32 = 48;
    let most = bars.iter().flat_map(|bar| bar.bytes).max().unwrap_or(0);
    let count = i64::try_from(bars.len()).unwrap_or(1).max(1);
    // Four places for each device: three bars and a gap.
    let plot = Plot::new(HEIGHT, 0, 4 * count, ByteAxis::up_to(most));
    sheet(HEIGHT, wording, redaction, |paper| {
        plot.bytes(paper);
        for (device, bar) in (0_i64..).zip(bars) {
            let width = (plot.x(4 * device + 1) - plot.x(4 * device)).min(WIDEST);
            let mut left = plot.x(4 * device) + 6;
            for (bytes, counter) in bar.bytes.into_iter().zip(Counter::ALL) {
                paper.rectangle((left, plot.y(bytes)), (left + width - 2, plot.bottom()), counter.name());
                left += width;
            }
            let ratio = quantity::ratio(bar.fragmentation_ratio);
            let index = bar.device_index;
            let words = Text::new(
                format!("device {index} · fragmentation {ratio}"),
                format!("设备 {index} · 碎片率 {ratio}"),
            );
            paper.words(&words, (plot.x(4 * device) + 6, plot.bottom() + 14), Anchor::Start, "text");
        }
        let legend: Vec<_> = Counter::ALL.iter().map(|counter| (counter.words(), counter.name())).collect();
        paper.legend(&legend, 84);
    })
}

pub(super) fn stacks(stacks: &Stacks, wording: Wording, redaction: &Redaction) -> String {
    /// The widest name that stands beside its bar. Where one is wider, each stands above its own.
    const BESIDE: i32 = 440;
    const LINE: i32 = 16;
    const MARGIN: i32 = 8;
    const RIGHT: i32 = WIDTH - 150;
    let mut rows: Vec<(Text, i64, &str)> = stacks
        .bars
        .iter()
        .map(|bar| {
            (stack_label(bar, stacks), bar.bytes, if bar.stack_id.is_some() { "allocated" } else { "free" })
        })
        .collect();
    // All others together may be many times the largest: their bar ends where the longest does, with an arrow.
    let most = rows.iter().map(|(_, bytes, _)| *bytes).max().unwrap_or(0);
    if let Some((count, bytes)) = stacks.other {
        rows.push((other_label(count), bytes, "free"));
    }
    let widest = rows.iter().flat_map(|(words, ..)| [Lang::En, Lang::Zh].map(|lang| width(words.get(lang))));
    let widest = widest.max().unwrap_or(0);
    let (left, line) = if widest <= BESIDE { (MARGIN + widest + 10, 0) } else { (MARGIN, LINE) };
    let height = 12 + (ROW + line) * i32::try_from(rows.len()).unwrap_or(1);
    sheet(height, wording, redaction, |paper| {
        let mut y = 6;
        for (words, bytes, tone) in &rows {
            let (top, bottom) =
                if line == 0 { (y + 4, y + ROW - 4) } else { (y + line + 2, y + line + ROW - 8) };
            let middle = i32::midpoint(top, bottom);
            if line == 0 {
                paper.words(words, (left - 10, middle), Anchor::End, "text");
            } else {
                let short = |lang| shortened(words.get(lang), WIDTH - 2 * MARGIN);
                let words = Text::new(short(Lang::En), short(Lang::Zh));
                paper.words(&words, (left, top - 8), Anchor::Start, "text");
            }
            let right = scale((*bytes).min(most), most, left, RIGHT).max(left + 1);
            paper.rectangle((left, top), (right, bottom), tone);
            let cut = if *bytes > most { " →" } else { "" };
            let label =
                format!("{} · {}{cut}", quantity::bytes(*bytes), quantity::percent(*bytes, stacks.total));
            paper.text(&label, (right + 6, middle), Anchor::Start, "muted");
            y += line + ROW;
        }
    })
}

pub(super) fn sequence(sequence: &Sequence, wording: Wording, redaction: &Redaction) -> String {
    const LEFT: i32 = 210;
    const RIGHT: i32 = WIDTH - 100;
    const LINE: i32 = 16;
    let most = sequence.events.iter().map(|event| event.size).max().unwrap_or(0);
    let gives_back = sequence.events.iter().any(|event| event.kind == EventKind::Free);
    let zero = if gives_back { LEFT + (RIGHT - LEFT) / 2 } else { LEFT };
    let height = TOP + 8 + LINE * i32::try_from(sequence.events.len()).unwrap_or(1);
    sheet(height, wording, redaction, |paper| {
        let rows = || (0_i32..).map(|row| TOP + LINE * row).zip(&sequence.events);
        // Bars of a colour that follow each other are one element.
        for (y, event) in rows() {
            let (tone, end) = match event.kind {
                EventKind::Free => ("release", LEFT),
                EventKind::Trigger => ("critical", RIGHT),
                EventKind::Alloc => ("alloc", RIGHT),
                EventKind::Other => ("free", RIGHT),
            };
            let at = scale(event.size, most, zero, end);
            let (from, to) = ((at.min(zero), y + 2), (at.max(zero + 1), y + LINE - 3));
            if event.kind == EventKind::Trigger {
                // What was asked for and not had is an outline.
                paper.rectangle(from, to, "critical_wash");
                for (start, end) in [
                    (from, (to.0, from.1)),
                    ((from.0, to.1), to),
                    (from, (from.0, to.1)),
                    ((to.0, from.1), to),
                ] {
                    paper.dashes(start, end, tone);
                }
                paper.text(&quantity::bytes(event.size), (at + 6, y + LINE / 2), Anchor::Start, "text");
            } else {
                paper.rectangle(from, to, tone);
            }
        }
        for (y, event) in rows() {
            let name = format!("{} · {}", quantity::count(event.trace_index), event.action);
            paper.text(&fitted(&name, LEFT - 20), (LEFT - 12, y + LINE / 2), Anchor::End, "text");
        }
        paper.line(vec![(zero, TOP), (zero, height - 8)], "faint", 1);
        paper.legend(
            &[
                (Text::new("failed request", "失败的请求"), "critical"),
                (Text::new("taken", "分配"), "alloc"),
                (Text::new("given back", "释放"), "release"),
            ],
            LEFT,
        );
    })
}
