//! Every relation of `sql/` on two engines: the same rows, the same query, the same text, the same answer.
//!
//! The `INSERT`s of a file go to SQLite, whose tables come from `schema::TABLES`; the DataFusion runs get a copy of
//! those rows, so that the engine stays read-only here too.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, new_empty_array};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use npusnap::engine::{self, BASE, Cell, Dialect, Engine, Options, SqlMacro, Value};
use npusnap::schema::{self, Table};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(Error);

fn failure(source: impl Into<Error>) -> Failure {
    Failure(source.into())
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => format!("{real:.6}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(_) => "(blob)".to_owned(),
    }
}

/// A SQLite database with the tables of a store and the views that `ingest` exports; a second one is attached as `base`,
/// and the relations that compare with it are temporary views, which alone see both.
pub(crate) fn sqlite() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute("ATTACH ':memory:' AS base", []).unwrap();
    for prefix in ["", "base."] {
        for table in schema::TABLES {
            let sql = schema::create_table(table);
            let sql = sql.replacen("CREATE TABLE ", &format!("CREATE TABLE {prefix}"), 1);
            connection.execute(&sql, []).unwrap();
        }
        for (name, sql) in engine::exported_views().unwrap() {
            connection.execute(&format!("CREATE VIEW {prefix}{name} AS {sql}"), []).unwrap();
        }
    }
    for definition in engine::catalog().unwrap().iter().filter(|it| it.needs_base && on_sqlite(it)) {
        let sql = definition.bound(&definition.unrestricted());
        connection.execute(&format!("CREATE TEMP VIEW {} AS {sql}", definition.name), []).unwrap();
    }
    connection
}

fn on_sqlite(definition: &SqlMacro) -> bool {
    definition.dialect == Dialect::Common
}

pub(crate) fn select(connection: &Connection, sql: &str) -> rusqlite::Result<(usize, Vec<Vec<String>>)> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(
            (0..columns).map(|column| Ok(text(row.get_ref(column)?))).collect::<rusqlite::Result<_>>()?,
        );
    }
    Ok((columns, found))
}

/// Whether the text asks for rows; everything else is an INSERT.
fn is_query(sql: &str) -> bool {
    let start = sql.trim_start().to_ascii_uppercase();
    start.starts_with("SELECT") || start.starts_with("WITH")
}

/// Writes the body of a macro in the place of its call, because SQLite has no table functions of ours.
fn expand(sql: &str, macros: &[SqlMacro]) -> String {
    let mut sql = sql.to_owned();
    for definition in macros.iter().filter(|definition| !definition.params.is_empty()) {
        let call = format!("FROM {}(", definition.name);
        while let Some(start) = sql.find(&call) {
            let from = start + call.len();
            let to = from + sql[from..].find(')').expect("a closed call");
            let arguments: Vec<Value> = sql[from..to]
                .split(',')
                .map(str::trim)
                .filter(|argument| !argument.is_empty())
                .zip(&definition.params)
                .map(|(argument, param)| Value::parse(param.sql_type, argument).expect("a value"))
                .collect();
            let body = definition.bound(&definition.positional(&arguments).unwrap());
            sql.replace_range(start..=to, &format!("FROM ({body})"));
        }
    }
    sql
}

struct Sqlite {
    connection: Connection,
    macros: Vec<SqlMacro>,
}

impl DB for Sqlite {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        if !is_query(sql) {
            let count = self.connection.execute(sql, []).map_err(failure)?;
            return Ok(DBOutput::StatementComplete(u64::try_from(count).map_err(failure)?));
        }
        let (columns, rows) = select(&self.connection, &expand(sql, &self.macros)).map_err(failure)?;
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }

    fn engine_name(&self) -> &'static str {
        "sqlite"
    }
}

struct DataFusion {
    rows: Connection,
    partitions: usize,
    /// Over the rows as they are now.
    engine: Option<Engine>,
}

/// Every table's rows as SQLite has them in one of its databases.
fn batches<'a>(connection: &Connection, prefix: &str) -> HashMap<&'a str, Vec<RecordBatch>> {
    let tables = schema::TABLES.iter();
    tables.map(|table| (table.name, vec![batch_of(connection, prefix, table)])).collect()
}

/// A table's rows as SQLite has them; the Parquet-only `frames` are left empty.
pub(crate) fn batch(connection: &Connection, table: &Table) -> RecordBatch {
    batch_of(connection, "", table)
}

fn batch_of(connection: &Connection, prefix: &str, table: &Table) -> RecordBatch {
    let columns = table.columns.iter().map(|column| {
        let data_type = (column.data_type)();
        let expression = match column.sqlite {
            Some(_) => format!("\"{}\"", column.name),
            None => "NULL".to_owned(),
        };
        let mut statement =
            connection.prepare(&format!("SELECT {expression} FROM {prefix}{}", table.name)).unwrap();
        let values = statement
            .query_map([], |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap()
            .collect::<rusqlite::Result<Vec<_>>>()
            .unwrap();
        let count = values.len();
        let array: ArrayRef = match data_type {
            DataType::Int64 => Arc::new(Int64Array::from_iter(values.into_iter().map(|value| match value {
                rusqlite::types::Value::Integer(integer) => Some(integer),
                _ => None,
            }))),
            DataType::Float64 => {
                Arc::new(Float64Array::from_iter(values.into_iter().map(|value| match value {
                    rusqlite::types::Value::Real(real) => Some(real),
                    _ => None,
                })))
            }
            DataType::Utf8 => Arc::new(StringArray::from_iter(values.into_iter().map(|value| match value {
                rusqlite::types::Value::Text(text) => Some(text),
                _ => None,
            }))),
            DataType::List(item) => Arc::new(arrow::array::ListArray::new(
                Arc::clone(&item),
                arrow::buffer::OffsetBuffer::from_lengths(std::iter::repeat_n(0, count)),
                new_empty_array(item.data_type()),
                None,
            )),
            other => panic!("no column has type {other}"),
        };
        array
    });
    RecordBatch::try_new(table.arrow(), columns.collect()).unwrap()
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> String {
    let array = batch.column(column).as_ref();
    match engine::sql_type(array.data_type()).as_str() {
        "BIGINT" => Option::<i64>::read(array, row).flatten().map(|integer| integer.to_string()),
        "DOUBLE" => Option::<f64>::read(array, row).flatten().map(|real| format!("{real:.6}")),
        "VARCHAR" => Option::<String>::read(array, row).flatten(),
        other => panic!("no test reads {other}"),
    }
    .unwrap_or_else(|| "NULL".to_owned())
}

/// The rows of a batch as text.
pub(crate) fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    (0..batch.num_rows())
        .map(|row| (0..batch.num_columns()).map(|column| cell(batch, column, row)).collect())
        .collect()
}

impl DB for DataFusion {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        if !is_query(sql) {
            self.engine = None;
            let count = self.rows.execute(sql, []).map_err(failure)?;
            return Ok(DBOutput::StatementComplete(u64::try_from(count).map_err(failure)?));
        }
        if self.engine.is_none() {
            let options = Options { partitions: self.partitions, ..Options::default() };
            self.engine = Some(Engine::in_memory(batches(&self.rows, ""), options).map_err(failure)?);
        }
        let Some(engine) = &mut self.engine else { return Err(failure("no engine")) };
        // Planning every relation once more takes its time: only where the query compares.
        if sql.contains("_compare") && !engine.is_attached(BASE) {
            engine.attach_in_memory(BASE, batches(&self.rows, "base.")).map_err(failure)?;
        }
        let batches = engine.query(sql).map_err(failure)?;
        let types = vec![DefaultColumnType::Any; batches.schema().fields().len()];
        let mut rows = Vec::new();
        for batch in batches {
            rows.extend(cells(&batch.map_err(failure)?));
        }
        Ok(DBOutput::Rows { types, rows })
    }

    fn engine_name(&self) -> &'static str {
        "datafusion"
    }
}

fn scripts() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Runs every script; while you work on one, `NPUSNAP_SLT` picks those whose names contain it.
fn run_all<D: DB + Send>(database: impl Fn() -> D) {
    let wanted = std::env::var("NPUSNAP_SLT").unwrap_or_default();
    let mut failures = Vec::new();
    for script in scripts().into_iter().filter(|script| script.to_string_lossy().contains(&wanted)) {
        let mut runner = Runner::new(|| std::future::ready(Ok(database())));
        if let Err(error) = runner.run_file(&script) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn relations_answer_the_same_on_sqlite() {
    run_all(|| Sqlite { connection: sqlite(), macros: engine::catalog().unwrap() });
}

#[test]
fn relations_answer_the_same_on_datafusion_in_one_partition() {
    run_all(|| DataFusion { rows: sqlite(), partitions: 1, engine: None });
}

#[test]
fn relations_answer_the_same_on_datafusion_in_four_partitions() {
    run_all(|| DataFusion { rows: sqlite(), partitions: 4, engine: None });
}

/// A private one may have one as well.
#[test]
fn every_public_relation_has_a_script_of_its_name() {
    let private: Vec<&str> = engine::catalog()
        .unwrap()
        .into_iter()
        .filter(SqlMacro::is_private)
        .map(|definition| definition.name)
        .collect();
    let mut names: Vec<String> = engine::catalog()
        .unwrap()
        .into_iter()
        .filter(|definition| !definition.is_private())
        .map(|definition| definition.name.to_owned())
        .collect();
    names.sort();
    let scripts: Vec<String> =
        scripts().iter().map(|script| script.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let (private, scripts): (Vec<String>, Vec<String>) =
        scripts.into_iter().partition(|script| private.contains(&script.as_str()));
    assert!(private.iter().all(|script| script.starts_with('_')));
    assert_eq!(scripts, names);
}
