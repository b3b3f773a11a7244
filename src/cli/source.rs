//! A SOURCE of the command line: opened, and where that fails, what else could be meant.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::progress::Bar;
use crate::engine::nearest;
use crate::error::{Error, Result};
use crate::quantity;
use crate::store::{Cache, Source, Store, snapshots_of};

/// What SOURCE can be, for whoever named something else.
const SOURCES: &str = "SOURCE is a snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the \
                       `.npusnap` folder or `.db` made of one";

/// Entries of a folder that are looked at for a name like the one that is not there.
const LOOKED_AT: usize = 10_000;

/// Opens a source for queries, with a bar while a snapshot has to be ingested first.
pub(super) fn open(source: &Path, cache: Cache, quiet: bool) -> Result<Store> {
    let found = find(source)?;
    if let Source::Folder(store) = &found
        && store != source
        && !quiet
    {
        // Nobody listening is no failure.
        let _closed = writeln!(io::stderr().lock(), "{}", chosen(source, store));
    }
    let silent = quiet || !matches!(found, Source::Snapshot(_));
    Store::open_with(source, cache, &Bar::new(source, silent)).map_err(with_room)
}

/// Looks at what is at `source`; where nothing is, the error names what is like it.
pub(super) fn find(source: &Path) -> Result<Source> {
    Source::find(source).map_err(|error| match error {
        Error::Io { source: ref reason, .. } if reason.kind() == io::ErrorKind::NotFound => {
            error.advise(format!("{}{SOURCES}", instead(source)))
        }
        other => other,
    })
}

/// What may be meant by a path at which nothing is.
fn instead(path: &Path) -> String {
    if path.is_symlink() {
        return "it is a link to something that is not there; ".to_owned();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else {
        return format!("there is no folder `{}`; ", folder.display());
    };
    let names: Vec<String> = entries
        .take(LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{}`? ", path.with_file_name(name).display()),
        None => String::new(),
    }
}

/// Which store of a folder is read, and what else is there.
fn chosen(folder: &Path, store: &Path) -> String {
    let is_of_store = |snapshot: &PathBuf| snapshot.file_stem() == store.file_stem();
    let others = snapshots_of(folder).unwrap_or_default();
    let others = others.iter().filter(|snapshot| !is_of_store(snapshot)).count();
    let count = i64::try_from(others).unwrap_or(i64::MAX);
    let beside = if others == 0 {
        String::new()
    } else {
        let others = quantity::counted(count, "other snapshot", "other snapshots");
        format!("; {others} in the folder: name the one to read")
    };
    format!("note: reading `{}`, the only store in `{}`{beside}", store.display(), folder.display())
}

/// Where the disk is full, the way round is not that of a command with a result of its own: no place had room, the last
/// being that for temporary files.
fn with_room(error: Error) -> Error {
    if !error.is_disk_full() {
        return error;
    }
    error.advise(
        "free some space, or let `TMPDIR` name a folder on another disk: the tables of the snapshot are made there"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_reason_to_choose_another_output() {
        let full = Error::io("run.npusnap/traces.parquet", "cannot write")(io::ErrorKind::StorageFull.into());
        let mut said = Vec::new();
        with_room(full).report(&mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.starts_with("error: `run.npusnap/traces.parquet`: cannot write\n  caused by: "),
            "{said}"
        );
        assert!(said.contains("`TMPDIR`") && !said.contains("`-o"), "{said}");
        let denied = Error::io("a", "cannot write")(io::ErrorKind::PermissionDenied.into());
        assert!(!with_room(denied).hint().unwrap_or_default().contains("space"));
    }
}
