//! Where large allocations begin, in the order of addresses.
//!
//! Each question is about the neighbours of an address, and what follows is nearly always a change at the same place. So a
//! place is looked up once and then used for all of it, which a `BTreeMap` does not offer.

/// Allocations in a leaf, before it is cut in two.
const MOST: usize = 64;

/// A sorted list, in leaves that are short enough to insert into.
#[derive(Debug)]
pub(super) struct Line {
    /// Address and value. No leaf is empty, except the only one.
    leaves: Vec<Vec<(u64, i64)>>,
    /// No address in a leaf is below its start, and none in the leaf before is not. The first one is 0.
    starts: Vec<u64>,
}

/// A place in the line: that of an address, or where it would be. Any change at another place makes it void.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    addr: u64,
    leaf: usize,
    index: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { leaves: vec![Vec::new()], starts: vec![0] }
    }
}

impl Line {
    /// The place of an address.
    pub(super) fn spot(&self, addr: u64) -> Spot {
        let leaf = self.starts.partition_point(|start| *start <= addr).saturating_sub(1);
        let index =
            self.leaves.get(leaf).map_or(0, |entries| entries.partition_point(|(known, _)| *known < addr));
        Spot { addr, leaf, index }
    }

    /// What is at the place or, if nothing is, the next behind it.
    pub(super) fn at_or_behind(&self, spot: Spot) -> Option<(u64, i64)> {
        let entry = self.leaves.get(spot.leaf)?.get(spot.index);
        entry.or_else(|| self.leaves.get(spot.leaf + 1)?.first()).copied()
    }

    /// The next before the place.
    pub(super) fn before(&self, spot: Spot) -> Option<(u64, i64)> {
        let entry = match spot.index.checked_sub(1) {
            Some(index) => self.leaves.get(spot.leaf)?.get(index),
            None => self.leaves.get(spot.leaf.checked_sub(1)?)?.last(),
        };
        entry.copied()
    }

    /// Puts a value at the place, over the one that is there.
    pub(super) fn put(&mut self, spot: Spot, value: i64) {
        let Some(entries) = self.leaves.get_mut(spot.leaf) else { return };
        match entries.get_mut(spot.index) {
            Some(entry) if entry.0 == spot.addr => entry.1 = value,
            _ => entries.insert(spot.index.min(entries.len()), (spot.addr, value)),
        }
        if entries.len() > MOST {
            let upper = entries.split_off(MOST / 2);
            if let Some((start, _)) = upper.first() {
                self.starts.insert(spot.leaf + 1, *start);
                self.leaves.insert(spot.leaf + 1, upper);
            }
        }
    }

    /// Takes away what is at the place, and returns where it was.
    pub(super) fn take(&mut self, spot: Spot) -> Spot {
        let Some(entries) = self.leaves.get_mut(spot.leaf) else { return spot };
        if entries.get(spot.index).is_none_or(|entry| entry.0 != spot.addr) {
            return spot;
        }
        entries.remove(spot.index);
        if !entries.is_empty() || self.leaves.len() == 1 {
            return spot;
        }
        self.leaves.remove(spot.leaf);
        self.starts.remove(spot.leaf);
        if let Some(first) = self.starts.first_mut() {
            *first = 0;
        }
        self.spot(spot.addr)
    }

    /// The value of an address.
    pub(super) fn get(&self, addr: u64) -> Option<i64> {
        let found = self.at_or_behind(self.spot(addr))?;
        (found.0 == addr).then_some(found.1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Numbers that look random and are the same each time.
    fn dice(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn answers_are_those_of_a_sorted_map() {
        for (sides, most) in [(20, 3), (2000, 2), (100_000, 3), (100_000, 5)] {
            let (mut line, mut map, mut state) = (Line::default(), BTreeMap::new(), sides);
            for step in 0..20_000 {
                // It grows for the first half and shrinks in the second, down to nothing and up again.
                let grows = !dice(&mut state).is_multiple_of(most);
                let addr = match map.range(dice(&mut state) % sides..).next() {
                    Some((addr, _)) if grows == (step > 10_000) => *addr,
                    _ => dice(&mut state) % sides,
                };
                let spot = line.spot(addr);
                assert_eq!(line.before(spot), map.range(..addr).next_back().map(|(a, v)| (*a, *v)));
                assert_eq!(line.at_or_behind(spot), map.range(addr..).next().map(|(a, v)| (*a, *v)));
                assert_eq!(line.get(addr), map.get(&addr).copied());
                if grows == (step < 10_000) {
                    line.put(spot, step);
                    map.insert(addr, step);
                } else {
                    let spot = line.take(spot);
                    map.remove(&addr);
                    assert_eq!(line.before(spot), map.range(..addr).next_back().map(|(a, v)| (*a, *v)));
                    assert_eq!(line.at_or_behind(spot), map.range(addr..).next().map(|(a, v)| (*a, *v)));
                }
            }
        }
    }

    #[test]
    fn the_last_address_has_a_place_too() {
        let mut line = Line::default();
        for addr in [0, u64::MAX] {
            line.put(line.spot(addr), 1);
        }
        assert_eq!(line.at_or_behind(line.spot(u64::MAX)), Some((u64::MAX, 1)));
        assert_eq!(line.before(line.spot(u64::MAX)), Some((0, 1)));
        assert_eq!(line.before(line.spot(0)), None);
    }
}
