//! Byte strings by content: each is stored once and known by its number.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Numbers byte strings in order of first appearance. The hash is seeded, so no input can aim for collisions.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    hasher: RandomState,
    table: HashTable<(u64, u32)>,
    bytes: Vec<u8>,
    /// End of each string in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Interner {
    /// The bytes behind a number.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&[u8]> {
        span(&self.bytes, &self.ends, id)
    }

    /// The number of a string that may be known.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.find_hashed(hash, text)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, text: &[u8]) -> Option<u32> {
        let same =
            |entry: &(u64, u32)| entry.0 == hash && span(&self.bytes, &self.ends, entry.1) == Some(text);
        self.table.find(hash, same).map(|entry| entry.1)
    }

    /// The number of a string, new or known; `None` when there are no numbers left.
    pub(crate) fn intern(&mut self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        if let Some(id) = self.find_hashed(hash, text) {
            return Some(id);
        }
        let id = u32::try_from(self.ends.len()).ok()?;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.table.insert_unique(hash, (hash, id), |entry| entry.0);
        Some(id)
    }
}

#[inline]
fn span<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> Option<&'a [u8]> {
    let index = usize::try_from(id).ok()?;
    let end = *ends.get(index)?;
    let start = match index.checked_sub(1) {
        Some(before) => *ends.get(before)?,
        None => 0,
    };
    bytes.get(start..end)
}
