//! The tables and macros of a snapshot under their names: the snapshot's own bare, another's with its schema in front.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemorySchemaProvider, TableFunctionImpl, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::ParquetReadOptions;

use super::Engine;
use super::explain::query_error;
use super::kept::Kept;
use super::sql_macro::{SqlMacro, catalog};
use super::table_function::{self, TableFunction};
use crate::error::{Error, Result};
use crate::schema::{TABLES, Table};
use crate::store::Store;

/// Catalog and schema of the session: where a bare name is looked up.
pub(super) const CATALOG: &str = "datafusion";
pub(super) const OWN: &str = "public";

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

    fn new_schema(&self, schema: &str) -> Result<()> {
        let catalog = self.context.catalog(CATALOG);
        let free =
            catalog.as_ref().filter(|catalog| !catalog.schema_names().iter().any(|name| name == schema));
        let Some(catalog) = free else {
            return Err(Error::Usage {
                what: format!("schema `{schema}`"),
                reason: "there is one of this name already".to_owned(),
            });
        };
        catalog
            .register_schema(schema, Arc::new(MemorySchemaProvider::new()))
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
        for table in TABLES {
            let path = store.table_path(table.name);
            let location = location(&path);
            let columns = view_schema(table);
            let options = ParquetReadOptions::default().schema(&columns);
            let name = TableReference::partial(schema, table.name);
            self.runtime
                .block_on(self.context.register_parquet(name, location, options))
                .map_err(Error::store(path, "cannot read"))?;
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
        // What stands above is called by its bare name, whose snapshot it belongs to.
        for (called, (definition, plan)) in &self.macros {
            if *called == qualified(schema, definition.name) {
                let function = TableFunction::new(definition.clone(), plan.clone());
                state.register_udtf(definition.name, Arc::new(function));
            }
        }
        for definition in catalog()?.into_iter().filter(wanted) {
            let name = definition.name;
            let failed = |source| query_error(name, &source);
            let plan = self.runtime.block_on(state.create_logical_plan(definition.body)).map_err(failed)?;
            let view =
                table_function::bind(&plan, &definition, &definition.unrestricted()).map_err(failed)?;
            let provider: Arc<dyn TableProvider> = if definition.kept {
                Arc::new(Kept::new(view))
            } else {
                Arc::new(ViewTable::new(view, Some(definition.body.to_owned())))
            };
            self.register(schema, name, provider)?;
            let function: Arc<dyn TableFunctionImpl> =
                Arc::new(TableFunction::new(definition.clone(), plan.clone()));
            let called = qualified(schema, name);
            state.register_udtf(name, Arc::clone(&function));
            self.context.register_udtf(&called, function);
            self.macros.insert(called, (definition, plan));
        }
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
