//! Where bytes of a result go, so that a file never stands half written under its name.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Where a result goes: standard output, or a file that has its name only when it is whole.
#[derive(Debug)]
pub enum Sink {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A file beside the final name, and that name.
    File(BufWriter<NamedTempFile>, PathBuf),
}

impl Sink {
    /// Opens `path`; none, or `-`, is standard output.
    ///
    /// # Errors
    /// Nothing can be written where `path` is.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout().lock())));
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // With the permissions of any new file: a private one would stay private under its final name.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let file = tempfile::Builder::new()
            .prefix(".npusnap-")
            .permissions(permissions)
            .tempfile_in(folder)
            .map_err(Error::io(path, "cannot create"))?;
        Ok(Self::File(BufWriter::new(file), path.to_owned()))
    }

    /// Writes what is buffered, and gives a file its name.
    ///
    /// # Errors
    /// The rest cannot be written, or the file not be named.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush().map_err(|source| Error::Output { source }),
            Self::File(file, path) => {
                let failed = |source| Error::Io { path: path.clone(), action: "cannot write", source };
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.as_file().sync_all().map_err(failed)?;
                file.persist(&path).map_err(|error| failed(error.error))?;
                Ok(())
            }
        }
    }

    /// Says where writing failed.
    #[must_use]
    pub fn error(&self, source: io::Error) -> Error {
        match self {
            Self::Stdout(_) => Error::Output { source },
            Self::File(_, path) => Error::Io { path: path.clone(), action: "cannot write", source },
        }
    }

    /// Whether a person sees the result at once.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout(_)) && io::stdout().is_terminal()
    }

    /// Columns of the terminal that shows the result; none where it is a file or a pipe, or does not tell.
    #[must_use]
    pub fn terminal_width(&self) -> Option<usize> {
        if !self.is_terminal() {
            return None;
        }
        terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file, _) => file.flush(),
        }
    }
}
