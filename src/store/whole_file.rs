//! A file of a result: it is made in a staging folder and has its name only when it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::staging::Staging;
use crate::error::{Error, Result};

/// A file that has its name only when it is whole.
#[derive(Debug)]
pub struct WholeFile {
    // Before the folder it lies in: fields are dropped in this order.
    file: BufWriter<File>,
    staging: Staging,
}

/// Name of the file in its staging folder.
const CONTENT: &str = "content";

impl WholeFile {
    /// Begins a file that will be at `target`; a link stays a link, and what it points to is replaced.
    ///
    /// # Errors
    /// The folder that holds `target` is missing or cannot be written, or `target` is a folder itself.
    pub fn create(target: &Path) -> Result<Self> {
        let cannot = || Error::io(target, "cannot create");
        if target.is_dir() {
            return Err(cannot()(io::ErrorKind::IsADirectory.into()));
        }
        let staging = Staging::new(target).map_err(|error| match error {
            Error::Io { source, .. } => cannot()(source),
            other => other,
        })?;
        let file = File::create(staging.path().join(CONTENT)).map_err(cannot())?;
        Ok(Self { file: BufWriter::new(file), staging })
    }

    /// Where it will be.
    #[must_use]
    pub fn target(&self) -> &Path {
        self.staging.target()
    }

    /// Brings it to the disk and gives it its name.
    ///
    /// # Errors
    /// The rest cannot be written, or the file not be named.
    pub fn finish(self) -> Result<()> {
        let Self { file, staging } = self;
        let written =
            file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        written.map_err(Error::io(staging.target(), "cannot write"))?;
        staging.commit_file(CONTENT)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
