//! `npusnap synth`.

use crate::cli::Outcome;
use crate::error::Result;

/// Write a simulated snapshot of any size, with the truth about it.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<Outcome> {
    let _ = args;
    Ok(Outcome::Done)
}
