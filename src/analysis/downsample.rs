//! Fewer points of a curve, with its extremes. Pure: no engine, no rows.

/// Chooses points of curves that share an axis: in each of equal stretches the highest and the lowest of every curve, the
/// first of equals; and the first and the last point of all. `None` in a curve is a gap and never an extreme.
///
/// Returns places in increasing order, about `limit` of them at most; all where there are no more. `keep` adds what must
/// not be lost.
#[must_use]
pub fn extremes(curves: &[Vec<Option<i64>>], limit: usize, keep: &[usize]) -> Vec<usize> {
    let length = curves.iter().map(Vec::len).max().unwrap_or(0);
    if length <= limit {
        return (0..length).collect();
    }
    let stretches = (limit / (2 * curves.len().max(1))).max(1);
    let mut chosen: Vec<usize> = keep.iter().copied().filter(|place| *place < length).collect();
    chosen.extend([0, length - 1]);
    for stretch in 0..stretches {
        let from = bound(stretch, length, stretches);
        let to = bound(stretch + 1, length, stretches);
        for curve in curves {
            let known = || (from..to).filter_map(|place| Some((place, curve.get(place).copied().flatten()?)));
            // `max_by_key` gives the last of equals: the order is turned round.
            let highest = known().min_by_key(|(_, value)| std::cmp::Reverse(*value));
            let lowest = known().min_by_key(|(_, value)| *value);
            chosen.extend([highest, lowest].into_iter().flatten().map(|(place, _)| place));
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Where a stretch begins, without overflow for any length.
fn bound(stretch: usize, length: usize, stretches: usize) -> usize {
    let (whole, rest) = (length / stretches, length % stretches);
    stretch * whole + stretch * rest / stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(values: &[i64]) -> Vec<Option<i64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_short_curve_stays_whole() {
        assert_eq!(extremes(&[known(&[3, 1, 2])], 3, &[]), [0, 1, 2]);
        assert_eq!(extremes(&[], 3, &[]), [0_usize; 0]);
    }

    #[test]
    fn every_stretch_keeps_its_highest_and_lowest() {
        // Two stretches of five: [5 9 9 1 5] and [5 5 2 7 5].
        let curve = known(&[5, 9, 9, 1, 5, 5, 5, 2, 7, 5]);
        assert_eq!(extremes(&[curve], 4, &[]), [0, 1, 3, 7, 8, 9]);
    }

    #[test]
    fn what_must_be_kept_is_kept_and_gaps_are_no_extremes() {
        let mut curve = known(&[4; 20]);
        curve[7] = None;
        assert_eq!(extremes(&[curve], 2, &[7, 12, 99]), [0, 7, 12, 19]);
    }

    #[test]
    fn the_highest_of_a_million_points_is_there() {
        let mut curve = vec![Some(1); 1_000_000];
        curve[777_777] = Some(2);
        let chosen = extremes(&[curve.clone(), curve], 2000, &[]);
        assert!(chosen.contains(&777_777) && chosen.len() <= 2002);
    }
}
