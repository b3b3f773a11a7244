//! `npusnap analyze`: opens a source, runs an analysis, writes what it found.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use super::mode::{self, Mode};
use super::query::param;
use super::report;
use crate::analysis::{ANALYSES, Finding, ImportNote, Lang, Scope, Severity, SnapshotFacts, Thresholds};
use crate::cli::Outcome;
use crate::engine::{self, BASE, Engine, Value};
use crate::error::{Error, Result};
use crate::output::{self, Page, Redaction, RowWriter, Sink, envelope, findings_batch, write_page};
use crate::snapshot::STANDARD_INPUT;
use crate::store::Cache;

/// Judge a snapshot: what each device holds, and whether that is healthy.
///
/// SOURCE is a snapshot or the folder that `npusnap ingest` made of one.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the `.npusnap`
    /// folder or `.db` made of it.
    pub(super) source: PathBuf,
    /// What stands behind SOURCE, only to say what to do with it.
    #[arg(hide = true)]
    others: Vec<PathBuf>,
    /// What to look at.
    #[arg(long, default_value = "overview", value_parser = mode::modes())]
    mode: String,
    /// The snapshot to compare with, for the modes compare and all.
    #[arg(long = "ref", value_name = "SOURCE")]
    pub(super) reference: Option<PathBuf>,
    /// Only this device number; -1 is pinned host memory.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    device: Option<i64>,
    /// Text for people, JSON for programs, csv and arrow (IPC stream) for data frames, HTML for a report that opens in any
    /// browser. Default: what the name of the output file says, else text.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to FILE, which has its name only when it is whole; a file that is there is replaced then.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Language of the text and of the messages in JSON.
    #[arg(long, value_enum, default_value_t = Language::En)]
    pub(super) lang: Language,
    /// Value for a parameter of the relations that the mode reads; `npusnap macros` lists them.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param)]
    params: Vec<(String, Value)>,
    /// Judge with another number; `npusnap thresholds` lists them.
    #[arg(long = "threshold", value_name = "NAME=VALUE")]
    thresholds: Vec<String>,
    /// Exit with 1 when a finding is this bad or worse.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Only these parts of the report, such as `peak,leak`; the verdict is always there.
    #[arg(long = "section", value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::from(report::parts()))]
    pub(super) sections: Vec<String>,
    /// Write every chart of the mode as an SVG file into DIR.
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
    /// Leave out the folders that lead to files, and user names with them, in every format.
    #[arg(long)]
    redact: bool,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

/// Examples, and what csv and arrow hold: the first relation of each mode.
fn after_help() -> String {
    let tables: Vec<String> = ANALYSES
        .iter()
        .filter_map(|analysis| Some(format!("  {}: {}", analysis.name(), analysis.relations().first()?)))
        .collect();
    format!(
        "Examples:\n  \
         npusnap analyze snapshot.pickle\n  \
         npusnap analyze snapshot.pickle --mode oom --lang zh\n  \
         npusnap analyze after.pickle --mode compare --ref before.pickle\n  \
         npusnap analyze snapshot.npusnap --mode all --format json --device 0\n  \
         npusnap analyze snapshot.pickle --fail-on critical   # then the exit code is 1\n\n\
         Csv and arrow hold one table, the main relation of the mode as `npusnap sql` would give it:\n{}\n  \
         all: what was found, a row each",
        tables.join("\n")
    )
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Arrow,
    Html,
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

impl Args {
    fn format(&self) -> Format {
        let extension = self.output.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
        let named = || match extension?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "arrow" | "arrows" => Some(Format::Arrow),
            "html" | "htm" => Some(Format::Html),
            _ => None,
        };
        self.format.or_else(named).unwrap_or(Format::Text)
    }

    /// What can be seen to be wrong before anything is read.
    fn check(&self, mode: Mode) -> Result<()> {
        let usage =
            |what: &str, reason: &str| Err(Error::Usage { what: what.to_owned(), reason: reason.to_owned() });
        if let Some(other) = self.others.first() {
            let reason = format!(
                "is one SOURCE too many; to compare two: `--mode compare --ref {}`, else one run for each",
                other.display()
            );
            return usage(&format!("`{}`", other.display()), &reason);
        }
        if !self.sections.is_empty() && !matches!(self.format(), Format::Html) {
            return usage("--section", "picks parts of a report; write one with `-o report.html`");
        }
        let needs_base = matches!(mode, Mode::One(analysis) if analysis.needs_base());
        match &self.reference {
            None if needs_base => usage(
                "--mode compare",
                "there is nothing to compare with; name the other snapshot with `--ref`",
            ),
            Some(_) if !needs_base && matches!(mode, Mode::One(_)) => usage(
                "--ref",
                "this mode looks at one snapshot; `--mode compare` and `--mode all` look at two",
            ),
            Some(other) if self.source == *other && other == Path::new(STANDARD_INPUT) => {
                usage("standard input", "cannot be both snapshots; give one of them as a file")
            }
            _ => Ok(()),
        }
    }

    fn engine(&self, quiet: bool) -> Result<Engine> {
        let cache = if self.no_cache { Cache::Off } else { Cache::Keep };
        let store = super::open(&self.source, cache, quiet)?;
        let reference =
            self.reference.as_ref().map(|source| super::open(source, cache, quiet)).transpose()?;
        let mut engine = Engine::open(store, engine::Options::for_analyses())?;
        if let Some(store) = reference {
            engine.attach(BASE, store)?;
        }
        Ok(engine)
    }

    /// How the run ended, by the worst finding.
    fn outcome(&self, findings: &[Finding]) -> Outcome {
        let worst = findings.iter().map(|finding| finding.severity).max();
        let limit = match self.fail_on {
            None => return Outcome::Done,
            Some(FailOn::Warning) => Severity::Warning,
            Some(FailOn::Critical) => Severity::Critical,
        };
        if worst >= Some(limit) { Outcome::FindingReached } else { Outcome::Done }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let mode = Mode::of_name(&args.mode)?;
    args.check(mode)?;
    let mut thresholds = Thresholds::default();
    for assignment in &args.thresholds {
        thresholds.set(assignment)?;
    }
    let mut sources = vec![args.source.as_path()];
    sources.extend(args.reference.as_deref());
    let mut sink = Sink::open(args.output.as_deref(), &sources)?;
    let format = args.format();
    if sink.is_terminal() && matches!(format, Format::Arrow) {
        let reason = "is nothing for a terminal; write it to a file with `-o FILE`, or into a pipe";
        return Err(Error::Usage { what: "--format arrow".to_owned(), reason: reason.to_owned() });
    }
    let engine = args.engine(quiet)?;
    let has_base = args.reference.is_some();
    Scope { device: args.device, params: &args.params }.check(&engine, &mode.relations(has_base))?;
    let params = thresholds.arguments(&args.params);
    let scope = Scope { device: args.device, params: &params };
    let redaction = if args.redact { Redaction::learn(&engine, &sources)? } else { Redaction::none() };
    let lang = Lang::from(args.lang);
    let material = report::Material {
        args,
        mode,
        engine: &engine,
        thresholds: &thresholds,
        scope,
        redaction: redaction.clone(),
    };
    if args.svg.is_some() || matches!(format, Format::Html) {
        let sections = material.sections()?;
        if let Some(folder) = &args.svg {
            report::pictures(&material, &sections, folder)?;
        }
        if matches!(format, Format::Html) {
            let findings = material.write(&sections, &mut sink)?;
            sink.finish()?;
            return Ok(args.outcome(&findings));
        }
    }
    let outcome = mode.run(&engine, &thresholds, scope, has_base)?;
    let findings = outcome.findings();
    let written = match format {
        Format::Text | Format::Json => {
            let snapshot = SnapshotFacts::read(&engine)?;
            let notes = ImportNote::read(&engine)?;
            if matches!(format, Format::Text) {
                let figures = outcome.figures();
                let page = Page {
                    mode: mode.name(),
                    snapshot: snapshot.as_ref(),
                    notes: &notes,
                    findings: &findings,
                    figures: &figures,
                };
                let mut out = redaction.writer(&mut sink);
                write_page(&mut out, &page, lang).and_then(|()| out.finish())
            } else {
                let result = outcome.json(lang);
                let snapshot = snapshot.as_ref();
                let json = envelope(mode.name(), snapshot, &notes, &thresholds, &findings, &result, lang);
                serde_json::to_writer_pretty(&mut sink, &redaction.value(&json))
                    .map_err(std::io::Error::from)
                    .and_then(|()| writeln!(sink))
            }
        }
        Format::Csv | Format::Arrow | Format::Html => {
            let rows = table(mode, &engine, scope, &findings, lang)?;
            match redaction.rows(&rows) {
                Ok(rows) => write_rows(format, &rows, &mut sink),
                Err(error) => Err(std::io::Error::other(error)),
            }
        }
    };
    written.map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(args.outcome(&findings))
}

/// The one table of csv and arrow: the main relation of a mode; of all modes, what they found.
fn table(
    mode: Mode,
    engine: &Engine,
    scope: Scope<'_>,
    findings: &[Finding],
    lang: Lang,
) -> Result<engine::Rows> {
    match mode {
        Mode::One(analysis) => match analysis.relations().first() {
            Some(relation) => scope.relation(engine, relation),
            None => Ok(findings_batch(findings, lang)),
        },
        Mode::All => Ok(findings_batch(findings, lang)),
    }
}

fn write_rows(format: Format, rows: &engine::Rows, sink: &mut Sink) -> std::io::Result<()> {
    let format = if matches!(format, Format::Arrow) { output::Format::Arrow } else { output::Format::Csv };
    let mut writer = RowWriter::new(format, &rows.schema, None, &mut *sink)?;
    for batch in &rows.batches {
        writer.write(batch)?;
    }
    writer.finish().map(drop)
}
