//! Parses the command line, runs it, prints what went wrong and sets the exit code.

use std::process::ExitCode;

use clap::Parser as _;
use npusnap::cli::{self, Cli, Outcome};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::FindingReached) => ExitCode::from(1),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // A reader of standard error that went away is no reason to panic.
            let _closed = error.report(&mut std::io::stderr().lock());
            ExitCode::from(2)
        }
    }
}
