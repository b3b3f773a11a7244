//! A part of the finished rows, by column, as it was spooled.

use std::ops::Range;

use super::narrow::{self, Narrow};
use super::row::{Fate, NO_INDEX, Origin, PROOFS, Proof, Reading, Row};

/// Columns of integers.
pub(super) const INTEGERS: usize = 10;

/// Rows by column, the one that was finished last at the end.
pub(super) struct Part {
    /// Proof, origin and fate, by [`kind`].
    pub(super) kinds: Vec<u8>,
    pub(super) places: Vec<u32>,
    /// In the order of [`integers`].
    pub(super) integers: [Vec<i64>; INTEGERS],
}

/// The integers of a row.
pub(super) fn integers(row: &Row) -> [i64; INTEGERS] {
    let Row {
        addr, size, block, alloc, requested, completed, alloc_time, free_time, stack, free_stack, ..
    } = *row;
    [addr, size, block, alloc, requested, completed, alloc_time, free_time, stack, free_stack]
}

/// Proof, origin and fate in one byte.
pub(super) fn kind(row: &Row) -> u8 {
    let proof =
        PROOFS.iter().zip(0_u8..).find(|(proof, _)| **proof == row.proof).map_or(0, |(_, number)| number);
    let origin = match row.origin {
        Origin::Window => 0,
        Origin::BeforeWindow => 1,
    };
    let fate = match row.fate {
        Fate::Live => 0,
        Fate::PendingFree => 1,
        Fate::Freed => 2,
    };
    proof | origin << 3 | fate << 4
}

/// How the size of the block is known, as a place in [`PROOFS`].
pub(super) fn proof_number(kind: u8) -> usize {
    usize::from(kind & 7)
}

/// Where the allocation began.
pub(super) fn origin(kind: u8) -> Origin {
    if kind & 8 == 0 { Origin::Window } else { Origin::BeforeWindow }
}

/// What became of the allocation.
pub(super) fn fate(kind: u8) -> Fate {
    match kind >> 4 {
        0 => Fate::Live,
        1 => Fate::PendingFree,
        _ => Fate::Freed,
    }
}

impl Part {
    /// The rows at a range of positions in a spooled chunk.
    pub(super) fn read(chunk: &[Narrow], at: &Range<usize>) -> Self {
        let mut columns = chunk.iter().map(|column| column.slice(at));
        let kinds = columns.next().map_or_else(Vec::new, |column| column.values(narrow::low));
        let places = columns.next().map_or_else(Vec::new, |column| column.values(narrow::low));
        let mut integers = || columns.next().map_or_else(Vec::new, |column| column.values(|value| value));
        Self { kinds, places, integers: std::array::from_fn(|_| integers()) }
    }

    /// Fills in what follows from other rows. To most of them there is nothing to add, and those are left as columns.
    pub(super) fn apply(&mut self, reading: &Reading) {
        let [_, _, _, _, requested, completed, _, _, stack, _] = &self.integers;
        let heads = self.kinds.iter().zip(stack);
        let is_whole = |kind: u8, stack: i64, requested: i64, completed: i64| {
            fate(kind) == Fate::Freed && stack != 0 && requested != NO_INDEX && completed != NO_INDEX
        };
        let rows = heads.zip(requested.iter().zip(completed)).enumerate();
        let lacking = rows.filter(|(_, ((kind, stack), (requested, completed)))| {
            !is_whole(**kind, **stack, **requested, **completed)
        });
        for at in lacking.map(|(at, _)| at).collect::<Vec<_>>() {
            if let Some(row) = self.row(at) {
                self.set(at, &reading.apply(row));
            }
        }
    }

    fn row(&self, at: usize) -> Option<Row> {
        let (kind, place) = (*self.kinds.get(at)?, *self.places.get(at)?);
        let [addr, size, block, alloc, requested, completed, alloc_time, free_time, stack, free_stack] =
            self.integers.each_ref().map(|column| column.get(at).copied().unwrap_or_default());
        let proof = PROOFS.get(proof_number(kind)).copied().unwrap_or(Proof::None);
        let (origin, fate) = (origin(kind), fate(kind));
        Some(Row {
            addr,
            size,
            block,
            proof,
            alloc,
            requested,
            completed,
            alloc_time,
            free_time,
            stack,
            free_stack,
            place,
            origin,
            fate,
        })
    }

    fn set(&mut self, at: usize, row: &Row) {
        if let Some(slot) = self.kinds.get_mut(at) {
            *slot = kind(row);
        }
        for (column, value) in self.integers.iter_mut().zip(integers(row)) {
            if let Some(slot) = column.get_mut(at) {
                *slot = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of every fate and origin, with and without the ends of an allocation and its stack.
    fn part() -> Part {
        let choices = (0..2 * 3 * 8_u8).map(|number| (number % 2, number / 2 % 3, number / 6));
        let (mut kinds, mut integers) = (Vec::new(), std::array::from_fn(|_| Vec::new()));
        for ((origin, fate, known), at) in choices.zip(1..) {
            kinds.push(3 | origin << 3 | fate << 4);
            let value = |bit: u8, unknown: i64| if known & bit == 0 { unknown } else { at };
            let (requested, completed) = (value(1, NO_INDEX), value(2, NO_INDEX));
            let row = [at, 2 * at, 3 * at, 4 * at, requested, completed, 5 * at, 6 * at, value(4, 0), 7 * at];
            integers.iter_mut().zip(row).for_each(|(column, value): (&mut Vec<i64>, i64)| column.push(value));
        }
        Part { places: vec![9; kinds.len()], kinds, integers }
    }

    #[test]
    fn rows_that_are_left_as_columns_are_those_that_nothing_follows_for() {
        for (frees_are_one, frees_have_alloc_stack) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let reading = Reading { frees_are_one, frees_have_alloc_stack, ..Reading::default() };
            let (before, mut after) = (part(), part());
            after.apply(&reading);
            for at in 0..before.kinds.len() {
                let expected = reading.apply(before.row(at).unwrap());
                let row = after.row(at).unwrap();
                assert_eq!((kind(&row), integers(&row)), (kind(&expected), integers(&expected)), "row {at}");
            }
        }
    }
}
