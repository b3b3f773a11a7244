//! `npusnap thresholds`: the numbers that turn measures into judgements.

use std::io::Write as _;

use super::Outcome;
use crate::analysis::Thresholds;
use crate::error::Result;
use crate::output::Sink;

/// List the numbers that turn measures into judgements.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap thresholds\n  \
    npusnap analyze snapshot.pickle --threshold fragment.warning=0.1 --fail-on critical")]
pub(super) struct Args {}

/// What is no threshold though it is a number.
const METHOD: &str = "How steps are told from the rhythm of memory is a method, not a judgement: its numbers are described\n\
     by `npusnap macros step_boundaries`, those of the moments compared by `npusnap macros stack_growth`.";

/// Runs `npusnap thresholds`.
pub(super) fn run(_args: &Args) -> Result<Outcome> {
    let mut sink = Sink::open(None, &[])?;
    for (name, value, _, doc) in Thresholds::default().list() {
        writeln!(sink, "{name:20} {value:<6}  {doc}").map_err(|source| sink.error(source))?;
    }
    writeln!(sink, "\n{METHOD}").map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(Outcome::Done)
}
