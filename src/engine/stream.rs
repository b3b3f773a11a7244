//! Relations and tables that are large, as typed rows one after the other.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::prelude::{DataFrame, ident, lit};

use super::query::Batches;
use super::rows::{Row, check};
use super::{Engine, Value};
use crate::error::Result;

impl Engine {
    /// The relation of `sql/` that `R` reads, row by row; for relations that are large.
    ///
    /// # Errors
    /// As [`rows`](Self::rows); what goes wrong later is an item.
    pub fn stream<R: Row>(&self, params: &[(&str, Value)]) -> Result<RowStream<'_, R>> {
        let relation = self.definition(R::RELATION)?;
        let values = relation.definition.named(params)?;
        self.stream_frame(relation.frame(&self.context, &values))
    }

    /// The table that `R` reads, row by row in the order it is stored in; for tables that are large.
    ///
    /// Only rows are read whose column is in the range that `within` has for it; NULL is in none.
    ///
    /// # Errors
    /// The table cannot be read, or a column is not what `R` says; what goes wrong later is an item.
    pub fn scan<R: Row>(&self, within: &[(&str, RangeInclusive<i64>)]) -> Result<RowStream<'_, R>> {
        self.scan_table(TableReference::bare(R::RELATION), within)
    }

    /// [`scan`](Self::scan) of all rows of a table of the snapshot that is attached under this name.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn scan_in<R: Row>(&self, schema: &str) -> Result<RowStream<'_, R>> {
        self.scan_table(TableReference::partial(schema, R::RELATION), &[])
    }

    fn scan_table<R: Row>(
        &self,
        table: TableReference,
        within: &[(&str, RangeInclusive<i64>)],
    ) -> Result<RowStream<'_, R>> {
        let columns: Vec<&str> = R::COLUMNS.iter().map(|(name, _)| *name).collect();
        let run = async {
            let mut frame = self.context.table(table).await?;
            for (column, range) in within {
                let (first, last) = (lit(*range.start()), lit(*range.end()));
                frame = frame.filter(ident(*column).between(first, last))?;
            }
            let (mut state, plan) = frame.select_columns(&columns)?.into_parts();
            // More than one part would bring the rows in any order.
            state.config_mut().options_mut().execution.target_partitions = 1;
            Ok(DataFrame::new(state, plan))
        };
        self.stream_frame(run)
    }

    fn stream_frame<R: Row>(
        &self,
        frame: impl Future<Output = Result<DataFrame, DataFusionError>>,
    ) -> Result<RowStream<'_, R>> {
        let run = async {
            let frame = frame.await?;
            let schema = Arc::clone(frame.schema().inner());
            Ok((schema, frame.execute_stream().await?))
        };
        let started = self.runtime.caught(run);
        let (schema, stream) = started.map_err(|source| self.relation_failed(R::RELATION, &source))?;
        check::<R>(&schema)?;
        let batches = self.batches_of(R::RELATION, schema, stream);
        Ok(RowStream { batches, batch: None, row: PhantomData })
    }
}

/// Typed rows as they are computed.
#[expect(missing_debug_implementations, reason = "a stream has no useful text")]
pub struct RowStream<'a, R> {
    batches: Batches<'a>,
    /// The batch in hand, and its next row.
    batch: Option<(RecordBatch, usize)>,
    row: PhantomData<R>,
}

impl<R: Row> Iterator for RowStream<'_, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((batch, index)) = &mut self.batch
                && *index < batch.num_rows()
            {
                let row = R::read(batch, *index);
                *index += 1;
                return Some(row);
            }
            match self.batches.next()? {
                Ok(batch) => self.batch = Some((batch, 0)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
