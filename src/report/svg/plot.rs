//! The frame that curves and bubbles stand in: axes with round numbers, and pixels for values.

use super::paper::{Anchor, Paper, WIDTH, width};
use crate::analysis::Text;
use crate::quantity;
use crate::report::axis::ByteAxis;

const LEFT: i32 = 84;
const RIGHT: i32 = WIDTH - 24;
pub(super) const TOP: i32 = 34;
const BELOW: i32 = 26;
/// Ticks along the bottom.
const TICKS: i64 = 6;

/// A frame with bytes up and something along the bottom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    first: i64,
    last: i64,
    axis: ByteAxis,
    bottom: i32,
}

impl Plot {
    /// A frame on a sheet of that height for `first` to `last` along the bottom.
    pub(super) fn new(height: i32, first: i64, last: i64, axis: ByteAxis) -> Self {
        Self { first, last: last.max(first.saturating_add(1)), axis, bottom: height - BELOW }
    }

    pub(super) fn x(&self, value: i64) -> i32 {
        scale(value.saturating_sub(self.first), self.last.saturating_sub(self.first), LEFT, RIGHT)
    }

    pub(super) fn y(&self, bytes: i64) -> i32 {
        scale(bytes, self.axis.max, self.bottom, TOP)
    }

    pub(super) fn bottom(&self) -> i32 {
        self.bottom
    }

    /// Lines and labels for bytes.
    pub(super) fn bytes(&self, paper: &Paper<'_>) {
        for tick in self.axis.ticks() {
            let y = self.y(tick);
            paper.line(vec![(LEFT, y), (RIGHT, y)], "line", 1);
            paper.text(&quantity::tick(tick), (LEFT - 8, y), Anchor::End, "muted");
        }
    }

    /// Lines and labels for bytes that grow by a factor from line to line, up to `most`.
    pub(super) fn powers(&self, paper: &Paper<'_>, least: i64, most: i64) {
        for tick in powers(least, most) {
            let y = self.power(tick, least, most);
            paper.line(vec![(LEFT, y), (RIGHT, y)], "line", 1);
            paper.text(&quantity::tick(tick), (LEFT - 8, y), Anchor::End, "muted");
        }
    }

    /// Height of bytes where each doubling takes the same room.
    pub(super) fn power(&self, bytes: i64, least: i64, most: i64) -> i32 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "pixels of a picture"
        )]
        let milli = |bytes: i64| ((bytes.max(1) as f64).log2() * 1000.0) as i64;
        let (low, high) = (milli(least), milli(most));
        scale(milli(bytes) - low, high - low, self.bottom, TOP)
    }

    /// Labels along the bottom, as `label` writes them.
    pub(super) fn along(&self, paper: &Paper<'_>, label: impl Fn(i64) -> String) {
        paper.line(vec![(LEFT, self.bottom), (RIGHT, self.bottom)], "faint", 1);
        let length = self.last.saturating_sub(self.first);
        let step = round_step(length / TICKS);
        let mut at = self.first.checked_add(step - 1).map_or(self.first, |next| next / step * step);
        while at <= self.last {
            let text = label(at);
            // The first label begins behind the axis's name, the last one ends with the sheet.
            let half = width(&text) / 2;
            let x = self.x(at).max(LEFT - 4 + half).min(WIDTH - half - 2);
            paper.text(&text, (x, self.bottom + 14), Anchor::Middle, "muted");
            at = at.saturating_add(step);
        }
    }

    /// A name before the labels along the bottom.
    pub(super) fn named(&self, paper: &Paper<'_>, words: &Text) {
        paper.words(words, (LEFT - 8, self.bottom + 14), Anchor::End, "muted");
    }

    /// A curve of steps that ends at `last`, with few corners: in every three columns of pixels its lowest, highest and last
    /// level.
    pub(super) fn steps(&self, points: &[(i64, i64)], last: i64) -> Vec<(i32, i32)> {
        const COLUMN: i32 = 3;
        let mut path: Vec<(i32, i32)> = Vec::new();
        let mut column: Option<(i32, i32, i32, i32)> = None;
        let mut close = |column: Option<(i32, i32, i32, i32)>| {
            let Some((x, low, high, last)) = column else { return };
            if let Some((_, before)) = path.last().copied()
                && before != last
            {
                path.push((x, before));
            }
            if low != high {
                path.extend([(x, low), (x, high)]);
            }
            path.push((x, last));
        };
        for (at, bytes) in points {
            let (x, y) = (self.x(*at) / COLUMN * COLUMN, self.y(*bytes));
            column = match column {
                Some((place, low, high, _)) if place == x => Some((x, low.max(y), high.min(y), y)),
                other => {
                    close(other);
                    Some((x, y, y, y))
                }
            };
        }
        close(column);
        if let Some((_, y)) = path.last().copied() {
            path.push((self.x(last).min(RIGHT), y));
        }
        path.dedup();
        path
    }

    /// The ground below a curve.
    pub(super) fn closed(&self, mut path: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
        if let (Some(first), Some(last)) = (path.first().copied(), path.last().copied()) {
            path.extend([(last.0, self.bottom), (first.0, self.bottom)]);
        }
        path
    }
}

/// Powers of two from one to another, few enough to be read.
fn powers(least: i64, most: i64) -> impl Iterator<Item = i64> {
    let doublings = i64::from((most / least.max(1)).max(1).ilog2());
    let factor = 1_i64 << ((doublings / (TICKS + 1)) + 1).min(62);
    std::iter::successors(Some(least), move |tick| tick.checked_mul(factor))
        .take_while(move |tick| *tick <= most)
}

/// The pixel between two for the part of a whole.
pub(super) fn scale(part: i64, whole: i64, from: i32, to: i32) -> i32 {
    let along = i128::from(to - from) * i128::from(part) / i128::from(whole.max(1));
    from.saturating_add(i32::try_from(along).unwrap_or(0))
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        for step in [1, 2, 5] {
            match power.checked_mul(step) {
                Some(step) if step >= least => return step,
                Some(_) => {}
                None => return least.max(1),
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_the_highest_and_the_lowest_of_a_column() {
        let plot = Plot::new(230, 0, 81_200, ByteAxis { max: 166, step: 83 });
        // A hundred events to a pixel: a peak between two equal levels must not vanish.
        let path = plot.steps(&[(0, 10), (10, 166), (20, 0), (30, 10), (1000, 20)], 81_200);
        let ys: Vec<i32> = path.iter().map(|(_, y)| *y).collect();
        assert!(ys.contains(&plot.y(166)) && ys.contains(&plot.y(0)), "{path:?}");
        assert_eq!(path.last().unwrap().1, plot.y(20));
    }

    #[test]
    fn steps_along_the_bottom_are_round() {
        assert_eq!([0, 1, 3, 7, 16_666].map(round_step), [1, 1, 5, 10, 20_000]);
    }
}
