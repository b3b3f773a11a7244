//! Index entries of rows that come in the order of their numbers: rows with the same key, one behind the other.
//!
//! Then nothing is left to sort but the keys, which are few, and a row takes one to three bytes: by how much its number is
//! above that of the row before it with the same key.

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::keys::{Key, MOST_KEYS};
use super::record::put_varint;

/// Most bytes of rows in memory: some forty million rows.
const MOST_BYTES: usize = 64 << 20;

/// Row numbers by key.
#[derive(Debug, Default)]
pub(super) struct Groups {
    places: HashMap<Key, usize, RandomState>,
    list: Vec<Group>,
    /// The key of the row before, which is often that of the next one.
    recent: Option<(Key, usize)>,
    /// Bytes of all rows.
    bytes: usize,
}

/// The rows of a key.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: Key,
    last: i64,
    /// Differences, as varints.
    rows: Vec<u8>,
}

/// There are too many keys, or rows.
#[derive(Debug)]
pub(super) struct TooMany;

impl Groups {
    /// Adds row `id`, which is above those before.
    ///
    /// # Errors
    /// There are too many to hold them in memory.
    pub(super) fn add(&mut self, key: Key, id: i64) -> Result<(), TooMany> {
        let place = match self.recent {
            Some((recent, place)) if recent == key => place,
            _ => self.place(key)?,
        };
        self.recent = Some((key, place));
        if let Some(group) = self.list.get_mut(place) {
            let before = group.rows.len();
            put_varint(&mut group.rows, id.wrapping_sub(group.last).cast_unsigned());
            group.last = id;
            self.bytes += group.rows.len() - before;
        }
        if self.bytes <= MOST_BYTES { Ok(()) } else { Err(TooMany) }
    }

    fn place(&mut self, key: Key) -> Result<usize, TooMany> {
        let next = self.list.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            if next == MOST_KEYS {
                return Err(TooMany);
            }
            self.list.push(Group { key, last: 0, rows: Vec::new() });
        }
        Ok(place)
    }

    /// The groups in the order of their keys.
    pub(super) fn sorted(self, order: impl Fn(&Key, &Key) -> Ordering) -> Vec<Group> {
        let mut groups = self.list;
        groups.sort_unstable_by(|one, other| order(&one.key, &other.key));
        groups
    }
}

impl Group {
    /// The numbers of its rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = i64> {
        let mut bytes = self.rows.iter();
        let mut last = 0_i64;
        std::iter::from_fn(move || {
            let mut difference = 0_u64;
            for place in 0..9 {
                let byte = u64::from(*bytes.next()?);
                if place == 8 {
                    difference = (difference << 8) | byte;
                    break;
                }
                difference = (difference << 7) | (byte & 0x7f);
                if byte & 0x80 == 0 {
                    break;
                }
            }
            last = last.wrapping_add(difference.cast_signed());
            Some(last)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_key_and_in_order() {
        let mut groups = Groups::default();
        let ids = [i64::MIN, -5, 0, 1, 2, 130, 131, 1 << 40, i64::MAX - 1, i64::MAX];
        for (place, id) in (0..).zip(ids) {
            groups.add([Some(2 - place % 2), None], id).unwrap();
        }
        groups.add([None, None], 3).unwrap();
        let found: Vec<(Key, Vec<i64>)> =
            groups.sorted(Key::cmp).iter().map(|group| (group.key, group.rows().collect())).collect();
        let half = |first: usize| ids.iter().skip(first).step_by(2).copied().collect::<Vec<i64>>();
        assert_eq!(found, [([None, None], vec![3]), ([Some(1), None], half(1)), ([Some(2), None], half(0))]);
    }

    #[test]
    fn keys_beyond_what_memory_may_hold_are_refused() {
        let mut groups = Groups::default();
        let most = i64::try_from(MOST_KEYS).unwrap();
        (0..most).try_for_each(|id| groups.add([Some(id), None], id)).unwrap();
        assert!(groups.add([Some(7), None], most).is_ok());
        assert!(groups.add([Some(most), None], most + 1).is_err());
    }

    #[test]
    fn rows_beyond_what_memory_may_hold_are_refused() {
        let mut groups = Groups { bytes: MOST_BYTES - 1, ..Groups::default() };
        assert!(groups.add([None, None], 1).is_ok());
        assert!(groups.add([None, None], 2).is_err());
    }
}
