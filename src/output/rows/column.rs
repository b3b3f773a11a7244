//! Values of a batch's columns as text and as JSON.

use std::io::{self, Write as _};

use arrow::array::Array;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, FieldRef};
use arrow::json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// How values are turned into text; columns borrow it.
pub(super) struct Encoding {
    json: EncoderOptions,
    text: FormatOptions<'static>,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { json: EncoderOptions::default().with_explicit_nulls(true), text: FormatOptions::default() }
    }
}

/// A column of a batch, ready to give its values as text.
pub(in crate::output) struct Column<'a> {
    /// Also those that are NULL in a dictionary, or by their type.
    nulls: Option<NullBuffer>,
    nested: bool,
    text: ArrayFormatter<'a>,
    /// None for a type that JSON has no writer for; its text is a string then.
    json: Option<NullableEncoder<'a>>,
}

impl<'a> Column<'a> {
    pub(super) fn new(field: &'a FieldRef, array: &'a dyn Array, encoding: &'a Encoding) -> io::Result<Self> {
        let text = ArrayFormatter::try_new(array, &encoding.text).map_err(io::Error::other)?;
        let json = make_encoder(field, array, &encoding.json).ok();
        Ok(Self { nulls: array.logical_nulls(), nested: array.data_type().is_nested(), text, json })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value as JSON.
    pub(super) fn append_json(&mut self, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &mut self.json {
            Some(json) => json.encode(row, out),
            None => serde_json::to_writer(out, &self.text.value(row).to_string())?,
        }
        Ok(())
    }

    /// Appends the value as text, lists and structs as JSON, and says whether there is one: NULL has none.
    pub(super) fn append_text(&mut self, row: usize, out: &mut Vec<u8>) -> io::Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        if self.nested {
            self.append_json(row, out)?;
        } else {
            write!(out, "{}", self.text.value(row))?;
        }
        Ok(true)
    }

    /// The value as text, lists and structs as JSON; none where it is NULL.
    pub(in crate::output) fn text(&mut self, row: usize) -> io::Result<Option<String>> {
        let mut text = Vec::new();
        if !self.append_text(row, &mut text)? {
            return Ok(None);
        }
        String::from_utf8(text).map(Some).map_err(io::Error::other)
    }
}

/// Whether values of the type are numbers, which tables align to the right.
pub(in crate::output) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}
