//! Call stacks as a nested column.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringBuilder, StructBuilder, builder::Int64Builder};
use arrow::datatypes::{DataType, Field, Fields};

use super::column::ColumnValue;
use super::interned::Names;

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
    /// Appends a call stack.
    pub(crate) fn push(&mut self, frames: &[FrameRow]) {
        for frame in frames {
            self.append(frame);
        }
        self.0.append(true);
    }

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

    fn extend<R>(builder: &mut Self::Builder, rows: &[R], value: impl Fn(&R) -> &Self) {
        for row in rows {
            builder.push(value(row));
        }
    }

    fn finish(builder: &mut Self::Builder, _names: &dyn Names) -> ArrayRef {
        Arc::new(builder.0.finish())
    }
}
