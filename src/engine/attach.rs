//! The tables and macros of a snapshot under their names: the snapshot's own bare, another's with its schema in front.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::config::TableParquetOptions;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};

use super::Engine;
use super::explain::query_error;
use super::relation::{Names, Relations};
use super::sql_macro::{SqlMacro, catalog};
use super::table_function::TableFunction;
use crate::error::{Error, Result};
use crate::schema::{TABLES, Table, TraceEvent};
use crate::store::Store;

/// Catalog of the session.
pub(super) const CATALOG: &str = "datafusion";
/// Schema of the snapshot whose names are bare.
pub const OWN: &str = "public";

/// Schema of the snapshot that another is compared with.
pub const BASE: &str = "base";

impl Engine {
    /// Attaches a second snapshot: its tables, views and macros have the same names, with `schema` and a dot in front,
    /// in SQL as well as in [`relation`](Self::relation).
    ///
    /// # Errors
    /// The store cannot be read, or there is such a schema already.
    pub fn attach(&mut self, schema: &str, store: Store) -> Result<()> {
        self.new_schema(schema)?;
        self.register_store(schema, store)?;
        self.finish_attaching(schema)
    }

    /// Makes room for the names of a snapshot.
    pub(super) fn new_schema(&self, schema: &str) -> Result<()> {
        let catalog = self.context.catalog(CATALOG);
        let free = catalog.filter(|_| schema == OWN || !self.is_attached(schema));
        let Some(catalog) = free else {
            return Err(Error::Usage {
                what: format!("schema `{schema}`"),
                reason: "there is one of this name already".to_owned(),
            });
        };
        catalog
            .register_schema(schema, Arc::new(Names::default()))
            .map_err(|source| query_error(schema, &source))?;
        Ok(())
    }

    /// Registers the macros of what was attached; with a `base`, the ones that compare with it as well.
    fn finish_attaching(&mut self, schema: &str) -> Result<()> {
        self.register_macros(schema)?;
        if schema == BASE { self.register_where(OWN, |definition| definition.needs_base) } else { Ok(()) }
    }

    /// [`attach`](Self::attach) for rows in memory; a table that is not among them is empty.
    ///
    /// # Errors
    /// A batch has not the schema of its table, or there is such a schema already.
    pub fn attach_in_memory(&mut self, schema: &str, tables: HashMap<&str, Vec<RecordBatch>>) -> Result<()> {
        self.new_schema(schema)?;
        self.register_batches(schema, tables)?;
        self.finish_attaching(schema)
    }

    /// Whether a snapshot is attached under this name.
    #[must_use]
    pub fn is_attached(&self, schema: &str) -> bool {
        let names = self.context.catalog(CATALOG).map(|catalog| catalog.schema_names());
        names.is_some_and(|names| names.iter().any(|name| name == schema))
    }

    pub(super) fn register_store(&mut self, schema: &str, store: Store) -> Result<()> {
        let defaults = self.context.state().default_table_options().parquet;
        for table in TABLES {
            let path = store.table_path(table.name);
            let location = location(&path);
            let columns = view_schema(table);
            let name = TableReference::partial(schema, table.name);
            let options = listing(table, defaults.clone());
            let registered =
                self.context.register_listing_table(name, location, options, Some(columns.into()), None);
            self.runtime.block_on(registered).map_err(Error::store(path, "cannot read"))?;
        }
        self.stores.push(store);
        Ok(())
    }

    pub(super) fn register(&self, schema: &str, name: &str, provider: Arc<dyn TableProvider>) -> Result<()> {
        let reference = TableReference::partial(schema, name);
        self.context.register_table(reference, provider).map_err(|source| query_error(name, &source))?;
        Ok(())
    }

    pub(super) fn register_batches(
        &self,
        schema: &str,
        mut tables: HashMap<&str, Vec<RecordBatch>>,
    ) -> Result<()> {
        for table in TABLES {
            let schema_seen = Arc::new(plain_schema(table));
            let batches = tables.remove(table.name).unwrap_or_default();
            let batches: Vec<RecordBatch> = batches
                .into_iter()
                .map(|batch| RecordBatch::try_new(Arc::clone(&schema_seen), batch.columns().to_vec()))
                .collect::<Result<_, _>>()
                .map_err(|source| query_error(table.name, &source.into()))?;
            let provider = MemTable::try_new(schema_seen, vec![batches])
                .map_err(|source| query_error(table.name, &source))?;
            self.register(schema, table.name, Arc::new(provider))?;
        }
        Ok(())
    }

    /// The macros that need no other snapshot.
    pub(super) fn register_macros(&mut self, schema: &str) -> Result<()> {
        self.register_where(schema, |definition| !definition.needs_base)
    }

    /// Every macro can be called with arguments, and used without as a view: then it has its defaults and no limit.
    fn register_where(&mut self, schema: &str, wanted: impl Fn(&SqlMacro) -> bool) -> Result<()> {
        let mut state = self.state_of(schema);
        // What is there already is called by its bare name, whose snapshot it belongs to.
        for (called, relation) in &self.macros {
            let name = relation.definition.name;
            if *called == qualified(schema, name) {
                state.register_udtf(name, Arc::new(TableFunction::new(relation)));
            }
        }
        let definitions = catalog()?.into_iter().filter(wanted).collect();
        let relations = Relations::new(definitions, state);
        let catalog = self.context.catalog(CATALOG).and_then(|catalog| catalog.schema(schema));
        let names = catalog.as_ref().and_then(|schema| schema.downcast_ref::<Names>());
        for relation in relations.iter() {
            let called = qualified(schema, relation.definition.name);
            if let Some(names) = names {
                names.add(relation);
            }
            self.context.register_udtf(&called, Arc::new(TableFunction::new(relation)));
            self.macros.insert(called, Arc::clone(relation));
        }
        self.relations.push(relations);
        Ok(())
    }

    /// The session as the relations of a snapshot see it: a bare name is one of theirs.
    fn state_of(&self, schema: &str) -> SessionState {
        let state = self.context.state();
        let config = state
            .config()
            .clone()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, schema);
        SessionStateBuilder::new_from_existing(state).with_config(config).build()
    }
}

/// The name that a relation of a snapshot has in SQL.
pub(super) fn qualified(schema: &str, name: &str) -> String {
    if schema == OWN { name.to_owned() } else { format!("{schema}.{name}") }
}

/// How the file of a table is read.
fn listing(table: &Table, mut options: TableParquetOptions) -> ListingOptions {
    // Joins with a few slices of the history want few of millions of events: what else there is in the rows of the
    // others need not be decoded. Other tables are small, or most of their rows are wanted.
    options.global.pushdown_filters = table.name == TraceEvent::TABLE.name;
    ListingOptions::new(Arc::new(ParquetFormat::default().with_options(options)))
}

/// A file as the engine takes it for one: a plain path with `*`, `?` or `[` in it would be a pattern.
fn location(path: &Path) -> String {
    let absolute = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    let absolute = absolute.unwrap_or_else(|_| path.to_owned());
    let mut url = "file://".to_owned();
    for byte in absolute.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _infallible = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The table's schema without the docs that its columns carry, over which the planner stumbles where a UNION brings
/// columns with different ones together.
fn plain_schema(table: &Table) -> Schema {
    let fields = table.arrow();
    let fields = fields.fields().iter().map(|field| field.as_ref().clone().with_metadata(HashMap::new()));
    Schema::new(fields.collect::<Vec<Field>>())
}

/// [`plain_schema`] with text as views into the file's pages, which filters on it need not copy.
fn view_schema(table: &Table) -> Schema {
    let plain = plain_schema(table);
    let fields = plain.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => field.as_ref().clone().with_data_type(DataType::Utf8View),
        _ => field.as_ref().clone(),
    });
    Schema::new(fields.collect::<Vec<Field>>())
}
