//! Parses the command line, runs it, prints what went wrong and sets the exit code.

use std::process::ExitCode;

use npusnap::cli::{self, Cli, Outcome};

/// Stack of the thread that does the work. Queries are parsed and planned recursively, and a long one is deep; what is not
/// used costs nothing.
const STACK: usize = 1 << 30;

fn main() -> ExitCode {
    npusnap::store::quiet_panics();
    let command = Cli::from_command_line();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || run(command));
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // What panicked has said so.
        Ok(Err(_)) => ExitCode::from(101),
        Err(_no_thread) => run(Cli::from_command_line()),
    }
}

fn run(command: Cli) -> ExitCode {
    match cli::run(command) {
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
