//! Columns of interned strings: a batch has each string once, and a number for it in each row.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type};
use hashbrown::HashMap;

use super::collect::Collect;
use super::column::ColumnValue;

/// Strings that are recognised without a look into the table of all.
const RECENT: usize = 64;

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
    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        builder.extend(rows.iter().map(|row| value(row).map(|symbol| symbol.0)));
    }

    fn finish(builder: &mut Self::Builder, names: &dyn Names) -> ArrayRef {
        builder.finish(|keys, nulls| dictionary(keys, nulls, names))
    }
}
