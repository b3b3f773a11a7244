//! Counters over time, growth of the pool, and the comparison of two snapshots.

use std::collections::BTreeSet;

use super::paper::{Anchor, WIDTH, Wording, fitted, sheet};
use super::plot::{Plot, TOP, scale};
use crate::analysis::chart::{Counter, Course, Expansion, Growth, Mark, Overlay, Timeline};
use crate::analysis::{Lang, Text};
use crate::output::Redaction;
use crate::quantity;
use crate::report::axis::{ByteAxis, margin};

const HEIGHT: i32 = 300;
/// Lines across the picture that stay readable.
const MOST_LINES: usize = 40;

pub(super) fn timeline(timeline: &Timeline, wording: Wording, redaction: &Redaction) -> String {
    let levels = &timeline.levels;
    let most = levels.iter().flat_map(|level| level.bytes).flatten().max().unwrap_or(0);
    let most = timeline.peaks.iter().map(|peak| peak.bytes).chain([most]).max().unwrap_or(most);
    let first = levels.first().map_or(0, |level| level.trace_index);
    let last = levels.last().map_or(1, |level| level.trace_index);
    let plot = Plot::new(HEIGHT, first, last, ByteAxis::up_to(most.saturating_add(most / 20)));
    sheet(HEIGHT, wording, redaction, |paper| {
        plot.bytes(paper);
        let mut legend = Vec::new();
        for (place, counter) in Counter::ALL.into_iter().enumerate() {
            let points: Vec<(i64, i64)> = levels
                .iter()
                .filter_map(|level| Some((level.trace_index, level.bytes.get(place).copied().flatten()?)))
                .collect();
            if points.is_empty() {
                continue;
            }
            let path = plot.steps(&points, last);
            legend.push((counter.words(), counter.name()));
            // What lies under another curve in full is not drawn.
            if counter == Counter::Active && levels.iter().all(|level| level.bytes[1] == level.bytes[2]) {
                continue;
            }
            paper.area(plot.closed(path.clone()), &format!("{}_fill", counter.name()), 1.0);
            paper.line(path, counter.name(), 1);
        }
        for mark in [Mark::Step, Mark::Growth, Mark::Snapshot, Mark::OutOfMemory] {
            let tone = match mark {
                Mark::Growth => "growth",
                Mark::OutOfMemory => "critical",
                Mark::Snapshot => "allocated",
                Mark::Step => "muted",
            };
            let marked: Vec<i32> = timeline
                .marks
                .iter()
                .filter(|event| event.mark == mark)
                .map(|event| plot.x(event.trace_index))
                .collect();
            if marked.is_empty() {
                continue;
            }
            let crosses = matches!(mark, Mark::Step | Mark::OutOfMemory) && marked.len() <= MOST_LINES;
            let mut columns = marked;
            columns.dedup();
            for x in columns {
                if crosses {
                    paper.dashes((x, TOP), (x, plot.bottom()), tone);
                } else {
                    // Below the curves, which may be as low as a mark is high.
                    paper.line(vec![(x, plot.bottom()), (x, plot.bottom() + 6)], tone, 2);
                }
            }
            legend.push((mark.words(), tone));
        }
        for peak in &timeline.peaks {
            let at = (plot.x(peak.trace_index), plot.y(peak.bytes));
            paper.circle(at, 4, peak.counter.name(), true);
        }
        if let Some(peak) = timeline.peaks.iter().find(|peak| peak.counter == Counter::Allocated) {
            // Above all curves and beside the mark of what happened there, so that no line runs through it.
            let top = timeline.peaks.iter().map(|peak| plot.y(peak.bytes)).min().unwrap_or(0);
            let x = plot.x(peak.trace_index);
            let (x, anchor) = if x < WIDTH / 2 { (x + 8, Anchor::Start) } else { (x - 8, Anchor::End) };
            let bytes = quantity::bytes(peak.bytes);
            let words = Text::new(format!("peak {bytes}"), format!("峰值 {bytes}"));
            paper.words(&words, (x, top - 10), anchor, "text");
        }
        plot.along(paper, quantity::count);
        plot.named(paper, &Text::new("event", "事件"));
        paper.legend(&legend, 84);
    })
}

pub(super) fn expansion(expansion: &Expansion, wording: Wording, redaction: &Redaction) -> String {
    let events = &expansion.events;
    let most = events.iter().map(|event| event.change.abs()).max().unwrap_or(0);
    let first = events.first().map_or(0, |event| event.trace_index);
    let last = events.last().map_or(1, |event| event.trace_index);
    let margin = margin(first, last, 50);
    let (first, last) = (first.saturating_sub(margin), last.saturating_add(margin));
    let plot = Plot::new(HEIGHT, first, last, ByteAxis::up_to(most));
    // The sizes differ by thousands; the axis goes from power of two to power of two.
    let smallest = events.iter().map(|event| event.change.unsigned_abs()).min().unwrap_or(1).max(1);
    let (least, most) = (1_i64 << smallest.ilog2().min(61), 2_i64 << most.max(1).ilog2().min(61));
    let growth = Growth::of(expansion);
    let low = events.iter().map(|event| growth.at(event)).min().unwrap_or(0).min(0);
    let high = events.iter().map(|event| growth.at(event)).max().unwrap_or(0).max(low + 1);
    sheet(HEIGHT, wording, redaction, |paper| {
        plot.powers(paper, least, most);
        let mut path: Vec<(i32, i32)> = Vec::new();
        for event in events {
            let (x, y) =
                (plot.x(event.trace_index), scale(growth.at(event) - low, high - low, plot.bottom(), TOP));
            if let Some((_, before)) = path.last().copied()
                && before != y
            {
                path.push((x, before));
            }
            path.push((x, y));
        }
        path.dedup();
        paper.line(path, "reserved", 1);
        let mut drawn = BTreeSet::new();
        for event in events {
            let tone = match (event.change < 0, event.is_large()) {
                (true, _) => "freed",
                (false, true) => "large",
                (false, false) => "small",
            };
            let radius = (64 - (event.change.unsigned_abs() >> 18).leading_zeros()).clamp(3, 14);
            let at = (plot.x(event.trace_index), plot.power(event.change.abs(), least, most));
            // One on top of another of its kind cannot be seen.
            if !drawn.insert((at.0 / 3, at.1 / 3, tone)) {
                continue;
            }
            paper.circle(at, i32::try_from(radius).unwrap_or(3), tone, event.change > 0);
        }
        plot.along(paper, quantity::count);
        plot.named(paper, &Text::new("event", "事件"));
        let most = if growth == Growth::Bytes { quantity::bytes(high) } else { quantity::count(high) };
        let words = growth.words();
        let line = Text::new(
            format!("{}, {most} at most", words.get(Lang::En)),
            format!("{}，最多 {most}", words.get(Lang::Zh)),
        );
        paper.legend(
            &[
                (Text::new("large segment", "大段"), "large"),
                (Text::new("small segment", "小段"), "small"),
                (Text::new("given back", "归还"), "freed"),
                (line, "reserved"),
            ],
            84,
        );
    })
}

pub(super) fn overlay(overlay: &Overlay, wording: Wording, redaction: &Redaction) -> String {
    let courses = &overlay.courses;
    let most = courses.iter().flat_map(|course| [course.a, course.b]).flatten().max().unwrap_or(0);
    let last = i64::try_from(courses.len()).unwrap_or(1);
    let plot = Plot::new(HEIGHT, 0, last, ByteAxis::up_to(most));
    let [a_name, b_name] = &overlay.names;
    sheet(HEIGHT, wording, redaction, |paper| {
        plot.bytes(paper);
        for (is_more, stretch) in stretches(courses) {
            let edge = |pick: fn(i64, i64) -> i64| {
                let points: Vec<(i64, i64)> =
                    stretch.iter().map(|(point, a, b)| (*point, pick(*a, *b))).collect();
                plot.steps(&points, stretch.last().map_or(0, |(point, ..)| point + 1))
            };
            let mut outline = edge(i64::max);
            outline.extend(edge(i64::min).into_iter().rev());
            paper.area(outline, if is_more { "alloc" } else { "release" }, 0.25);
        }
        let curve = |pick: fn(&Course) -> Option<i64>| {
            let known = (0_i64..).zip(courses).filter_map(|(point, course)| Some((point, pick(course)?)));
            plot.steps(&known.collect::<Vec<_>>(), last)
        };
        // Every other piece of the curve is drawn: dashes along it.
        for pieces in curve(|course| course.a).chunks(6) {
            paper.line(pieces.iter().take(4).copied().collect(), "muted", 2);
        }
        paper.line(curve(|course| course.b), "allocated", 2);
        plot.along(paper, |point| format!("{} %", 100 * point / last.max(1)));
        paper.legend(
            &[
                (Text::same(format!("A · {}", fitted(a_name, 220))), "muted"),
                (Text::same(format!("B · {}", fitted(b_name, 220))), "allocated"),
                (Text::new("more in A", "A 更多"), "alloc"),
                (Text::new("less in A", "A 更少"), "release"),
            ],
            84,
        );
    })
}

/// Whether A is above, and position, A and B of each point.
type Stretch = (bool, Vec<(i64, i64, i64)>);

/// Points at which one curve stays above the other.
fn stretches(courses: &[Course]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut is_open = false;
    for (point, course) in (0_i64..).zip(courses) {
        let Some((a, b)) = course.a.zip(course.b).filter(|(a, b)| a != b) else {
            is_open = false;
            continue;
        };
        match stretches.last_mut().filter(|(is_more, _)| is_open && *is_more == (a > b)) {
            Some((_, points)) => points.push((point, a, b)),
            None => stretches.push((a > b, vec![(point, a, b)])),
        }
        is_open = true;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_where_the_curves_meet_cross_or_are_not_known() {
        let course = |(a, b): (i64, i64)| Course { position: 0.0, a: Some(a), b: (b >= 0).then_some(b) };
        let courses = [(5, 1), (6, 6), (2, 4), (3, 3), (9, -1), (9, 8)].map(course);
        let expected = vec![(true, vec![(0, 5, 1)]), (false, vec![(2, 2, 4)]), (true, vec![(5, 9, 8)])];
        assert_eq!(stretches(&courses), expected);
    }
}
