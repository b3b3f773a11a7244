//! The database in the making: SQLite writes its schema and the tables that stay small, [`DirectTable`] those that grow
//! with the events.
//!
//! Both write to the same file, in turns, so that no row waits in memory: each batch is a transaction of its own. The
//! database is made without a journal: it is nobody's yet, and whoever is interrupted throws it away.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::direct::DirectTable;
use super::insert::insert;
use super::page_file::PageFile;
use super::{ACTION, APPLICATION_ID, Indexes, SqliteOptions};
use crate::error::{Error, Result};
use crate::schema::{Allocation, TABLES, Table, TraceEvent, VERSION, create_index, create_table};
use crate::store::references::{References, Verdict};
use crate::store::worker::TableWriter;

/// Tables with a row for every event or for every second one. The others have one for a call stack, a block or less.
const GROWING: [&Table; 2] = [&TraceEvent::TABLE, &Allocation::TABLE];

/// Bytes of a page: what SQLite takes itself, and most disks.
const PAGE_SIZE: u16 = 4096;

/// A database in the making.
pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
    pages: PageFile,
    direct: Vec<DirectTable>,
    options: SqliteOptions,
    references: References,
}

impl Database {
    /// Creates the database at `path`, with all tables and without rows.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn create(path: &Path, options: SqliteOptions) -> Result<Self> {
        Self::with_pages(path, options, PAGE_SIZE)
    }

    /// As [`create`](Self::create), with pages of so many bytes.
    pub(super) fn with_pages(path: &Path, options: SqliteOptions, page_size: u16) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed(path))?;
        let tables: Vec<String> = TABLES.iter().map(|table| create_table(table)).collect();
        let batch = format!(
            "PRAGMA page_size = {page_size};
             PRAGMA journal_mode = OFF;
             PRAGMA synchronous = OFF;
             PRAGMA foreign_keys = OFF;
             PRAGMA cache_size = -32768;
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {VERSION};
             BEGIN; {}; COMMIT",
            tables.join(";")
        );
        connection.execute_batch(&batch).map_err(failed(path))?;
        let pages = PageFile::open(path)?;
        let direct = GROWING.iter().map(|table| {
            let direct = DirectTable::new(table, pages.page_size());
            match options.indexes {
                Indexes::Make => direct.with_indexes(pages.page_size()),
                Indexes::LeaveOut => direct,
            }
        });
        let direct = direct.collect();
        let references = References::default();
        Ok(Self { path: path.to_owned(), connection, pages, direct, options, references })
    }

    /// The database with all rows inserted by SQLite.
    #[cfg(test)]
    pub(super) fn without_direct_tables(self) -> Self {
        Self { direct: Vec::new(), ..self }
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(failed(&self.path))
    }

    /// A transaction of SQLite's.
    fn turn(&mut self, write: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.pages.publish()?;
        self.batch("BEGIN")?;
        write(self)?;
        self.batch("COMMIT")?;
        self.pages.adopt()
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

    /// Puts the tables that were written directly in their places.
    fn place(&mut self) -> Result<()> {
        let root = |name: &str| {
            self.connection
                .query_row("SELECT rootpage FROM sqlite_master WHERE name = ?1", [name], |row| row.get(0))
                .map_err(failed(&self.path))
        };
        let direct = std::mem::take(&mut self.direct);
        direct.into_iter().try_for_each(|table| table.finish(root, &mut self.pages))
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
        match self.direct.iter_mut().find(|direct| direct.table().name == table.name) {
            Some(direct) => direct.add(batch, &mut self.pages),
            None => self
                .turn(|database| insert(&database.connection, table, batch).map_err(failed(&database.path))),
        }
    }

    fn finish(mut self) -> Result<()> {
        let left: Vec<&str> = self.direct.iter().flat_map(DirectTable::left_indexes).collect();
        // SQLite sees no rows yet in the tables that were written directly, and has nothing to sort for their indexes.
        self.turn(|database| {
            database.make_indexes()?;
            database.make_views()
        })?;
        self.place()?;
        self.turn(|database| {
            left.iter().try_for_each(|index| database.batch(&format!("REINDEX {index}")))?;
            database.check_references()
        })?;
        let Self { path, connection, .. } = self;
        connection.close().map_err(|(_connection, error)| failed(&path)(error))?;
        let file = File::open(&path).map_err(Error::io(&path, "cannot open"))?;
        file.sync_all().map_err(Error::io(&path, "cannot bring to the disk"))
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
