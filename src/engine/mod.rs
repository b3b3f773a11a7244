//! SQL over a store. The only module that names DataFusion.
//!
//! [`Engine`] owns the asynchronous runtime and blocks, so nothing above it is asynchronous. It is not for callers that
//! run inside a runtime themselves.

mod doc;
mod explain;
mod rows;
mod sql_macro;
mod sql_text;
mod table_function;
mod value;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{ParquetReadOptions, SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt as _;

use crate::error::{Error, Result};
use crate::schema::{self, TABLES, Table};
use crate::store::Store;

pub use doc::{macro_list, macro_markdown, macro_text};
pub use explain::nearest;
pub(crate) use rows::row;
pub use rows::{Cell, Row, Rows, cell, check, sql_type};
pub use sql_macro::{ColumnDoc, Dialect, Param, SqlMacro, catalog, exported_views};
pub use value::{SqlType, Value};

use explain::query_error;
use table_function::TableFunction;

/// What an engine may use.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Parts a query is worked on in, each on a thread of its own.
    pub partitions: usize,
    /// Bytes that sorts and aggregations may hold before they go to temporary files.
    pub memory_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { partitions: 2, memory_limit: 2 << 30 }
    }
}

/// Answers queries over one snapshot.
#[expect(missing_debug_implementations, reason = "the session has no useful text")]
pub struct Engine {
    runtime: tokio::runtime::Runtime,
    context: SessionContext,
    macros: HashMap<&'static str, (SqlMacro, LogicalPlan)>,
    /// Keeps the files there as long as they may be read.
    _store: Option<Store>,
}

impl Engine {
    /// Opens a store for queries. Files are read when a query needs them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: Store, options: Options) -> Result<Self> {
        let mut engine = Self::start(options)?;
        for table in TABLES {
            let path = store.table_path(table.name);
            let location = path.to_string_lossy().into_owned();
            let schema = view_schema(table);
            engine
                .runtime
                .block_on(engine.context.register_parquet(
                    table.name,
                    location,
                    ParquetReadOptions::default().schema(&schema),
                ))
                .map_err(Error::store(path, "cannot read"))?;
        }
        engine.register_macros()?;
        Ok(Self { _store: Some(store), ..engine })
    }

    /// Answers queries over rows in memory; a table that is not among them is empty.
    ///
    /// # Errors
    /// A batch has not the schema of its table.
    pub fn in_memory(mut tables: HashMap<&str, Vec<RecordBatch>>, options: Options) -> Result<Self> {
        let mut engine = Self::start(options)?;
        for table in TABLES {
            let batches = tables.remove(table.name).unwrap_or_default();
            let provider = MemTable::try_new(table.arrow(), vec![batches])
                .map_err(|source| query_error(table.name, &source))?;
            engine.register(table.name, Arc::new(provider))?;
        }
        engine.register_macros()?;
        Ok(engine)
    }

    /// A relation of `sql/`, all of it; parameters that are not given have their defaults.
    ///
    /// # Errors
    /// There is no such relation or parameter, or the query fails.
    pub fn relation(&self, name: &str, params: &[(&str, Value)]) -> Result<Rows> {
        let (definition, plan) = self.definition(name)?;
        let values = definition.named(params)?;
        let run = async {
            let plan = table_function::bind(plan, definition, &values)?;
            let frame = self.context.execute_logical_plan(plan).await?;
            let schema = Arc::clone(frame.schema().inner());
            Ok(Rows { schema, batches: frame.collect().await? })
        };
        self.runtime.block_on(run).map_err(|source| query_error(name, &source))
    }

    /// The relation that `R` reads, as typed rows.
    ///
    /// # Errors
    /// As for [`relation`](Self::relation), and where a column is not what `R` says.
    pub fn rows<R: Row>(&self, params: &[(&str, Value)]) -> Result<Vec<R>> {
        self.relation(R::RELATION, params)?.read()
    }

    /// The table that `R` reads, all of it, as typed rows; for tables that are small.
    ///
    /// # Errors
    /// The table cannot be read, or a column is not what `R` says.
    pub fn table_rows<R: Row>(&self) -> Result<Vec<R>> {
        let run = async {
            let frame = self.context.table(R::RELATION).await?;
            let schema = Arc::clone(frame.schema().inner());
            Ok(Rows { schema, batches: frame.collect().await? })
        };
        self.runtime.block_on(run).map_err(|source| query_error(R::RELATION, &source))?.read()
    }

    /// Columns of a relation of `sql/` or of a table, without running anything.
    ///
    /// # Errors
    /// There is no such relation.
    pub fn relation_schema(&self, name: &str) -> Result<SchemaRef> {
        if schema::table(name).is_some() {
            let table = self.runtime.block_on(self.context.table(name));
            return table
                .map(|frame| Arc::clone(frame.schema().inner()))
                .map_err(|source| query_error(name, &source));
        }
        let (definition, plan) = self.definition(name)?;
        let plan = table_function::bind(plan, definition, &definition.named(&[])?);
        plan.map(|plan| Arc::clone(plan.schema().inner())).map_err(|source| query_error(name, &source))
    }

    /// Whether the relation that `R` reads has the columns that `R` says, without running anything.
    ///
    /// # Errors
    /// There is no such relation, or the first column that is missing or has another type.
    pub fn contract<R: Row>(&self) -> Result<()> {
        check::<R>(self.relation_schema(R::RELATION)?.as_ref())
    }

    /// Starts a query of the user's. It can read, and nothing else; its rows come batch by batch.
    ///
    /// # Errors
    /// The text is not one read-only statement, or names what there is not.
    pub fn query(&self, sql: &str) -> Result<Batches<'_>> {
        let read_only =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let run = async {
            let frame = self.context.sql_with_options(sql, read_only).await?;
            let schema = Arc::clone(frame.schema().inner());
            Ok((schema, frame.execute_stream().await?))
        };
        let (schema, stream) = self.runtime.block_on(run).map_err(|source| self.user_error(sql, &source))?;
        Ok(Batches { engine: self, sql: sql.to_owned(), schema, stream })
    }

    fn start(options: Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.partitions.max(1))
            .build()
            .map_err(|source| query_error("start", &DataFusionError::IoError(source)))?;
        let mut config = SessionConfig::new()
            .with_target_partitions(options.partitions.max(1))
            .with_information_schema(true)
            .with_repartition_file_scans(false);
        // The files lie sorted by device and event: a scan that keeps its order saves the sort before every window.
        config.options_mut().optimizer.prefer_existing_sort = true;
        // A macro says in which order its rows come; the user of it need not repeat that.
        config.options_mut().sql_parser.enable_subquery_sort_elimination = false;
        let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_limit), NonZeroUsize::MIN);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .build_arc()
            .map_err(|source| query_error("start", &source))?;
        let context = SessionContext::new_with_config_rt(config, environment);
        Ok(Self { runtime, context, macros: HashMap::new(), _store: None })
    }

    fn register(&self, name: &str, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.context.register_table(name, provider).map_err(|source| query_error(name, &source))?;
        Ok(())
    }

    /// Every macro can be called with arguments, and used without as a view: then it has its defaults and no limit.
    fn register_macros(&mut self) -> Result<()> {
        for definition in catalog()? {
            let name = definition.name;
            let state = self.context.state();
            let plan = self
                .runtime
                .block_on(state.create_logical_plan(definition.body))
                .map_err(|source| query_error(name, &source))?;
            let view = table_function::bind(&plan, &definition, &definition.unrestricted())
                .map_err(|source| query_error(name, &source))?;
            self.register(name, Arc::new(ViewTable::new(view, Some(definition.body.to_owned()))))?;
            let function = TableFunction::new(definition.clone(), plan.clone());
            self.context.register_udtf(name, Arc::new(function));
            self.macros.insert(name, (definition, plan));
        }
        Ok(())
    }

    fn definition(&self, name: &str) -> Result<&(SqlMacro, LogicalPlan)> {
        self.macros.get(name).ok_or_else(|| Error::Unknown {
            kind: "macro",
            name: name.to_owned(),
            nearest: explain::nearest(name, self.macros.keys().copied()),
        })
    }
}

/// Rows of a query as they are computed.
#[expect(missing_debug_implementations, reason = "a stream has no useful text")]
pub struct Batches<'a> {
    engine: &'a Engine,
    sql: String,
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
}

impl Batches<'_> {
    /// Names and types of the columns, also where there are no rows.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.engine.runtime.block_on(self.stream.next())?;
        Some(batch.map_err(|source| self.engine.user_error(&self.sql, &source)))
    }
}

/// The table's schema with text as views into the file's pages, which filters on it need not copy.
fn view_schema(table: &Table) -> Schema {
    let fields: Vec<Field> = table
        .arrow()
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 => field.as_ref().clone().with_data_type(DataType::Utf8View),
            _ => field.as_ref().clone(),
        })
        .collect();
    Schema::new(fields)
}
