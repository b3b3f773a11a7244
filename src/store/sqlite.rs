//! Tables become one SQLite database, written on a thread of its own.
//!
//! The database is made without a journal: it is nobody's yet, and whoever is interrupted throws it away.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use arrow::array::{
    Array as _, ArrowPrimitiveType, AsArray as _, Float64Array, Int32Array, Int64Array, PrimitiveArray,
    RecordBatch, StringArray,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, ToSql};

use super::references::{References, Verdict};
use super::worker::{TableWriter, Worker};
use crate::error::{Error, Result};
use crate::schema::{TABLES, Table, VERSION, create_index, create_table};
use crate::snapshot::RowSink;

const ACTION: &str = "cannot write the SQLite database";

/// Rows per INSERT: about the point where more of them save nothing.
const ROWS_PER_INSERT: usize = 100;

/// Marks a database as ours (`npus`), in the header field that SQLite leaves to applications.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"npus");

/// Whether the database gets its indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexes {
    /// All of them, after the rows.
    #[default]
    Make,
    /// None: the file is smaller and sooner done.
    LeaveOut,
}

/// What a database holds beside its rows.
#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// Indexes or none.
    pub indexes: Indexes,
    /// Views: name and the SELECT behind it, each using only those before it.
    pub views: Vec<(String, String)>,
}

/// Writes all tables into one SQLite database.
#[derive(Debug)]
pub struct SqliteSink {
    worker: Worker,
}

impl SqliteSink {
    /// Creates the database at `path`, where nothing is yet.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path, options: SqliteOptions) -> Result<Self> {
        let database = Database::create(path, options)?;
        Ok(Self { worker: Worker::spawn(path, database)? })
    }

    /// Makes indexes and views, checks the references and waits until all is on the disk.
    ///
    /// # Errors
    /// What any write since the start said, a view that SQLite does not understand, or a row that refers to a missing
    /// one.
    pub fn finish(self) -> Result<()> {
        self.worker.finish()
    }
}

impl RowSink for SqliteSink {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        self.worker.write(table, batch)
    }
}

struct Database {
    path: PathBuf,
    connection: Connection,
    options: SqliteOptions,
    references: References,
}

impl Database {
    fn create(path: &Path, options: SqliteOptions) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed(path))?;
        let references = References::default();
        let database = Self { path: path.to_owned(), connection, options, references };
        database.batch(&format!(
            "PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF;
             PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA foreign_keys = OFF;
             PRAGMA cache_size = -32768;
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {VERSION};
             BEGIN"
        ))?;
        TABLES.iter().try_for_each(|table| database.batch(&create_table(table)))?;
        Ok(database)
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(failed(&self.path))
    }

    fn insert(&self, table: &Table, batch: &RecordBatch) -> Result<(), rusqlite::Error> {
        let rest = batch.num_rows() % ROWS_PER_INSERT;
        let whole = batch.num_rows() - rest;
        if whole > 0 {
            let mut statement = self.connection.prepare(&insert(table, ROWS_PER_INSERT))?;
            // Half of the columns of a trace do not change within a batch, and a statement keeps what was bound.
            let (steady, varying) =
                columns(table, batch)?.into_iter().partition::<Vec<_>, _>(Column::is_steady);
            steady.iter().try_for_each(|column| column.bind(&mut statement, 0))?;
            for offset in (0..whole).step_by(ROWS_PER_INSERT) {
                varying.iter().try_for_each(|column| column.bind(&mut statement, offset))?;
                statement.raw_execute()?;
            }
        }
        if rest > 0 {
            let mut statement = self.connection.prepare(&insert(table, rest))?;
            columns(table, batch)?.iter().try_for_each(|column| column.bind(&mut statement, whole))?;
            statement.raw_execute()?;
        }
        Ok(())
    }

    fn make_indexes(&self) -> Result<()> {
        if self.options.indexes == Indexes::LeaveOut {
            return Ok(());
        }
        TABLES.iter().flat_map(|table| create_index(table)).try_for_each(|sql| self.batch(&sql))
    }

    /// SQLite takes any view that parses; asking it for no rows shows whether it means something.
    fn make_views(&self) -> Result<()> {
        self.options.views.iter().try_for_each(|(name, select)| {
            self.batch(&format!("CREATE VIEW \"{name}\" AS {select}"))?;
            self.connection
                .prepare(&format!("SELECT * FROM \"{name}\""))
                .map(drop)
                .map_err(failed(&self.path))
        })
    }

    fn check_references(&self) -> Result<()> {
        TABLES.iter().try_for_each(|table| match self.references.verdict(table) {
            Verdict::Whole => Ok(()),
            Verdict::Missing(parent) => {
                let reason =
                    format!("a row of `{}` refers to a row of `{parent}` that is not there", table.name);
                Err(Error::store(&self.path, ACTION)(reason))
            }
            Verdict::Unknown => self.look_up_references_of(table.name),
        })
    }

    fn look_up_references_of(&self, table: &str) -> Result<()> {
        let broken = self.connection.query_row(
            "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check(?1) LIMIT 1",
            [table],
            |row| {
                Ok(format!(
                    "row {} of `{}` refers to a row of `{}` that is not there",
                    row.get::<_, i64>(1)?,
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(2)?
                ))
            },
        );
        match broken {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
            Err(error) => Err(failed(&self.path)(error)),
            Ok(reason) => Err(Error::store(&self.path, ACTION)(reason)),
        }
    }
}

impl TableWriter for Database {
    fn write(&mut self, table: &'static Table, batch: &RecordBatch) -> Result<()> {
        self.references.add(table, batch);
        self.insert(table, batch).map_err(failed(&self.path))
    }

    fn finish(self) -> Result<()> {
        self.check_references()?;
        self.make_indexes()?;
        self.make_views()?;
        self.batch("COMMIT")?;
        let Self { path, connection, .. } = self;
        connection.close().map_err(|(_connection, error)| failed(&path)(error))?;
        let file = File::open(&path).map_err(Error::io(&path, "cannot open"))?;
        file.sync_all().map_err(Error::io(&path, "cannot bring to the disk"))
    }
}

/// `INSERT` of `rows` rows with one parameter per cell.
fn insert(table: &Table, rows: usize) -> String {
    let row = format!("({})", vec!["?"; table.sqlite_columns().count()].join(","));
    format!("INSERT INTO {} VALUES {}", table.name, vec![row; rows].join(","))
}

/// A column of a batch on its way into a statement.
struct Column<'a> {
    /// Number of its parameter in the first row.
    first: usize,
    /// Parameters of a row.
    width: usize,
    cells: Cells<'a>,
}

/// The cells of a column, by what SQLite makes of them.
enum Cells<'a> {
    Integer(&'a Int64Array),
    Real(&'a Float64Array),
    Text(&'a StringArray),
    Interned(&'a Int32Array, &'a StringArray),
}

fn columns<'a>(table: &Table, batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, rusqlite::Error> {
    let width = table.sqlite_columns().count();
    table
        .sqlite_columns()
        .zip(1..)
        .map(|(column, first)| Ok(Column { first, width, cells: Cells::of(batch, column.name)? }))
        .collect()
}

impl Column<'_> {
    /// Whether all rows have the same value.
    fn is_steady(&self) -> bool {
        match self.cells {
            Cells::Integer(cells) => is_steady(cells),
            Cells::Interned(codes, _) => is_steady(codes),
            Cells::Real(cells) => cells.null_count() == cells.len(),
            Cells::Text(cells) => cells.null_count() == cells.len(),
        }
    }

    /// Binds as many rows from `offset` on as there are, and as the statement has parameters for.
    fn bind(&self, statement: &mut Statement<'_>, offset: usize) -> Result<(), rusqlite::Error> {
        let parameters = (self.first..=statement.parameter_count()).step_by(self.width);
        let rows = statement.parameter_count() / self.width;
        match self.cells {
            Cells::Integer(cells) => bind(statement, parameters, cells.slice(offset, rows).iter()),
            Cells::Real(cells) => bind(statement, parameters, cells.slice(offset, rows).iter()),
            Cells::Text(cells) => bind(statement, parameters, cells.slice(offset, rows).iter()),
            Cells::Interned(codes, names) => {
                let codes = codes.slice(offset, rows);
                let names = codes.iter().map(|code| Some(names.value(usize::try_from(code?).ok()?)));
                bind(statement, parameters, names)
            }
        }
    }
}

fn is_steady<T: ArrowPrimitiveType<Native: PartialEq>>(cells: &PrimitiveArray<T>) -> bool {
    match cells.null_count() {
        0 => cells.values().iter().zip(cells.values().iter().skip(1)).all(|(one, next)| one == next),
        nulls => nulls == cells.len(),
    }
}

fn bind<T: ToSql>(
    statement: &mut Statement<'_>,
    parameters: impl Iterator<Item = usize>,
    cells: impl Iterator<Item = Option<T>>,
) -> Result<(), rusqlite::Error> {
    for (parameter, cell) in parameters.zip(cells) {
        statement.raw_bind_parameter(parameter, cell)?;
    }
    Ok(())
}

impl<'a> Cells<'a> {
    fn of(batch: &'a RecordBatch, column: &str) -> Result<Self, rusqlite::Error> {
        let missing = || rusqlite::Error::InvalidColumnName(column.to_owned());
        let array = batch.column_by_name(column).ok_or_else(missing)?;
        let interned = || {
            let dictionary = array.as_dictionary_opt::<Int32Type>()?;
            Some(Self::Interned(dictionary.keys(), dictionary.values().as_string_opt()?))
        };
        array
            .as_primitive_opt::<Int64Type>()
            .map(Self::Integer)
            .or_else(|| array.as_primitive_opt::<Float64Type>().map(Self::Real))
            .or_else(|| array.as_string_opt().map(Self::Text))
            .or_else(interned)
            .ok_or_else(missing)
    }
}

/// A full disk is told like any other full disk.
fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            Error::io(path, "cannot write")(io::Error::new(io::ErrorKind::StorageFull, error))
        }
        _ => Error::store(path, ACTION)(error),
    }
}
