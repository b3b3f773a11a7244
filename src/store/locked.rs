//! Folders for things in the making, and how it is known that nobody needs one any more.
//!
//! A folder is locked by the run that made it. One without a lock belongs to a run that died, and the next run that makes
//! one of the same prefix removes it. A run that is told to end removes its own, see [`unfinished`](super::unfinished).

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::TempDir;

use super::unfinished::{Unfinished, remove};
use crate::error::{Error, Result};

/// A folder with a lock on it.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) dir: TempDir,
    pub(super) unfinished: Unfinished,
    /// Held, not read: other runs see by it that this one lives.
    pub(super) lock: File,
}

impl Locked {
    /// Makes one, and clears away those of the same prefix that dead runs left.
    pub(super) fn make(parent: &Path, prefix: &OsStr, mode: u32) -> io::Result<Self> {
        clear(parent, prefix);
        loop {
            let (dir, unfinished) = Unfinished::make(|| {
                let permissions = Permissions::from_mode(mode);
                tempfile::Builder::new().prefix(prefix).permissions(permissions).tempdir_in(parent)
            })
            .map_err(unnamed)?;
            // Between making and locking, another run may have taken the folder for a dead one's.
            let lock = match File::open(dir.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result?,
            };
            // A file system without locks answers with another error, and there nobody clears anything away.
            if matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)) || !same(&lock, dir.path()) {
                continue;
            }
            return Ok(Self { dir, unfinished, lock });
        }
    }
}

/// The error without the name that the folder would have had, which tells nobody anything.
fn unnamed(error: io::Error) -> io::Error {
    if error.get_ref().is_none() {
        return error;
    }
    let text = error.to_string();
    let reason = text.split_once(" at path ").map_or(text.as_str(), |(reason, _)| reason);
    io::Error::new(error.kind(), reason.to_owned())
}

/// Removes what dead runs left. Whatever fails here is left for the next time.
fn clear(parent: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        // Opening anything else, such as a named pipe, can wait for ever.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::open(&path) else { continue };
        if lock.try_lock().is_ok() && same(&lock, &path) {
            remove(&path);
        }
    }
}

/// Whether `path` still names the thing that was opened.
fn same(opened: &File, path: &Path) -> bool {
    let Ok((opened, named)) = opened.metadata().and_then(|opened| Ok((opened, fs::metadata(path)?))) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

/// A folder that nothing outlives: it goes with its handle, with the program, or with the next run.
#[derive(Debug)]
pub(crate) struct Scratch(Locked);

impl Scratch {
    /// Makes one among the system's temporary files, for the user alone.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub(crate) fn new() -> Result<Self> {
        let place = std::env::temp_dir();
        let folder = Locked::make(&place, OsStr::new(SCRATCH), 0o700);
        Ok(Self(folder.map_err(Error::io(&place, "cannot create a temporary folder"))?))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.dir.path()
    }
}

/// How the names of temporary folders begin; nothing that a user makes is called so.
const SCRATCH: &str = ".npusnap.tmp-";
