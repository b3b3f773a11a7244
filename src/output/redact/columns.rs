//! Columns of rows with every text in them redacted, however deep in lists and structs it lies.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    StringArray, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;

/// What is done with a text.
pub(super) type Apply<'a> = &'a dyn Fn(&str) -> String;

/// The type of a redacted column: texts are plain strings, and nothing is a dictionary.
pub(super) fn redacted_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::Dictionary(_, values) if holds_text(values) => redacted_type(values),
        DataType::List(field) => DataType::List(redacted_field(field)),
        DataType::LargeList(field) => DataType::LargeList(redacted_field(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(redacted_field(field), *length),
        DataType::Map(field, ordered) => DataType::Map(redacted_field(field), *ordered),
        DataType::Struct(fields) => DataType::Struct(redacted_fields(fields)),
        // Types that no query of ours gives: as texts they are safe at least.
        other if holds_text(other) => DataType::Utf8,
        other => other.clone(),
    }
}

fn redacted_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(redacted_type(field.data_type())))
}

fn redacted_fields(fields: &Fields) -> Fields {
    fields.iter().map(redacted_field).collect()
}

/// Whether there can be a text in a value of the type.
fn holds_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => true,
        DataType::Dictionary(_, values) => holds_text(values),
        DataType::List(field)
        | DataType::ListView(field)
        | DataType::LargeList(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => holds_text(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_text(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| holds_text(field.data_type())),
        _ => false,
    }
}

/// The column with `apply` on every text in it, of the type that [`redacted_type`] gives.
pub(super) fn redacted(column: &ArrayRef, apply: Apply<'_>) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        own if !holds_text(own) => Arc::clone(column),
        DataType::Dictionary(_, values) => redacted(&cast(column, values)?, apply)?,
        DataType::List(field) => Arc::new(list::<i32>(column.as_list(), field, apply)?),
        DataType::LargeList(field) => Arc::new(list::<i64>(column.as_list(), field, apply)?),
        DataType::FixedSizeList(field, length) => {
            let list = column.as_fixed_size_list();
            let values = redacted(list.values(), apply)?;
            Arc::new(FixedSizeListArray::try_new(
                redacted_field(field),
                *length,
                values,
                list.nulls().cloned(),
            )?)
        }
        DataType::Map(field, ordered) => {
            let map = column.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = redacted(&entries, apply)?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(redacted_field(field), offsets, entries, nulls, *ordered)?)
        }
        DataType::Struct(fields) => {
            let parts = column.as_struct();
            let columns =
                parts.columns().iter().map(|part| redacted(part, apply)).collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new(redacted_fields(fields), columns, parts.nulls().cloned())?)
        }
        _ => {
            let plain = cast(column, &DataType::Utf8)?;
            let texts = plain.as_string::<i32>().iter().map(|text| text.map(apply));
            Arc::new(texts.collect::<StringArray>())
        }
    })
}

fn list<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    field: &FieldRef,
    apply: Apply<'_>,
) -> Result<GenericListArray<O>, ArrowError> {
    let values = redacted(list.values(), apply)?;
    GenericListArray::try_new(redacted_field(field), list.offsets().clone(), values, list.nulls().cloned())
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int64Array, ListArray, StringViewArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Int32Type;

    use super::*;

    fn shout(text: &str) -> String {
        text.to_uppercase()
    }

    #[test]
    fn a_text_is_found_in_lists_structs_and_dictionaries() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("b")]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let fields =
            vec![Field::new("name", DataType::Utf8View, true), Field::new("line", DataType::Int64, true)];
        let frames: ArrayRef =
            Arc::new(StructArray::new(fields.into(), vec![texts, Arc::clone(&numbers)], None));
        let item = Arc::new(Field::new("item", frames.data_type().clone(), true));
        let stacks: ArrayRef =
            Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2, 1]), frames, None));
        let made = redacted(&stacks, &shout).unwrap();
        assert_eq!(*made.data_type(), redacted_type(stacks.data_type()));
        let frames = made.as_list::<i32>().values().as_struct().clone();
        assert_eq!(frames.column(0).as_string::<i32>(), &StringArray::from(vec![Some("A"), None, Some("B")]));
        assert_eq!(frames.column(1).as_ref(), numbers.as_ref());

        let coded: ArrayRef = Arc::new(["x", "y", "x"].into_iter().collect::<DictionaryArray<Int32Type>>());
        let made = redacted(&coded, &shout).unwrap();
        assert_eq!(made.as_string::<i32>(), &StringArray::from(vec!["X", "Y", "X"]));
        assert!(Arc::ptr_eq(&redacted(&numbers, &shout).unwrap(), &numbers));
    }
}
