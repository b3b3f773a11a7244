//! Whether every row of a database refers to rows that are there.
//!
//! Ids are handed out from 1 on, so the smallest and the largest reference of a column tell. SQLite's own check looks
//! every reference up again, which takes about as long as writing the rows did.

use std::collections::BTreeMap;

use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::compute::{max, min};
use arrow::datatypes::Int64Type;

use crate::schema::{Column, Table};

/// What the rows written so far refer to.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Number of rows by table, as long as their ids are 1, 2, 3 and so on.
    rows: BTreeMap<&'static str, Option<i64>>,
    /// Smallest and largest reference by table, column and the table it refers to.
    ranges: BTreeMap<(&'static str, &'static str, &'static str), (i64, i64)>,
}

/// What the references of a table say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every row that is referred to is there.
    Whole,
    /// A row of this table is referred to and is not there.
    Missing(&'static str),
    /// Ids with gaps: each reference has to be looked up.
    Unknown,
}

impl References {
    pub(super) fn add(&mut self, table: &'static Table, batch: &RecordBatch) {
        for column in table.columns {
            let Some(values) = batch.column_by_name(column.name).and_then(|array| array.as_primitive_opt())
            else {
                continue;
            };
            if column.name == "id" {
                let rows = self.rows.entry(table.name).or_insert(Some(0));
                *rows = rows.and_then(|rows| following(rows, values));
            } else if let Some(parent) = parent(column) {
                let Some((low, high)) = min::<Int64Type>(values).zip(max::<Int64Type>(values)) else {
                    continue;
                };
                let range = self.ranges.entry((table.name, column.name, parent)).or_insert((low, high));
                *range = (range.0.min(low), range.1.max(high));
            }
        }
    }

    pub(super) fn verdict(&self, table: &Table) -> Verdict {
        let mut verdict = Verdict::Whole;
        for ((_, _, parent), (low, high)) in self.ranges.iter().filter(|((name, ..), _)| *name == table.name)
        {
            match self.rows.get(parent).copied().unwrap_or(Some(0)) {
                Some(rows) if *low < 1 || *high > rows => return Verdict::Missing(parent),
                Some(_) => {}
                None => verdict = Verdict::Unknown,
            }
        }
        verdict
    }
}

/// The table that a column refers to, as its declaration has it.
fn parent(column: &Column) -> Option<&'static str> {
    let (parent, _) = column.constraint?.strip_prefix("REFERENCES ")?.split_once('(')?;
    Some(parent)
}

/// The last of ids that go on one by one behind `last`.
fn following(last: i64, ids: &Int64Array) -> Option<i64> {
    ids.values().iter().try_fold(last, |last, id| (last.checked_add(1) == Some(*id)).then_some(*id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::new_null_array;

    use super::*;
    use crate::schema::{Device, Segment, TraceEvent};

    /// Rows of a table that have only the columns given.
    fn batch(table: &Table, cells: &[(&str, &[Option<i64>])]) -> RecordBatch {
        let length = cells.first().map_or(0, |(_, cells)| cells.len());
        let columns = table.columns.iter().map(|column| {
            let found = cells.iter().find(|(name, _)| *name == column.name);
            let array: arrow::array::ArrayRef = match found {
                Some((_, cells)) => Arc::new(Int64Array::from(cells.to_vec())),
                None => new_null_array(&(column.batch_type)(), length),
            };
            (column.name, array, true)
        });
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    #[test]
    fn references_are_whole_missing_or_unknown() {
        let segments = |ids: &[Option<i64>]| batch(&Segment::TABLE, &[("id", ids), ("device_id", ids)]);
        let mut references = References::default();
        references.add(&Segment::TABLE, &segments(&[Some(1), Some(2)]));
        assert_eq!(references.verdict(&Segment::TABLE), Verdict::Missing("devices"));
        assert_eq!(references.verdict(&TraceEvent::TABLE), Verdict::Whole, "no row, no reference");
        references.add(&Device::TABLE, &batch(&Device::TABLE, &[("id", &[Some(1), Some(2)])]));
        assert_eq!(references.verdict(&Segment::TABLE), Verdict::Whole);
        let events = batch(&TraceEvent::TABLE, &[("device_id", &[Some(2), Some(0)])]);
        references.add(&TraceEvent::TABLE, &events);
        assert_eq!(references.verdict(&TraceEvent::TABLE), Verdict::Missing("devices"));
        let mut gaps = References::default();
        gaps.add(&Device::TABLE, &batch(&Device::TABLE, &[("id", &[Some(2)])]));
        gaps.add(&Segment::TABLE, &segments(&[Some(2)]));
        assert_eq!(gaps.verdict(&Segment::TABLE), Verdict::Unknown);
    }
}
