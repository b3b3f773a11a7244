//! Rows become files and are found again: Parquet (one file per table) and SQLite.

use std::path::{Path, PathBuf};

use crate::error::Result;

/// A folder of Parquet files that a query can read.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Finds the Parquet of `source`: a store is read in place; a snapshot is ingested first and kept for the next time.
    ///
    /// # Errors
    /// `source` cannot be read or is neither a store nor a snapshot.
    pub fn open(source: &Path) -> Result<Self> {
        Ok(Self { dir: source.to_owned() })
    }

    /// The Parquet file of a table.
    #[must_use]
    pub fn table_path(&self, table: &str) -> PathBuf {
        self.dir.join(format!("{table}.parquet"))
    }
}
