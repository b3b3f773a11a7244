//! What APPEND, APPENDS, SETITEM and SETITEMS do: a container gets its items, and the sink is asked what becomes of it.

use super::error::PickleErrorKind;
use super::machine::{Sink, Stop};
use super::state::State;
use super::tree::NodeKind;
use super::value::Value;

pub(super) fn check_even(items: &[Value], opcode: &'static str) -> Result<(), PickleErrorKind> {
    if items.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(PickleErrorKind::Mark { opcode, problem: "a key without a value" })
}

/// Pushes a dict that will get more items, filled with what was taken off the stack.
pub(super) fn open_dict(state: &mut State) -> Result<(), PickleErrorKind> {
    let value = match state.tree.add(NodeKind::Dict, &state.taken)? {
        Value::Node(node) => Value::OpenDict(node),
        other => other,
    };
    state.has_open = true;
    state.push(value)
}

/// Hands the containers from `from` on to the sink that were filled in several steps: something is about to take them, so
/// they are complete.
pub(super) fn close_open<S: Sink>(
    state: &mut State,
    sink: &mut S,
    from: usize,
) -> Result<(), Stop<S::Error>> {
    if !state.has_open {
        return Ok(());
    }
    for at in from..state.stack.len() {
        close_at(state, sink, at)?;
    }
    Ok(())
}

/// Hands the container at `at` on, if it was filled in several steps.
fn close_at<S: Sink>(state: &mut State, sink: &mut S, at: usize) -> Result<(), Stop<S::Error>> {
    let Some(Value::OpenDict(node) | Value::OpenList(node)) = state.at(at) else { return Ok(()) };
    let Some((kind, items)) = state.tree.get(node).map(|(kind, items)| (kind, items.to_vec())) else {
        state.replace(at, Value::Opaque);
        return Ok(());
    };
    let closed = match kind {
        NodeKind::Dict => sink.dict(state, at, &items),
        NodeKind::List | NodeKind::Tuple => sink.list(state, &items),
    };
    let closed = closed.map_err(Stop::Sink)?;
    if closed.is_some() {
        state.tree.drop_from(node);
    }
    state.replace(at, closed.unwrap_or(Value::Node(node)));
    Ok(())
}

/// Pushes what the memo has under `index`. An open container that is referred to is complete: no pickler fills it further.
pub(super) fn get<S: Sink>(state: &mut State, sink: &mut S, index: u64) -> Result<(), Stop<S::Error>> {
    if state.has_open
        && let Some(at) = state.open_at(index)
    {
        close_at(state, sink, at)?;
    }
    Ok(state.get(index)?)
}

/// Pushes the top of the stack a second time.
pub(super) fn duplicate<S: Sink>(state: &mut State, sink: &mut S) -> Result<(), Stop<S::Error>> {
    let top = state.below_top(0, "DUP")?;
    close_at(state, sink, top)?;
    Ok(state.duplicate(top)?)
}

/// Appends what stands from `from` on to the list at `target`; with a mark, `from` is the mark.
pub(super) fn append<S: Sink>(
    state: &mut State,
    sink: &mut S,
    target: usize,
    from: usize,
    opcode: &'static str,
) -> Result<(), Stop<S::Error>> {
    let marked = state.at(from) == Some(Value::Mark);
    state.take_from(if marked { from + 1 } else { from });
    state.stack.truncate(from);
    let list = state.at(target).unwrap_or(Value::Mark);
    // serde-pickle ends a list of a whole number of batches with a batch of none.
    if state.taken.is_empty() && matches!(list, Value::EmptyList | Value::TakenList { .. }) {
        return Ok(());
    }
    state.check_unshared(target)?;
    let items = std::mem::take(&mut state.taken);
    let grown = grow(state, sink, list, &items, opcode);
    state.taken = items;
    state.replace(target, grown?);
    Ok(())
}

/// The one kind of rows that `items` are, and how many.
fn rows(items: &[Value]) -> Option<(u8, u64)> {
    let Some(Value::Taken { kind, .. }) = items.first() else { return None };
    let mut total = 0_u64;
    for item in items {
        match item {
            Value::Taken { kind: other, count } if other == kind => total = total.saturating_add(*count),
            _ => return None,
        }
    }
    Some((*kind, total))
}

fn grow<S: Sink>(
    state: &mut State,
    sink: &mut S,
    list: Value,
    items: &[Value],
    opcode: &'static str,
) -> Result<Value, Stop<S::Error>> {
    match (list, rows(items)) {
        (Value::EmptyList, Some((kind, count))) => return Ok(Value::TakenList { kind, count }),
        (Value::TakenList { kind, count }, Some((other, more))) if kind == other => {
            return Ok(Value::TakenList { kind, count: count.saturating_add(more) });
        }
        _ => {}
    }
    match list {
        Value::EmptyList if opcode == "APPENDS" && items.len() < FULL_BATCH => {
            match sink.list(state, items).map_err(Stop::Sink)? {
                Some(value) => Ok(value),
                None => Ok(state.tree.add(NodeKind::List, items)?),
            }
        }
        Value::EmptyList => Ok(open_list(state, items)?),
        Value::Kept { .. } => match sink.reopen(list) {
            Some(mut begun) => {
                begun.extend_from_slice(items);
                Ok(open_list(state, &begun)?)
            }
            None => Err(PickleErrorKind::WrongTarget { opcode, found: list.describe() }.into()),
        },
        Value::TakenList { kind, count } => {
            let mut mixed = vec![Value::Taken { kind, count }];
            mixed.extend_from_slice(items);
            Ok(state.tree.add(NodeKind::List, &mixed)?)
        }
        Value::Node(node) | Value::OpenList(node)
            if matches!(state.tree.get(node), None | Some((NodeKind::List, _))) =>
        {
            state.tree.extend(node, items)?;
            Ok(list)
        }
        Value::Opaque => Ok(Value::Opaque),
        other => Err(misfit(other, opcode).into()),
    }
}

/// Why a container takes no items. What the sink has taken is beyond reach, however it was read.
fn misfit(container: Value, opcode: &'static str) -> PickleErrorKind {
    match container {
        Value::Taken { .. } => PickleErrorKind::SelfReference,
        other => PickleErrorKind::WrongTarget { opcode, found: other.describe() },
    }
}

/// Items in a batch of CPython's pickler: behind a full one, more may come.
const FULL_BATCH: usize = 1000;

fn open_list(state: &mut State, items: &[Value]) -> Result<Value, PickleErrorKind> {
    state.has_open = true;
    Ok(match state.tree.add(NodeKind::List, items)? {
        Value::Node(node) => Value::OpenList(node),
        other => other,
    })
}

/// Gives the dict at `target` what stands above the mark at `mark`.
pub(super) fn set_items<S: Sink>(
    state: &mut State,
    sink: &mut S,
    target: usize,
    mark: usize,
) -> Result<(), Stop<S::Error>> {
    state.take_from(mark + 1);
    state.stack.truncate(mark);
    check_even(&state.taken, "SETITEMS")?;
    let dict = state.at(target).unwrap_or(Value::Mark);
    if state.taken.is_empty() && matches!(dict, Value::EmptyDict { .. }) {
        return Ok(());
    }
    state.check_unshared(target)?;
    let items = std::mem::take(&mut state.taken);
    let filled = match dict {
        Value::EmptyDict { floor } => close(state, sink, target, floor, &items),
        _ => keep(state, dict, &items, "SETITEMS").map_err(Stop::Pickle),
    };
    state.taken = items;
    state.replace(target, filled?);
    state.join_taken();
    Ok(())
}

fn close<S: Sink>(
    state: &mut State,
    sink: &mut S,
    target: usize,
    floor: u32,
    items: &[Value],
) -> Result<Value, Stop<S::Error>> {
    match sink.dict(state, target, items).map_err(Stop::Sink)? {
        Some(value) => {
            state.tree.drop_from(floor);
            Ok(value)
        }
        None => Ok(state.tree.add(NodeKind::Dict, items)?),
    }
}

/// Adds items to a dict that stays a node.
fn keep(
    state: &mut State,
    dict: Value,
    items: &[Value],
    opcode: &'static str,
) -> Result<Value, PickleErrorKind> {
    match dict {
        Value::Node(node) | Value::OpenDict(node)
            if matches!(state.tree.get(node), None | Some((NodeKind::Dict, _))) =>
        {
            state.tree.extend(node, items)?;
            Ok(dict)
        }
        Value::Opaque => Ok(Value::Opaque),
        other => Err(misfit(other, opcode)),
    }
}

/// Gives the dict at `target` the key and value above it. It stays open: protocol 0 fills every dict like this.
pub(super) fn set_item(state: &mut State, target: usize) -> Result<(), PickleErrorKind> {
    state.take_from(target + 1);
    state.check_unshared(target)?;
    let dict = state.at(target).unwrap_or(Value::Mark);
    let items = std::mem::take(&mut state.taken);
    let filled = match dict {
        Value::EmptyDict { .. } => {
            state.has_open = true;
            state.tree.add(NodeKind::Dict, &items).map(|value| match value {
                Value::Node(node) => Value::OpenDict(node),
                other => other,
            })
        }
        _ => keep(state, dict, &items, "SETITEM"),
    };
    state.taken = items;
    state.replace(target, filled?);
    Ok(())
}
