//! One snapshot becomes its files: decoded once, written by all stores, put in place when all of them are whole.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatch;

use super::cache;
use super::cache::Key;
use super::parquet::{self, ParquetSink};
use super::sqlite::{APPLICATION_ID, SqliteOptions, SqliteSink};
use super::staging::Staging;
use crate::error::{Error, Result};
use crate::replay::Replay;
use crate::schema::{TABLES, Table};
use crate::snapshot::{self, Progress, RowSink, Summary};

/// Size of blocks that are kept when they are freed; none of it is ever used.
const KEPT_BLOCK: usize = 8 << 20;

/// Name of the database in its staging folder.
const DATABASE: &str = "db";

/// What to do with a thing that stands where a result shall go and that npusnap did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Foreign {
    /// Leave it alone and fail.
    #[default]
    Refuse,
    /// Put the result in its place.
    Replace,
}

/// What an ingest writes.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The Parquet folder.
    pub parquet: PathBuf,
    /// The SQLite database, where one is wanted, and what is in it.
    pub sqlite: Option<(PathBuf, SqliteOptions)>,
    /// What may be replaced. Earlier results of npusnap always are.
    pub foreign: Foreign,
}

/// Hands every batch to several sinks.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "sinks are not required to be printable")]
pub struct Fanout<'a> {
    sinks: Vec<&'a mut dyn RowSink>,
}

impl<'a> Fanout<'a> {
    /// A fanout to `sinks`, in that order.
    #[must_use]
    pub fn new(sinks: Vec<&'a mut dyn RowSink>) -> Self {
        Self { sinks }
    }
}

impl RowSink for Fanout<'_> {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        // A batch is a handle on shared columns: copying it copies no rows.
        self.sinks.iter_mut().try_for_each(|sink| sink.write(table, batch.clone()))
    }
}

/// Decodes `source` into `targets`. On an error the targets are as they were.
///
/// A Parquet folder in the place where [`Store::open`](super::Store::open) looks for it remembers which state of the
/// file it is of, unless rows are left out; anywhere else it depends on nothing but the bytes of the snapshot and of the
/// files beside it that are read with it.
///
/// # Errors
/// The source is no snapshot, or a target cannot be written or is not npusnap's to replace.
pub fn ingest(
    source: &Path,
    options: &snapshot::Options,
    targets: Targets,
    progress: &dyn Progress,
) -> Result<Summary> {
    targets.check(source)?;
    let staging = Staging::new(&targets.parquet)?;
    let database = targets.sqlite.map(|(path, options)| Database::create(&path, options)).transpose()?;
    let is_for_all = options.filter.is_all() && cache::is_beside(&targets.parquet, source);
    let key = if is_for_all { Some(Key::of(source)?) } else { None };
    write(source, options, staging, database, key.as_ref(), progress)
}

/// Decodes `source` into what is staged, and puts it in its place.
pub(super) fn write(
    source: &Path,
    options: &snapshot::Options,
    staging: Staging,
    database: Option<Database>,
    key: Option<&Key>,
    progress: &dyn Progress,
) -> Result<Summary> {
    let mut renamed = vec![(staging.path().to_owned(), staging.target().to_owned())];
    renamed.extend(
        database.iter().map(|database| (database.staging.path().join(DATABASE), database.target.clone())),
    );
    let staged = stage(source, options, &staging, database, key, progress);
    let (summary, database) = staged.map_err(|error| under_final_name(error, &renamed))?;
    staging.commit_folder()?;
    if let Some((staging, target)) = database {
        // Only with leave to replace foreign things is there anything left beside the old database by now.
        journals(&target).for_each(|beside| drop(fs::remove_file(beside)));
        staging.commit_over_anything(DATABASE)?;
    }
    Ok(summary)
}

fn stage(
    source: &Path,
    options: &snapshot::Options,
    staging: &Staging,
    mut database: Option<Database>,
    key: Option<&Key>,
    progress: &dyn Progress,
) -> Result<(Summary, Option<(Staging, PathBuf)>)> {
    keep_memory();
    let mut parquet = ParquetSink::create(staging.path())?;
    let mut sinks: Vec<&mut dyn RowSink> = vec![&mut parquet];
    if let Some(database) = &mut database {
        sinks.push(&mut database.sink);
    }
    let mut fanout = Fanout::new(sinks);
    let mut replay = Replay::new(staging.path(), &mut fanout);
    let mut summary = snapshot::read(source, options, &mut replay, progress)?;
    summary.warnings += replay.finish(options, &summary)?;

    parquet.finish()?;
    key.map_or(Ok(()), |key| key.write(staging.path()))?;
    let database = database.map(Database::finish).transpose()?;
    Ok((summary, database))
}

/// Makes the C library keep large blocks that are freed for the next ones that are asked for. It takes all beyond 128 KiB from
/// the system anew, and the system hands them out page by page, until one of them was freed: then those of its size are
/// kept. Columns of a batch are such blocks. Where another library is in use, this does nothing.
fn keep_memory() {
    drop(black_box(Vec::<u8>::with_capacity(KEPT_BLOCK)));
}

/// The user asked for the final name; that of the staging place is gone by the time the message is read.
fn under_final_name(mut error: Error, renamed: &[(PathBuf, PathBuf)]) -> Error {
    if let Error::Io { path, .. } | Error::Store { path, .. } = &mut error {
        for (staged, target) in renamed {
            match path.strip_prefix(staged) {
                Ok(rest) if rest.as_os_str().is_empty() => target.clone_into(path),
                Ok(rest) => *path = target.join(rest),
                Err(_elsewhere) => {}
            }
        }
    }
    error
}

/// A database in the making.
pub(super) struct Database {
    target: PathBuf,
    // Before the folder it writes to: fields are dropped in this order.
    sink: SqliteSink,
    staging: Staging,
}

impl Database {
    fn create(target: &Path, options: SqliteOptions) -> Result<Self> {
        let staging = Staging::new(target)?;
        let path = staging.path().join(DATABASE);
        let sink = SqliteSink::create(&path, options)
            .map_err(|error| under_final_name(error, &[(path, target.to_owned())]))?;
        Ok(Self { target: target.to_owned(), sink, staging })
    }

    fn finish(self) -> Result<(Staging, PathBuf)> {
        self.sink.finish()?;
        Ok((self.staging, self.target))
    }
}

impl Targets {
    /// Refuses before the work what would be refused after it.
    fn check(&self, source: &Path) -> Result<()> {
        let database = self.sqlite.as_ref().map(|(path, _)| path);
        for target in [Some(&self.parquet), database].into_iter().flatten() {
            if same_file(source, target) {
                let reason =
                    "is the snapshot itself; choose another place for the result with `-o`".to_owned();
                return Err(Error::Usage { what: format!("`{}`", target.display()), reason });
            }
        }
        if self.foreign == Foreign::Replace {
            return Ok(());
        }
        if !is_replaceable_folder(&self.parquet) {
            return Err(foreign(&self.parquet));
        }
        match &self.sqlite {
            Some((path, _)) if !is_replaceable_database(path) => Err(foreign(path)),
            Some((path, _)) => check_unused(path),
            None => Ok(()),
        }
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn foreign(path: &Path) -> Error {
    Error::Usage {
        what: format!("`{}`", path.display()),
        reason:
            "is in the way and was not made by npusnap; `--force` replaces it, `-o` and `--sqlite` choose \
                 another place"
                .to_owned(),
    }
}

/// Nothing, an empty folder, or a store of npusnap, of whatever version, with nothing beside its own files in it.
pub(super) fn is_replaceable_folder(path: &Path) -> bool {
    if fs::symlink_metadata(path).is_err() {
        return true;
    }
    let Ok(entries) = fs::read_dir(path) else { return false };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let count = names.len();
    names.retain(|name| {
        name == cache::FILE || TABLES.iter().any(|table| name.strip_suffix(".parquet") == Some(table.name))
    });
    count == 0 || (names.len() == count && parquet::version(path).is_ok_and(|version| version.is_some()))
}

/// Nothing, an empty file, or a database with npusnap's mark in its header.
fn is_replaceable_database(path: &Path) -> bool {
    if fs::symlink_metadata(path).is_err() {
        return true;
    }
    // Whoever opens a pipe waits for somebody to write to it.
    if !path.is_file() {
        return false;
    }
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(72).read_to_end(&mut header));
    read.is_ok() && (header.is_empty() || header.get(68..72) == Some(APPLICATION_ID.to_be_bytes().as_slice()))
}

/// What SQLite leaves beside a database that is open, or whose last writer died.
fn journals(path: &Path) -> impl Iterator<Item = PathBuf> {
    // SQLite looks for them beside the file itself, not beside a link to it.
    let path = fs::canonicalize(path).unwrap_or_else(|_missing| path.to_owned());
    ["-wal", "-journal"].into_iter().map(move |suffix| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        PathBuf::from(beside)
    })
}

/// SQLite would replay a journal of the old database into the new one.
fn check_unused(path: &Path) -> Result<()> {
    let Some(journal) = journals(path).find(|journal| journal.exists()) else { return Ok(()) };
    Err(Error::Usage {
        what: format!("`{}`", path.display()),
        reason: format!(
            "another program has it open or ended while it wrote, as `{}` shows; close that program, or open the \
             database once with `sqlite3` so that it is put in order",
            journal.display()
        ),
    })
}
