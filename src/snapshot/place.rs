//! Where a dict that closes belongs, told from what stands below it on the machine's stack.
//!
//! Picklers leave the MARK out for lists and dicts of one item, so position alone does not say who is whose parent:
//! `[[], [event]]` has an empty list below the open one, `[[event]]` has its parent there. The format does: a list under
//! `device_traces` holds lists of events, the other lists hold rows. The same decisions need no look at finished siblings.

use super::words;
use crate::pickle::{NodeKind, State, Value};

/// What a dict at some place of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An item of `segments`, or of the list a list form is.
    Segment,
    /// An item of `host_segments`.
    HostSegment,
    /// An item of the `blocks` of a segment, which may be one of `host_segments`.
    Block {
        /// Whether the segment is one of `host_segments`.
        host: bool,
    },
    /// An item of the list with this position in `device_traces`.
    Event(i64),
    /// An item of `host_traces`.
    HostEvent,
    /// An item of `external_annotations`.
    Annotation,
}

/// Lists of events there can be before the open one in the same batch; bounds the search for their beginning. CPython's
/// batches hold 1000.
const MOST_LISTS: usize = 1024;

/// The list of events that was found last: the next event most often stands in the same.
#[derive(Debug, Default)]
pub(super) struct LastList {
    list: usize,
    outer: usize,
    /// Items of the outer list; they grow when the list is done.
    length: usize,
    device: i64,
}

fn is_dict(state: &State, at: usize) -> bool {
    match state.at(at) {
        Some(Value::EmptyDict { .. } | Value::OpenDict(_)) => true,
        Some(Value::Node(node)) => matches!(state.tree().get(node), Some((NodeKind::Dict, _))),
        _ => false,
    }
}

/// How many items the list at `at` has got; `None` if it is no list.
fn list_length(state: &State, at: usize) -> Option<usize> {
    match state.at(at)? {
        Value::EmptyList => Some(0),
        Value::Node(node) | Value::OpenList(node) => match state.tree().get(node)? {
            (NodeKind::List, items) => Some(items.len()),
            _ => None,
        },
        _ => None,
    }
}

/// Position of the last mark below `at`.
fn mark_below(state: &State, at: usize) -> Option<usize> {
    state.marks().iter().rev().filter_map(|mark| usize::try_from(*mark).ok()).find(|mark| *mark < at)
}

/// Position of the dict whose key stands at `key`.
fn dict_of(state: &State, key: usize) -> Option<usize> {
    let below = key.checked_sub(1)?;
    match mark_below(state, key) {
        // Keys stand at every other place behind the mark.
        Some(mark) if (key - mark) % 2 == 1 && is_dict(state, mark.checked_sub(1)?) => mark.checked_sub(1),
        _ => is_dict(state, below).then_some(below),
    }
}

/// Whether the key at `key` is one of the snapshot's own.
fn is_top_key(state: &State, key: usize) -> bool {
    dict_of(state, key) == Some(0)
}

/// Position of the list that the dict at `dict` is an item of.
fn list_of(state: &State, dict: usize) -> Option<usize> {
    let below = dict.checked_sub(1)?;
    let list = match state.at(below)? {
        Value::Taken { .. } if state.at(below.checked_sub(1)?)? == Value::Mark => below.checked_sub(2)?,
        Value::Mark => below.checked_sub(1)?,
        _ => below,
    };
    state.at(list)?.is_row_list().then_some(list)
}

/// What the dict at `dict` is; `None` if it stands nowhere a row does.
pub(super) fn place_of(state: &State, dict: usize, last: &mut LastList) -> Option<Place> {
    let list = list_of(state, dict)?;
    let Some(key) = list.checked_sub(1) else { return Some(Place::Segment) };
    let Some(Value::Text(word)) = state.at(key) else {
        return event_list(state, list, last);
    };
    match word {
        words::SEGMENTS if is_top_key(state, key) => Some(Place::Segment),
        words::HOST_SEGMENTS if is_top_key(state, key) => Some(Place::HostSegment),
        words::HOST_TRACES if is_top_key(state, key) => Some(Place::HostEvent),
        words::EXTERNAL_ANNOTATIONS if is_top_key(state, key) => Some(Place::Annotation),
        words::BLOCKS => {
            let segment = place_of_segment(state, dict_of(state, key)?)?;
            Some(Place::Block { host: segment == Place::HostSegment })
        }
        _ => None,
    }
}

/// Like [`place_of`], for a dict that has blocks; so the two do not call each other without end.
fn place_of_segment(state: &State, segment: usize) -> Option<Place> {
    let list = list_of(state, segment)?;
    let Some(key) = list.checked_sub(1) else { return Some(Place::Segment) };
    match state.at(key) {
        Some(Value::Text(words::SEGMENTS)) if is_top_key(state, key) => Some(Place::Segment),
        Some(Value::Text(words::HOST_SEGMENTS)) if is_top_key(state, key) => Some(Place::HostSegment),
        _ => None,
    }
}

/// The number of the list at `list` under `device_traces`.
fn event_list(state: &State, list: usize, last: &mut LastList) -> Option<Place> {
    let key = last.outer.checked_sub(1);
    if list == last.list
        && state.at(key?)? == Value::Text(words::DEVICE_TRACES)
        && is_top_key(state, key?)
        && list_length(state, last.outer) == Some(last.length)
    {
        return Some(Place::Event(last.device));
    }
    let mut below = list.checked_sub(1)?;
    for siblings in 0..MOST_LISTS {
        let (outer, position) = match state.at(below)? {
            Value::Mark => (below.checked_sub(1)?, siblings),
            Value::Text(words::DEVICE_TRACES) if siblings == 1 => (below + 1, 0),
            _ => {
                below = below.checked_sub(1)?;
                continue;
            }
        };
        let key = outer.checked_sub(1)?;
        if state.at(key)? != Value::Text(words::DEVICE_TRACES) || !is_top_key(state, key) {
            return None;
        }
        let length = list_length(state, outer)?;
        let device = i64::try_from(length + position).ok()?;
        *last = LastList { list, outer, length, device };
        return Some(Place::Event(device));
    }
    None
}
