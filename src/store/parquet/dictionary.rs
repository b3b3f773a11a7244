//! The values of a column chunk, each once: rows hold its place in the order of first appearance.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

/// Places that there is room for at first: a power of two.
const FIRST_SLOTS: usize = 1024;

/// Numbers below this are looked up in a table of their own, without a hash: those of call stacks, of which no program has more.
const DIRECT: usize = 1 << 17;

/// No place: so many values are in no dictionary.
const NOWHERE: u32 = u32::MAX;

/// The different values of a column chunk. Hashes are seeded by chance, so that no file can be made of values that collide.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    integers: Vec<i64>,
    /// Places of integers where their hash says, or behind it where others are already; at most a quarter is taken. A place alone
    /// is a quarter of what a table of values would have in the cache.
    slots: Vec<u32>,
    /// Places of small numbers, by the number, as far as they have been asked for.
    direct: Vec<u32>,
    /// Texts as the page of the dictionary has them.
    page: Vec<u8>,
    text_count: u32,
    /// Where the texts begin in the page, and their places.
    texts: HashTable<(usize, u32)>,
    hasher: RandomState,
}

impl Dictionary {
    /// Values in it.
    pub(super) fn len(&self) -> u32 {
        self.text_count.saturating_add(u32::try_from(self.integers.len()).unwrap_or(NOWHERE))
    }

    /// Bytes of the values in their page.
    pub(super) fn bytes(&self) -> usize {
        self.page.len() + self.integers.len() * size_of::<i64>()
    }

    /// The values as their page has them, before compression.
    pub(super) fn into_page(mut self) -> Vec<u8> {
        self.page.extend(self.integers.iter().flat_map(|value| value.to_le_bytes()));
        self.page
    }

    /// Appends the places of `values`. New ones are added.
    pub(super) fn integers(&mut self, values: &[i64], places: &mut Vec<u32>) {
        let bits = values.iter().fold(0, |bits, value| bits | value);
        match usize::try_from(bits) {
            Ok(bits) if bits < DIRECT => self.numbers(values, bits, places),
            _ => places.extend(values.iter().map(|value| self.integer(*value))),
        }
    }

    /// Appends the places of numbers that have no other bits than these.
    fn numbers(&mut self, values: &[i64], bits: usize, places: &mut Vec<u32>) {
        let count = (bits + 1).next_power_of_two();
        if self.direct.len() < count {
            self.direct.resize(count, NOWHERE);
        }
        places.extend(values.iter().map(|value| {
            let at = usize::try_from(*value).unwrap_or(usize::MAX);
            match self.direct.get(at) {
                Some(place) if *place != NOWHERE => *place,
                _ => self.number(*value, at),
            }
        }));
    }

    #[cold]
    fn number(&mut self, value: i64, at: usize) -> u32 {
        let place = self.integer(value);
        if let Some(direct) = self.direct.get_mut(at) {
            *direct = place;
        }
        place
    }

    /// The slot to look for a value in first.
    #[inline]
    fn slot(&self, value: i64) -> usize {
        usize::try_from(self.hasher.hash_one(value)).unwrap_or_default() & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn integer(&mut self, value: i64) -> u32 {
        let mut slot = self.slot(value);
        loop {
            let Some(place) = self.slots.get(slot).copied() else {
                if self.slots.is_empty() {
                    break self.add(value);
                }
                slot = 0;
                continue;
            };
            match index(place).and_then(|at| self.integers.get(at)) {
                Some(known) if *known == value => break place,
                Some(_) => slot += 1,
                None => break self.add(value),
            }
        }
    }

    #[cold]
    fn add(&mut self, value: i64) -> u32 {
        let place = u32::try_from(self.integers.len()).unwrap_or(NOWHERE);
        self.integers.push(value);
        if self.integers.len() * 4 > self.slots.len() {
            let count = (self.slots.len() * 2).max(FIRST_SLOTS);
            self.slots.clear();
            self.slots.resize(count, NOWHERE);
            for place in 0..place {
                self.settle(place);
            }
        }
        self.settle(place);
        place
    }

    /// Puts a place where its value is looked for.
    fn settle(&mut self, place: u32) {
        let Some(value) = index(place).and_then(|at| self.integers.get(at)) else { return };
        let slot = self.slot(*value);
        let (before, behind) = self.slots.split_at_mut(slot);
        if let Some(free) = behind.iter_mut().chain(before).find(|slot| **slot == NOWHERE) {
            *free = place;
        }
    }

    /// The place of a text, which is added if it is new.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        let Self { page, hasher, .. } = self;
        let hash = hasher.hash_one(text.as_bytes());
        let is_it = |known: &(usize, u32)| text_at(page, known.0) == text.as_bytes();
        let hash_of = |known: &(usize, u32)| hasher.hash_one(text_at(page, known.0));
        match self.texts.entry(hash, is_it, hash_of) {
            Entry::Occupied(known) => known.get().1,
            Entry::Vacant(free) => {
                let place = self.text_count;
                free.insert((self.page.len(), place));
                self.text_count += 1;
                self.page.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                self.page.extend_from_slice(text.as_bytes());
                place
            }
        }
    }
}

fn index(place: u32) -> Option<usize> {
    usize::try_from(place).ok()
}

/// The text that begins, with its length, at `start` of a page.
fn text_at(page: &[u8], start: usize) -> &[u8] {
    let Some((length, rest)) = page.get(start..).and_then(<[u8]>::split_first_chunk) else { return &[] };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or_default();
    rest.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_place_however_often_it_comes() {
        // So many that the table has grown more than once.
        let values: Vec<i64> = (0..9000).map(|n| (n * 7919) % 3001 - 1500).collect();
        let (mut dictionary, mut places) = (Dictionary::default(), Vec::new());
        dictionary.integers(&values, &mut places);
        assert_eq!((dictionary.len(), dictionary.bytes()), (3001, 3001 * 8));
        let page = dictionary.into_page();
        let value = |place: u32| {
            let at = usize::try_from(place).unwrap() * 8;
            i64::from_le_bytes(page[at..at + 8].try_into().unwrap())
        };
        assert_eq!(places.iter().map(|place| value(*place)).collect::<Vec<_>>(), values);
    }

    #[test]
    fn small_numbers_and_others_have_places_in_one_order() {
        let (mut dictionary, mut places) = (Dictionary::default(), Vec::new());
        let largest = i64::try_from(DIRECT).unwrap() - 1;
        dictionary.integers(&[7, 3, 7], &mut places);
        dictionary.integers(&[3, -1, largest + 1, 9], &mut places);
        dictionary.integers(&[9, largest, 0, 3], &mut places);
        dictionary.integers(&[largest, -1], &mut places);
        assert_eq!(places, [0, 1, 0, 1, 2, 3, 4, 4, 5, 6, 1, 5, 2]);
    }

    #[test]
    fn zero_is_a_value_like_others() {
        let (mut dictionary, mut places) = (Dictionary::default(), Vec::new());
        dictionary.integers(&[5, 0, 0, 5], &mut places);
        assert_eq!(places, [0, 1, 1, 0]);
    }

    #[test]
    fn texts_stand_with_their_length_before_them() {
        let mut dictionary = Dictionary::default();
        assert_eq!(["alloc", "", "alloc", ""].map(|text| dictionary.text(text)), [0, 1, 0, 1]);
        assert_eq!(dictionary.page, b"\x05\0\0\0alloc\0\0\0\0");
        // So many that the table has grown.
        let places: Vec<u32> = (0..2000).map(|n| dictionary.text(&(n % 1000).to_string())).collect();
        assert_eq!(places, (2..1002).chain(2..1002).collect::<Vec<_>>());
    }
}
