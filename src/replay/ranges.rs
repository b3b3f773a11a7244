//! Which addresses the allocator holds from the driver, at one moment.

use std::cell::Cell;
use std::collections::BTreeMap;

/// Who made a range, which decides how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One `cudaMalloc`: a block never reaches into the segment behind it.
    Segment,
    /// Mapped into an expandable segment: neighbours are one range, and any part of it may be unmapped.
    Mapped,
}

/// Ranges of addresses that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By start: the end, which is behind the last byte, and the kind.
    map: BTreeMap<u64, (u64, Kind)>,
    /// The range that was found last, as long as nothing has changed.
    found: Cell<Option<(u64, u64, Kind)>>,
}

impl Ranges {
    /// Adds a range, and returns how many bytes of it were there already.
    pub(super) fn add(&mut self, start: u64, size: u64, kind: Kind) -> u64 {
        let end = start.saturating_add(size);
        let there = self.remove(start, size);
        let twice = size.saturating_sub(there);
        let (mut first, mut last) = (start, end);
        if kind == Kind::Mapped {
            if let Some((before, (until, Kind::Mapped))) = self.below(start)
                && until == start
            {
                self.map.remove(&before);
                first = before;
            }
            if let Some((behind, Kind::Mapped)) = self.map.get(&end).copied() {
                self.map.remove(&end);
                last = behind;
            }
        }
        if first < last {
            self.map.insert(first, (last, kind));
        }
        twice
    }

    /// Takes a range away, and returns how many bytes of it were not there.
    pub(super) fn remove(&mut self, start: u64, size: u64) -> u64 {
        self.found.set(None);
        let end = start.saturating_add(size);
        let mut missing = size;
        while let Some((from, (until, kind))) =
            self.map.range(..end).next_back().map(|(from, to)| (*from, *to))
        {
            if until <= start {
                break;
            }
            self.map.remove(&from);
            if from < start {
                self.map.insert(from, (start, kind));
            }
            if until > end {
                self.map.insert(end, (until, kind));
            }
            missing = missing.saturating_sub(until.min(end).saturating_sub(from.max(start)));
        }
        missing
    }

    fn below(&self, addr: u64) -> Option<(u64, (u64, Kind))> {
        self.map.range(..addr).next_back().map(|(start, range)| (*start, *range))
    }

    /// Start, end and kind of the range that holds an address.
    pub(super) fn find(&self, addr: u64) -> Option<(u64, u64, Kind)> {
        if let Some(found) = self.found.get().filter(|(start, end, _)| (*start..*end).contains(&addr)) {
            return Some(found);
        }
        let (start, (end, kind)) = self.map.range(..=addr).next_back()?;
        let found = (addr < *end).then_some((*start, *end, *kind))?;
        self.found.set(Some(found));
        Some(found)
    }

    /// Bytes of all ranges.
    pub(super) fn total(&self) -> i128 {
        self.map.iter().map(|(start, (end, _))| i128::from(end - start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_neighbours_are_one_range_and_segments_stay_apart() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(100, 10, Kind::Mapped), 0);
        assert_eq!(ranges.add(120, 10, Kind::Mapped), 0);
        assert_eq!(ranges.add(110, 10, Kind::Mapped), 0);
        assert_eq!(ranges.find(129), Some((100, 130, Kind::Mapped)));
        assert_eq!(ranges.find(130), None);
        assert_eq!(ranges.add(130, 10, Kind::Segment), 0);
        assert_eq!(ranges.find(130), Some((130, 140, Kind::Segment)));
        assert_eq!(ranges.total(), 40);
    }

    #[test]
    fn the_middle_of_a_range_can_be_taken_away_and_put_back() {
        let mut ranges = Ranges::default();
        ranges.add(0, 100, Kind::Mapped);
        assert_eq!(ranges.remove(40, 20), 0);
        assert_eq!(ranges.find(39), Some((0, 40, Kind::Mapped)));
        assert_eq!(ranges.find(40), None);
        assert_eq!(ranges.find(60), Some((60, 100, Kind::Mapped)));
        assert_eq!(ranges.add(40, 20, Kind::Mapped), 0);
        assert_eq!(ranges.find(50), Some((0, 100, Kind::Mapped)));
    }

    #[test]
    fn bytes_that_are_there_twice_or_not_at_all_are_told() {
        let mut ranges = Ranges::default();
        ranges.add(0, 10, Kind::Segment);
        ranges.add(20, 10, Kind::Segment);
        assert_eq!(ranges.add(5, 20, Kind::Segment), 10);
        assert_eq!(ranges.total(), 30);
        assert_eq!(ranges.remove(25, 20), 15);
        assert_eq!(ranges.remove(1000, 7), 7);
        assert_eq!(ranges.total(), 25);
    }
}
