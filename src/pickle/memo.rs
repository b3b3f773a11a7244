//! The memo: four bytes per entry, because a snapshot of ten million events has thirty million of them.
//!
//! An entry is a tag of 4 bits and an id of 28 bits. While a container is open, its entry says where on the stack it is.

use super::error::PickleErrorKind;
use super::value::{KEPT_KINDS, Value};

const ID_BITS: u32 = 28;
/// Ids from here on do not fit an entry.
pub(crate) const ID_LIMIT: u32 = 1 << ID_BITS;

/// Bytes of a snapshot for each entry at least, nearly always.
const BYTES_PER_ENTRY: u64 = 32;

const VACANT: u32 = 0;
const OPEN: u32 = 1;
const TEXT: u32 = 2;
const PAIR: u32 = 3;
const NODE: u32 = 4;
const EMPTY_LIST: u32 = 5;
const EMPTY_DICT: u32 = 6;
const SCALAR: u32 = 7;
const OPAQUE: u32 = 8;
const TAKEN: u32 = 9;
const KEPT: u32 = 10;

/// A memo entry in its four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(u32);

/// What a memo entry says.
pub(crate) enum Remembered {
    /// Nothing was stored under this index.
    Vacant,
    /// The container at this position of the stack.
    Open(u32),
    /// A finished value.
    Value(Value),
    /// A container whose content was handed on.
    Taken,
}

impl Entry {
    /// A dict or list whose content the sink has taken.
    pub const TAKEN: Self = Self(TAKEN << ID_BITS);
    /// A list without items.
    pub const EMPTY_LIST: Self = Self(EMPTY_LIST << ID_BITS);
    /// A value whose content nothing will ask for.
    pub const OPAQUE: Self = Self(OPAQUE << ID_BITS);

    fn tagged(tag: u32, id: u32) -> Self {
        if id < ID_LIMIT { Self(tag << ID_BITS | id) } else { Self::OPAQUE }
    }

    /// A string.
    #[must_use]
    pub fn text(id: u32) -> Self {
        Self::tagged(TEXT, id)
    }

    /// A pair of integers.
    #[must_use]
    pub fn pair(id: u32) -> Self {
        Self::tagged(PAIR, id)
    }

    /// Something the sink keeps.
    #[must_use]
    pub fn kept(kind: u8, id: u32) -> Self {
        Self::tagged(KEPT + u32::from(kind.min(KEPT_KINDS - 1)), id)
    }

    pub(crate) fn open(position: u32) -> Self {
        Self::tagged(OPEN, position)
    }

    /// The string's number, if the entry is one.
    #[inline]
    #[must_use]
    pub fn as_text(self) -> Option<u32> {
        (self.0 >> ID_BITS == TEXT).then_some(self.0 & (ID_LIMIT - 1))
    }

    /// The pair's number, if the entry is one.
    #[inline]
    #[must_use]
    pub fn as_pair(self) -> Option<u32> {
        (self.0 >> ID_BITS == PAIR).then_some(self.0 & (ID_LIMIT - 1))
    }

    /// The sink's number, if the entry is something of that kind.
    #[inline]
    #[must_use]
    pub fn as_kept(self, kind: u8) -> Option<u32> {
        (self.0 >> ID_BITS == KEPT + u32::from(kind)).then_some(self.0 & (ID_LIMIT - 1))
    }

    /// Whether the entry is a list without items.
    #[inline]
    #[must_use]
    pub fn is_empty_list(self) -> bool {
        self.0 >> ID_BITS == EMPTY_LIST
    }
}

/// All memo entries.
#[derive(Debug, Default)]
pub struct Memo {
    entries: Vec<Entry>,
    /// Entries in use: MEMOIZE stores under this index.
    used: u64,
    /// Values without an id of their own; no pickler stores any.
    scalars: Vec<Value>,
    /// Times an entry in use was stored again.
    overwritten: u64,
}

impl Memo {
    /// Makes room for as many entries as a pickle of so many bytes may have, so that it need not be moved as it grows. What is
    /// not used of it takes no memory, and where there is no room it grows later.
    pub(crate) fn make_room(&mut self, bytes: u64) {
        let entries = usize::try_from(bytes / BYTES_PER_ENTRY).unwrap_or_default();
        let _no_room = self.entries.try_reserve(entries);
    }

    /// Index the next MEMOIZE stores under.
    pub(crate) fn next(&self) -> u64 {
        self.used
    }

    /// Times an entry in use was stored again.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Index behind the last entry.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was stored yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether every index below [`len`](Self::len) is in use, as all picklers leave it.
    #[inline]
    #[must_use]
    pub fn is_dense(&self) -> bool {
        u64::try_from(self.entries.len()) == Ok(self.used)
    }

    /// The entry under an index.
    #[inline]
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Entry> {
        self.entries.get(index).copied()
    }

    /// Stores under the next index of a dense memo.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.used += 1;
    }

    /// Replaces an entry that was pushed.
    #[inline]
    pub fn set(&mut self, index: usize, entry: Entry) {
        if let Some(slot) = self.entries.get_mut(index) {
            *slot = entry;
        }
    }

    /// Takes back what was pushed on a dense memo of this length.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        let dropped = self.entries.len().saturating_sub(length);
        self.used -= u64::try_from(dropped).unwrap_or(0);
        self.entries.truncate(length);
    }

    pub(crate) fn get(&self, index: u64) -> Remembered {
        let entry = usize::try_from(index).ok().and_then(|index| self.entries.get(index)).copied();
        let Some(Entry(bits)) = entry else { return Remembered::Vacant };
        let id = bits & (ID_LIMIT - 1);
        Remembered::Value(match bits >> ID_BITS {
            VACANT => return Remembered::Vacant,
            OPEN => return Remembered::Open(id),
            TAKEN => return Remembered::Taken,
            TEXT => Value::Text(id),
            PAIR => Value::Pair(id),
            NODE => Value::Node(id),
            EMPTY_LIST => Value::EmptyList,
            EMPTY_DICT => Value::EmptyDict { floor: u32::MAX },
            SCALAR => self.scalar(id),
            OPAQUE => Value::Opaque,
            tag => Value::Kept { kind: u8::try_from(tag - KEPT).unwrap_or(0), id },
        })
    }

    fn scalar(&self, id: u32) -> Value {
        usize::try_from(id).ok().and_then(|id| self.scalars.get(id)).copied().unwrap_or(Value::Opaque)
    }

    pub(crate) fn encode(&mut self, value: Value) -> Entry {
        match value {
            Value::Text(id) => Entry::text(id),
            Value::Pair(id) => Entry::pair(id),
            Value::Node(id) | Value::OpenDict(id) | Value::OpenList(id) => Entry::tagged(NODE, id),
            Value::EmptyList => Entry::tagged(EMPTY_LIST, 0),
            Value::EmptyDict { .. } => Entry::tagged(EMPTY_DICT, 0),
            Value::Kept { kind, id } => Entry::kept(kind, id),
            Value::Taken { .. } | Value::TakenList { .. } => Entry::TAKEN,
            Value::Opaque | Value::Mark => Entry::OPAQUE,
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Wide(_) | Value::Float(_) => {
                let id = u32::try_from(self.scalars.len()).unwrap_or(u32::MAX);
                self.scalars.push(value);
                Entry::tagged(SCALAR, id)
            }
        }
    }

    /// Stores an entry. An index beyond `bound` is refused: every stored object takes up more than a byte of input, so
    /// no honest index is larger than the offset it stands at.
    pub(crate) fn put(&mut self, index: u64, bound: u64, entry: Entry) -> Result<(), PickleErrorKind> {
        if index > bound || index >= u64::from(u32::MAX - 1) {
            return Err(PickleErrorKind::LimitExceeded { of: "memo entries by this offset", limit: bound });
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= self.entries.len() {
            self.entries.resize(index + 1, Entry(VACANT));
        }
        if let Some(slot) = self.entries.get_mut(index) {
            if *slot == Entry(VACANT) {
                self.used += 1;
            } else {
                self.overwritten += 1;
            }
            *slot = entry;
        }
        Ok(())
    }

    /// Whether the entry still says that the container at `position` is open.
    pub(crate) fn is_open(&self, index: u32, position: u32) -> bool {
        usize::try_from(index).ok().and_then(|index| self.entries.get(index)) == Some(&Entry::open(position))
    }

    /// Replaces what an open container's entry says.
    pub(crate) fn settle(&mut self, index: u32, position: u32, value: Value) {
        if self.is_open(index, position) {
            let entry = self.encode(value);
            if let Some(slot) = usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index)) {
                *slot = entry;
            }
        }
    }
}
