//! Nothing half-written stands under a final name: a result is made in a folder beside it and then put in its place.
//!
//! The folder is [locked](super::locked): the next run for the same target removes what a run left that died.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::locked::Locked;
use super::unfinished::remove;
use crate::error::{Error, Result};

const PLACE: &str = "cannot put the result in its place";

/// A folder beside the target. Dropped without a commit, it is removed and the target is as it was.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    parent: PathBuf,
    folder: Locked,
}

impl Staging {
    /// Makes a staging folder for `target` and clears away those of dead runs.
    ///
    /// # Errors
    /// The folder that holds `target` is missing or cannot be written.
    pub(super) fn new(target: &Path) -> Result<Self> {
        // A link to another disk stays a link; what it points to is replaced.
        let target = fs::canonicalize(target).unwrap_or_else(|_missing| target.to_owned());
        let Some(name) = target.file_name() else {
            return Err(Error::Usage {
                what: target.display().to_string(),
                reason: "names no file or folder".to_owned(),
            });
        };
        let parent = parent(&target).to_owned();
        let prefix = prefix(name);
        // The result is for whom the user's umask allows, not for the user alone as temporary things are.
        let folder = Locked::make(&parent, &prefix, 0o777)
            .map_err(Error::io(&parent, "cannot create a folder for the result"))?;
        Ok(Self { target, parent, folder })
    }

    /// The folder to write into.
    pub(super) fn path(&self) -> &Path {
        self.folder.dir.path()
    }

    /// Where the result will be.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Puts the staging folder itself in the target's place, whole, whatever is there.
    pub(super) fn commit_folder(self) -> Result<()> {
        sync(self.path())?;
        let placed = self.folder.unfinished.settle(|| place(self.path(), &self.target));
        let old = placed.map_err(Error::io(&self.target, PLACE))?;
        let Self { parent, folder: Locked { dir, unfinished, lock }, .. } = self;
        // From here on our name in the staging place is gone or stands for the old thing.
        let staged = dir.keep();
        if old == Replaced::Something {
            remove(&staged);
        }
        drop((unfinished, lock));
        sync(&parent)
    }

    /// Puts the file `name` of the staging folder in the target's place, also if that is a folder.
    pub(super) fn commit_over_anything(self, name: &str) -> Result<()> {
        self.place_file(
            |file, target| {
                if target.is_dir() {
                    fs::rename(target, file.with_file_name("replaced"))?;
                }
                fs::rename(file, target)
            },
            name,
        )
    }

    /// Puts the file `name` of the staging folder in the target's place.
    pub(super) fn commit_file(self, name: &str) -> Result<()> {
        self.place_file(|file, target| fs::rename(file, target), name)
    }

    fn place_file(self, place: impl FnOnce(&Path, &Path) -> io::Result<()>, name: &str) -> Result<()> {
        let placed = self.folder.unfinished.settle(|| place(&self.path().join(name), &self.target));
        placed.map_err(Error::io(&self.target, PLACE))?;
        sync(&self.parent)
    }
}

/// The folder that holds `path`.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".tmp-");
    prefix
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Nothing,
    Something,
}

/// Puts `staged` at `target`; what was there stands at `staged` afterwards.
fn place(staged: &Path, target: &Path) -> io::Result<Replaced> {
    loop {
        match rename(staged, target, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Replaced::Nothing),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if unsupported(&error) => return place_in_two_steps(staged, target),
            Err(error) => return Err(error),
        }
        match rename(staged, target, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(Replaced::Something),
            // Another run took it away in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound && staged.exists() => {}
            Err(error) if unsupported(&error) => return place_in_two_steps(staged, target),
            Err(error) => return Err(error),
        }
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, flags)?)
}

fn unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// For file systems that cannot exchange two names (some network ones): a reader may see nothing for a moment.
fn place_in_two_steps(staged: &Path, target: &Path) -> io::Result<Replaced> {
    loop {
        let Err(error) = fs::rename(staged, target) else { return Ok(Replaced::Nothing) };
        if !target.exists() || !staged.exists() {
            return Err(error);
        }
        let aside = tempfile::Builder::new()
            .prefix(&prefix(target.file_name().unwrap_or_default()))
            .tempdir_in(parent(target))?;
        match fs::rename(target, aside.path().join("replaced")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// Brings a folder's names to the disk.
fn sync(dir: &Path) -> Result<()> {
    let folder = File::open(dir).map_err(Error::io(dir, "cannot open"))?;
    match folder.sync_all() {
        // Some network file systems cannot do this for a folder.
        Err(error) if unsupported(&error) => Ok(()),
        result => result.map_err(Error::io(dir, "cannot bring to the disk")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder(path: &Path, content: &str) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("content"), content).unwrap();
    }

    fn names(dir: &Path) -> Vec<OsString> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_dropped_staging_leaves_the_target_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npusnap");
        folder(&target, "old");
        let staging = Staging::new(&target).unwrap();
        fs::write(staging.path().join("content"), "new").unwrap();
        drop(staging);
        assert_eq!(names(dir.path()), ["a.npusnap"]);
        assert_eq!(fs::read_to_string(target.join("content")).unwrap(), "old");
    }

    #[test]
    fn what_dead_runs_left_is_cleared_and_what_living_ones_hold_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npusnap");
        folder(&dir.path().join(".a.npusnap.tmp-dead"), "half");
        folder(&dir.path().join(".b.npusnap.tmp-dead"), "of another target");
        let living = Staging::new(&target).unwrap();
        let second = Staging::new(&target).unwrap();
        assert!(living.path().exists() && !dir.path().join(".a.npusnap.tmp-dead").exists());
        drop((living, second));
        assert_eq!(names(dir.path()), [".b.npusnap.tmp-dead"]);
    }

    #[test]
    fn a_file_system_that_cannot_exchange_names_gets_the_new_result_too() {
        let dir = tempfile::tempdir().unwrap();
        let (staged, target) = (dir.path().join("staged"), dir.path().join("target"));
        for content in ["first", "second"] {
            folder(&staged, content);
            assert_eq!(place_in_two_steps(&staged, &target).unwrap(), Replaced::Nothing);
            assert_eq!(fs::read_to_string(target.join("content")).unwrap(), content);
            assert_eq!(names(dir.path()), ["target"]);
        }
    }

    #[test]
    fn a_result_is_readable_by_whom_the_umask_allows() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npusnap");
        Staging::new(&target).unwrap().commit_folder().unwrap();
        let plain = dir.path().join("plain");
        fs::create_dir(&plain).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&target), mode(&plain));
    }
}
