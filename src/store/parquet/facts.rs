//! What a Parquet file says of a column chunk beside its pages: metadata, statistics, and the indexes that find a page.

use parquet::basic::{BoundaryOrder, Compression, Encoding, Type};
use parquet::column::page::PageWriteSpec;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::encoding;

/// What is known of the pages of a chunk.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) dictionary: Option<PageWriteSpec>,
    pub(super) pages: Vec<PageFacts>,
}

/// What is known of a page.
pub(super) struct PageFacts {
    pub(super) spec: PageWriteSpec,
    pub(super) rows: usize,
    pub(super) nulls: usize,
    pub(super) encoding: Encoding,
    /// Smallest and largest value, where they are looked for and there is one.
    pub(super) range: Option<(i64, i64)>,
}

/// A count in the type that the format has for it.
pub(super) fn number<T: TryFrom<N>, N>(count: N) -> Result<T> {
    T::try_from(count).map_err(|_too_large| ParquetError::General("a column chunk is too large".to_owned()))
}

/// The smallest and the largest of the values, most of which climb.
pub(super) fn range(values: &[i64]) -> Option<(i64, i64)> {
    let (first, last) = (*values.first()?, *values.last()?);
    if values.is_sorted() {
        return Some((first, last));
    }
    Some(
        values
            .iter()
            .fold((first, first), |(smallest, largest), value| (smallest.min(*value), largest.max(*value))),
    )
}

impl Facts {
    /// Sums up a chunk of so many bytes that begins with its dictionary, if it has one. Smallest and largest values are
    /// given only where they are of use.
    pub(super) fn close(
        &self,
        column: ColumnDescPtr,
        bytes: usize,
        has_ranges: bool,
    ) -> Result<ColumnCloseResult> {
        let rows = self.pages.iter().map(|page| page.rows).sum::<usize>();
        let specs = self.dictionary.iter().chain(self.pages.iter().map(|page| &page.spec));
        let uncompressed = specs.map(|spec| spec.uncompressed_size).sum::<usize>();
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::ZSTD(encoding::zstd_level()?))
            .set_encodings(self.encodings())
            .set_total_compressed_size(number(bytes)?)
            .set_total_uncompressed_size(number(uncompressed)?)
            .set_num_values(number(rows)?)
            .set_data_page_offset(self.first_page()?)
            .set_dictionary_page_offset(self.dictionary.as_ref().map(|_| 0));
        if has_ranges {
            metadata = metadata.set_statistics(self.statistics()?);
        }
        Ok(ColumnCloseResult {
            bytes_written: number(bytes)?,
            rows_written: number(rows)?,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: if has_ranges { Some(self.column_index()?) } else { None },
            offset_index: Some(self.offset_index()?),
        })
    }

    /// Where the first page behind the dictionary begins.
    fn first_page(&self) -> Result<i64> {
        number(self.dictionary.as_ref().map_or(0, |spec| spec.bytes_written))
    }

    fn encodings(&self) -> Vec<Encoding> {
        let dictionary = self.dictionary.iter().map(|_| Encoding::PLAIN);
        let pages = self.pages.iter().map(|page| page.encoding);
        let mut all: Vec<Encoding> = std::iter::once(Encoding::RLE).chain(dictionary).chain(pages).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn statistics(&self) -> Result<Statistics> {
        let ranges = || self.pages.iter().filter_map(|page| page.range);
        let smallest = ranges().map(|(smallest, _)| smallest).min();
        let largest = ranges().map(|(_, largest)| largest).max();
        let nulls = self.pages.iter().map(|page| page.nulls).sum::<usize>();
        Ok(Statistics::int64(smallest, largest, None, Some(number(nulls)?), false))
    }

    fn column_index(&self) -> Result<ColumnIndexMetaData> {
        let mut index = ColumnIndexBuilder::new(Type::INT64);
        for page in &self.pages {
            let value = |of: fn((i64, i64)) -> i64| {
                page.range.map_or_else(Vec::new, |range| of(range).to_le_bytes().to_vec())
            };
            index.append(
                page.range.is_none(),
                value(|range| range.0),
                value(|range| range.1),
                number(page.nulls)?,
            );
        }
        let ranges: Vec<(i64, i64)> = self.pages.iter().filter_map(|page| page.range).collect();
        if ranges.is_sorted_by_key(|range| range.0) && ranges.is_sorted_by_key(|range| range.1) {
            index.set_boundary_order(BoundaryOrder::ASCENDING);
        }
        index.build()
    }

    fn offset_index(&self) -> Result<OffsetIndexMetaData> {
        let first = self.first_page()?;
        let mut index = OffsetIndexBuilder::new();
        for page in &self.pages {
            let offset: i64 = number(page.spec.offset)?;
            index.append_row_count(number(page.rows)?);
            index.append_offset_and_size(first.saturating_add(offset), number(page.spec.compressed_size)?);
        }
        Ok(index.build())
    }
}
