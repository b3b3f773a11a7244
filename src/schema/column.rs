//! Column types: how one Rust type becomes a column builder, an Arrow type and a SQLite type.
//!
//! A builder is plain vectors that are *moved* into Arrow arrays, because ten million trace events pass through here.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringBuilder};
use arrow::datatypes::DataType;

use super::collect::Collect;
use super::interned::Names;

/// A Rust type that can stand in a table's column.
pub trait ColumnValue {
    /// Collects the column.
    type Builder: Default + Send;
    /// Type name in SQLite's DDL; `None` for a column that only Parquet has.
    const SQLITE: Option<&'static str>;
    /// Whether the column may hold NULL.
    const NULLABLE: bool;

    /// Arrow type the store shows to readers.
    fn data_type() -> DataType;
    /// Arrow type a batch carries on its way to the store; differs for interned strings only.
    #[must_use]
    fn batch_type() -> DataType {
        Self::data_type()
    }
    /// Appends the value of each row.
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self);
    /// Moves what was collected into an array and leaves the builder empty.
    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef;
}

impl ColumnValue for i64 {
    type Builder = Collect<i64>;
    const SQLITE: Option<&'static str> = Some("INTEGER");
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Int64
    }

    #[inline]
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| Some(*value(row))));
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        integers(builder)
    }
}

fn integers(builder: &mut Collect<i64>) -> ArrayRef {
    builder.finish(|values, nulls| Arc::new(Int64Array::new(values.into(), nulls)))
}

impl ColumnValue for Option<i64> {
    type Builder = Collect<i64>;
    const SQLITE: Option<&'static str> = Some("INTEGER");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Int64
    }

    #[inline]
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| *value(row)));
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        integers(builder)
    }
}

impl ColumnValue for Option<f64> {
    type Builder = Collect<f64>;
    const SQLITE: Option<&'static str> = Some("REAL");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Float64
    }

    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| *value(row)));
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        builder.finish(|values, nulls| Arc::new(Float64Array::new(values.into(), nulls)))
    }
}

impl ColumnValue for String {
    type Builder = StringBuilder;
    const SQLITE: Option<&'static str> = Some("TEXT");
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        for row in rows {
            builder.append_value(value(row));
        }
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl ColumnValue for Option<String> {
    type Builder = StringBuilder;
    const SQLITE: Option<&'static str> = Some("TEXT");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        for row in rows {
            builder.append_option(value(row).as_ref());
        }
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}
