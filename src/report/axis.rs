//! Axes of bytes with round numbers in binary units, the same for the browser and for paper.

/// An axis from 0 to a round number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteAxis {
    /// End of the axis in bytes.
    pub(super) max: i64,
    /// Bytes between two ticks.
    pub(super) step: i64,
}

/// Ticks that an axis has at most.
const TICKS: i64 = 6;

impl ByteAxis {
    /// The axis for values up to `most`.
    pub(super) fn up_to(most: i64) -> Self {
        let most = most.max(1);
        let mut unit = 1_i64;
        while unit.checked_mul(1024).is_some_and(|next| next <= most) {
            unit *= 1024;
        }
        // Within a unit people count in tens, from 512 on in halves of the next.
        let steps = [1, 2, 5, 10, 20, 50, 100, 128, 256, 512];
        let step = steps
            .into_iter()
            .filter_map(|step| unit.checked_mul(step))
            .find(|step| parts(most, *step) <= TICKS)
            .unwrap_or(most);
        // Below two units the steps are too coarse.
        let step = if unit >= 1024 && most < 3 * unit { finer(unit, most).unwrap_or(step) } else { step };
        Self { max: parts(most, step).saturating_mul(step), step }
    }

    /// The ticks, 0 first.
    pub(super) fn ticks(self) -> impl Iterator<Item = i64> {
        (0..=self.max.checked_div(self.step).unwrap_or(0)).map(move |tick| tick.saturating_mul(self.step))
    }
}

/// Room before the first and behind the last event of an axis, a part of its length: a point at either end is not cut in
/// half, and one alone is in the middle.
pub(super) fn margin(first: i64, last: i64, parts: i64) -> i64 {
    if first < last { last.saturating_sub(first).checked_div(parts).unwrap_or(0) } else { 1 }
}

/// Steps that `most` needs; both are above 0.
fn parts(most: i64, step: i64) -> i64 {
    (most - 1) / step + 1
}

/// A step in quarters or halves of a unit.
fn finer(unit: i64, most: i64) -> Option<i64> {
    [unit / 4, unit / 2].into_iter().find(|step| parts(most, *step) <= TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_in_binary_units() {
        const MIB: i64 = 1 << 20;
        const GIB: i64 = 1 << 30;
        for (most, max, step) in [
            (0, 1, 1),
            (1000, 1024, 256),
            (MIB, MIB, MIB / 4),
            (MIB + 1, 5 * MIB / 4, MIB / 4),
            (5 * MIB + 1, 6 * MIB, MIB),
            (42 * GIB, 50 * GIB, 10 * GIB),
            (GIB + GIB / 3, 3 * GIB / 2, GIB / 4),
            (2 * GIB + GIB / 2, 5 * GIB / 2, GIB / 2),
            (700 * GIB, 768 * GIB, 128 * GIB),
        ] {
            let axis = ByteAxis::up_to(most);
            assert_eq!((axis.max, axis.step), (max, step), "{most}");
            assert!(axis.max >= most);
        }
        assert!(ByteAxis::up_to(i64::MAX).max > 0);
    }
}
