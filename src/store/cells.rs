//! Values of a SQLite column become an Arrow array of the type the declared column has.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder, StringDictionaryBuilder};
use arrow::datatypes::{DataType, Int32Type};
use rusqlite::types::ValueRef;

use crate::error::Cause;
use crate::schema::{Collect, Column, ColumnValue, FrameRow, FramesBuilder, NoNames};

/// A column in the making, by what a batch has there.
pub(super) enum Cells {
    Integer(Collect<i64>),
    Real(Collect<f64>),
    Text(StringBuilder),
    Interned(StringDictionaryBuilder<Int32Type>),
    Frames(Box<FramesBuilder>),
}

impl Cells {
    /// No values yet, for a column of that type.
    pub(super) fn of(column: &Column) -> Self {
        match (column.batch_type)() {
            DataType::Int64 => Self::Integer(Collect::default()),
            DataType::Float64 => Self::Real(Collect::default()),
            DataType::Dictionary(..) => Self::Interned(StringDictionaryBuilder::new()),
            DataType::List(_) => Self::Frames(Box::default()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends a value, and says how many bytes of text it was.
    ///
    /// # Errors
    /// It is of another type, or no list of frames.
    pub(super) fn push(&mut self, value: ValueRef<'_>) -> Result<usize, Cause> {
        match self {
            Self::Integer(cells) => cells.push(value.as_i64_or_null()?),
            Self::Real(cells) => cells.push(value.as_f64_or_null()?),
            Self::Text(cells) => cells.append_option(value.as_str_or_null()?),
            Self::Interned(cells) => cells.append_option(value.as_str_or_null()?),
            Self::Frames(cells) => cells.push(&frames(value.as_str()?)?),
        }
        Ok(match value {
            ValueRef::Text(text) => text.len(),
            _ => 0,
        })
    }

    /// Moves the values out and is empty again.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(cells) => <Option<i64>>::finish(cells, &NoNames),
            Self::Real(cells) => <Option<f64>>::finish(cells, &NoNames),
            Self::Text(cells) => <Option<String>>::finish(cells, &NoNames),
            Self::Interned(cells) => Arc::new(cells.finish()),
            Self::Frames(cells) => <Vec<FrameRow>>::finish(cells, &NoNames),
        }
    }
}

/// The frames that the JSON of a call stack holds, whatever the order of its keys.
fn frames(json: &str) -> Result<Vec<FrameRow>, serde_json::Error> {
    let frames: Vec<serde_json::Value> = serde_json::from_str(json)?;
    let text = |frame: &serde_json::Value, key: &str| {
        frame.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().into()
    };
    Ok(frames
        .iter()
        .map(|frame| FrameRow {
            name: text(frame, "name"),
            filename: text(frame, "filename"),
            // CPython's "no such line" is -1 written without sign.
            line: frame.get("line").and_then(serde_json::Value::as_i64).unwrap_or(-1),
        })
        .collect())
}
