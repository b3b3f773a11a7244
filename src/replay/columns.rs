//! Columns of the batches that pass by, by name.

use arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Int32Type, Int64Type};

use crate::error::{Error, Result};

/// A time that is not known.
pub(super) const NO_TIME: i64 = i64::MIN;

/// A batch that is not what its table declares, which only a mistake in npusnap can bring about.
pub(super) fn unexpected(column: &'static str) -> Error {
    let found = "a batch without it".to_owned();
    Error::Column { relation: "replay", column, expected: "the column the table declares", found }
}

/// A column.
pub(super) fn column<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| unexpected(name))
}

/// A column of integers.
pub(super) fn integers<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a Int64Array> {
    column(batch, name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| unexpected(name))
}

/// The texts of a column, interned or not.
pub(super) fn texts<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<Vec<Option<&'a str>>> {
    let array = column(batch, name)?;
    if let Some(plain) = array.as_string_opt::<i32>() {
        return Ok(plain.iter().collect());
    }
    let dictionary = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| unexpected(name))?;
    let names = dictionary.values().as_string_opt::<i32>().ok_or_else(|| unexpected(name))?;
    let text =
        |key: i32| usize::try_from(key).ok().filter(|key| *key < names.len()).map(|key| names.value(key));
    Ok(dictionary.keys().iter().map(|key| key.and_then(text)).collect())
}

/// Times with [`NO_TIME`] where there is none, and whether there are any; if not, they are left out.
pub(super) fn times(array: &Int64Array) -> (ScalarBuffer<i64>, bool) {
    match array.null_count() {
        0 => (array.values().clone(), true),
        nulls if nulls == array.len() => (Vec::new().into(), false),
        _ => (array.iter().map(|time| time.unwrap_or(NO_TIME)).collect::<Vec<_>>().into(), true),
    }
}

/// What all rows have, if it is the same.
#[expect(clippy::option_option, reason = "what all rows have may be NULL")]
pub(super) fn only(array: &Int64Array) -> Option<Option<i64>> {
    if array.null_count() == array.len() {
        return Some(None);
    }
    let first = array.values().first().copied();
    let is_only = array.null_count() == 0 && array.values().iter().all(|value| Some(*value) == first);
    is_only.then_some(first)
}

/// Numbers with 0 where there is none.
pub(super) fn zeros(array: &Int64Array) -> ScalarBuffer<i64> {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return array.values().clone();
    };
    let mut values = vec![0; array.len()];
    for (start, end) in nulls.valid_slices() {
        if let (Some(into), Some(from)) = (values.get_mut(start..end), array.values().get(start..end)) {
            into.copy_from_slice(from);
        }
    }
    values.into()
}
