//! The slow, complete way for small files: the whole object is kept first, then its rows are written.
//!
//! PyTorch never refers to a row twice, and the stream counts on it. A script that edits a snapshot may: `[event] * 3`,
//! `dict(segment, device=1)` with the same blocks. Where the stream gives up for such a reason, a file this small is read
//! again like this.

use super::devices::HOST;
use super::fault::Fault;
use super::import::Import;
use super::{ANNOTATION, BLOCK, EVENT, HOST_EVENT, HOST_SEGMENT, SEGMENT, annotation, words};
use crate::pickle::{Limits, NodeKind, PickleErrorKind, State, Value};

/// Largest file that is read like this.
pub(super) const SMALL: u64 = 8 << 20;

/// Limits for a file this small: everything is kept.
pub(super) fn limits() -> Limits {
    Limits { tree_values: 1 << 23, ..Limits::default() }
}

/// Whether the stream may have given up because rows are shared, or stand in lists made in an old way.
pub(super) fn may_help(fault: &Fault) -> bool {
    match fault {
        Fault::Pickle(error) => {
            matches!(error.kind, PickleErrorKind::TakenMemo(_) | PickleErrorKind::WrongTarget { .. })
        }
        Fault::Shape { .. } => true,
        Fault::Other(_) => false,
    }
}

/// The items of a kept list.
fn list(state: &State, value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Node(node) => match state.tree().get(node)? {
            (NodeKind::Dict, _) => None,
            (_, items) => Some(items.to_vec()),
        },
        _ => None,
    }
}

/// The items of a kept dict.
fn dict(state: &State, value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Node(node) => match state.tree().get(node)? {
            (NodeKind::Dict, items) => Some(items.to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces the values of a dict under the keys that `replace` knows.
fn replace_values(
    items: &mut [Value],
    mut replace: impl FnMut(u32, Value) -> Result<Value, Fault>,
) -> Result<(), Fault> {
    for pair in items.chunks_exact_mut(2) {
        if let [Value::Text(key), value] = pair {
            *value = replace(*key, *value)?;
        }
    }
    Ok(())
}

impl Import<'_> {
    /// Writes the rows of a snapshot that is kept as a whole, and returns the snapshot with the rows taken out, as the
    /// stream leaves it.
    pub(super) fn unfold(&mut self, state: &mut State, root: Value) -> Result<Value, Fault> {
        let Some(mut items) = dict(state, root) else {
            return self.unfold_rows(state, root, SEGMENT, |import, state, items| {
                import.unfold_segment(state, items, false)
            });
        };
        let mut traces = None;
        replace_values(&mut items, |key, value| match key {
            words::SEGMENTS => self.unfold_rows(state, value, SEGMENT, |import, state, items| {
                import.unfold_segment(state, items, false)
            }),
            words::HOST_SEGMENTS => self.unfold_rows(state, value, HOST_SEGMENT, |import, state, items| {
                import.unfold_segment(state, items, true)
            }),
            words::DEVICE_TRACES => {
                traces = list(state, value);
                let Some(lists) = &mut traces else { return Ok(value) };
                for (device, list) in (0_i64..).zip(lists) {
                    *list = self.unfold_rows(state, *list, EVENT, |import, state, items| {
                        import.event(state, device, items)
                    })?;
                }
                Ok(value)
            }
            words::HOST_TRACES => self.unfold_rows(state, value, HOST_EVENT, |import, state, items| {
                import.event(state, HOST, items)
            }),
            words::EXTERNAL_ANNOTATIONS => {
                self.unfold_rows(state, value, ANNOTATION, |import, state, items| {
                    let position = import.annotations.len();
                    let annotated = annotation::read(state, items, position, &mut import.stats)?;
                    import.annotations.push(annotated);
                    Ok(())
                })
            }
            _ => Ok(value),
        })?;
        if let Some(lists) = traces {
            let lists = state.keep(NodeKind::List, &lists)?;
            replace_values(&mut items, |key, value| {
                Ok(if key == words::DEVICE_TRACES { lists } else { value })
            })?;
        }
        Ok(state.keep(NodeKind::Dict, &items)?)
    }

    /// Writes the dicts of a list and returns what the stream would have left of it. A list of other things stays, to be
    /// refused with what is in it.
    fn unfold_rows(
        &mut self,
        state: &State,
        value: Value,
        kind: u8,
        mut row: impl FnMut(&mut Self, &State, &[Value]) -> Result<(), Fault>,
    ) -> Result<Value, Fault> {
        let Some(items) = list(state, value) else { return Ok(value) };
        let rows: Option<Vec<Vec<Value>>> = items.iter().map(|item| dict(state, *item)).collect();
        let Some(rows) = rows else { return Ok(value) };
        for items in &rows {
            row(self, state, items)?;
        }
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        Ok(if count == 0 { Value::EmptyList } else { Value::TakenList { kind, count } })
    }

    fn unfold_segment(&mut self, state: &State, items: &[Value], host: bool) -> Result<(), Fault> {
        let mut items = items.to_vec();
        replace_values(&mut items, |key, value| {
            if key != words::BLOCKS {
                return Ok(value);
            }
            self.unfold_rows(state, value, BLOCK, |import, state, items| {
                let Self { segments, stacks, stats, output, .. } = import;
                segments.block(host, state, items, stacks, stats, output)
            })
        })?;
        self.segment(state, host, &items)
    }
}
