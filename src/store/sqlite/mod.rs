//! Tables become one SQLite database, written on a thread of its own.
//!
//! SQLite writes the schema and the small tables. The pages of the large tables are written here, see [`direct`]: all that
//! the modules beside it say of the file is from the description of the format, <https://sqlite.org/fileformat2.html>.

mod cell;
mod database;
mod direct;
mod groups;
mod index;
mod insert;
mod keys;
mod page;
mod page_file;
mod record;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use std::path::Path;

use arrow::array::RecordBatch;

use super::worker::Worker;
use crate::error::Result;
use crate::schema::Table;
use crate::snapshot::RowSink;
use database::Database;

const ACTION: &str = "cannot write the SQLite database";

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
