//! What stands on the machine's stack: sixteen bytes per value, never a materialized container of the input's size.

/// A value of the pickle, or what became of a container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Not a value: the mark that MARK sets.
    Mark,
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits with sign.
    Int(i64),
    /// An integer from 2^63 to 2^64 - 1.
    Wide(u64),
    /// A float.
    Float(f64),
    /// A string, by its number in [`State::text`](super::State::text).
    Text(u32),
    /// A tuple of two integers, by its number in [`State::pair`](super::State::pair).
    Pair(u32),
    /// A list without items.
    EmptyList,
    /// A dict without items. Whatever is created from node `floor` on is created inside it.
    EmptyDict {
        /// First node number that belongs to the dict's content.
        floor: u32,
    },
    /// A dict that gets its items one by one, as protocol 0 writes them; complete when something takes it.
    OpenDict(u32),
    /// A list that gets its items in several steps; complete when something takes it.
    OpenList(u32),
    /// A small list, tuple or dict in [`State::tree`](super::State::tree).
    Node(u32),
    /// Something the sink made of a container and keeps.
    Kept {
        /// The sink's own kind, below [`KEPT_KINDS`].
        kind: u8,
        /// The sink's own number.
        id: u32,
    },
    /// Dicts the sink has taken, one after the other; they are gone.
    Taken {
        /// The sink's own kind.
        kind: u8,
        /// How many.
        count: u64,
    },
    /// A list of nothing but dicts the sink has taken.
    TakenList {
        /// The sink's own kind.
        kind: u8,
        /// How many.
        count: u64,
    },
    /// Bytes, or a container too large to keep: its place is known, its content is not.
    Opaque,
}

/// Kinds of [`Value::Kept`] there can be: what fits beside the machine's own tags in a memo entry.
pub const KEPT_KINDS: u8 = 6;

impl Value {
    /// What it is, for messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Mark => "a mark",
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::Wide(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Pair(_) => "a tuple",
            Self::EmptyList => "an empty list",
            Self::OpenList(_) => "a list",
            Self::EmptyDict { .. } => "an empty dict",
            Self::OpenDict(_) | Self::Taken { .. } => "a dict",
            Self::Node(_) => "a list, tuple or dict",
            Self::Kept { .. } => "a container already read",
            Self::TakenList { .. } => "a list of dicts already read",
            Self::Opaque => "bytes or a container too large to keep",
        }
    }

    /// Whether it is a list as far as the machine can tell without looking it up.
    #[must_use]
    pub fn is_row_list(self) -> bool {
        matches!(self, Self::EmptyList | Self::TakenList { .. })
    }
}

/// A value on the stack and the memo entry that follows it until it is complete.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// The value.
    pub value: Value,
    /// Index of the memo entry that says "open", [`NOT_MEMOIZED`] or [`FROZEN`].
    pub(crate) memo: u32,
}

/// No memo entry waits for this slot.
pub(crate) const NOT_MEMOIZED: u32 = u32::MAX;
/// Others have a copy of the value: it may not change any more.
pub(crate) const FROZEN: u32 = u32::MAX - 1;
