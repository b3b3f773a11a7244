//! What lived at moments spread over the history, from the few rows in which it changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Level, Moment, StackBytes};
use crate::engine::{Engine, row};
use crate::error::Result;

/// Stacks that a moment lists.
const LISTED: usize = 8;

row! {
    /// What a stack held from a moment on.
    pub struct MomentRow from "live_moments" {
        /// Event after which the moment is.
        trace_index: i64,
        /// Call stack; NULL for all that has none.
        stack_id: Option<i64>,
        /// Bytes in allocated blocks.
        allocated_size: i64,
    }
}

/// What lived at moments spread over the history of a device, oldest first.
///
/// # Errors
/// The relation failed.
pub fn moments(engine: &Engine, device_index: i64, levels: &[Level]) -> Result<Vec<Moment>> {
    let rows: Vec<MomentRow> = engine.rows(&[("device", device_index.into())])?;
    Ok(filled(&rows, levels))
}

/// Every moment with what all stacks held then; what the levels say beyond is others.
fn filled(rows: &[MomentRow], levels: &[Level]) -> Vec<Moment> {
    let indexes: BTreeSet<i64> = rows.iter().map(|row| row.trace_index).collect();
    let mut held: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    let mut moments = Vec::with_capacity(indexes.len());
    for trace_index in indexes {
        for row in rows.iter().filter(|row| row.trace_index == trace_index) {
            held.insert(row.stack_id, row.allocated_size);
        }
        let mut live: Vec<StackBytes> = held
            .iter()
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(stack_id, bytes)| StackBytes { stack_id: *stack_id, bytes: *bytes })
            .collect();
        live.sort_by_key(|stack| (std::cmp::Reverse(stack.bytes), stack.stack_id));
        live.truncate(LISTED);
        let listed: i64 = live.iter().map(|stack| stack.bytes).sum();
        let behind = levels.partition_point(|level| level.trace_index <= trace_index);
        let level = behind.checked_sub(1).and_then(|place| levels.get(place));
        let total = level.and_then(Level::allocated).unwrap_or(listed);
        moments.push(Moment { trace_index, live, other_bytes: (total - listed).max(0) });
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_holds_what_it_held_until_it_changes() {
        let row = |trace_index, stack_id, allocated_size| MomentRow { trace_index, stack_id, allocated_size };
        let rows = [row(0, Some(1), 100), row(5, Some(2), 300), row(9, Some(1), 0)];
        let level =
            |trace_index, bytes| Level { trace_index, time_us: None, bytes: [None, None, Some(bytes)] };
        let moments = filled(&rows, &[level(0, 100), level(4, 450), level(8, 300)]);
        let stack = |stack_id, bytes| StackBytes { stack_id: Some(stack_id), bytes };
        let found: Vec<_> =
            moments.into_iter().map(|moment| (moment.trace_index, moment.live, moment.other_bytes)).collect();
        assert_eq!(
            found,
            [
                (0, vec![stack(1, 100)], 0),
                // Between the levels at 4 and 8 it is the one at 4: 50 are of other stacks.
                (5, vec![stack(2, 300), stack(1, 100)], 50),
                (9, vec![stack(2, 300)], 0),
            ]
        );
    }
}
