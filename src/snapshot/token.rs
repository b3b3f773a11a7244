//! What trace entries are made of, read from the raw bytes: references, numbers, strings and pairs.
//!
//! Every function returns a value and what is behind it, or nothing where the bytes are not what it expects. What it stored in
//! the memo by then is the caller's to take back.

use crate::pickle::{Entry, State};

/// Opcodes an entry is made of.
pub(super) mod op {
    pub(in crate::snapshot) const MARK: u8 = b'(';
    pub(in crate::snapshot) const SETITEMS: u8 = b'u';
    pub(in crate::snapshot) const EMPTY_LIST: u8 = b']';
    pub(in crate::snapshot) const APPEND: u8 = b'a';
    pub(in crate::snapshot) const APPENDS: u8 = b'e';
    pub(in crate::snapshot) const BINGET: u8 = b'h';
    pub(in crate::snapshot) const LONG_BINGET: u8 = b'j';
    pub(in crate::snapshot) const BINPUT: u8 = b'q';
    pub(in crate::snapshot) const LONG_BINPUT: u8 = b'r';
    pub(in crate::snapshot) const MEMOIZE: u8 = 0x94;
    pub(in crate::snapshot) const BININT: u8 = b'J';
    pub(in crate::snapshot) const BININT1: u8 = b'K';
    pub(in crate::snapshot) const BININT2: u8 = b'M';
    pub(in crate::snapshot) const LONG1: u8 = 0x8a;
    pub(in crate::snapshot) const TUPLE2: u8 = 0x86;
    pub(in crate::snapshot) const BINUNICODE: u8 = b'X';
    pub(in crate::snapshot) const SHORT_BINUNICODE: u8 = 0x8c;
}

/// Memo entries beyond which the opcode loop decides.
const MEMO_LIMIT: usize = 1 << 31;

/// A value and what is behind it.
pub(super) type Parsed<'w, T> = Option<(T, &'w [u8])>;

/// A reference into the memo.
#[inline]
pub(super) fn reference<'w>(state: &State, window: &'w [u8]) -> Parsed<'w, Entry> {
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
pub(super) fn store<'w>(state: &mut State, window: &'w [u8], entry: Entry) -> Option<&'w [u8]> {
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
pub(super) fn integer(window: &[u8]) -> Parsed<'_, i64> {
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
pub(super) fn size(window: &[u8]) -> Parsed<'_, i64> {
    integer(window).filter(|(size, _)| *size >= 0)
}

/// A string: a reference, or in full.
#[inline]
pub(super) fn text<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, u32> {
    if let [op::BINGET | op::LONG_BINGET, ..] = window {
        let (entry, rest) = reference(state, window)?;
        return Some((entry.as_text()?, rest));
    }
    text_in_full(state, window)
}

#[inline]
fn text_in_full<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, u32> {
    let (bytes, rest) = bytes_in_full(window)?;
    let id = state.intern_valid(bytes)?;
    Some((id, store(state, rest, Entry::text(id))?))
}

#[inline]
pub(super) fn bytes_in_full(window: &[u8]) -> Parsed<'_, &[u8]> {
    let (length, rest) = match window {
        [op::SHORT_BINUNICODE, length, rest @ ..] => (usize::from(*length), rest),
        [op::BINUNICODE, a, b, c, d, rest @ ..] => {
            (usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// A pair of integers, as pool ids are.
#[inline]
pub(super) fn pair<'w>(state: &mut State, window: &'w [u8]) -> Parsed<'w, (i64, i64)> {
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

/// A string as it was read before: the same bytes are the same string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The next eight bytes are `word` where `mask` is set.
    word: u64,
    mask: u64,
    length: usize,
    id: u32,
}

impl Seen {
    /// The string that the first bytes of `window` are, if they are no more than eight.
    #[inline]
    pub(super) fn new(window: &[u8], length: usize, id: u32) -> Option<Self> {
        let unused = 8_usize.checked_sub(length).and_then(|unused| u32::try_from(unused).ok())?;
        let mask = u64::MAX.checked_shr(8 * unused)?;
        Some(Self { word: word(window)? & mask, mask, length, id })
    }
}

/// The next eight bytes.
#[inline]
fn word(window: &[u8]) -> Option<u64> {
    window.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The string that stands next and what is behind it, if it is the one that was seen.
#[inline]
pub(super) fn again(seen: Option<Seen>, window: &[u8]) -> Parsed<'_, u32> {
    let Seen { word: known, mask, length, id } = seen?;
    if word(window)? & mask != known {
        return None;
    }
    Some((id, window.get(length..)?))
}
