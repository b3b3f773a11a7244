//! Lists of frames by their raw bytes, and a guess which comes next.
//!
//! Half of a snapshot is lists of references to frames. The same references are the same frames, so a list seen before needs
//! no look at its items. And a training step runs like the one before: whoever has found the place in an earlier step where
//! the last lists stand, reads the next ones off it and only has to compare.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Bytes of lists that are kept before all are forgotten.
const ARENA_BYTES: usize = 1 << 26;
/// Lists of the past that are remembered in their order.
const HISTORY: usize = 1 << 20;
/// Places in the past that are found by the three lists before them.
const PLACES: usize = 1 << 17;
/// Bits of a list's number in the context.
const CONTEXT_BITS: u32 = 21;

#[derive(Debug, Clone, Copy)]
struct Known {
    /// The first eight bytes: most wrong guesses are found out by them.
    head: [u8; 8],
    start: u32,
    length: u32,
    stack: u32,
    /// The place behind its last appearance.
    after: u32,
}

/// The lists seen so far.
#[derive(Debug)]
pub(super) struct ListCache {
    hasher: RandomState,
    numbers: HashTable<(u64, u32)>,
    known: Vec<Known>,
    arena: Vec<u8>,
    /// Numbers of the lists in order, the oldest overwritten.
    history: Vec<u32>,
    /// How many lists there were.
    count: u32,
    /// Place by context.
    places: Vec<u32>,
    /// Numbers of the last three lists.
    context: u64,
    /// The place whose list is guessed, and that list.
    place: u32,
    guess: Option<(u32, Known)>,
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
            history: Vec::with_capacity(HISTORY),
            count: 0,
            places: vec![0; PLACES],
            context: 0,
            place: 0,
            guess: None,
        }
    }
}

impl ListCache {
    /// Forgets everything: what references mean has changed, or there is too much.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.known.clear();
        self.arena.clear();
        self.history.clear();
        self.places.fill(0);
        self.count = 0;
        self.guess = None;
    }

    fn bytes(&self, known: &Known) -> &[u8] {
        let start = index(known.start);
        self.arena.get(start..start + index(known.length)).unwrap_or_default()
    }

    /// Stack and length of the list that `window` begins with, if it is the one that is guessed.
    #[inline]
    pub(super) fn guess(&mut self, window: &[u8]) -> Option<(u32, usize)> {
        let (id, known) = self.guess?;
        if known.head != head(window) || !window.starts_with(self.bytes(&known)) {
            return None;
        }
        self.follow(id, Some(self.place + 1));
        Some((known.stack, index(known.length)))
    }

    /// The stack of a list, its end included, if it was seen before.
    pub(super) fn find(&mut self, list: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(list);
        let same = |entry: &(u64, u32)| {
            entry.0 == hash && self.known.get(index(entry.1)).is_some_and(|known| self.bytes(known) == list)
        };
        let id = self.numbers.find(hash, same)?.1;
        self.follow(id, None);
        self.known.get(index(id)).map(|known| known.stack)
    }

    /// Remembers the stack of a list, its end included.
    pub(super) fn remember(&mut self, list: &[u8], stack: u32) {
        if self.arena.len() + list.len() > ARENA_BYTES || self.count == u32::MAX {
            self.clear();
        }
        let (Ok(id), Ok(start), Ok(length)) =
            (u32::try_from(self.known.len()), u32::try_from(self.arena.len()), u32::try_from(list.len()))
        else {
            return;
        };
        let hash = self.hasher.hash_one(list);
        self.arena.extend_from_slice(list);
        self.known.push(Known { head: head(list), start, length, stack, after: 0 });
        self.numbers.insert_unique(hash, (hash, id), |entry| entry.0);
        self.follow(id, None);
    }

    /// Appends a list to the past and guesses the next: the one behind `place`, or behind the same three lists, or behind the
    /// last appearance of the last one. Where a list came as it was guessed, the tables of places are left alone: an older
    /// place is as good, and what is written to them is in no near cache.
    #[inline]
    fn follow(&mut self, id: u32, place: Option<u32>) {
        let slot = index(self.count) % HISTORY;
        match self.history.get_mut(slot) {
            Some(entry) => *entry = id,
            None => self.history.push(id),
        }
        self.count = self.count.saturating_add(1);
        self.context = self.context << CONTEXT_BITS | u64::from(id & ((1 << CONTEXT_BITS) - 1));
        self.place = place.unwrap_or_else(|| self.note_place(id));
        let next = if self.place < self.count { self.history.get(index(self.place) % HISTORY) } else { None };
        self.guess = next.and_then(|next| self.known.get(index(*next)).map(|known| (*next, *known)));
    }

    /// Notes the place behind the last three lists, and returns the one that was known before.
    fn note_place(&mut self, id: u32) -> u32 {
        let mixed = (self.context & ((1 << (3 * CONTEXT_BITS)) - 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let by_context =
            usize::try_from(mixed >> 40).ok().and_then(|mixed| self.places.get_mut(mixed % PLACES));
        let by_context = by_context.map_or(0, |known| std::mem::replace(known, self.count));
        let by_list =
            self.known.get_mut(index(id)).map_or(0, |known| std::mem::replace(&mut known.after, self.count));
        if by_context == 0 { by_list } else { by_context }
    }
}
