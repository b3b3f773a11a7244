//! Private relations that are worked out once: small, but made of millions of rows, and asked for by many others.
//!
//! A view is put into every query that names it, as often as it is named. One whose header says `@kept` runs the first
//! time a query needs it; from then on its rows stand in memory, and the planner knows how few they are: it puts them on
//! the small side of a join and leaves the large side in its order.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::{ExecutionPlan, collect};
use tokio::sync::OnceCell;

/// The plan of a relation, and its rows once they were needed.
pub(super) struct Kept {
    plan: LogicalPlan,
    rows: OnceCell<MemTable>,
}

impl Kept {
    pub(super) fn new(plan: LogicalPlan) -> Self {
        Self { plan, rows: OnceCell::new() }
    }

    /// Its rows; worked out on the engine's threads, so that whoever waits can stop waiting.
    async fn rows(&self, state: &dyn Session) -> Result<&MemTable> {
        let run = async {
            let plan = state.create_physical_plan(&self.plan).await?;
            let schema = plan.schema();
            let work = tokio::spawn(collect(plan, state.task_ctx()));
            let batches = work.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
            let batches = compact(&schema, batches, state.config().batch_size())?;
            MemTable::try_new(schema, vec![batches])
        };
        self.rows.get_or_try_init(|| run).await
    }
}

/// The rows in batches of this many, each in memory of its own: batches share what they are cut from, and views of a few
/// texts hold whole pages; whoever counts would take the sum for the size.
fn compact(schema: &SchemaRef, batches: Vec<RecordBatch>, rows: usize) -> Result<Vec<RecordBatch>> {
    let mut coalescer = BatchCoalescer::new(Arc::clone(schema), rows);
    let mut own = Vec::new();
    for batch in batches {
        coalescer.push_batch(batch)?;
        own.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
    }
    coalescer.finish_buffered_batch()?;
    own.extend(std::iter::from_fn(|| coalescer.next_completed_batch()));
    own.iter().map(shrunk).collect()
}

/// The batch without what texts it does not have take up.
fn shrunk(batch: &RecordBatch) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| match column.as_string_view_opt() {
        Some(views) => Arc::new(views.gc()) as ArrayRef,
        None => Arc::clone(column),
    };
    Ok(RecordBatch::try_new(batch.schema(), batch.columns().iter().map(column).collect())?)
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kept {{ known: {} }}", self.rows.initialized())
    }
}

// As `async_trait` would write it.
impl TableProvider for Kept {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn scan<'this, 'state, 'projection, 'filters, 'all>(
        &'this self,
        state: &'state dyn Session,
        projection: Option<&'projection Vec<usize>>,
        filters: &'filters [Expr],
        limit: Option<usize>,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'all>>
    where
        'this: 'all,
        'state: 'all,
        'projection: 'all,
        'filters: 'all,
        Self: 'all,
    {
        Box::pin(async move { self.rows(state).await?.scan(state, projection, filters, limit).await })
    }
}
