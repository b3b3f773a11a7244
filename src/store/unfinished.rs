//! Everything in the making, in one list, so that a signal that ends the program can clear it away first.
//!
//! The list is locked while something is made and while it gets its final name. So whoever clears away finds each thing
//! either in the list or under its name, whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    // Paths are whole at any time, also where a thread broke down that had the lock.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in the list. Dropped, it is given up; by then the thing has its name or is removed.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file or folder and puts it in the list.
    ///
    /// # Errors
    /// What `make` says.
    pub(crate) fn make<T: AsRef<Path>, E>(make: impl FnOnce() -> Result<T, E>) -> Result<(T, Self), E> {
        let mut list = list();
        let made = make()?;
        let path = made.as_ref().to_owned();
        list.push(path.clone());
        drop(list);
        Ok((made, Self(path)))
    }

    /// Runs `place`, which gives the thing its final name, at a time when nobody clears away. What then stands where it was
    /// made is the old thing of that name, and to be cleared away as well.
    #[expect(clippy::unused_self, reason = "nothing gets its final name that is not in the list")]
    pub(crate) fn settle<T>(&self, place: impl FnOnce() -> T) -> T {
        let list = list();
        let placed = place();
        drop(list);
        placed
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        list().retain(|path| *path != self.0);
    }
}

/// Removes everything in the making and then runs `last`, which ends the program: until then nothing gets its final name.
pub fn abandon(last: impl FnOnce()) {
    let list = list();
    for path in list.iter() {
        remove(path);
    }
    last();
    drop(list);
}

/// How often a folder is tried that somebody still puts files into.
const ATTEMPTS: usize = 20;

/// Removes a file or a folder. What cannot be removed is a nuisance, no reason to fail.
pub(super) fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if !is_folder {
        let _gone = fs::remove_file(path);
        return;
    }
    for _ in 0..ATTEMPTS {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_its_name_or_is_gone_is_not_in_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let make = || Unfinished::make(|| tempfile::tempdir_in(dir.path())).unwrap();
        let (placed, place) = make();
        let (given_up, place_given_up) = make();
        let (waiting, place_waiting) = make();
        let listed = || list().iter().filter(|path| path.starts_with(dir.path())).count();
        assert_eq!(listed(), 3);
        let target = dir.path().join("target");
        place.settle(|| fs::rename(placed.path(), &target)).unwrap();
        drop(place);
        drop((given_up, place_given_up));
        assert_eq!(*list().iter().find(|path| path.starts_with(dir.path())).unwrap(), waiting.path());
        drop(place_waiting);
        assert_eq!(listed(), 0);
    }

    #[test]
    fn a_folder_goes_with_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("c"), "").unwrap();
        remove(&dir.path().join("a"));
        remove(&dir.path().join("missing"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
