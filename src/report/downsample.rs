//! Fewer points that look the same: Largest Triangle Three Buckets, and what must never be lost beside it.
//!
//! Every counter is sampled for itself and all counters are kept at each point chosen, so that one row of numbers still
//! speaks of one event. Peaks and marked events are kept whatever the triangles say.

use std::collections::BTreeSet;

use crate::analysis::chart::{Counter, Level, Timeline};

/// Points of a timeline: about what a wide screen has columns.
pub(super) const POINTS: usize = 2000;

/// The timeline with about `most` levels.
pub(super) fn timeline(timeline: &Timeline, most: usize) -> Timeline {
    let keep = timeline
        .peaks
        .iter()
        .map(|peak| peak.trace_index)
        .chain(timeline.marks.iter().map(|event| event.trace_index))
        .collect();
    Timeline { levels: levels(&timeline.levels, &keep, most), ..timeline.clone() }
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_to_be_kept_is_kept() {
        let keep: BTreeSet<i64> = (0..500).map(|place| place * 53 + 7).collect();
        let sampled = levels(&saw(), &keep, 2000);
        for index in &keep {
            assert!(sampled.iter().any(|level| level.trace_index == *index), "{index}");
        }
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
