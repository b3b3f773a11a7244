//! Column types: how one Rust type becomes a column builder, an Arrow type and a SQLite type.
//!
//! A builder is plain vectors that are *moved* into Arrow arrays, because ten million trace events pass through here.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, ListBuilder, StringBuilder, StructBuilder, builder::Int64Builder,
};
use arrow::array::{DictionaryArray, Int32Array, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type};
use hashbrown::HashMap;

/// An interned string, as the importer numbers it. The number means nothing outside one import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

/// Gives interned strings back; a column of [`Symbol`]s needs it once per batch.
pub trait Names {
    /// The text behind `symbol`; empty for a number that was never handed out.
    fn name(&self, symbol: Symbol) -> &str;
}

/// For tables without interned strings.
#[derive(Debug, Clone, Copy)]
pub struct NoNames;

impl Names for NoNames {
    fn name(&self, _symbol: Symbol) -> &'static str {
        ""
    }
}

/// One frame of a call stack, innermost first, as the nested Parquet column holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRow {
    /// Function name. Shared, because a frame stands in many stacks.
    pub name: Arc<str>,
    /// File the function is in; `??` where the symbolizer did not know.
    pub filename: Arc<str>,
    /// Line; -1 where the symbolizer did not know, 0 for C++ frames without source.
    pub line: i64,
}

/// A Rust type that can stand in a table's column.
pub trait ColumnValue: Sized {
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
    /// Appends a value.
    fn push(builder: &mut Self::Builder, value: Self);
    /// Moves what was collected into an array and leaves the builder empty.
    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef;
}

impl ColumnValue for i64 {
    type Builder = Vec<i64>;
    const SQLITE: Option<&'static str> = Some("INTEGER");
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Int64
    }

    #[inline]
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value);
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(Int64Array::from(take(builder)))
    }
}

/// Values and, from the first NULL on, a validity vector. NULLs before the first value are only counted: many columns
/// have nothing else.
#[derive(Debug, Default)]
pub struct Nullable<T> {
    nulls: usize,
    values: Vec<T>,
    valid: Vec<bool>,
}

/// Moves a batch's values out and makes room for as many again, so that the next batch need not grow step by step.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

impl<T: Default + Clone> Nullable<T> {
    #[inline]
    fn push(&mut self, value: Option<T>) {
        match value {
            Some(value) if self.nulls == 0 && self.valid.is_empty() => self.values.push(value),
            None if self.values.is_empty() => self.nulls += 1,
            value => self.push_mixed(value),
        }
    }

    /// Appends a value where there are NULLs, or a NULL where there are values.
    fn push_mixed(&mut self, value: Option<T>) {
        if self.valid.is_empty() {
            self.fill();
        }
        self.valid.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }

    /// Writes out what was only counted: so many NULLs, or no NULL among the values.
    #[cold]
    fn fill(&mut self) {
        self.valid.resize(self.nulls, false);
        self.valid.resize(self.nulls + self.values.len(), true);
        self.values.resize(self.valid.len(), T::default());
        self.nulls = 0;
    }

    fn take(&mut self) -> (Vec<T>, Option<NullBuffer>) {
        if self.nulls > 0 {
            let count = std::mem::take(&mut self.nulls);
            return (vec![T::default(); count], Some(NullBuffer::new_null(count)));
        }
        let nulls = (!self.valid.is_empty()).then(|| NullBuffer::from(take(&mut self.valid)));
        (take(&mut self.values), nulls)
    }
}

impl ColumnValue for Option<i64> {
    type Builder = Nullable<i64>;
    const SQLITE: Option<&'static str> = Some("INTEGER");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Int64
    }

    #[inline]
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value);
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        let (values, nulls) = builder.take();
        Arc::new(Int64Array::new(values.into(), nulls))
    }
}

impl ColumnValue for Option<f64> {
    type Builder = Nullable<f64>;
    const SQLITE: Option<&'static str> = Some("REAL");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Float64
    }

    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value);
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        let (values, nulls) = builder.take();
        Arc::new(Float64Array::new(values.into(), nulls))
    }
}

impl ColumnValue for String {
    type Builder = StringBuilder;
    const SQLITE: Option<&'static str> = Some("TEXT");
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn push(builder: &mut Self::Builder, value: Self) {
        builder.append_value(value);
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

    fn push(builder: &mut Self::Builder, value: Self) {
        builder.append_option(value);
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

/// Interned strings of one batch: each string is stored once, rows hold a number.
fn dictionary((keys, nulls): (Vec<u32>, Option<NullBuffer>), names: &dyn Names) -> ArrayRef {
    let mut local: HashMap<u32, i32, foldhash::fast::FixedState> = HashMap::default();
    let mut values: Vec<&str> = Vec::new();
    // Most rows repeat the string of one of the rows before.
    let mut last = [None; RECENT];
    let codes = keys.into_iter().enumerate().map(|(row, key)| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return 0;
        }
        let slot = usize::try_from(key).unwrap_or_default() % RECENT;
        match last.get(slot) {
            Some(Some((seen, code))) if *seen == key => return *code,
            _ => {}
        }
        let code = *local.entry(key).or_insert_with(|| {
            values.push(names.name(Symbol(key)));
            i32::try_from(values.len()).unwrap_or(i32::MAX).saturating_sub(1)
        });
        if let Some(last) = last.get_mut(slot) {
            *last = Some((key, code));
        }
        code
    });
    let codes: Vec<i32> = codes.collect();
    let values = StringArray::from(values);
    Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::new(codes.into(), nulls), Arc::new(values)))
}

/// Strings that are recognised without a look into the table of all.
const RECENT: usize = 64;

fn symbol_batch_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

impl ColumnValue for Symbol {
    type Builder = Vec<u32>;
    const SQLITE: Option<&'static str> = Some("TEXT");
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn batch_type() -> DataType {
        symbol_batch_type()
    }

    #[inline]
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value.0);
    }

    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef {
        dictionary((take(builder), None), names)
    }
}

impl ColumnValue for Option<Symbol> {
    type Builder = Nullable<u32>;
    const SQLITE: Option<&'static str> = Some("TEXT");
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn batch_type() -> DataType {
        symbol_batch_type()
    }

    #[inline]
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value.map(|symbol| symbol.0));
    }

    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef {
        dictionary(builder.take(), names)
    }
}

fn frame_fields() -> Fields {
    Fields::from(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("filename", DataType::Utf8, false),
        Field::new("line", DataType::Int64, false),
    ])
}

/// Collects call stacks as a list of structs.
#[derive(Debug)]
pub struct FramesBuilder(ListBuilder<StructBuilder>);

impl Default for FramesBuilder {
    fn default() -> Self {
        let item = Field::new("item", DataType::Struct(frame_fields()), false);
        let frame = StructBuilder::new(
            frame_fields(),
            vec![
                Box::new(StringBuilder::new()),
                Box::new(StringBuilder::new()),
                Box::new(Int64Builder::new()),
            ],
        );
        Self(ListBuilder::new(frame).with_field(item))
    }
}

impl FramesBuilder {
    fn append(&mut self, frame: &FrameRow) {
        let row = self.0.values();
        if let Some(name) = row.field_builder::<StringBuilder>(0) {
            name.append_value(&frame.name);
        }
        if let Some(filename) = row.field_builder::<StringBuilder>(1) {
            filename.append_value(&frame.filename);
        }
        if let Some(line) = row.field_builder::<Int64Builder>(2) {
            line.append_value(frame.line);
        }
        row.append(true);
    }
}

impl ColumnValue for Vec<FrameRow> {
    type Builder = FramesBuilder;
    const SQLITE: Option<&'static str> = None;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new("item", DataType::Struct(frame_fields()), false)))
    }

    fn push(builder: &mut Self::Builder, value: Self) {
        for frame in &value {
            builder.append(frame);
        }
        builder.0.append(true);
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(builder.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_stand_where_they_were_pushed() {
        let batches: [&[Option<i64>]; 6] = [
            &[],
            &[None, None],
            &[None, Some(1), None],
            &[Some(1), Some(2)],
            &[Some(1), None, Some(3)],
            &[None, None, Some(0), Some(4)],
        ];
        // One builder for all: what a batch leaves behind must not show in the next.
        let mut builder = Nullable::default();
        for batch in batches {
            for value in batch {
                Option::<i64>::push(&mut builder, *value);
            }
            let array = Option::<i64>::finish(&mut builder, &NoNames);
            let array = array.as_any().downcast_ref::<Int64Array>().unwrap();
            assert_eq!(array.iter().collect::<Vec<_>>(), batch);
        }
    }
}
