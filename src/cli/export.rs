//! `npusnap export`: a snapshot in the forms of other tools.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::ValueEnum;

use super::Outcome;
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::export::{self, Request, Summary};
use crate::output::{Redaction, Sink};
use crate::quantity;
use crate::snapshot::EventRange;
use crate::store::Cache;

/// Write a snapshot in the form that another tool reads.
///
/// A slice of the history (`--events`) keeps the numbers of its events where the form has a place for them, and comes with
/// the state of memory at its end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap export snapshot.pickle --to memory-viz -o viz.pickle   # pytorch.org/memory_viz\n  \
    npusnap export huge.pickle --to memory-viz --events 0..20000 -o part.pickle\n  \
    npusnap export snapshot.pickle --to perfetto -o trace.json     # ui.perfetto.dev\n  \
    npusnap export snapshot.pickle --to speedscope --weight peak -o peak.speedscope.json\n  \
    npusnap export snapshot.pickle --to folded -o - | flamegraph.pl > live.svg")]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the `.npusnap`
    /// folder or `.db` made of it.
    source: PathBuf,
    /// Tool that the result is for.
    #[arg(long, value_enum, value_name = "FORM")]
    to: Target,
    /// Write to FILE, which has its name only when it is whole; a file that is there is replaced then. `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Events of each device, by number: from A up to, but not with, B.
    #[arg(long, value_name = "A..B", default_value = "..", hide_default_value = true)]
    events: EventRange,
    /// Only this device number.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    device: Option<i64>,
    /// Bytes that stacks are weighed by, for speedscope and folded.
    #[arg(long, value_enum, default_value_t = Weight::Live)]
    weight: Weight,
    /// Leave out the folders that lead to files, and user names with them, in frames and in what the program said.
    #[arg(long)]
    redact: bool,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A pickle that PyTorch's MemoryViz opens, whoever wrote the snapshot.
    MemoryViz,
    /// Trace events in JSON: counters, allocations, named ranges.
    Perfetto,
    /// Call stacks by bytes, a profile per device.
    Speedscope,
    /// Call stacks by bytes, a line each.
    Folded,
    /// A pickle of protocol 4 with what the snapshot has.
    Pickle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Weight {
    /// Live after the last event.
    Live,
    /// Live when most bytes were allocated.
    Peak,
    /// Allocated in the window, freed or not.
    Allocated,
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let (target, is_binary) = match args.to {
        Target::MemoryViz => (export::Target::MemoryViz, true),
        Target::Pickle => (export::Target::Pickle, true),
        Target::Perfetto => (export::Target::Perfetto, false),
        Target::Speedscope => (export::Target::Speedscope, false),
        Target::Folded => (export::Target::Folded, false),
    };
    let weight = match args.weight {
        Weight::Live => export::Weight::Live,
        Weight::Peak => export::Weight::Peak,
        Weight::Allocated => export::Weight::Allocated,
    };
    let mut sink = Sink::open(Some(&args.output), &[&args.source])?;
    if is_binary && sink.is_terminal() {
        let reason = "a pickle is nothing for a terminal; write it to a file with `-o FILE`, or into a pipe";
        return Err(Error::Usage { what: "--output -".to_owned(), reason: reason.to_owned() });
    }
    let cache = if args.no_cache { Cache::Off } else { Cache::Keep };
    let engine = Engine::open(super::open(&args.source, cache, quiet)?, engine::Options::for_analyses())?;
    let redaction = if args.redact { Redaction::learn(&engine, &[&args.source])? } else { Redaction::none() };
    let request = Request { events: args.events, device: args.device, weight, redaction };
    request.check(&engine)?;
    let written = export::write(&engine, target, &request, &mut sink);
    let summary = written.map_err(|error| match error {
        Error::Output { source } => sink.error(source),
        other => other,
    })?;
    sink.finish()?;
    if !quiet {
        say(args, &summary);
    }
    Ok(Outcome::Done)
}

fn say(args: &Args, summary: &Summary) {
    let parts: Vec<String> = summary
        .parts
        .iter()
        .map(|(count, what)| format!("{} {what}", quantity::count(i64::try_from(*count).unwrap_or(i64::MAX))))
        .collect();
    let mut stderr = io::stderr().lock();
    // Nobody listening is no failure.
    let _closed = writeln!(stderr, "wrote {} to `{}`", parts.join(", "), args.output.display());
    for note in &summary.notes {
        let _closed = writeln!(stderr, "note: {note}");
    }
}
