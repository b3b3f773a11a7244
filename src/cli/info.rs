//! `npusnap info`: what a snapshot holds, and what it lacks.

use std::io::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;

use super::Outcome;
use super::analyze::Language;
use crate::analysis::{ImportNote, Info};
use crate::engine::{self, Engine};
use crate::error::Result;
use crate::output::{Page, Sink, info_envelope, write_page};
use crate::store::Cache;

/// Show what a snapshot holds, what it lacks and what each absence costs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap info snapshot.pickle\n  \
    npusnap info snapshot.pickle.gz --lang zh\n  \
    npusnap info snapshot.npusnap --format json")]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the `.npusnap`
    /// folder or `.db` made of it.
    source: PathBuf,
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Language of the text, and of the sentences in JSON.
    #[arg(long, value_enum, default_value_t = Language::En)]
    lang: Language,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let cache = if args.no_cache { Cache::Off } else { Cache::Keep };
    let engine = Engine::open(super::open(&args.source, cache, quiet)?, engine::Options::for_analyses())?;
    let info = Info::read(&engine)?;
    let notes = ImportNote::read(&engine)?;
    let lang = args.lang.into();
    let mut sink = Sink::open(None, &[])?;
    let written = match args.format {
        Format::Text => {
            let figures = info.figures();
            let page = Page {
                mode: "info",
                snapshot: info.snapshot(),
                notes: &notes,
                findings: &[],
                figures: &figures,
            };
            write_page(&mut sink, &page, lang)
        }
        Format::Json => serde_json::to_writer_pretty(&mut sink, &info_envelope(&info, &notes, lang))
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(sink)),
    };
    written.map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(Outcome::Done)
}
