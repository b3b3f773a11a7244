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

use super::collect::Collect;

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
pub trait ColumnValue: Clone {
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
    /// Appends the value of each row.
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        for row in rows {
            Self::push(builder, value(row).clone());
        }
    }
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
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(Some(value));
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
    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value);
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

    fn push(builder: &mut Self::Builder, value: Self) {
        builder.push(value);
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
fn dictionary(keys: Vec<u32>, nulls: Option<NullBuffer>, names: &dyn Names) -> ArrayRef {
    let mut local: HashMap<u32, i32, foldhash::fast::FixedState> = HashMap::default();
    let mut values: Vec<&str> = Vec::new();
    // Most rows repeat the string of one of the rows before.
    let mut last = [None; RECENT];
    let codes = keys.into_iter().enumerate().map(|(row, key)| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return 0;
        }
        let slot = usize::try_from(key).unwrap_or_default() % RECENT;
        if let Some(Some((seen, code))) = last.get(slot)
            && *seen == key
        {
            return *code;
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
    type Builder = Collect<u32>;
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
        builder.push(Some(value.0));
    }

    #[inline]
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| Some(value(row).0)));
    }

    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef {
        builder.finish(|keys, nulls| dictionary(keys, nulls, names))
    }
}

impl ColumnValue for Option<Symbol> {
    type Builder = Collect<u32>;
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

    #[inline]
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| value(row).map(|symbol| symbol.0)));
    }

    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef {
        builder.finish(|keys, nulls| dictionary(keys, nulls, names))
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
