//! `npusnap ingest`.

use crate::cli::Outcome;
use crate::error::Result;

/// Turn snapshots into Parquet and SQLite.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let _ = (args, quiet);
    Ok(Outcome::Done)
}
