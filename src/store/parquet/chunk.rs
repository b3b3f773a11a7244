//! A column chunk in the making: the pages of one column in one row group.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::buffer::NullBuffer;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::dictionary::Dictionary;
use super::encoding::{self, Storage};
use super::facts::{self, Facts, PageFacts};
use super::{bits, delta, runs};

/// The values of a page that are not NULL.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    Integers(&'a [i64]),
    /// Places in the chunk's dictionary, by [`Chunk::text`].
    Texts(&'a [u32]),
}

/// Compresses pages, one after the other, and lends the buffers that a page needs meanwhile: one set for all columns stays in
/// the near caches.
pub(super) struct Codec {
    zstd: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// A page before compression, and places in its dictionary.
    plain: Vec<u8>,
    places: Vec<u32>,
}

impl Codec {
    pub(super) fn new() -> Result<Self> {
        let zstd = zstd::bulk::Compressor::new(encoding::ZSTD_LEVEL)?;
        Ok(Self { zstd, packed: Vec::new(), plain: Vec::new(), places: Vec::new() })
    }

    fn compress(&mut self, page: &[u8]) -> Result<Bytes> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(page.len()));
        self.zstd.compress_to_buffer(page, &mut self.packed)?;
        Ok(Bytes::copy_from_slice(&self.packed))
    }
}

/// The pages so far.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    storage: Storage,
    dictionary: Dictionary,
    sink: TrackedWrite<Vec<u8>>,
    facts: Facts,
    last: Last,
}

/// Bytes of a page that is remembered at most: one of a column that has one value.
const SMALL_PAGE: usize = 256;

/// A page, encoded.
#[derive(Clone)]
struct Encoded {
    buf: Bytes,
    /// Bytes before compression.
    plain: usize,
    rows: usize,
    nulls: usize,
    encoding: Encoding,
    range: Option<(i64, i64)>,
}

/// The last page, and the rows that are known to be all of it. A column of one value has the same array in batch after batch.
#[derive(Default)]
struct Last {
    page: Option<Encoded>,
    rows: Option<ArrayRef>,
}

impl Chunk {
    /// A chunk of `column` without a page.
    pub(super) fn new(column: ColumnDescPtr, storage: Storage) -> Self {
        let sink = TrackedWrite::new(Vec::new());
        let dictionary = Dictionary::default();
        Self { column, storage, dictionary, sink, facts: Facts::default(), last: Last::default() }
    }

    /// The place of a text in the dictionary.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        self.dictionary.text(text)
    }

    /// Bytes of the dictionary.
    pub(super) fn dictionary_bytes(&self) -> usize {
        self.dictionary.bytes()
    }

    /// Adds a page.
    pub(super) fn page(
        &mut self,
        rows: usize,
        nulls: Option<&NullBuffer>,
        values: Values<'_>,
        codec: &mut Codec,
    ) -> Result<()> {
        let mut plain = std::mem::take(&mut codec.plain);
        plain.clear();
        if self.column.max_def_level() > 0 {
            runs::levels(rows, nulls, &mut plain);
        }
        let encoding = match values {
            // A column with nothing but NULLs needs no dictionary.
            Values::Integers([]) | Values::Texts([]) => Encoding::PLAIN,
            Values::Integers(values) if self.is_delta() => {
                delta::encode(values, &mut plain);
                Encoding::DELTA_BINARY_PACKED
            }
            Values::Integers(values) => {
                codec.places.clear();
                self.dictionary.integers(values, &mut codec.places);
                places(&codec.places, self.dictionary.len(), &mut plain);
                Encoding::RLE_DICTIONARY
            }
            Values::Texts(values) => {
                places(values, self.dictionary.len(), &mut plain);
                Encoding::RLE_DICTIONARY
            }
        };
        let nulls = nulls.map_or(0, NullBuffer::null_count);
        let (buf, range) = (codec.compress(&plain)?, self.range(values));
        let page = Encoded { buf, plain: plain.len(), rows, nulls, encoding, range };
        codec.plain = plain;
        self.put(page)
    }

    fn put(&mut self, page: Encoded) -> Result<()> {
        let Encoded { buf, plain, rows, nulls, encoding, range } = page.clone();
        let data = Page::DataPage {
            buf,
            num_values: facts::number(rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = SerializedPageWriter::new(&mut self.sink).write_page(CompressedPage::new(data, plain))?;
        self.facts.pages.push(PageFacts { spec, rows, nulls, encoding, range });
        self.last = Last { page: Some(page).filter(|page| page.buf.len() <= SMALL_PAGE), rows: None };
        Ok(())
    }

    /// Adds the last page once more, if `rows` are the very array that it is of.
    pub(super) fn again(&mut self, rows: &ArrayRef) -> Result<bool> {
        let Last { page: Some(page), rows: Some(last) } = &self.last else { return Ok(false) };
        if !rows.to_data().ptr_eq(&last.to_data()) {
            return Ok(false);
        }
        let page = page.clone();
        self.put(page)?;
        self.is_of(rows);
        Ok(true)
    }

    /// Notes that the last page is of these rows and no others, if it is small.
    pub(super) fn is_of(&mut self, rows: &ArrayRef) {
        let is_whole = self.last.page.as_ref().is_some_and(|page| page.rows == rows.len());
        self.last.rows = is_whole.then(|| Arc::clone(rows));
    }

    fn is_delta(&self) -> bool {
        self.storage != Storage::Dictionary || self.dictionary_bytes() > encoding::INTEGER_BYTES
    }

    /// Values that lie in no order leave no page out of a query.
    fn range(&self, values: Values<'_>) -> Option<(i64, i64)> {
        match values {
            Values::Integers(values) if self.storage != Storage::Dictionary => facts::range(values),
            _ => None,
        }
    }

    /// Completes the chunk: its bytes, the dictionary first, and what is said of them elsewhere in the file.
    pub(super) fn finish(mut self, codec: &mut Codec) -> Result<(Bytes, ColumnCloseResult)> {
        let mut sink = TrackedWrite::new(Vec::new());
        if self.dictionary.len() > 0 {
            let num_values = self.dictionary.len();
            let plain = std::mem::take(&mut self.dictionary).into_page();
            let page = Page::DictionaryPage {
                buf: codec.compress(&plain)?,
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let page = CompressedPage::new(page, plain.len());
            self.facts.dictionary = Some(SerializedPageWriter::new(&mut sink).write_page(page)?);
        }
        let mut bytes = sink.into_inner()?;
        bytes.append(&mut self.sink.into_inner()?);
        let close = self.facts.close(self.column, bytes.len(), self.storage != Storage::Dictionary)?;
        Ok((bytes.into(), close))
    }
}

/// Appends places in a dictionary of `len` values, with the bits of each before them. They are whole bytes, because a
/// training step that repeats is a sequence of places that repeats, and the codec sees it only from byte to byte.
fn places(places: &[u32], len: u32, page: &mut Vec<u8>) {
    let width = bits::width(u64::from(len.saturating_sub(1))).max(1).next_multiple_of(u8::BITS);
    page.push(u8::try_from(width).unwrap_or(u8::MAX));
    runs::numbers(places, width, page);
}
