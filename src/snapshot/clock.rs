//! The times of a device's events, packed, so that annotations find the event they belong to.
//!
//! Annotations stand behind the events in the file. Ten million times as integers would be 80 MB; as differences of
//! mostly one byte they are a few per cent of the input.

/// Events between two index entries.
const BLOCK: usize = 256;

/// Index entry: the first event of a block.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Time before the first event of the block.
    before: i64,
    /// Where its differences begin.
    at: usize,
    /// Earliest time in the block; [`Clock::seal`] makes it the earliest from this block on.
    earliest: i64,
}

/// Times of a list of events.
#[derive(Debug, Default)]
pub(super) struct Clock {
    index: Vec<Entry>,
    packed: Vec<u8>,
    /// Events before the first that has a time: nothing is packed for them, since most lists have no times at all.
    untimed: usize,
    count: usize,
    last: i64,
    sealed: bool,
    backward_steps: u64,
    known: u64,
}

/// Difference byte of an event without a time; no difference begins with it, since encodings are shortest.
const NO_TIME: [u8; 2] = [0x80, 0x00];

fn pack(packed: &mut Vec<u8>, difference: i64) {
    let mut rest = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            packed.push(low & 0x7f);
            return;
        }
        packed.push(low | 0x80);
    }
}

/// One difference and what is behind it.
fn unpack(packed: &[u8]) -> (Option<i64>, &[u8]) {
    if let Some(rest) = packed.strip_prefix(&NO_TIME) {
        return (None, rest);
    }
    let mut value = 0_u64;
    let mut shift = 0_u32;
    let mut rest = packed;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed()), rest)
}

impl Clock {
    /// Adds the time of the next event.
    #[inline]
    pub(super) fn push(&mut self, time: Option<i64>) {
        if time.is_none() && self.known == 0 {
            self.untimed += 1;
            return;
        }
        if self.count.is_multiple_of(BLOCK) {
            self.index.push(Entry { before: self.last, at: self.packed.len(), earliest: i64::MAX });
        }
        self.count += 1;
        let Some(time) = time else {
            self.packed.extend_from_slice(&NO_TIME);
            return;
        };
        if self.known > 0 && time < self.last {
            self.backward_steps += 1;
        }
        self.known += 1;
        pack(&mut self.packed, time.wrapping_sub(self.last));
        self.last = time;
        if let Some(entry) = self.index.last_mut() {
            entry.earliest = entry.earliest.min(time);
        }
    }

    /// How often an event is earlier than the one before.
    pub(super) fn backward_steps(&self) -> u64 {
        self.backward_steps
    }

    /// Events that have a time.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// Makes the index searchable; after it nothing is pushed.
    fn seal(&mut self) {
        let mut earliest = i64::MAX;
        for entry in self.index.iter_mut().rev() {
            earliest = earliest.min(entry.earliest);
            entry.earliest = earliest;
        }
        self.sealed = true;
    }

    /// The last event at or before `time`, whether or not the times rise.
    pub(super) fn last_at(&mut self, time: i64) -> Option<i64> {
        if !self.sealed {
            self.seal();
        }
        let behind = self.index.partition_point(|entry| entry.earliest <= time);
        let block = behind.checked_sub(1)?;
        let entry = self.index.get(block)?;
        let mut rest = self.packed.get(entry.at..)?;
        let mut now = entry.before;
        let mut found = None;
        let first = block.checked_mul(BLOCK)?;
        for event in first..self.count.min(first + BLOCK) {
            let (difference, behind) = unpack(rest);
            rest = behind;
            if let Some(difference) = difference {
                now = now.wrapping_add(difference);
                if now <= time {
                    found = Some(event);
                }
            }
        }
        found.and_then(|event| i64::try_from(event.checked_add(self.untimed)?).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by linear search.
    fn expected(times: &[Option<i64>], at: i64) -> Option<i64> {
        times.iter().rposition(|time| time.is_some_and(|time| time <= at)).map(|i| i64::try_from(i).unwrap())
    }

    fn check(times: &[Option<i64>], probes: &[i64]) {
        let mut clock = Clock::default();
        for time in times {
            clock.push(*time);
        }
        for probe in probes {
            assert_eq!(clock.last_at(*probe), expected(times, *probe), "at {probe}");
        }
    }

    #[test]
    fn finds_the_last_event_at_or_before_a_time() {
        let rising: Vec<Option<i64>> = (0..2000).map(|i| Some(1_713_558_427_168_556 + i / 3 * 7)).collect();
        let probes: Vec<i64> = (-3..1600).map(|i| 1_713_558_427_168_556 + i * 3).collect();
        check(&rising, &probes);
    }

    #[test]
    fn times_that_jump_back_and_events_without_time_are_searched_too() {
        let times: Vec<Option<i64>> =
            (0..3000_i64).map(|i| (i % 5 != 0).then_some((i * 7919) % 1000 + i / 4)).collect();
        let probes: Vec<i64> = (-1..1900).collect();
        check(&times, &probes);
    }

    #[test]
    fn events_before_the_first_time_count_as_events() {
        let times: Vec<Option<i64>> = (0..900_i64).map(|i| (i >= 300).then_some(i)).collect();
        check(&times, &[0, 299, 300, 301, 899, 5000]);
        check(&[None, Some(5), None, Some(7)], &[4, 5, 6, 7]);
    }

    #[test]
    fn extreme_times_survive_packing() {
        let times = [Some(i64::MIN), Some(i64::MAX), Some(0), Some(-1), None, Some(i64::MIN)];
        check(&times, &[i64::MIN, -1, 0, 1, i64::MAX]);
    }

    #[test]
    fn no_events_give_no_answer() {
        check(&[], &[0]);
    }
}
