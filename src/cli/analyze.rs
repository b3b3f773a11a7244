//! `npusnap analyze`: opens a source, runs an analysis, writes what it found.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use crate::analysis::{
    ANALYSES, Analysis, DeviceOverview, Figure, Finding, ImportNote, Info, Lang, Scope, Severity,
    SnapshotFacts, Thresholds,
};
use crate::cli::Outcome;
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::output::{Page, Redaction, Sink, envelope, write_page};
use crate::report::{Report, Section};
use crate::store::Cache;

/// Judge a snapshot: what each device holds, and whether that is healthy.
///
/// SOURCE is a snapshot or the folder that `npusnap ingest` made of one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  npusnap analyze snapshot.pickle\n  npusnap analyze snapshot.pickle --lang zh\n  \
    npusnap analyze snapshot.npusnap --format json --device 0\n  \
    npusnap analyze snapshot.pickle --fail-on critical   # exit code 1 when something critical is found"
)]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the `.npusnap`
    /// folder or `.db` made of it.
    source: PathBuf,
    /// What to look at.
    #[arg(long, default_value = "overview", value_parser = modes())]
    mode: String,
    /// Only this device number.
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Text for people, JSON for programs.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Language of the text and of the messages in JSON.
    #[arg(long, value_enum, default_value_t = Language::En)]
    lang: Language,
    /// Judge with another number; `npusnap thresholds` lists them.
    #[arg(long = "threshold", value_name = "NAME=VALUE")]
    thresholds: Vec<String>,
    /// Exit with 1 when a finding is this bad or worse.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Leave out user names and the folders that lead to files, in every format.
    #[arg(long)]
    redact: bool,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Language {
    En,
    Zh,
}

impl From<Language> for Lang {
    fn from(language: Language) -> Self {
        match language {
            Language::En => Self::En,
            Language::Zh => Self::Zh,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Warning,
    Critical,
}

/// List the numbers that turn measures into judgements.
#[derive(Debug, clap::Args)]
pub(super) struct ThresholdsArgs {}

fn modes() -> PossibleValuesParser {
    ANALYSES.iter().map(|analysis| analysis.name()).collect::<Vec<_>>().into()
}

fn analysis(name: &str) -> Result<&'static dyn Analysis> {
    ANALYSES.iter().copied().find(|analysis| analysis.name() == name).ok_or_else(|| Error::Unknown {
        kind: "mode",
        name: name.to_owned(),
        nearest: None,
    })
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let analysis = analysis(&args.mode)?;
    let mut thresholds = Thresholds::default();
    for assignment in &args.thresholds {
        thresholds.set(assignment)?;
    }
    let lang = Lang::from(args.lang);
    let store = super::open(&args.source, if args.no_cache { Cache::Off } else { Cache::Keep }, quiet)?;
    let engine = Engine::open(store, engine::Options::default())?;
    let snapshot = SnapshotFacts::read(&engine)?;
    let notes = ImportNote::read(&engine)?;
    let outcome = analysis.run(&engine, &thresholds, Scope { device: args.device })?;
    let findings = outcome.findings();
    let redaction = if args.redact { Redaction::paths() } else { Redaction::none() };
    if args.output.as_deref().and_then(Path::extension).is_some_and(|extension| extension == "html") {
        let scope = Scope { device: args.device };
        let mut figures = outcome.figures();
        let charts = analysis.charts(&engine, &thresholds, scope)?;
        figures.extend(charts.into_iter().map(|chart| Figure::Chart(Box::new(chart))));
        let sections = [Section { mode: analysis.name(), findings: findings.clone(), figures }];
        let devices = DeviceOverview::read(&engine, scope)?;
        let gaps = Info::read(&engine)?.gaps();
        let report = Report {
            source: &args.source.to_string_lossy(),
            snapshot: snapshot.as_ref(),
            notes: &notes,
            gaps: &gaps,
            thresholds: &thresholds,
            devices: &devices,
            sections: &sections,
            lang,
            redaction,
        };
        write_to(args.output.as_deref(), &[&args.source], |out| report.write(out))?;
        return Ok(reached(args, &findings));
    }
    write_to(args.output.as_deref(), &[&args.source], |out| match args.format {
        Format::Text => write_page(
            out,
            &Page {
                mode: analysis.name(),
                snapshot: snapshot.as_ref(),
                notes: &notes,
                findings: &findings,
                figures: &outcome.figures(),
            },
            lang,
        ),
        Format::Json => {
            let json = envelope(
                analysis.name(),
                snapshot.as_ref(),
                &notes,
                &thresholds,
                &findings,
                &outcome.json(),
                lang,
            );
            serde_json::to_writer_pretty(&mut *out, &json)?;
            writeln!(out)
        }
    })?;
    Ok(reached(args, &findings))
}

/// Whether a finding is as bad as `--fail-on` says.
fn reached(args: &Args, findings: &[Finding]) -> Outcome {
    let worst = findings.iter().map(|finding| finding.severity).max();
    match args.fail_on {
        Some(FailOn::Warning) if worst >= Some(Severity::Warning) => Outcome::FindingReached,
        Some(FailOn::Critical) if worst >= Some(Severity::Critical) => Outcome::FindingReached,
        _ => Outcome::Done,
    }
}

/// Runs `npusnap thresholds`.
pub(super) fn thresholds(_args: &ThresholdsArgs) -> Result<Outcome> {
    write_to(None, &[], |out| {
        for (name, value, _, doc) in Thresholds::default().list() {
            writeln!(out, "{name:20} {value:<6}  {doc}")?;
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

/// Hands a buffered writer to `write`: standard output, or a file that appears whole or not at all.
fn write_to(
    path: Option<&Path>,
    sources: &[&Path],
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let mut sink = Sink::open(path, sources)?;
    write(&mut sink).map_err(|source| sink.error(source))?;
    sink.finish()
}
