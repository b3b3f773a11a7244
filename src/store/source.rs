//! What a SOURCE is, told by what is in it and never by its name.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
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

/// Bytes looked at to tell whether a file in a folder is a snapshot.
const HEAD: u64 = 1 << 16;

/// What an ingest of `path` takes: the snapshots in it where it is a folder and no store, by name; else `path` itself.
///
/// # Errors
/// The folder cannot be listed, or no snapshot is in it.
pub fn snapshots_of(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() || parquet::file(path, "snapshot").exists() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(Error::io(path, "cannot list"))? {
        let file = entry.map_err(Error::io(path, "cannot list"))?.path();
        let is_hidden = file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        let bytes = file.metadata().ok().filter(Metadata::is_file).map(|metadata| metadata.len());
        let is_wanted = match bytes {
            // Files of the system have no length, and some wait for something to be read. One that has the name of a
            // snapshot is what a dump leaves that failed, and must not be passed over without a word.
            Some(0) => file.extension().is_some_and(|extension| extension == "pickle" || extension == "pkl"),
            Some(_) => is_snapshot(&file),
            None => false,
        };
        if !is_hidden && is_wanted {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(unreadable(path, "is a folder without a snapshot in it"));
    }
    Ok(found)
}

/// Whether a file begins as a snapshot does. In a folder there are also results, reports, logs and files beside snapshots.
fn is_snapshot(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let holds =
        |words: &[&[u8]]| words.iter().any(|word| head.windows(word.len()).any(|window| window == *word));
    read.is_ok()
        && match head.trim_ascii_start() {
            // A pickle with its protocol, a dict or a list of older protocols, and what may be one that is compressed.
            [0x80, 0..=5, ..]
            | [b'(', b'd' | b'l', ..]
            | [b'}' | b']', b'q' | b'r' | b'p' | b'.' | b'(', ..]
            | [0x1f, 0x8b, ..]
            | [0x28, 0xb5, 0x2f, 0xfd, ..] => true,
            [b'{' | b'[', ..] => holds(&[b"\"segments\"", b"\"device_traces\"", b"\"blocks\""]),
            [b'<', ..] => holds(&[b"MemoryViz"]),
            _ => false,
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
        [] => Err(without_store(dir)),
        [first, ..] => {
            let reason =
                format!("holds {} stores; name one of them, such as `{}`", stores.len(), first.display());
            Err(Error::Usage { what: format!("`{}`", dir.display()), reason })
        }
    }
}

/// Snapshots that a message names.
const NAMED: usize = 5;

/// The error of a folder without a store in it, with the snapshots that are in it.
fn without_store(dir: &Path) -> Error {
    let snapshots = snapshots_of(dir).unwrap_or_default();
    if snapshots.is_empty() {
        return unreadable(
            dir,
            "is a folder without `snapshot.parquet` and without a `.npusnap` folder in it",
        );
    }
    let named: Vec<String> =
        snapshots.iter().take(NAMED).map(|path| format!("`{}`", path.display())).collect();
    let more = if snapshots.len() > NAMED {
        format!(" and {} more", snapshots.len() - NAMED)
    } else {
        String::new()
    };
    let reason = format!(
        "is a folder of snapshots and not one of them; name one: {}{more}; `npusnap ingest` takes them all",
        named.join(", ")
    );
    Error::Usage { what: format!("`{}`", dir.display()), reason }
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
