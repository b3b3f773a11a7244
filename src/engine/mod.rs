//! SQL over a store. The only module that names DataFusion.
//!
//! [`Engine`] owns the asynchronous runtime and blocks, so nothing above it is asynchronous. It is not for callers that
//! run inside a runtime themselves.

mod answers;
mod attach;
mod bounded;
mod checked_integers;
mod checked_sum;
mod constant;
mod correlated;
mod distinct;
mod doc;
mod explain;
mod kept;
mod memory;
mod names;
mod query;
mod relation;
mod rows;
mod runtime;
mod spread_keys;
mod sql_macro;
mod sql_text;
mod statement;
mod stream;
mod table_function;
mod value;
mod whole_aggregate;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};

use crate::error::{Error, Result};
use crate::schema;
use crate::store::{Scratch, Store};

pub use attach::{BASE, OWN};
pub use doc::{macro_list, macro_markdown, macro_summary, macro_text};
pub use explain::nearest;
pub use names::Names;
pub use query::{Batches, QueryOptions};
pub(crate) use rows::row;
pub use rows::{Cell, Row, Rows, cell, check, sql_type};
pub use sql_macro::{ColumnDoc, Dialect, Param, SqlMacro, catalog, exported_views};
pub use sql_text::{is_ended, parameters, statements};
pub use statement::{Asked, Thing};
pub use stream::RowStream;
pub use value::{SqlType, Value};

use answers::Answers;
use checked_sum::CheckedSum;
use explain::query_error;
use memory::Pool;
use relation::{Relation, Relations};
use runtime::Runtime;

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

impl Options {
    /// For who asks for many relations of `sql/`. Each is planned, and most are small: exchanges between two parts take a
    /// fifth more CPU time. And a part that is alone has all memory for its sorts, and keeps what is in order as it is.
    #[must_use]
    pub fn for_analyses() -> Self {
        Self { partitions: 1, memory_limit: 4 << 30 }
    }
}

/// Bytes that a sort sets aside for merging what it wrote to temporary files.
const MERGE_BYTES: usize = 10 << 20;

/// Rows of a batch, where there is memory enough; and fewest, where there is not.
const BATCH_ROWS: usize = 8192;
const FEWEST_ROWS: usize = 256;

/// The small side of a join goes whole to every part of the large one, up to this many bytes; or rows, where the bytes are
/// not known.
const BROADCAST_BYTES: usize = 64 << 20;
const BROADCAST_ROWS: usize = 1 << 20;

/// Bytes that a row may well have.
const ROW_BYTES: usize = 1024;

/// Answers queries over one snapshot, or over one and another it is compared with.
#[expect(missing_debug_implementations, reason = "the session has no useful text")]
pub struct Engine {
    runtime: Runtime,
    context: SessionContext,
    /// By the name they have in SQL.
    macros: HashMap<String, Arc<Relation>>,
    /// The same, as they are planned.
    relations: Vec<Arc<Relations>>,
    /// Keeps the files there as long as they may be read.
    stores: Vec<Store>,
    memory_limit: usize,
    answers: Answers,
    /// Where sorts and aggregations put what does not fit in memory; after what writes there, because it is removed then.
    _scratch: Option<Scratch>,
}

impl Engine {
    /// Opens a store for queries. Files are read when a query needs them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: Store, options: Options) -> Result<Self> {
        let mut engine = Self::start(options)?;
        engine.register_store(OWN, store)?;
        engine.register_macros(OWN)?;
        Ok(engine)
    }

    /// Answers queries over rows in memory; a table that is not among them is empty.
    ///
    /// # Errors
    /// A batch has not the schema of its table.
    pub fn in_memory(tables: HashMap<&str, Vec<RecordBatch>>, options: Options) -> Result<Self> {
        let mut engine = Self::start(options)?;
        engine.register_batches(OWN, tables)?;
        engine.register_macros(OWN)?;
        Ok(engine)
    }

    /// A relation of `sql/`, all of it; parameters that are not given have their defaults.
    ///
    /// # Errors
    /// There is no such relation or parameter, or the query fails.
    pub fn relation(&self, name: &str, params: &[(&str, Value)]) -> Result<Rows> {
        let relation = self.definition(name)?;
        let values = relation.definition.named(params)?;
        self.collected(name, format!("{name}{values:?}"), relation.frame(&self.context, &values))
    }

    /// The relation that `R` reads, as typed rows.
    ///
    /// # Errors
    /// As for [`relation`](Self::relation), and where a column is not what `R` says.
    pub fn rows<R: Row>(&self, params: &[(&str, Value)]) -> Result<Vec<R>> {
        self.relation(R::RELATION, params)?.read()
    }

    /// A table, all of it; for tables that are small. One of an attached snapshot has its schema in front.
    ///
    /// # Errors
    /// There is no such table, or it cannot be read.
    pub fn table(&self, name: &str) -> Result<Rows> {
        self.collected(name, name.to_owned(), self.context.table(name))
    }

    /// All rows of what `name` stands for, unless the same question was answered before.
    fn collected(
        &self,
        name: &str,
        question: String,
        frame: impl Future<Output = Result<DataFrame, DataFusionError>>,
    ) -> Result<Rows> {
        let run = async {
            let frame = frame.await?;
            let schema = Arc::clone(frame.schema().inner());
            Ok(Rows { schema, batches: frame.collect().await? })
        };
        let ask = || self.runtime.caught(run).map_err(|source| self.relation_failed(name, &source));
        self.answers.once(question, ask)
    }

    /// The table that `R` reads, all of it, as typed rows; for tables that are small.
    ///
    /// # Errors
    /// The table cannot be read, or a column is not what `R` says.
    pub fn table_rows<R: Row>(&self) -> Result<Vec<R>> {
        self.table(R::RELATION)?.read()
    }

    /// The parameters of a relation of `sql/`.
    ///
    /// # Errors
    /// There is no such relation.
    pub fn parameters(&self, name: &str) -> Result<&[Param]> {
        Ok(&self.definition(name)?.definition.params)
    }

    /// Columns of a relation of `sql/` or of a table, without running anything.
    ///
    /// # Errors
    /// There is no such relation.
    pub fn relation_schema(&self, name: &str) -> Result<SchemaRef> {
        let bare = name.rsplit('.').next().unwrap_or(name);
        if schema::table(bare).is_some() {
            let table = self.runtime.block_on(self.context.table(name));
            return table
                .map(|frame| Arc::clone(frame.schema().inner()))
                .map_err(|source| query_error(name, &source));
        }
        let planned = self.runtime.block_on(self.definition(name)?.planned());
        planned.map(|planned| planned.view.schema()).map_err(|source| query_error(name, &source))
    }

    /// Whether the relation that `R` reads has the columns that `R` says, without running anything.
    ///
    /// # Errors
    /// There is no such relation, or the first column that is missing or has another type.
    pub fn contract<R: Row>(&self) -> Result<()> {
        check::<R>(self.relation_schema(R::RELATION)?.as_ref())
    }

    fn start(options: Options) -> Result<Self> {
        let runtime = Runtime::start(options.partitions.max(1))
            .map_err(|source| query_error("start", &DataFusionError::IoError(source)))?;
        let mut config = SessionConfig::new()
            .with_target_partitions(options.partitions.max(1))
            .with_information_schema(true)
            .with_repartition_file_scans(false);
        // The files lie sorted by device and event: a scan that keeps its order saves the sort before every window.
        config.options_mut().optimizer.prefer_existing_sort = true;
        // What others are joined with is small: with a copy of it for every part, the large side stays in its order.
        config.options_mut().optimizer.hash_join_single_partition_threshold = BROADCAST_BYTES;
        config.options_mut().optimizer.hash_join_single_partition_threshold_rows = BROADCAST_ROWS;
        // A macro says in which order its rows come; the user of it need not repeat that.
        config.options_mut().sql_parser.enable_subquery_sort_elimination = false;
        // So that an error can say where in the query it is.
        config.options_mut().sql_parser.collect_spans = true;
        let share = options.memory_limit / options.partitions.max(1) / 4;
        config.options_mut().execution.sort_spill_reservation_bytes = (share / 4).min(MERGE_BYTES);
        // A sort cannot do with less than a few batches: where memory is short, a batch has fewer rows.
        let config = config.with_batch_size((share / ROW_BYTES).clamp(FEWEST_ROWS, BATCH_ROWS));
        // Whoever cannot have a folder of their own may still ask what fits in memory.
        let scratch = Scratch::new().ok();
        let spill = scratch.as_ref().map_or(DiskManagerMode::OsTmpDirectory, |scratch| {
            DiskManagerMode::Directories(vec![scratch.path().to_owned()])
        });
        let environment = RuntimeEnvBuilder::new()
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
            .with_memory_pool(Arc::new(Pool::new(options.memory_limit)))
            .build_arc()
            .map_err(|source| query_error("start", &source))?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(environment)
            .with_default_features()
            .with_optimizer_rules(spread_keys::rules())
            .build();
        let context = SessionContext::new_with_state(state);
        context.add_analyzer_rule(Arc::new(whole_aggregate::OneRow));
        context.add_analyzer_rule(Arc::new(checked_integers::CheckedIntegers));
        context.register_udaf(AggregateUDF::new_from_impl(CheckedSum::default()));
        bounded::register(&context, options.memory_limit);
        let memory_limit = options.memory_limit;
        let (macros, relations, stores) = (HashMap::new(), Vec::new(), Vec::new());
        let answers = Answers::default();
        let engine =
            Self { runtime, context, macros, relations, stores, memory_limit, answers, _scratch: scratch };
        engine.new_schema(OWN)?;
        Ok(engine)
    }

    fn definition(&self, name: &str) -> Result<&Relation> {
        self.macros.get(name).map(AsRef::as_ref).ok_or_else(|| Error::Unknown {
            kind: "macro",
            name: name.to_owned(),
            nearest: explain::nearest(name, self.macros.keys().map(String::as_str)),
        })
    }
}
