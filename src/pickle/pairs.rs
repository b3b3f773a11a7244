//! Pairs of integers, such as the id of a memory pool: each distinct one gets a number.

use hashbrown::HashTable;

/// Pairs of integers that get a number of their own; more distinct ones become nodes.
const PAIR_LIMIT: usize = 1 << 20;

/// Pairs by their number, and numbers by their pair.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    list: Vec<(i64, i64)>,
    numbers: HashTable<u32>,
    last: Option<((i64, i64), u32)>,
}

fn hash_pair(pair: (i64, i64)) -> u64 {
    let mixed = pair.0.cast_unsigned().rotate_left(32) ^ pair.1.cast_unsigned();
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Pairs {
    /// The pair behind a number.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<(i64, i64)> {
        usize::try_from(id).ok().and_then(|id| self.list.get(id)).copied()
    }

    /// The number of a pair; `None` when there are too many distinct ones.
    #[inline]
    pub(super) fn number(&mut self, pair: (i64, i64)) -> Option<u32> {
        // Most pairs are the default pool's.
        match self.last {
            Some((last, id)) if last == pair => Some(id),
            _ => {
                let id = self.find(pair)?;
                self.last = Some((pair, id));
                Some(id)
            }
        }
    }

    fn find(&mut self, pair: (i64, i64)) -> Option<u32> {
        let hash = hash_pair(pair);
        let pairs = &self.list;
        let known = |id: u32| usize::try_from(id).ok().and_then(|id| pairs.get(id)).copied();
        if let Some(id) = self.numbers.find(hash, |id| known(*id) == Some(pair)) {
            return Some(*id);
        }
        if self.list.len() >= PAIR_LIMIT {
            return None;
        }
        let id = u32::try_from(self.list.len()).ok()?;
        self.list.push(pair);
        let pairs = &self.list;
        let rehash =
            |id: &u32| usize::try_from(*id).ok().and_then(|id| pairs.get(id)).copied().map_or(0, hash_pair);
        self.numbers.insert_unique(hash, id, rehash);
        Some(id)
    }
}
