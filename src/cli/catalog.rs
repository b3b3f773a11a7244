//! `npusnap macros` and `npusnap schema`: what there is to query.

use crate::cli::Outcome;
use crate::error::Result;

/// List the SQL macros, or show one with its text.
#[derive(Debug, clap::Args)]
pub struct MacrosArgs {
    /// Macro to show.
    name: Option<String>,
}

/// List the tables, or show one with its columns.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// Table to show.
    table: Option<String>,
}

/// Runs `npusnap macros`.
pub(super) fn macros(args: &MacrosArgs) -> Result<Outcome> {
    let _ = &args.name;
    Ok(Outcome::Done)
}

/// Runs `npusnap schema`.
pub(super) fn schema(args: &SchemaArgs) -> Result<Outcome> {
    let _ = &args.table;
    Ok(Outcome::Done)
}
