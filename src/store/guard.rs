//! Reading files that may be damaged in any way. The readers of Parquet panic over some bytes; here that is an error like any
//! other, and nothing is printed by the way.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::thread;

use crate::error::{Error, Result, UNREADABLE};

/// Name of threads on which a panic is caught and becomes an error.
pub const READER: &str = "npusnap-reader";

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Lets panics that become errors print nothing; any other says what it has to say.
pub fn quiet_panics() {
    let loud = take_hook();
    set_hook(Box::new(move |panic| {
        if !GUARDED.get() && thread::current().name() != Some(READER) {
            loud(panic);
        }
    }));
}

/// What `read` comes to; where it panics, the file at `path` is damaged.
///
/// # Errors
/// Those of `read`, and damage over which it panics.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = GUARDED.replace(true);
    // Nothing that `read` may have left half done is looked at again.
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(before);
    result.unwrap_or_else(|_panic| Err(damaged(path)))
}

/// The error of a file over which a reader panics.
#[must_use]
pub fn damaged(path: &Path) -> Error {
    Error::store(path, UNREADABLE)("its bytes contradict each other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_a_file_is_an_error_that_names_it() {
        quiet_panics();
        let error = guarded(Path::new("a.parquet"), || -> Result<()> { panic!("range end out of bounds") });
        assert_eq!(error.unwrap_err().to_string(), "`a.parquet`: cannot read the Parquet file");
        assert_eq!(guarded(Path::new("a.parquet"), || Ok(1)).unwrap(), 1);
        assert!(!GUARDED.get());
    }
}
