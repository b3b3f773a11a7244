//! Parses the command line, runs it, prints what went wrong and sets the exit code.

use std::error::Error as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use npusnap::cli::{self, Cli, Outcome};
use npusnap::error::Error;

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::FindingReached) => ExitCode::from(1),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(2)
        }
    }
}

/// The message, its causes and what to do next, on standard error. A reader that went away is no reason to panic.
fn report(error: &Error) {
    let mut stderr = std::io::stderr().lock();
    let _closed = writeln!(stderr, "error: {error}");
    let mut cause = error.source();
    while let Some(source) = cause {
        let _closed = writeln!(stderr, "  caused by: {source}");
        cause = source.source();
    }
    if let Some(hint) = error.hint() {
        let _closed = writeln!(stderr, "\nhint: {hint}");
    }
}
