//! The values of a column of a batch, by what SQLite makes of them.

use arrow::array::{
    Array as _, ArrowPrimitiveType, AsArray as _, Float64Array, Int32Array, Int64Array, PrimitiveArray,
    RecordBatch, StringArray,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};

use super::record::Record;
use crate::schema::Table;

/// The values of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    Integer(&'a Int64Array),
    Real(&'a Float64Array),
    Text(&'a StringArray),
    Interned(&'a Int32Array, &'a StringArray),
}

impl<'a> Values<'a> {
    /// The values of the column called `column`.
    ///
    /// # Errors
    /// There is no such column, or SQLite has nothing like it.
    pub(super) fn of(batch: &'a RecordBatch, column: &str) -> Result<Self, rusqlite::Error> {
        let missing = || rusqlite::Error::InvalidColumnName(column.to_owned());
        let array = batch.column_by_name(column).ok_or_else(missing)?;
        let interned = || {
            let dictionary = array.as_dictionary_opt::<Int32Type>()?;
            Some(Self::Interned(dictionary.keys(), dictionary.values().as_string_opt()?))
        };
        array
            .as_primitive_opt::<Int64Type>()
            .map(Self::Integer)
            .or_else(|| array.as_primitive_opt::<Float64Type>().map(Self::Real))
            .or_else(|| array.as_string_opt().map(Self::Text))
            .or_else(interned)
            .ok_or_else(missing)
    }

    /// All columns that SQLite has of `table`.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(super) fn of_table(table: &Table, batch: &'a RecordBatch) -> Result<Vec<Self>, rusqlite::Error> {
        table.sqlite_columns().map(|column| Self::of(batch, column.name)).collect()
    }

    /// Whether all rows have the same value.
    pub(super) fn is_steady(&self) -> bool {
        match self {
            Self::Integer(values) => is_steady(values),
            Self::Interned(codes, _) => is_steady(codes),
            Self::Real(values) => values.null_count() == values.len(),
            Self::Text(values) => values.null_count() == values.len(),
        }
    }

    /// Appends the value of a row to a record.
    pub(super) fn put(&self, row: usize, record: &mut Record) {
        match self {
            Self::Integer(values) if values.is_valid(row) => record.integer(values.value(row)),
            Self::Real(values) if values.is_valid(row) => record.real(values.value(row)),
            Self::Text(values) if values.is_valid(row) => record.text(values.value(row)),
            Self::Interned(codes, texts) if codes.is_valid(row) => match usize::try_from(codes.value(row)) {
                Ok(code) => record.text(texts.value(code)),
                Err(_negative) => record.null(),
            },
            _ => record.null(),
        }
    }
}

fn is_steady<T: ArrowPrimitiveType<Native: PartialEq>>(values: &PrimitiveArray<T>) -> bool {
    match values.null_count() {
        0 => values.values().iter().zip(values.values().iter().skip(1)).all(|(one, next)| one == next),
        nulls => nulls == values.len(),
    }
}
