//! Where bytes of a result go, so that a file never stands half written under its name.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::WholeFile;

/// Where a result goes: standard output, or a file that has its name only when it is whole.
#[derive(Debug)]
pub enum Sink {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A file in the making.
    File(WholeFile),
    /// A device or a pipe, which is written to and never replaced.
    Device(BufWriter<File>, PathBuf),
}

impl Sink {
    /// Opens `path`; none, or `-`, is standard output. What is read, `sources`, is not written to.
    ///
    /// # Errors
    /// Nothing can be written where `path` is, or it is a source or lies in one.
    pub fn open(path: Option<&Path>, sources: &[&Path]) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout().lock())));
        };
        if let Some(source) = sources.iter().find(|source| is_within(path, source)) {
            let reason = format!("`{}` is what is read; it would be lost", source.display());
            return Err(Error::Usage { what: format!("output `{}`", path.display()), reason });
        }
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let device = File::options().write(true).open(path).map_err(Error::io(path, "cannot open"))?;
            return Ok(Self::Device(BufWriter::new(device), path.to_owned()));
        }
        Ok(Self::File(WholeFile::create(path)?))
    }

    /// Writes what is buffered, and gives a file its name.
    ///
    /// # Errors
    /// The rest cannot be written, or the file not be named.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush().map_err(|source| Error::Output { source }),
            Self::Device(mut device, path) => device.flush().map_err(Error::io(path, "cannot write")),
            Self::File(file) => file.finish(),
        }
    }

    /// Says where writing failed.
    #[must_use]
    pub fn error(&self, source: io::Error) -> Error {
        match self {
            Self::Stdout(_) => Error::Output { source },
            Self::File(file) => Error::io(file.target(), "cannot write")(source),
            Self::Device(_, path) => Error::io(path, "cannot write")(source),
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
            Self::File(file) => file.write(bytes),
            Self::Device(device, _) => device.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
            Self::Device(device, _) => device.flush(),
        }
    }
}

/// Whether `path` is `source`, or lies in the folder that it is, whatever links lead there.
fn is_within(path: &Path, source: &Path) -> bool {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let named = path.file_name().and_then(|name| Some(fs::canonicalize(parent).ok()?.join(name)));
    let place = fs::canonicalize(path).ok().or(named);
    matches!((place, fs::canonicalize(source)), (Some(place), Ok(source)) if place.starts_with(&source))
}
