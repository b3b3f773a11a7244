//! Lists of frames by their raw bytes, and a guess which comes next.
//!
//! Half of a snapshot is lists of references to frames. The same references are the same frames, so a list seen before needs
//! no look at its items; and a training step runs like the one before, so the list that followed the last two most likely
//! follows again.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Bytes of lists that are kept before all are forgotten.
const ARENA_BYTES: usize = 1 << 26;
/// Pairs of lists whose successor is remembered.
const GUESSES: usize = 1 << 15;
const NOTHING: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Known {
    start: usize,
    length: usize,
    /// The first eight bytes: most wrong guesses are found out without touching the arena.
    head: [u8; 8],
    stack: u32,
}

/// The lists seen so far.
#[derive(Debug)]
pub(super) struct ListCache {
    hasher: RandomState,
    numbers: HashTable<(u64, u32)>,
    known: Vec<Known>,
    arena: Vec<u8>,
    guesses: Vec<u32>,
    /// The last two lists.
    last: (u32, u32),
}

fn index(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

fn head(bytes: &[u8]) -> [u8; 8] {
    bytes.first_chunk().copied().unwrap_or_default()
}

impl Default for ListCache {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            numbers: HashTable::new(),
            known: Vec::new(),
            arena: Vec::new(),
            guesses: vec![NOTHING; GUESSES],
            last: (NOTHING, NOTHING),
        }
    }
}

impl ListCache {
    /// Forgets everything: what references mean has changed, or there is too much.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.known.clear();
        self.arena.clear();
        self.guesses.fill(NOTHING);
        self.last = (NOTHING, NOTHING);
    }

    fn slot(&self) -> usize {
        let (before, last) = self.last;
        let mixed = (u64::from(before) << 32 | u64::from(last)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> 49).unwrap_or(0) % GUESSES
    }

    fn bytes(&self, known: &Known) -> &[u8] {
        self.arena.get(known.start..known.start + known.length).unwrap_or_default()
    }

    /// Stack and length of the list that `window` begins with, if it is the one that is guessed.
    #[inline]
    pub(super) fn guess(&mut self, window: &[u8]) -> Option<(u32, usize)> {
        let id = *self.guesses.get(self.slot())?;
        let known = self.known.get(index(id))?;
        if known.head != head(window) || !window.starts_with(self.bytes(known)) {
            return None;
        }
        let found = (known.stack, known.length);
        self.last = (self.last.1, id);
        Some(found)
    }

    /// The stack of a list, its end included, if it was seen before.
    pub(super) fn find(&mut self, list: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(list);
        let same = |entry: &(u64, u32)| {
            entry.0 == hash && self.known.get(index(entry.1)).is_some_and(|known| self.bytes(known) == list)
        };
        let id = self.numbers.find(hash, same)?.1;
        self.follow(id);
        self.known.get(index(id)).map(|known| known.stack)
    }

    /// Remembers the stack of a list, its end included.
    pub(super) fn remember(&mut self, list: &[u8], stack: u32) {
        if self.arena.len() + list.len() > ARENA_BYTES {
            self.clear();
        }
        let Ok(id) = u32::try_from(self.known.len()) else { return };
        let hash = self.hasher.hash_one(list);
        let start = self.arena.len();
        self.arena.extend_from_slice(list);
        self.known.push(Known { start, length: list.len(), head: head(list), stack });
        self.numbers.insert_unique(hash, (hash, id), |entry| entry.0);
        self.follow(id);
    }

    /// Notes that this list followed the last two.
    fn follow(&mut self, id: u32) {
        let slot = self.slot();
        if let Some(guess) = self.guesses.get_mut(slot) {
            *guess = id;
        }
        self.last = (self.last.1, id);
    }
}
