//! Rows become files and are found again: Parquet (one file per table) and SQLite.
//!
//! A store under its final name is always whole: it is written beside it, brought to the disk and then renamed.

mod cache;
mod cells;
mod guard;
mod ingest;
mod locked;
mod parquet;
mod references;
mod source;
mod sqlite;
mod sqlite_read;
mod staging;
mod unfinished;
mod whole_file;
mod worker;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::schema::TABLES;
use crate::snapshot::{self, Progress};

pub(crate) use locked::Scratch;
use staging::Staging;

pub use guard::{READER, caught, damaged, quiet_panics};
pub use ingest::{Fanout, Foreign, Targets, ingest};
pub use parquet::ParquetSink;
pub use source::{Source, snapshots_of};
pub use sqlite::{Indexes, SqliteOptions, SqliteSink};
pub use unfinished::abandon;
pub use whole_file::WholeFile;

/// Whether a snapshot's Parquet is kept for the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// Beside the snapshot, else in the user's cache folder.
    #[default]
    Keep,
    /// It is made anew and removed at the end.
    Off,
}

/// Says nothing of how far an import is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn advance(&self, _bytes: u64, _events: u64) {}
}

/// A folder of Parquet files that a query can read.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    /// Removes the folder when nobody reads it any more.
    _temporary: Option<Scratch>,
}

impl Store {
    /// Finds the Parquet of `source`: a store is read in place; a snapshot is ingested first and kept for the
    /// next time; a SQLite database is copied into a temporary store, each time.
    ///
    /// # Errors
    /// `source` cannot be read, is neither a store nor a snapshot nor a database of one, or is a store of another table version.
    pub fn open(source: &Path) -> Result<Self> {
        Self::open_with(source, Cache::Keep, &Silent)
    }

    /// [`open`](Self::open) with a choice of where the Parquet goes, and a listener while it is made.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(source: &Path, cache: Cache, progress: &dyn Progress) -> Result<Self> {
        match Source::find(source)? {
            Source::Folder(dir) => Self::at(dir),
            Source::Database(path) => Self::copied(&path),
            // What comes through a pipe comes once, and nothing says whether it is the same the next time.
            Source::Snapshot(path) if cache == Cache::Keep && path.is_file() => Self::kept(&path, progress),
            Source::Snapshot(path) => Self::temporary(&path, progress),
        }
    }

    /// The Parquet file of a table.
    #[must_use]
    pub fn table_path(&self, table: &str) -> PathBuf {
        parquet::file(&self.dir, table)
    }

    /// The folder the files are in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads every table to its end.
    ///
    /// # Errors
    /// The first table that cannot be read.
    pub fn check(&self) -> Result<()> {
        TABLES.iter().try_for_each(|table| {
            guard::guarded(&self.table_path(table.name), || parquet::read_through(&self.dir, table.name))
        })
    }

    fn at(dir: PathBuf) -> Result<Self> {
        if !cache::is_addressable(&dir) {
            let reason = "has control characters or bytes that are no UTF-8 in its path, with which queries cannot name \
                          the files in it; give it another name";
            return Err(Error::Usage { what: format!("`{}`", dir.display()), reason: reason.to_owned() });
        }
        guard::guarded(&parquet::file(&dir, "snapshot"), || parquet::check(&dir))?;
        Ok(Self { dir, _temporary: None })
    }

    fn kept(source: &Path, progress: &dyn Progress) -> Result<Self> {
        let key = cache::Key::of(source)?;
        for place in cache::places(source, &key) {
            let dir = match place {
                // One that somebody took a table out of, cut short or wrote over is made again.
                cache::Place::Fresh(dir) if parquet::is_whole(&dir) => return Self::at(dir),
                cache::Place::Fresh(dir) | cache::Place::Free(dir) => dir,
            };
            // Where nothing can be written, or something of the user's would be lost, the next place is tried.
            let _there = fs::create_dir_all(staging::parent(&dir));
            if !ingest::is_replaceable_folder(&dir) {
                continue;
            }
            let Ok(staging) = Staging::new(&dir) else { continue };
            match ingest::write(source, &snapshot::Options::default(), staging, None, Some(&key), progress) {
                // The next place may be on another disk.
                Err(error) if error.is_disk_full() => {}
                Err(error) => return Err(error),
                Ok(_) => return Self::at(dir),
            }
        }
        Self::temporary(source, progress)
    }

    fn temporary(source: &Path, progress: &dyn Progress) -> Result<Self> {
        let (temporary, dir) = temporary_folder()?;
        let targets = Targets { parquet: dir.clone(), ..Targets::default() };
        ingest(source, &snapshot::Options::default(), targets, progress)?;
        Ok(Self { dir, _temporary: Some(temporary) })
    }

    fn copied(database: &Path) -> Result<Self> {
        let (temporary, dir) = temporary_folder()?;
        fs::create_dir(&dir).map_err(Error::io(&dir, "cannot create a folder for the result"))?;
        sqlite_read::copy(database, &dir)?;
        Ok(Self { dir, _temporary: Some(temporary) })
    }
}

/// A folder that is removed with its handle, and the place for a store in it.
fn temporary_folder() -> Result<(Scratch, PathBuf)> {
    let temporary = Scratch::new()?;
    let dir = temporary.path().join("snapshot.npusnap");
    Ok((temporary, dir))
}
