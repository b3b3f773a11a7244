//! `npusnap analyze`.

use crate::cli::Outcome;
use crate::error::Result;

/// Judge a snapshot
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let _ = (args, quiet);
    Ok(Outcome::Done)
}
