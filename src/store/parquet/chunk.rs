//! A column chunk in the making: the pages of one column in one row group.

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

/// Bytes a dictionary of integers may have; what comes after that is stored as differences.
const INTEGER_BYTES: usize = 1 << 20;

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
}

impl Chunk {
    /// A chunk of `column` without a page.
    pub(super) fn new(column: ColumnDescPtr, storage: Storage) -> Self {
        let sink = TrackedWrite::new(Vec::new());
        let dictionary = Dictionary::default();
        Self { column, storage, dictionary, sink, facts: Facts::default() }
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
        let page = Page::DataPage {
            buf: codec.compress(&plain)?,
            num_values: facts::number(rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, plain.len());
        codec.plain = plain;
        let spec = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        let nulls = nulls.map_or(0, NullBuffer::null_count);
        self.facts.pages.push(PageFacts { spec, rows, nulls, encoding, range: self.range(values) });
        Ok(())
    }

    fn is_delta(&self) -> bool {
        self.storage != Storage::Dictionary || self.dictionary_bytes() > INTEGER_BYTES
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
