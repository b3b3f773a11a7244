//! Checked conversions from pickle values to columns. Missing is not zero: `None` in the file is NULL in the table.

use super::fault::{BadField, found};
use super::{FRAME_STACK, words};
use crate::pickle::{NodeKind, State, Value};

type Field<T> = Result<T, BadField>;

#[cold]
fn bad(state: &State, field: &'static str, expected: &'static str, value: Value) -> BadField {
    BadField { field, expected, found: found(state, value) }
}

/// An address or a stream: 64 bits as they are.
#[inline]
pub(super) fn bits(state: &State, field: &'static str, value: Value) -> Field<Option<i64>> {
    match value {
        Value::Int(number) => Ok(Some(number)),
        Value::Wide(number) => Ok(Some(number.cast_signed())),
        Value::None => Ok(None),
        other => Err(bad(state, field, "an integer", other)),
    }
}

/// A size: never negative, and below 2^63.
#[inline]
pub(super) fn size(state: &State, field: &'static str, value: Value) -> Field<Option<i64>> {
    match value {
        Value::Int(number) if number >= 0 => Ok(Some(number)),
        Value::None => Ok(None),
        other => Err(bad(state, field, "a number of bytes from 0 to 2^63 - 1", other)),
    }
}

/// A signed integer.
#[inline]
pub(super) fn integer(state: &State, field: &'static str, value: Value) -> Field<Option<i64>> {
    match value {
        Value::Int(number) => Ok(Some(number)),
        Value::None => Ok(None),
        other => Err(bad(state, field, "an integer of 63 bits with sign", other)),
    }
}

/// A string, by its number.
#[inline]
pub(super) fn text(state: &State, field: &'static str, value: Value) -> Field<Option<u32>> {
    match value {
        Value::Text(id) => Ok(Some(id)),
        Value::None => Ok(None),
        other => Err(bad(state, field, "a string", other)),
    }
}

/// A flag; hand-made files have 0 and 1.
pub(super) fn flag(state: &State, field: &'static str, value: Value) -> Field<Option<i64>> {
    match value {
        Value::Bool(flag) => Ok(Some(i64::from(flag))),
        Value::Int(number @ (0 | 1)) => Ok(Some(number)),
        Value::None => Ok(None),
        other => Err(bad(state, field, "True or False", other)),
    }
}

/// A memory pool's id: two words, as a tuple or, from JSON, a list.
#[inline]
pub(super) fn pool(state: &State, field: &'static str, value: Value) -> Field<Option<(i64, i64)>> {
    match value {
        Value::Pair(id) => Ok(state.pair(id)),
        Value::None => Ok(None),
        other => pool_in_tree(state, other).ok_or_else(|| bad(state, field, "two integers", other)).map(Some),
    }
}

fn pool_in_tree(state: &State, value: Value) -> Option<(i64, i64)> {
    let Value::Node(node) = value else { return None };
    let (NodeKind::List | NodeKind::Tuple, [first, second]) = state.tree().get(node)? else { return None };
    let word = |value: &Value| bits(state, "", *value).ok().flatten();
    Some((word(first)?, word(second)?))
}

/// What a row says about its call stack: three different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// No key: the producer recorded no context.
    Absent,
    /// An empty list: a context without frames, or, in blocks, none.
    Empty,
    /// A stack, by its number in `Stacks`.
    Stack(u32),
}

/// A list of frames.
#[inline]
pub(super) fn frames(state: &State, field: &'static str, value: Value) -> Field<Frames> {
    match value {
        Value::Kept { kind: FRAME_STACK, id } => Ok(Frames::Stack(id)),
        Value::EmptyList => Ok(Frames::Empty),
        Value::None => Ok(Frames::Absent),
        other => Err(bad(state, field, "a list of frames (dicts with `name`, `filename` and `line`)", other)),
    }
}

/// Frames and requested size of the first entry of a block's `history`, as PyTorch 1.13 and 2.0 write it.
pub(super) fn history(state: &State, value: Value) -> Field<(Frames, Option<i64>)> {
    const FIELD: &str = "history";
    let first = match value {
        Value::EmptyList | Value::None => return Ok((Frames::Absent, None)),
        Value::Node(node) => match state.tree().get(node) {
            Some((NodeKind::List, [Value::Node(first), ..])) => state.tree().get(*first),
            _ => None,
        },
        _ => None,
    };
    let Some((NodeKind::Dict, items)) = first else {
        return Err(bad(state, FIELD, "a list of dicts with `real_size`", value));
    };
    let mut found = (Frames::Absent, None);
    for pair in items.chunks_exact(2) {
        match pair {
            [Value::Text(words::REAL_SIZE), value] => found.1 = size(state, "history[0].real_size", *value)?,
            [Value::Text(words::FRAMES), value] => found.0 = frames(state, "history[0].frames", *value)?,
            _ => {}
        }
    }
    Ok(found)
}
