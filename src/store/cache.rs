//! Where the Parquet of a snapshot is kept for the next time, and how it is known to be still of that snapshot.

use std::env;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::staging;
use crate::error::{Error, Result};
use crate::schema::VERSION;
use crate::snapshot;

/// Name of the file that says what a Parquet folder was made from.
///
/// It stands beside the tables, because they shall depend on bytes alone.
pub(super) const FILE: &str = "source.json";

/// Which state of which file a store was made from, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    #[serde(flatten)]
    snapshot: Written,
    schema_version: i64,
    npusnap_version: String,
    /// The files beside it that are read with it.
    #[serde(default)]
    beside: Vec<Written>,
}

/// Which state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    name: String,
    size: u64,
    mtime: i64,
    mtime_nsec: i64,
}

impl Written {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            size: metadata.len(),
            mtime: metadata.mtime(),
            mtime_nsec: metadata.mtime_nsec(),
        }
    }
}

impl Key {
    /// The key of `source` as it is now.
    pub(super) fn of(source: &Path) -> Result<Self> {
        let metadata = fs::metadata(source).map_err(Error::io(source, "cannot open"))?;
        Ok(Self::new(source, &metadata))
    }

    fn new(source: &Path, metadata: &Metadata) -> Self {
        let beside = snapshot::side_files(source);
        let beside = beside.iter().filter_map(|path| Some(Written::new(path, &fs::metadata(path).ok()?)));
        Self {
            snapshot: Written::new(source, metadata),
            schema_version: VERSION,
            npusnap_version: env!("CARGO_PKG_VERSION").to_owned(),
            beside: beside.collect(),
        }
    }

    /// The key in the store `dir`.
    fn read(dir: &Path) -> Option<Self> {
        let path = dir.join(FILE);
        // Whoever opens a pipe waits for somebody to write to it.
        let text = path.is_file().then(|| fs::read(&path).ok()).flatten()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the key into the store `dir`.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE);
        let text = serde_json::to_string(self).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text + "\n")).map_err(Error::io(&path, "cannot write"))
    }
}

/// What is at one of the places for a store of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A store of this very state of the snapshot.
    Fresh,
    /// Nothing, or a store that can be made again at any time.
    Free,
    /// Something else: a store the user made of another file, or no store at all.
    Taken,
}

fn state(dir: &Path, key: &Key) -> State {
    if fs::symlink_metadata(dir).is_err() {
        return State::Free;
    }
    match Key::read(dir) {
        Some(found) if found == *key => State::Fresh,
        Some(found) if found.snapshot.name == key.snapshot.name => State::Free,
        // `a.pickle` and `a.pkl` side by side want the same name.
        Some(found) if !staging::parent(dir).join(&found.snapshot.name).exists() => State::Free,
        _ => State::Taken,
    }
}

/// A place for the store of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The store is there and of the file as it is.
    Fresh(PathBuf),
    /// The store can be made there.
    Free(PathBuf),
}

/// Places for the store of `source`, best first: beside it, then in the user's cache folder.
pub(super) fn places(source: &Path, key: &Key) -> Vec<Place> {
    let candidates = [Some(beside(source)), of_user(source)].into_iter().flatten();
    let candidates = candidates.filter(|dir| is_addressable(dir));
    let mut free = Vec::new();
    for dir in candidates {
        match state(&dir, key) {
            State::Fresh => return vec![Place::Fresh(dir)],
            State::Free => free.push(Place::Free(dir)),
            State::Taken => {}
        }
    }
    free
}

/// Whether the engine can name the files in `dir`: it takes no control characters, and no bytes that are not UTF-8.
pub(super) fn is_addressable(dir: &Path) -> bool {
    let parent = staging::parent(dir);
    let folder = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    let has_name =
        |path: &Path| path.to_str().is_some_and(|text| !text.bytes().any(|b| b.is_ascii_control()));
    has_name(&folder) && has_name(dir)
}

/// Whether `dir` is where the store of `source` is looked for first.
pub(super) fn is_beside(dir: &Path, source: &Path) -> bool {
    let folder = |path: &Path| fs::canonicalize(staging::parent(path));
    dir.file_name() == beside(source).file_name()
        && matches!((folder(dir), folder(source)), (Ok(one), Ok(other)) if one == other)
}

/// `<stem>.npusnap` beside the file.
fn beside(source: &Path) -> PathBuf {
    source.with_extension("npusnap")
}

/// A folder in the user's cache that belongs to this path alone.
fn of_user(source: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(source).ok()?;
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    let name = digest.iter().take(16).fold(String::new(), |name, byte| name + &format!("{byte:02x}"));
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("npusnap").join(name))
}
