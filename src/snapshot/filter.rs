//! Which rows an import keeps. What is left out is counted, and the events that are kept keep their numbers.

use std::str::FromStr;

use crate::schema::TraceEvent;

/// A range of event numbers: the first one, and the one behind the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRange {
    first: i64,
    end: i64,
}

impl Default for EventRange {
    fn default() -> Self {
        Self { first: 0, end: i64::MAX }
    }
}

impl EventRange {
    /// Number of the first event.
    #[must_use]
    pub fn first(self) -> i64 {
        self.first
    }

    /// Number behind that of the last event.
    #[must_use]
    pub fn end(self) -> i64 {
        self.end
    }

    /// Whether an event with this number is in it.
    #[must_use]
    pub fn contains(self, trace_index: i64) -> bool {
        (self.first..self.end).contains(&trace_index)
    }
}

impl FromStr for EventRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "a range is `A..B`, `A..` or `..B`: event numbers from A up to, but not with, B";
        let (first, end) = text.split_once("..").ok_or(FORM)?;
        let number = |digits: &str, absent: i64| match digits.trim() {
            "" => Ok(absent),
            digits => digits.parse().ok().filter(|number| *number >= 0).ok_or(FORM),
        };
        let range = Self { first: number(first, 0)?, end: number(end, i64::MAX)? };
        if range.first > range.end { Err("the range ends before it begins") } else { Ok(range) }
    }
}

/// Which rows an import keeps. The default keeps all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Devices whose segments, blocks and events are kept; all where it is empty.
    pub devices: Vec<i64>,
    /// Events of each device that are kept, by number.
    pub events: EventRange,
    /// Events of fewer bytes are left out; those without a size are kept.
    pub min_size: Option<i64>,
}

impl Filter {
    /// Whether it keeps everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether rows of a device are kept.
    #[must_use]
    pub fn keeps_device(&self, device: i64) -> bool {
        self.devices.is_empty() || self.devices.contains(&device)
    }

    /// Whether the events that are kept are the last ones without a gap, so that they can be counted from the end.
    pub(super) fn keeps_the_end(&self) -> bool {
        self.events.end == i64::MAX && self.min_size.is_none()
    }

    /// Whether an event of a kept device is kept.
    #[inline]
    pub(super) fn keeps_event(&self, trace_index: i64, size: Option<i64>) -> bool {
        self.events.contains(trace_index)
            && self.min_size.is_none_or(|least| size.is_none_or(|size| size >= least))
    }

    /// Whether the row of an event of a kept device is kept.
    #[inline]
    pub(super) fn keeps(&self, row: &TraceEvent) -> bool {
        self.keeps_event(row.trace_index, row.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_open_where_a_number_is_missing() {
        let range: EventRange = "3..5".parse().unwrap();
        assert_eq!([2, 3, 4, 5].map(|index| range.contains(index)), [false, true, true, false]);
        assert_eq!("..".parse(), Ok(EventRange::default()));
        assert!("7..".parse::<EventRange>().unwrap().contains(1 << 60));
        assert!(!"..7".parse::<EventRange>().unwrap().contains(7));
        assert!("7..7".parse::<EventRange>().is_ok());
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "5", "a..b", "5..3", "-1..3", "1...3"] {
            assert!(text.parse::<EventRange>().is_err(), "{text}");
        }
    }
}
