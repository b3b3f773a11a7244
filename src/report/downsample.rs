//! Fewer points that look the same: Largest Triangle Three Buckets, and what must never be lost beside it.
//!
//! Every counter is sampled for itself and all counters are kept at each point chosen, so that one row of numbers still
//! speaks of one event. Peaks and marked events are kept whatever the triangles say.

use std::collections::BTreeSet;

use crate::analysis::chart::{
    Counter, Expansion, Flame, FlameNode, Layout, Level, Mark, MarkedEvent, SegmentRow, Span, Timeline,
};

/// Points of a timeline: about what a wide screen has columns.
pub(super) const POINTS: usize = 2000;

/// The timeline with about `most` levels, and marks that a screen can tell apart.
pub(super) fn timeline(timeline: &Timeline, most: usize) -> Timeline {
    let marks = marks(&timeline.marks, most);
    let keep = timeline
        .peaks
        .iter()
        .map(|peak| peak.trace_index)
        .chain(marks.iter().map(|event| event.trace_index))
        .collect();
    Timeline { levels: levels(&timeline.levels, &keep, most), marks, ..timeline.clone() }
}

/// The marked events where those of a kind are too many to be seen, one of each stretch: its neighbours would be drawn on
/// the same pixels. Growths come by hundreds and say little; of other kinds all are kept as long as there are half as many
/// as levels.
fn marks(marks: &[MarkedEvent], levels: usize) -> Vec<MarkedEvent> {
    let mut kept = marks.to_vec();
    for (mark, most) in [
        (Mark::Growth, levels / 10),
        (Mark::Step, levels / 2),
        (Mark::OutOfMemory, levels / 2),
        (Mark::Snapshot, levels / 2),
    ] {
        let count = marks.iter().filter(|event| event.mark == mark).count();
        let width = count.div_ceil(most.max(1)).max(1);
        let mut seen = 0;
        kept.retain(|event| {
            let place = seen;
            seen += usize::from(event.mark == mark);
            event.mark != mark || place % width == 0
        });
    }
    kept
}

/// The flame graph with about `most` of its widest frames. A frame is no wider than its caller, so no caller is lost.
pub(super) fn flame(flame: &Flame, most: usize) -> Flame {
    fn widths(node: &FlameNode, all: &mut Vec<i64>) {
        all.push(node.bytes);
        node.children.iter().for_each(|child| widths(child, all));
    }
    fn wider(node: &FlameNode, least: i64) -> FlameNode {
        let children = node.children.iter().filter(|child| child.bytes >= least);
        FlameNode { children: children.map(|child| wider(child, least)).collect(), ..node.clone() }
    }
    let mut all = Vec::new();
    widths(&flame.root, &mut all);
    all.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let least = all.get(most).map_or(0, |bytes| bytes.saturating_add(1));
    Flame { root: wider(&flame.root, least) }
}

/// About `most` of the levels; those at an index of `keep` are among them.
pub(super) fn levels(levels: &[Level], keep: &BTreeSet<i64>, most: usize) -> Vec<Level> {
    if levels.len() <= most {
        return levels.to_vec();
    }
    let counters = Counter::ALL.len();
    let mut chosen: BTreeSet<usize> = (0..counters)
        .flat_map(|place| {
            let points: Vec<(f64, f64)> = levels.iter().map(|level| point(level, place)).collect();
            triangles(&points, most / counters)
        })
        .collect();
    let kept = levels.iter().enumerate().filter(|(_, level)| keep.contains(&level.trace_index));
    chosen.extend(kept.map(|(place, _)| place));
    chosen.into_iter().filter_map(|place| levels.get(place).copied()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "where a point is on a screen needs no more than 53 bits")]
fn point(level: &Level, place: usize) -> (f64, f64) {
    let bytes = level.bytes.get(place).copied().flatten().unwrap_or(0);
    (level.trace_index as f64, bytes as f64)
}

/// Places of about `most` points: the first, the last, and of every bucket between them the point that makes the largest
/// triangle with the point chosen before it and the middle of the bucket behind it.
fn triangles(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    let (count, buckets) = (points.len(), most.saturating_sub(2));
    if count <= most || buckets == 0 {
        return (0..count).collect();
    }
    let start = |bucket: usize| 1 + bucket * (count - 2) / buckets;
    let mut chosen = vec![0];
    let mut before = points.first().copied().unwrap_or_default();
    for bucket in 0..buckets {
        let behind = start(bucket + 1)..start(bucket + 2).min(count).max(start(bucket + 1) + 1);
        let behind = middle(points.get(behind).unwrap_or_default());
        let area = |(x, y): (f64, f64)| {
            ((before.0 - behind.0) * (y - before.1) - (before.0 - x) * (behind.1 - before.1)).abs()
        };
        let mut largest = (start(bucket), -1.0);
        for (place, point) in points.iter().enumerate().take(start(bucket + 1)).skip(start(bucket)) {
            if area(*point) > largest.1 {
                largest = (place, area(*point));
            }
        }
        chosen.push(largest.0);
        before = points.get(largest.0).copied().unwrap_or(before);
    }
    chosen.push(count - 1);
    chosen
}

#[expect(clippy::cast_precision_loss, reason = "a bucket holds far fewer points than 2^53")]
fn middle(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    (x / count, y / count)
}

/// The expansion with the largest event of each of about `most` stretches.
pub(super) fn expansion(expansion: &Expansion, most: usize) -> Expansion {
    let width = expansion.events.len().div_ceil(most.max(1)).max(1);
    let largest = expansion.events.chunks(width).filter_map(|stretch| {
        stretch.iter().max_by_key(|event| (event.change.unsigned_abs(), std::cmp::Reverse(event.trace_index)))
    });
    Expansion { events: largest.copied().collect(), ..expansion.clone() }
}

/// The layout with each segment divided into `cells`: what is smaller than a cell is joined with its like in the same one.
pub(super) fn layout(layout: &Layout, cells: usize) -> Layout {
    let segments = layout.segments.iter().map(|segment| SegmentRow {
        spans: joined(&segment.spans, segment.total_size, cells),
        ..segment.clone()
    });
    Layout { segments: segments.collect(), ..layout.clone() }
}

/// Spans that fill the same segment: large ones as they are, small ones one for each cell and state. Within a cell the order
/// cannot be seen.
fn joined(spans: &[Span], total_size: i64, cells: usize) -> Vec<Span> {
    let cell = (total_size / i64::try_from(cells).unwrap_or(i64::MAX).max(1)).max(1);
    let mut joined: Vec<Span> = Vec::new();
    let mut small: Vec<Span> = Vec::new();
    let mut small_cell = 0;
    for span in spans {
        let is_large = span.size >= cell;
        if is_large || span.offset / cell != small_cell {
            joined.append(&mut small);
        }
        if is_large {
            joined.push(*span);
            continue;
        }
        small_cell = span.offset / cell;
        match small.iter_mut().find(|other| other.state == span.state) {
            Some(other) => {
                other.size += span.size;
                other.block_count += span.block_count;
                other.stack_id = None;
            }
            None => small.push(*span),
        }
    }
    joined.append(&mut small);
    let mut offset = 0;
    for span in &mut joined {
        span.offset = offset;
        offset += span.size;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::chart::BlockState;

    fn level(trace_index: i64, bytes: i64) -> Level {
        Level { trace_index, time_us: None, bytes: [Some(bytes + 100), Some(bytes), Some(bytes)] }
    }

    /// A saw with a tooth every ten events and one event that stands out, each at a place known by hand.
    fn saw() -> Vec<Level> {
        (0..30_000).map(|index| level(index, if index == 12_345 { 5000 } else { index % 10 * 100 })).collect()
    }

    #[test]
    fn a_peak_of_one_event_survives() {
        let sampled = levels(&saw(), &BTreeSet::new(), 2000);
        assert!(sampled.len() <= 2000, "{}", sampled.len());
        assert!(sampled.iter().any(|level| level.trace_index == 12_345));
        assert_eq!(sampled.first().unwrap().trace_index, 0);
        assert_eq!(sampled.last().unwrap().trace_index, 29_999);
        assert!(sampled.windows(2).all(|pair| pair[0].trace_index < pair[1].trace_index));
    }

    #[test]
    fn of_marks_without_number_a_page_has_some_of_each_kind() {
        let event = |mark, trace_index| MarkedEvent {
            mark,
            trace_index,
            time_us: None,
            detail: crate::analysis::Text::same(""),
        };
        let all = (0..30_000).flat_map(|index| {
            let every = |mark, step| (index % step == 0).then(|| event(mark, index));
            [every(Mark::Step, 10), every(Mark::OutOfMemory, 100), every(Mark::Growth, 1)]
        });
        let kept = marks(&all.flatten().collect::<Vec<_>>(), 1000);
        let count = |mark| kept.iter().filter(|event| event.mark == mark).count();
        // 3000 steps by six, 300 failures as they are, 30,000 growths by 300.
        assert_eq!([Mark::Step, Mark::OutOfMemory, Mark::Growth].map(count), [500, 300, 100]);
        assert!(kept.windows(2).all(|pair| pair[0].trace_index <= pair[1].trace_index));
    }

    #[test]
    fn what_is_to_be_kept_is_kept() {
        let keep: BTreeSet<i64> = (0..500).map(|place| place * 53 + 7).collect();
        let sampled = levels(&saw(), &keep, 2000);
        for index in &keep {
            assert!(sampled.iter().any(|level| level.trace_index == *index), "{index}");
        }
    }

    #[test]
    fn small_blocks_of_a_cell_are_joined_by_state_and_still_fill_the_segment() {
        let span = |offset, size, state, stack_id| Span { offset, size, state, block_count: 1, stack_id };
        let (used, free) = (BlockState::Allocated, BlockState::Inactive);
        // Cells of 100 bytes. Cell 0: 30 used, 20 free, 40 used, and 10 that are free up to its end; then one of 250.
        let spans = [
            span(0, 30, used, Some(1)),
            span(30, 20, free, None),
            span(50, 40, used, Some(2)),
            span(90, 10, free, None),
            span(100, 250, used, Some(3)),
            span(350, 50, free, None),
            span(400, 600, free, None),
        ];
        let found: Vec<_> = joined(&spans, 1000, 10)
            .iter()
            .map(|span| (span.offset, span.size, span.state, span.block_count, span.stack_id))
            .collect();
        let expected = [
            (0, 70, used, 2, None),
            (70, 30, free, 2, None),
            (100, 250, used, 1, Some(3)),
            (350, 50, free, 1, None),
            (400, 600, free, 1, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn few_levels_stay_as_they_are() {
        let few: Vec<Level> = saw().into_iter().take(2000).collect();
        assert_eq!(levels(&few, &BTreeSet::new(), 2000), few);
    }

    #[test]
    fn the_triangles_of_four_points_are_those_worked_out_by_hand() {
        // One bucket of two points: (1, 9) and (2, 1), between (0, 0) and (3, 0). The first makes the larger triangle.
        assert_eq!(triangles(&[(0.0, 0.0), (1.0, 9.0), (2.0, 1.0), (3.0, 0.0)], 3), [0, 1, 3]);
        assert_eq!(triangles(&[(0.0, 0.0), (1.0, 1.0), (2.0, 9.0), (3.0, 0.0)], 3), [0, 2, 3]);
    }
}
