//! What a SOURCE is, told by what is in it and never by its name.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::parquet;
use crate::error::{Error, Result};
use crate::snapshot::STANDARD_INPUT;

/// Something that snapshots can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A snapshot that has to be ingested before it can be queried.
    Snapshot(PathBuf),
    /// A folder of Parquet files that npusnap wrote.
    Folder(PathBuf),
    /// A SQLite database that npusnap or an older tool wrote, as far as its first bytes tell.
    Database(PathBuf),
}

/// First bytes of a SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// First bytes of files that people have at hand and that no snapshot is in.
const CONTAINERS: &[(&[u8], &str)] =
    &[(b"PAR1", "a single Parquet file"), (b"PK\x03\x04", "a zip archive, as `torch.save` writes it")];

impl Source {
    /// Looks at what is at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is a thing that this version does not read; the message names it.
    pub fn find(path: &Path) -> Result<Self> {
        if path == Path::new(STANDARD_INPUT) {
            return Ok(Self::Snapshot(path.to_owned()));
        }
        let metadata = fs::metadata(path).map_err(Error::io(path, "cannot open"))?;
        if metadata.is_dir() {
            return Ok(Self::Folder(folder(path)?));
        }
        if !metadata.is_file() {
            // What is read from a pipe is gone.
            return Ok(Self::Snapshot(path.to_owned()));
        }
        let mut head = Vec::new();
        File::open(path)
            .and_then(|file| file.take(16).read_to_end(&mut head))
            .map_err(Error::io(path, "cannot read"))?;
        if head.starts_with(SQLITE) {
            return Ok(Self::Database(path.to_owned()));
        }
        match CONTAINERS.iter().find(|(mark, _)| head.starts_with(mark)) {
            Some((_, kind)) => Err(unreadable(path, &format!("is {kind}"))),
            // Whether a snapshot is in it, and in what, the decoder says with the byte it stumbled at.
            None => Ok(Self::Snapshot(path.to_owned())),
        }
    }
}

/// The store that is `dir`, or the only one in it.
fn folder(dir: &Path) -> Result<PathBuf> {
    if parquet::file(dir, "snapshot").exists() {
        return Ok(dir.to_owned());
    }
    let mut stores = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir, "cannot list"))? {
        let path = entry.map_err(Error::io(dir, "cannot list"))?.path();
        if path.extension().is_some_and(|extension| extension == "npusnap") && path.is_dir() {
            stores.push(path);
        }
    }
    stores.sort();
    match stores.as_slice() {
        [store] => Ok(store.clone()),
        [] => Err(unreadable(
            dir,
            "is a folder without `snapshot.parquet` and without a `.npusnap` folder in it",
        )),
        [first, ..] => {
            let reason =
                format!("holds {} stores; name one of them, such as `{}`", stores.len(), first.display());
            Err(Error::Usage { what: format!("`{}`", dir.display()), reason })
        }
    }
}

fn unreadable(path: &Path, what_it_is: &str) -> Error {
    Error::Usage {
        what: format!("`{}`", path.display()),
        reason: format!(
            "{what_it_is}; npusnap reads snapshots (pickle, JSON or HTML, also in gzip or zstd), and the `.npusnap` \
             folders and `.db` files made of them"
        ),
    }
}
