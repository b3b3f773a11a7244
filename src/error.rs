//! What can go wrong, by what the reader of the message can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::pickle::PickleError;

/// Result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A source of another library's making, kept for the message only.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What was tried with a store's file that is damaged.
pub const UNREADABLE: &str = "cannot read the Parquet file";

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
    /// A query of the user's cannot be answered as it is.
    #[error("{reason}{}", place.as_ref().map(|place| format!("\n  at {place}")).unwrap_or_default())]
    Sql {
        /// What is wrong.
        reason: String,
        /// Where, if that is known.
        place: Option<Place>,
        /// What to do about it, if that is known.
        hint: Option<String>,
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
    /// Another error, of which the command knows better what to do next.
    #[error("{error}")]
    Advised {
        /// The error.
        error: Box<Error>,
        /// What to do.
        hint: String,
    },
    /// Standard output could not be written.
    #[error("cannot write the output")]
    Output {
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// Whether there was no room for what was to be written.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

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

    /// The same error with something else to do next.
    #[must_use]
    pub fn advise(self, hint: String) -> Self {
        Self::Advised { error: Box::new(self), hint }
    }

    /// The message, its causes and what to do next, as `out` shows them to a person.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn report(&self, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "error: {self}")?;
        let plain = if let Self::Advised { error, .. } = self { error } else { self };
        let mut cause = std::error::Error::source(plain);
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
            Self::Store { action: UNREADABLE, .. } => {
                Some("the file is damaged: ingest the snapshot again: `npusnap ingest SNAPSHOT --force`".to_owned())
            }
            Self::Sql { hint, .. } => hint.clone(),
            Self::Unknown { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::Advised { hint, .. } => Some(hint.clone()),
            Self::Io { path, source, action } => place_hint(path, source.kind(), action),
            _ => None,
        }
    }
}

/// What to do where something cannot be written; reading has no other place.
fn place_hint(path: &Path, reason: io::ErrorKind, action: &str) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (reason, folder) {
        (io::ErrorKind::StorageFull, _) => {
            Some("free some space, or choose another place with `-o`".to_owned())
        }
        (io::ErrorKind::ReadOnlyFilesystem, _) => {
            Some("choose a folder that can be written with `-o`".to_owned())
        }
        (io::ErrorKind::PermissionDenied, _) if action.starts_with("cannot create") => {
            Some("choose a folder that you may write to".to_owned())
        }
        (io::ErrorKind::NotFound, Some(folder)) if action == "cannot create" && !folder.exists() => {
            let folder = folder.display();
            Some(format!("there is no folder `{folder}`: make it first, as with `mkdir -p {folder}`"))
        }
        _ => None,
    }
}

/// Where in a text something is wrong; shown with the line and a mark under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    line: u64,
    column: u64,
    /// The line, or as much of it as fits.
    text: String,
    /// What stands before the mark, as blanks of the same width.
    indent: String,
}

impl Place {
    /// Characters of the line that are shown before and behind the mark.
    const AROUND: usize = 60;

    /// The place at `line` and `column` of `text`, both from 1; none where the text has no such place.
    #[must_use]
    pub fn find(text: &str, line: u64, column: u64) -> Option<Self> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let at = usize::try_from(column).ok()?.checked_sub(1)?;
        let whole: Vec<char> = text.lines().nth(index)?.chars().collect();
        if at > whole.len() {
            return None;
        }
        let (from, to) = (at.saturating_sub(Self::AROUND), at.saturating_add(Self::AROUND).min(whole.len()));
        let before: String = whole.get(from..at)?.iter().collect();
        let behind: String = whole.get(at..to)?.iter().collect();
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let before = format!("{}{before}", cut(from > 0));
        // A tab stays a tab, so that the mark stands where it does in the line.
        let indent = before.chars().map(|c| if c == '\t' { "\t".to_owned() } else { blanks(c) }).collect();
        Some(Self { line, column, text: format!("{before}{behind}{}", cut(to < whole.len())), indent })
    }
}

/// As many blanks as the character is wide.
fn blanks(symbol: char) -> String {
    " ".repeat(unicode_width::UnicodeWidthChar::width(symbol).unwrap_or(0))
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, column, text, indent } = self;
        write!(out, "line {line}, column {column}:\n    {text}\n    {indent}^")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_marked_under_its_character() {
        let shown = |text, line, column| Place::find(text, line, column).map(|place| place.to_string());
        let text = "SELECT 1,\n\t'内存' x y";
        assert_eq!(shown(text, 1, 8).as_deref(), Some("line 1, column 8:\n    SELECT 1,\n           ^"));
        assert_eq!(shown(text, 2, 7).as_deref(), Some("line 2, column 7:\n    \t'内存' x y\n    \t       ^"));
        // The end of a text that stops too early.
        assert_eq!(shown("a", 1, 2).as_deref(), Some("line 1, column 2:\n    a\n     ^"));
        for (line, column) in [(0, 1), (1, 0), (3, 1), (1, 11)] {
            assert_eq!(shown(text, line, column), None);
        }
        let long = format!("{}x{}", "a".repeat(100), "b".repeat(100));
        let expected = format!(
            "line 1, column 101:\n    …{}x{}…\n    {}^",
            "a".repeat(60),
            "b".repeat(59),
            " ".repeat(61)
        );
        assert_eq!(shown(&long, 1, 101), Some(expected));
    }
}
