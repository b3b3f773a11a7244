//! Relations as typed rows: `row!` declares a row struct, columns are found by name, never by position.
//!
//! A NULL in a column whose Rust type is not an `Option` is an error, never a default.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};

/// A small relation, all of it in memory.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Names and types of the columns, also where there are no rows.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl Rows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows as structs.
    ///
    /// # Errors
    /// A column is missing, has another type, or is NULL where the struct has no `Option`.
    pub fn read<R: Row>(&self) -> Result<Vec<R>> {
        check::<R>(&self.schema)?;
        let mut rows = Vec::with_capacity(self.len());
        for batch in &self.batches {
            for index in 0..batch.num_rows() {
                rows.push(R::read(batch, index)?);
            }
        }
        Ok(rows)
    }
}

/// A struct declared by `row!`.
pub trait Row: Sized {
    /// The relation it reads.
    const RELATION: &'static str;
    /// Its columns: name and SQL type.
    const COLUMNS: &'static [(&'static str, &'static str)];

    /// Reads one row.
    ///
    /// # Errors
    /// A column is missing, has another type, or is NULL where the struct has no `Option`.
    fn read(batch: &RecordBatch, index: usize) -> Result<Self>;
}

/// Compares the columns that `R` declares with those of `schema`.
///
/// # Errors
/// The first column that is missing or has another type.
pub fn check<R: Row>(schema: &Schema) -> Result<()> {
    for (column, expected) in R::COLUMNS.iter().copied() {
        let found = match schema.column_with_name(column) {
            Some((_, field)) => sql_type(field.data_type()),
            None => "no such column".to_owned(),
        };
        if found != expected {
            return Err(Error::Column { relation: R::RELATION, column, expected, found });
        }
    }
    Ok(())
}

/// Name of a type in SQL; types that no relation uses keep Arrow's name.
#[must_use]
pub fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "VARCHAR".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        other => other.to_string(),
    }
}

/// A Rust type that a column's value can be read as.
pub trait Cell: Sized {
    /// SQL type of the column.
    const SQL_TYPE: &'static str;

    /// The value at `index`; `None` where it is NULL and the type has no place for that, or where the type is another.
    fn read(column: &dyn Array, index: usize) -> Option<Self>;
}

impl Cell for i64 {
    const SQL_TYPE: &'static str = "BIGINT";

    fn read(column: &dyn Array, index: usize) -> Option<Self> {
        let column = column.as_primitive_opt::<Int64Type>()?;
        column.is_valid(index).then(|| column.value(index))
    }
}

impl Cell for f64 {
    const SQL_TYPE: &'static str = "DOUBLE";

    fn read(column: &dyn Array, index: usize) -> Option<Self> {
        let column = column.as_primitive_opt::<Float64Type>()?;
        column.is_valid(index).then(|| column.value(index))
    }
}

impl Cell for String {
    const SQL_TYPE: &'static str = "VARCHAR";

    fn read(column: &dyn Array, index: usize) -> Option<Self> {
        if !column.is_valid(index) {
            return None;
        }
        // The engine gives text back in whichever layout the plan ended with.
        if let Some(column) = column.as_string_view_opt() {
            return Some(column.value(index).to_owned());
        }
        if let Some(column) = column.as_string_opt::<i32>() {
            return Some(column.value(index).to_owned());
        }
        column.as_string_opt::<i64>().map(|column| column.value(index).to_owned())
    }
}

impl<T: Cell> Cell for Option<T> {
    const SQL_TYPE: &'static str = T::SQL_TYPE;

    fn read(column: &dyn Array, index: usize) -> Option<Self> {
        if column.is_valid(index) { T::read(column, index).map(Some) } else { Some(None) }
    }
}

/// The value of the column called `name`.
///
/// # Errors
/// The column is missing, has another type, or is NULL where `T` has no place for that.
pub fn cell<T: Cell>(
    batch: &RecordBatch,
    relation: &'static str,
    name: &'static str,
    index: usize,
) -> Result<T> {
    let column = batch.column_by_name(name);
    column.and_then(|column| T::read(column.as_ref(), index)).ok_or_else(|| Error::Column {
        relation,
        column: name,
        expected: T::SQL_TYPE,
        found: match column {
            None => "no such column".to_owned(),
            Some(column) if column.is_null(index) => format!("NULL in row {index}"),
            Some(column) => sql_type(column.data_type()),
        },
    })
}

/// Declares the struct of one row of a relation, read by column name.
///
/// ```text
/// row! {
///     /// Memory of one device.
///     pub struct DeviceMemory from "device_overview" {
///         /// Device, as the snapshot numbers it.
///         device_index: i64,
///         /// (reserved - allocated) / reserved; NULL where nothing is reserved.
///         fragmentation_ratio: Option<f64>,
///     }
/// }
/// ```
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident from $relation:literal {
        $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        $vis struct $name {
            $($(#[$field_meta])* pub $field: $type),+
        }

        impl $crate::engine::Row for $name {
            const RELATION: &'static str = $relation;
            const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), <$type as $crate::engine::Cell>::SQL_TYPE)),+];

            fn read(batch: &arrow::record_batch::RecordBatch, index: usize) -> $crate::error::Result<Self> {
                Ok(Self {
                    $($field: $crate::engine::cell(batch, $relation, stringify!($field), index)?),+
                })
            }
        }
    };
}
pub(crate) use row;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, StringViewArray};

    use super::*;

    row! {
        /// What the tests read.
        struct Sample from "sample" {
            /// Never NULL.
            size: i64,
            /// May be NULL.
            share: Option<f64>,
            /// Text.
            name: Option<String>,
        }
    }

    fn rows(columns: Vec<(&str, ArrayRef)>) -> Rows {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        Rows { schema: batch.schema(), batches: vec![batch] }
    }

    fn message(result: Result<Vec<Sample>>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name_and_null_is_none() {
        let rows = rows(vec![
            ("name", Arc::new(StringViewArray::from(vec![Some("a"), None]))),
            ("other", Arc::new(Int64Array::from(vec![7, 7]))),
            ("share", Arc::new(Float64Array::from(vec![None, Some(0.5)]))),
            ("size", Arc::new(Int64Array::from(vec![1, 2]))),
        ]);
        assert_eq!(
            rows.read::<Sample>().unwrap(),
            [
                Sample { size: 1, share: None, name: Some("a".to_owned()) },
                Sample { size: 2, share: Some(0.5), name: None },
            ]
        );
    }

    #[test]
    fn null_where_a_value_is_promised_names_the_column() {
        let rows = rows(vec![
            ("name", Arc::new(StringArray::from(vec![Some("a")]))),
            ("share", Arc::new(Float64Array::from(vec![Some(0.5)]))),
            ("size", Arc::new(Int64Array::from(vec![None::<i64>]))),
        ]);
        assert_eq!(
            message(rows.read::<Sample>()),
            "relation `sample`, column `size`: expected BIGINT, found NULL in row 0"
        );
    }

    #[test]
    fn a_missing_or_retyped_column_is_an_error_also_without_rows() {
        let missing = rows(vec![("size", Arc::new(Int64Array::from(Vec::<i64>::new())))]);
        assert_eq!(
            message(missing.read::<Sample>()),
            "relation `sample`, column `share`: expected DOUBLE, found no such column"
        );
        let retyped = rows(vec![("size", Arc::new(Float64Array::from(Vec::<f64>::new())))]);
        assert_eq!(
            message(retyped.read::<Sample>()),
            "relation `sample`, column `size`: expected BIGINT, found DOUBLE"
        );
    }
}
