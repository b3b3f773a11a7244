//! The fast way through trace entries: reads a whole entry from the raw bytes, or changes nothing and leaves it to the
//! opcode loop.
//!
//! It knows what the picklers write and nothing else. Whatever it does not expect (a FRAME, a new frame, an unknown key, an
//! odd value) makes it step back; so it can be wrong about speed, but not about meaning.

use super::event::{Event, has};
use super::field::Frames;
use super::list_cache::ListCache;
use super::stacks::Stacks;
use super::{FRAME, FRAME_STACK, words};
use crate::pickle::{Entry, State};

/// Opcodes an entry is made of.
mod op {
    pub(super) const MARK: u8 = b'(';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const APPEND: u8 = b'a';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
    pub(super) const BINPUT: u8 = b'q';
    pub(super) const LONG_BINPUT: u8 = b'r';
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const TUPLE2: u8 = 0x86;
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
}

/// Memo entries beyond which the opcode loop decides.
const MEMO_LIMIT: usize = 1 << 31;

/// A key as the entry before had it at the same place: the same bytes are the same key.
#[derive(Debug, Clone, Copy)]
struct Expected {
    /// The next eight bytes are `word` where `mask` is set.
    word: u64,
    mask: u64,
    length: usize,
    key: u32,
}

/// Keys an entry has at most.
const MOST_KEYS: usize = 16;

/// Reads entries, and remembers the lists of frames in them.
#[derive(Debug, Default)]
pub(super) struct EntryParser {
    keys: [Option<Expected>; MOST_KEYS],
    lists: ListCache,
    /// What the memo's count of overwritten entries was when keys and lists were remembered.
    overwritten: u64,
    frames: Vec<u32>,
    /// The entry that was read last.
    pub(super) event: Event,
}

/// A value and what is behind it.
type Parsed<'w, T> = Option<(T, &'w [u8])>;

/// A reference into the memo.
#[inline]
fn reference<'w>(state: &State, window: &'w [u8]) -> Parsed<'w, Entry> {
    let (index, rest) = match window {
        [op::BINGET, index, rest @ ..] => (usize::from(*index), rest),
        [op::LONG_BINGET, a, b, c, d, rest @ ..] => {
            (usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?, rest)
        }
        _ => return None,
    };
    Some((state.memo().entry(index)?, rest))
}

/// Stores what was just read, if the pickle does so here. Only the next free index will do: then stepping back is cutting
/// the memo off.
#[inline]
fn store<'w>(state: &mut State, window: &'w [u8], entry: Entry) -> Option<&'w [u8]> {
    let next = state.memo().len();
    let rest = match window {
        [op::MEMOIZE, rest @ ..] if next < MEMO_LIMIT => rest,
        [op::BINPUT, index, rest @ ..] if usize::from(*index) == next => rest,
        [op::LONG_BINPUT, a, b, c, d, rest @ ..]
            if usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])) == Ok(next) =>
        {
            rest
        }
        [op::MEMOIZE | op::BINPUT | op::LONG_BINPUT, ..] => return None,
        _ => return Some(window),
    };
    state.memo_mut().push(entry);
    Some(rest)
}

#[inline]
fn integer(window: &[u8]) -> Parsed<'_, i64> {
    match window {
        [op::BININT1, a, rest @ ..] => Some((i64::from(*a), rest)),
        [op::BININT2, a, b, rest @ ..] => Some((i64::from(u16::from_le_bytes([*a, *b])), rest)),
        [op::BININT, a, b, c, d, rest @ ..] => Some((i64::from(i32::from_le_bytes([*a, *b, *c, *d])), rest)),
        [op::LONG1, length @ 1..=8, rest @ ..] => {
            // Shifted up and down again: so the sign is that of the last digit, and what is behind the number is gone.
            let digits = u64::from_le_bytes(*rest.first_chunk()?);
            let shift = 64 - 8 * u32::from(*length);
            Some(((digits << shift).cast_signed() >> shift, rest.get(usize::from(*length)..)?))
        }
        _ => None,
    }
}

#[inline]
fn size(window: &[u8]) -> Parsed<'_, i64> {
    integer(window).filter(|(size, _)| *size >= 0)
}

/// A string: a reference, or in full.
#[inline]
fn text<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, u32> {
    if let [op::BINGET | op::LONG_BINGET, ..] = window {
        let (entry, rest) = reference(state, window)?;
        return Some((entry.as_text()?, rest));
    }
    text_in_full(state, window)
}

fn text_in_full<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, u32> {
    let (length, rest) = match window {
        [op::SHORT_BINUNICODE, length, rest @ ..] => (usize::from(*length), rest),
        [op::BINUNICODE, a, b, c, d, rest @ ..] => {
            (usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?, rest)
        }
        _ => return None,
    };
    let (bytes, rest) = rest.split_at_checked(length)?;
    let id = state.intern_valid(bytes)?;
    Some((id, store(state, rest, Entry::text(id))?))
}

/// A pair of integers, as pool ids are.
#[inline]
fn pair<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, (i64, i64)> {
    if let [op::BINGET | op::LONG_BINGET, ..] = window {
        let (entry, rest) = reference(state, window)?;
        return Some((state.pair(entry.as_pair()?)?, rest));
    }
    let (first, rest) = integer(window)?;
    let (second, rest) = integer(rest)?;
    let [op::TUPLE2, rest @ ..] = rest else { return None };
    let id = state.pair_number((first, second))?;
    Some(((first, second), store(state, rest, Entry::pair(id))?))
}

impl EntryParser {
    /// Reads the entry whose `EMPTY_DICT` stands just before `window` into `event` and returns what is behind it. `None`
    /// leaves everything else as it was.
    #[inline]
    pub(super) fn parse<'w>(
        &mut self,
        state: &mut State,
        stacks: &mut Stacks,
        window: &'w [u8],
    ) -> Option<&'w [u8]> {
        let before = state.memo().len();
        if !state.memo().is_dense() {
            return None;
        }
        if self.overwritten != state.memo().overwritten() {
            self.overwritten = state.memo().overwritten();
            self.lists.clear();
            self.keys = [None; MOST_KEYS];
        }
        let parsed = self.attempt(state, stacks, window);
        if parsed.is_none() {
            state.memo_mut().truncate(before);
        }
        parsed
    }

    fn attempt<'w>(&mut self, state: &mut State, stacks: &mut Stacks, window: &'w [u8]) -> Option<&'w [u8]> {
        let rest = store(state, window, Entry::TAKEN)?;
        let mut rest = rest.strip_prefix(&[op::MARK])?;
        self.event.clear();
        for place in 0..MOST_KEYS {
            let Some((key, behind)) = self.key(state, place, rest)? else { break };
            rest = behind;
            let bit = match key {
                words::ACTION => {
                    (self.event.action, rest) = text(state, rest)?;
                    has::ACTION
                }
                words::FRAMES => {
                    (self.event.frames, rest) = self.frames(state, stacks, rest)?;
                    has::FRAMES
                }
                words::ADDR => {
                    let (addr, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_addr(addr)
                }
                words::SIZE => {
                    let (bytes, behind) = size(rest)?;
                    rest = behind;
                    self.event.set_size(bytes)
                }
                words::STREAM => {
                    let (stream, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_stream(stream)
                }
                words::TIME_US => {
                    let (time, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_time_us(time)
                }
                words::POOL_ID => {
                    let (pool, behind) = pair(state, rest)?;
                    rest = behind;
                    self.event.set_pool(pool)
                }
                words::COMPILE_CONTEXT => {
                    let (id, behind) = text(state, rest)?;
                    rest = behind;
                    self.event.set_compile_context(id)
                }
                words::USER_METADATA => {
                    let (id, behind) = text(state, rest)?;
                    rest = behind;
                    self.event.set_user_metadata(id)
                }
                words::DEVICE_FREE => {
                    let (bytes, behind) = size(rest)?;
                    rest = behind;
                    self.event.set_device_free(bytes)
                }
                _ => return None,
            };
            if self.event.present & bit != 0 {
                return None;
            }
            self.event.present |= bit;
        }
        let rest = rest.strip_prefix(&[op::SETITEMS])?;
        // At the end of the window nobody knows whether the entry is stored.
        let rest = if rest.is_empty() { return None } else { store(state, rest, Entry::TAKEN)? };
        (self.event.is_known() && self.event.check().is_ok()).then_some(rest)
    }

    /// The key at a place of the entry, `Some(None)` at the end of the entry.
    #[inline]
    fn key<'w>(&mut self, state: &mut State, place: usize, window: &'w [u8]) -> Option<Parsed<'w, u32>> {
        let next = window.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if let (Some(Expected { word, mask, length, key }), Some(next)) = (self.keys.get(place)?, next)
            && next & mask == *word
        {
            return Some(window.get(*length..).map(|rest| (*key, rest)));
        }
        if window.starts_with(&[op::SETITEMS]) {
            return Some(None);
        }
        let (key, rest) = text(state, window)?;
        let length = window.len() - rest.len();
        if let (op::BINGET | op::LONG_BINGET, Some(next)) = (*window.first()?, next) {
            let mask = if length == 2 { 0xffff } else { 0xff_ffff_ffff };
            *self.keys.get_mut(place)? = Some(Expected { word: next & mask, mask, length, key });
        }
        Some(Some((key, rest)))
    }

    /// The list of frames: a reference, empty, of one frame, or of many.
    fn frames<'w>(&mut self, state: &mut State, stacks: &mut Stacks, window: &'w [u8]) -> Parsed<'w, Frames> {
        let [op::EMPTY_LIST, rest @ ..] = window else {
            let (entry, rest) = reference(state, window)?;
            if entry.is_empty_list() {
                return Some((Frames::Empty, rest));
            }
            return Some((Frames::Stack(entry.as_kept(FRAME_STACK)?), rest));
        };
        let index = state.memo().len();
        let rest = store(state, rest, Entry::EMPTY_LIST)?;
        let is_stored = state.memo().len() > index;
        let (stack, rest) = match rest {
            [op::MARK, op::APPENDS, rest @ ..] => (None, rest),
            [op::MARK, list @ ..] => {
                let (stack, length) = self.stack(state, stacks, list)?;
                (Some(stack), list.get(length..)?)
            }
            [op::BINGET, _, op::APPEND, ..] | [op::LONG_BINGET, _, _, _, _, op::APPEND, ..] => {
                let (entry, rest) = reference(state, rest)?;
                let stack = stacks.intern(&[entry.as_kept(FRAME)?])?;
                (Some(stack), rest.get(1..)?)
            }
            _ => (None, rest),
        };
        // A second batch of items follows.
        if let [op::MARK, ..] = rest {
            return None;
        }
        let entry = stack.map_or(Entry::EMPTY_LIST, |stack| Entry::kept(FRAME_STACK, stack));
        let rest = if is_stored {
            state.memo_mut().set(index, entry);
            rest
        } else {
            store(state, rest, entry)?
        };
        Some((stack.map_or(Frames::Empty, Frames::Stack), rest))
    }

    /// Stack and length of a list of references up to its APPENDS.
    #[inline]
    fn stack(&mut self, state: &State, stacks: &mut Stacks, window: &[u8]) -> Option<(u32, usize)> {
        if let Some(found) = self.lists.guess(window) {
            return Some(found);
        }
        let mut length = 0;
        loop {
            match window.get(length..)? {
                [op::BINGET, ..] => length += 2,
                [op::LONG_BINGET, ..] => length += 5,
                [op::APPENDS, ..] => break,
                _ => return None,
            }
        }
        length += 1;
        let list = window.get(..length)?;
        if let Some(stack) = self.lists.find(list) {
            return Some((stack, length));
        }
        let stack = self.resolve(state, stacks, list)?;
        self.lists.remember(list, stack);
        Some((stack, length))
    }

    fn resolve(&mut self, state: &State, stacks: &mut Stacks, list: &[u8]) -> Option<u32> {
        self.frames.clear();
        let mut rest = list;
        while let [op::BINGET | op::LONG_BINGET, ..] = rest {
            let (entry, behind) = reference(state, rest)?;
            self.frames.push(entry.as_kept(FRAME)?);
            rest = behind;
        }
        stacks.intern(&self.frames)
    }
}
