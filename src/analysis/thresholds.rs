//! Every number that turns a measure into a judgement, in one place; each can be overridden by name.

use serde_json::{Map, Value, json};

use super::outcome::Severity;
use crate::engine::Value as Argument;
use crate::error::{Error, Result};

/// Declares the thresholds: field, public name, default, and what it means.
macro_rules! thresholds {
    ($($(#[doc = $doc:literal])+ $field:ident $name:literal = $default:literal;)+) => {
        /// The numbers in use.
        #[derive(Debug, Clone)]
        pub struct Thresholds { $($(#[doc = $doc])+ pub $field: f64),+ }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }

        impl Thresholds {
            /// Name, value in use, default and meaning of each.
            #[must_use]
            pub fn list(&self) -> Vec<(&'static str, f64, f64, String)> {
                vec![$(($name, self.$field, $default, concat!($($doc),+).trim().to_owned())),+]
            }

            fn field(&mut self, name: &str) -> Option<&mut f64> {
                match name { $($name => Some(&mut self.$field),)+ _ => None }
            }
        }
    };
}

thresholds! {
    /// Share of reserved bytes that is free inside segments still in use: from here on a warning.
    fragment_warning "fragment.warning" = 0.05;
    /// Share of reserved bytes that is free inside segments still in use: from here on critical.
    fragment_critical "fragment.critical" = 0.15;
    /// Segments of one device: from here on a warning.
    segments_warning "segments.warning" = 100.0;
    /// Segments of one device: from here on critical.
    segments_critical "segments.critical" = 200.0;
    /// Share of a segment's bytes that is allocated: below it, the report draws the segment in red.
    segment_low_use "segments.low_use" = 0.5;
    /// Share of the unallocated bytes that wait for a pending free: above it asynchronous release is the cause.
    pending_warning "pending.warning" = 0.5;
    /// Share of the peak of allocated that no call stack accounts for: from here on it is said.
    peak_no_stack "peak.no_stack" = 0.1;
    /// Intervals between steps, or stretches of the history, that there must be before anything is said to keep growing. With
    /// fewer than five steps 16 stretches are compared, so there are never fewer than 4: a lower number changes nothing.
    leak_intervals "leak.intervals" = 4.0;
    /// Share of the intervals in which a call stack must hold more at the end: from here on it is suspected.
    leak_grew "leak.grew" = 0.6;
    /// Share of the intervals in which it may hold less: beyond it is no leak.
    leak_shrank "leak.shrank" = 0.1;
    /// Share of the growth that must fall into the second half of the intervals: below, growth is coming to an end.
    leak_late "leak.late" = 0.25;
    /// Share of the intervals in which a call stack must hold more at the end: from here on a leak is likely.
    leak_likely "leak.likely" = 0.8;
    /// Steps that must lie between the first comparison and the last before a leak is likely.
    leak_steps "leak.steps" = 10.0;
    /// Share of all bytes allocated that all growing call stacks may keep: beyond it, no leak is likely, since a pass that is
    /// not over when the recording ends keeps its results too.
    leak_retained "leak.retained" = 0.25;
    /// Share of the history: what was allocated within it or before, and is alive at the end, is called long-lived
    /// (`early_share` of `stack_growth`).
    leak_early "leak.early" = 0.2;
    /// Share of the free bytes in blocks too small for a median request: from here on a warning.
    unfit_warning "unfit.warning" = 0.5;
    /// Share of the active bytes that rounding adds: from here on a warning.
    waste_warning "waste.warning" = 0.1;
    /// Share of the reserved bytes added while enough was free in smaller blocks: from here on a warning.
    expansion_warning "expansion.warning" = 0.1;
    /// Share of reserved and driver-free bytes that is allocated when a request fails: from here on the device is full.
    oom_full "oom.full" = 0.9;
    /// Events before a failed request that count as lately (`recent` of `oom_growth`), a whole number.
    oom_recent "oom.recent" = 1000.0;
    /// Growth of a device's allocated bytes, at the end or at the peak, against the other snapshot: from here on a warning.
    compare_warning "compare.warning" = 0.05;
    /// Growth of a device's allocated bytes, at the end or at the peak, against the other snapshot: from here on critical.
    compare_critical "compare.critical" = 0.2;
}

impl Thresholds {
    /// Sets one from `NAME=VALUE`.
    ///
    /// # Errors
    /// No such name, or not a number.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        let usage = |reason: &str| Error::Usage {
            what: format!("--threshold `{assignment}`"),
            reason: reason.to_owned(),
        };
        let (name, value) = assignment.split_once('=').ok_or_else(|| usage("expected NAME=VALUE"))?;
        let value: f64 = value.trim().parse().map_err(|_| usage("the value is not a number"))?;
        if !value.is_finite() {
            return Err(usage("the value is not a finite number"));
        }
        let name = name.trim();
        if let Some(field) = self.field(name) {
            *field = value;
            return Ok(());
        }
        let nearest = self
            .list()
            .into_iter()
            .map(|(known, ..)| (strsim::normalized_damerau_levenshtein(known, name), known))
            .filter(|(likeness, _)| *likeness > 0.4)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned());
        Err(Error::Unknown { kind: "threshold", name: name.to_owned(), nearest })
    }

    /// What the relations of the analyses are called with: the parameters that were given, and those that stand for a
    /// threshold, where they were not. Measures depend on these, so they are judged where they are measured.
    #[must_use]
    pub fn arguments(&self, given: &[(String, Argument)]) -> Vec<(String, Argument)> {
        let own = [
            ("early_share", Argument::Real(self.leak_early)),
            ("recent", Argument::Integer(whole(self.oom_recent))),
        ];
        let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
        let own = own.into_iter().filter(|(name, _)| !is_given(name));
        given.iter().cloned().chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
    }

    /// All of them by name, as every JSON carries them.
    #[must_use]
    pub fn json(&self) -> Value {
        let map: Map<String, Value> =
            self.list().into_iter().map(|(name, value, ..)| (name.to_owned(), json!(value))).collect();
        Value::Object(map)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::as_conversions,
    reason = "a float becomes the nearest integer there is"
)]
fn whole(value: f64) -> i64 {
    value.round().max(1.0) as i64
}

/// Where a measure stands between two thresholds; `None` below both, or where there is no measure.
#[must_use]
pub fn judge(value: Option<f64>, warning: f64, critical: f64) -> Option<Severity> {
    let value = value?;
    if value >= critical {
        Some(Severity::Critical)
    } else if value >= warning {
        Some(Severity::Warning)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_reached_at_its_value() {
        assert_eq!(judge(Some(0.05), 0.05, 0.15), Some(Severity::Warning));
        assert_eq!(judge(Some(0.15), 0.05, 0.15), Some(Severity::Critical));
        assert_eq!(judge(Some(0.049_999), 0.05, 0.15), None);
        assert_eq!(judge(None, 0.05, 0.15), None);
    }

    #[test]
    fn a_threshold_is_the_value_of_a_parameter_that_was_not_given() {
        let mut thresholds = Thresholds::default();
        thresholds.set("oom.recent=7").unwrap();
        let given =
            [("early_share".to_owned(), Argument::Real(0.5)), ("limit".to_owned(), Argument::Integer(3))];
        let all = thresholds.arguments(&given);
        assert_eq!(all[..2], given);
        assert_eq!(all[2..], [("recent".to_owned(), Argument::Integer(7))]);
    }

    #[test]
    fn a_threshold_can_be_set_by_name() {
        let mut thresholds = Thresholds::default();
        thresholds.set("fragment.critical=0.2").unwrap();
        assert!((thresholds.fragment_critical - 0.2).abs() < f64::EPSILON);
        let error = thresholds.set("fragment.critcal=0.2").unwrap_err();
        assert_eq!(error.hint().unwrap(), "did you mean `fragment.critical`?");
        assert!(thresholds.set("fragment.critical=much").is_err());
        assert!(thresholds.set("fragment.critical=nan").is_err());
    }
}
