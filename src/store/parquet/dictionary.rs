//! The values of a column chunk, each once: rows hold its place in the order of first appearance.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

/// Integers that are recognised without a look into the table of all: a power of two.
const RECENT: usize = 1024;

/// No place: so many values are in no dictionary.
const NOWHERE: u32 = u32::MAX;

/// The different values of a column chunk. Hashes are seeded by chance, so that no file can be made of values that collide.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// The values as the page of the dictionary has them.
    page: Vec<u8>,
    len: u32,
    integers: HashTable<(i64, u32)>,
    /// Integers seen lately, where their hash says.
    recent: Vec<(i64, u32)>,
    /// Where the texts begin in the page, and their places.
    texts: HashTable<(usize, u32)>,
    hasher: RandomState,
}

impl Dictionary {
    /// Values in it.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// The values as their page has them, before compression.
    pub(super) fn page(&self) -> &[u8] {
        &self.page
    }

    /// Appends the places of `values`. New ones are added.
    pub(super) fn integers(&mut self, values: &[i64], places: &mut Vec<u32>) {
        self.recent.resize(RECENT, (0, NOWHERE));
        places.extend(values.iter().map(|value| self.integer(*value)));
    }

    #[inline]
    fn integer(&mut self, value: i64) -> u32 {
        let hash = self.hasher.hash_one(value);
        let spot = usize::try_from(hash).unwrap_or_default() % RECENT;
        if let Some((seen, place)) = self.recent.get(spot)
            && *seen == value
            && *place != NOWHERE
        {
            return *place;
        }
        let place = self.look_up(value, hash);
        if let Some(recent) = self.recent.get_mut(spot) {
            *recent = (value, place);
        }
        place
    }

    fn look_up(&mut self, value: i64, hash: u64) -> u32 {
        let hasher = &self.hasher;
        match self.integers.entry(hash, |known| known.0 == value, |known| hasher.hash_one(known.0)) {
            Entry::Occupied(known) => known.get().1,
            Entry::Vacant(free) => {
                let place = self.len;
                free.insert((value, place));
                self.len += 1;
                self.page.extend_from_slice(&value.to_le_bytes());
                place
            }
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
                let place = self.len;
                free.insert((self.page.len(), place));
                self.len += 1;
                self.page.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                self.page.extend_from_slice(text.as_bytes());
                place
            }
        }
    }
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
        // More values than are remembered, so that each way to find one is taken.
        let values: Vec<i64> = (0..5000).map(|n| (n * 7919) % 3001 - 1500).collect();
        let (mut dictionary, mut places) = (Dictionary::default(), Vec::new());
        dictionary.integers(&values, &mut places);
        assert_eq!(dictionary.len(), 3001);
        let value = |place: u32| {
            let at = usize::try_from(place).unwrap() * 8;
            i64::from_le_bytes(dictionary.page()[at..at + 8].try_into().unwrap())
        };
        assert_eq!(places.iter().map(|place| value(*place)).collect::<Vec<_>>(), values);
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
        assert_eq!(dictionary.page(), b"\x05\0\0\0alloc\0\0\0\0");
        // So many that the table has grown.
        let places: Vec<u32> = (0..2000).map(|n| dictionary.text(&(n % 1000).to_string())).collect();
        assert_eq!(places, (2..1002).chain(2..1002).collect::<Vec<_>>());
    }
}
