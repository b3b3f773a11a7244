//! What can go wrong, by what the reader of the message can do about it.

use std::io;
use std::path::PathBuf;

use crate::pickle::PickleError;

/// Result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A source of another library's making, kept for the message only.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Everything that ends a command with exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("`{}`: {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, such as `cannot open`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The bytes are neither a pickle nor JSON that a snapshot can be in.
    #[error("`{}`{within}", path.display())]
    Pickle {
        /// The file.
        path: PathBuf,
        /// Whose bytes the offset counts, where they are not the file's own.
        within: String,
        /// What and where.
        source: PickleError,
    },
    /// The pickle is fine, what it holds is not a snapshot.
    #[error("`{}`: {at}: expected {expected}, found {found}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Field path, such as `segments[3].blocks[0].size`, with the byte offset behind it.
        at: String,
        /// What a snapshot has there.
        expected: String,
        /// What the file has there.
        found: String,
    },
    /// A store could not be written or read.
    #[error("`{}`: {action}", path.display())]
    Store {
        /// The store.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The library's reason.
        source: Cause,
    },
    /// The store was written by another version of npusnap.
    #[error("`{}` has table version {found}, this npusnap reads version {expected}", path.display())]
    Version {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version this program reads.
        expected: i64,
    },
    /// A name that is not one of ours.
    #[error("no {kind} called `{name}`")]
    Unknown {
        /// `macro`, `table`, `mode`, …
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// A command line value that cannot be used.
    #[error("{what}: {reason}")]
    Usage {
        /// The argument.
        what: String,
        /// Why not.
        reason: String,
    },
    /// A query failed.
    #[error("query `{relation}` failed")]
    Query {
        /// Name of the relation, or the text of the user's query.
        relation: String,
        /// The engine's reason.
        source: Cause,
    },
    /// A relation did not have the columns the code relies on.
    #[error("relation `{relation}`, column `{column}`: expected {expected}, found {found}")]
    Column {
        /// Name of the relation.
        relation: &'static str,
        /// Name of the column.
        column: &'static str,
        /// Type the code expects.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Some of several snapshots could not be ingested; each said why.
    #[error("{failed} of {total} snapshots could not be ingested")]
    Several {
        /// How many failed.
        failed: usize,
        /// How many there were.
        total: usize,
    },
    /// Standard output could not be written.
    #[error("cannot write the output")]
    Output {
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// Wraps an I/O error with its path and what was tried.
    pub fn io(path: impl Into<PathBuf>, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, action, source }
    }

    /// Wraps a store library's error with its path and what was tried.
    pub fn store<E: Into<Cause>>(path: impl Into<PathBuf>, action: &'static str) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Store { path, action, source: source.into() }
    }

    /// The message, its causes and what to do next, as `out` shows them to a person.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn report(&self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "error: {self}")?;
        let mut cause = std::error::Error::source(self);
        while let Some(source) = cause {
            writeln!(out, "  caused by: {source}")?;
            cause = source.source();
        }
        self.hint().map_or(Ok(()), |hint| writeln!(out, "\nhint: {hint}"))
    }

    /// Whether the reader of our output went away, which is no failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What to do next, where we know it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Pickle { source, .. } => source.hint().map(str::to_owned),
            Self::Shape { .. } => Some(
                "a snapshot is what `torch_npu.npu.memory._dump_snapshot()` or `torch.cuda.memory._dump_snapshot()` \
                 writes: a dict with `segments` and `device_traces`, or a list of segments"
                    .to_owned(),
            ),
            Self::Version { .. } => Some("ingest the snapshot again: `npusnap ingest SNAPSHOT --force`".to_owned()),
            Self::Unknown { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space, or choose another folder with `-o DIR`".to_owned())
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Some("choose a folder that can be written with `-o DIR`".to_owned())
            }
            _ => None,
        }
    }
}
