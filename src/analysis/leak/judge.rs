//! Which growth is a leak. Counts and sizes come from SQL, the numbers they are held against from the thresholds.

use super::StackGrowth;
use crate::analysis::Thresholds;

/// What is said of a stack, and of a device: the worst of its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Nothing keeps growing.
    None,
    /// Something keeps growing, but the history is short or the growth not regular.
    Suspected,
    /// Something grows with nearly every step, over many steps, until the end.
    Likely,
}

impl Verdict {
    /// The name that JSON uses.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Suspected => "suspected",
            Self::Likely => "likely",
        }
    }
}

/// A stack that keeps growing.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) growth: StackGrowth,
    pub(super) verdict: Verdict,
    /// Requested bytes; `None` where no steps are known.
    pub(super) growth_per_step: Option<f64>,
    /// 0 to 1: how regular the growth is, and how much of all suspects' growth it makes up.
    pub(super) score: f64,
}

/// The stacks that keep growing, best first.
///
/// `allocated` are the bytes asked for over the intervals by all stacks.
pub(super) fn suspects(stacks: &[StackGrowth], allocated: i64, thresholds: &Thresholds) -> Vec<Suspect> {
    let growing: Vec<(&StackGrowth, f64)> =
        stacks.iter().filter_map(|row| Some((row, regularity(row, thresholds)?))).collect();
    let total: f64 = growing.iter().map(|(row, _)| real(row.growth_size)).sum();
    // A pass that is not over, or that nobody wants to go back through, keeps most of what it makes, everywhere at once.
    let is_apart = total <= thresholds.leak_retained * real(allocated);
    let mut suspects: Vec<Suspect> = growing
        .into_iter()
        .map(|(row, regularity)| Suspect {
            verdict: if is_apart { verdict(row, thresholds) } else { Verdict::Suspected },
            growth_per_step: (row.step_span > 0).then(|| real(row.growth_size) / real(row.step_span)),
            score: regularity * f64::midpoint(1.0, real(row.growth_size) / total),
            growth: row.clone(),
        })
        .collect();
    suspects.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score);
        b.verdict.cmp(&a.verdict).then(by_score).then(a.growth.stack_id.cmp(&b.growth.stack_id))
    });
    suspects
}

/// How regularly a stack grew, where it kept growing at all: shares of the intervals in which it did, less those in which it
/// shrank.
fn regularity(row: &StackGrowth, thresholds: &Thresholds) -> Option<f64> {
    if row.growth_size <= 0 || real(row.interval_count) < thresholds.leak_intervals {
        return None;
    }
    let grew = real(row.grew_count) / real(row.interval_count);
    let shrank = real(row.shrank_count) / real(row.interval_count);
    // Even growth has half of it in the second half; a cache that fills up has little or nothing there.
    let late = real(row.late_growth_size) / real(row.growth_size);
    let keeps_growing =
        grew >= thresholds.leak_grew && shrank <= thresholds.leak_shrank && late >= thresholds.leak_late;
    keeps_growing.then_some(grew * (1.0 - shrank))
}

fn verdict(row: &StackGrowth, thresholds: &Thresholds) -> Verdict {
    let grew = real(row.grew_count) / real(row.interval_count);
    // Stretches of time have no steps between them.
    let enough = real(row.step_span) >= thresholds.leak_steps;
    if enough && grew >= thresholds.leak_likely { Verdict::Likely } else { Verdict::Suspected }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "shares and means need no more than 53 bits"
)]
fn real(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack that grew by 10 bytes in each of `grew` of 20 intervals.
    fn row(stack: i64, grew: i64, late: i64) -> StackGrowth {
        StackGrowth {
            device_index: 0,
            stack_id: Some(stack),
            origin: Some("inferred".to_owned()),
            event_count: 21_000,
            step_count: 21,
            step_span: 20,
            interval_count: 20,
            grew_count: grew,
            shrank_count: 0,
            growth_size: grew * 10,
            late_growth_size: late * 10,
            growth_count: grew,
            live_size: 500,
            live_count: 9,
            early_size: 0,
            early_count: 0,
            first_index: None,
            last_index: None,
        }
    }

    fn verdicts(rows: &[StackGrowth]) -> Vec<(i64, Verdict)> {
        let suspects = suspects(rows, 1_000_000, &Thresholds::default());
        suspects.iter().map(|s| (s.growth.stack_id.unwrap(), s.verdict)).collect()
    }

    #[test]
    fn growth_with_every_step_is_a_likely_leak_and_its_rate_is_per_step() {
        let found = suspects(&[row(1, 20, 10)], 1000, &Thresholds::default());
        assert_eq!(found[0].verdict, Verdict::Likely);
        assert_eq!((found[0].growth_per_step, found[0].score), (Some(10.0), 1.0));
    }

    #[test]
    fn what_stops_growing_is_no_leak() {
        // Weights of the first step; a cache that was full after half the steps; one that filled ever more slowly.
        assert_eq!(verdicts(&[row(1, 1, 0), row(2, 10, 0), row(3, 14, 3)]), []);
    }

    #[test]
    fn a_window_that_slides_is_no_leak() {
        let mut sliding = row(1, 12, 6);
        sliding.shrank_count = 8;
        assert_eq!(verdicts(&[sliding]), []);
    }

    #[test]
    fn irregular_growth_and_short_histories_are_suspected_at_most() {
        let mut short = row(2, 6, 3);
        (short.interval_count, short.step_span) = (6, 6);
        let mut too_short = row(3, 3, 2);
        (too_short.interval_count, too_short.step_span) = (3, 3);
        let mut time = row(4, 15, 8);
        (time.origin, time.interval_count, time.step_span) = (Some("time".to_owned()), 15, 0);
        let found = verdicts(&[row(1, 14, 7), short, too_short, time]);
        let suspected: Vec<i64> = found.iter().map(|(stack, _)| *stack).collect();
        assert!(found.iter().all(|(_, verdict)| *verdict == Verdict::Suspected), "{found:?}");
        assert_eq!(suspected.len(), 3, "{found:?}");
        assert!(!suspected.contains(&3));
    }

    #[test]
    fn where_most_of_what_is_allocated_stays_it_may_be_a_pass_that_is_not_over() {
        let found = suspects(&[row(1, 20, 10), row(2, 20, 10)], 1000, &Thresholds::default());
        assert!(found.iter().all(|suspect| suspect.verdict == Verdict::Suspected));
    }

    #[test]
    fn of_equally_regular_stacks_the_one_that_grows_most_comes_first() {
        let mut large = row(2, 20, 10);
        (large.growth_size, large.late_growth_size) = (20_000, 10_000);
        let mut small = row(1, 20, 10);
        (small.growth_size, small.late_growth_size) = (20, 10);
        let found = verdicts(&[small, large, row(3, 14, 7)]);
        assert_eq!(found, [(2, Verdict::Likely), (1, Verdict::Likely), (3, Verdict::Suspected)]);
    }
}
