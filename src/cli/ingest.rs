//! `npusnap ingest`: which files each snapshot becomes, and what is said about it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Outcome;
use super::progress::Bar;
use crate::engine;
use crate::error::{Error, Result};
use crate::quantity;
use crate::snapshot::{self, EventRange, Filter, Options, STANDARD_INPUT, Summary};
use crate::store::{self, Foreign, Indexes, Source, SqliteOptions, Targets};

/// Turn snapshots into Parquet and SQLite.
///
/// Each SOURCE becomes `<stem>.npusnap/` (one Parquet file per table) and `<stem>.db` (SQLite) beside it. Standard output
/// has one line per thing written: path, kind and bytes.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap ingest snapshot.pickle          # makes snapshot.npusnap/ and snapshot.db beside it\n  \
    npusnap ingest rank0.pickle rank1.pickle -o results --no-sqlite\n  \
    npusnap ingest snapshots -o results     # every snapshot in a folder\n  \
    npusnap ingest huge.pickle --events 0..20000 --min-size 1048576 -o part\n  \
    npusnap ingest broken.pickle --salvage  # keeps what stands before the damage\n  \
    npusnap ingest snapshot.pickle --dry-run")]
pub(super) struct Args {
    /// Snapshots to read: pickle, JSON or HTML, also in gzip or zstd; `-` is standard input, a folder is the snapshots in it.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Folder for the results; with one SOURCE, a name ending in `.npusnap` is the Parquet folder itself. Earlier results of
    /// npusnap are replaced when the new ones are whole, anything else only with --force.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Name of the SQLite database; for one SOURCE.
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// Write no SQLite database.
    #[arg(long, conflicts_with = "sqlite")]
    no_sqlite: bool,
    /// Make no indexes in the SQLite database: it is smaller and sooner done, and slower to query.
    #[arg(long, conflicts_with = "no_sqlite")]
    no_indexes: bool,
    /// Keep what stands before the damage in a truncated or damaged snapshot.
    #[arg(long)]
    salvage: bool,
    /// Keep segments, blocks and events of this device only; may be given several times. -1 is pinned host memory.
    #[arg(long = "device", value_name = "N", allow_negative_numbers = true)]
    devices: Vec<i64>,
    /// Keep these events of each device only, by number: from A up to, but not with, B. Segments and blocks all stay.
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    events: Option<EventRange>,
    /// Leave out events of fewer bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(0..))]
    min_size: Option<i64>,
    /// Replace what is in the way even if npusnap did not make it.
    #[arg(long)]
    force: bool,
    /// Read the snapshot to its end and write nothing: tells whether it is whole, and what is in it.
    #[arg(long, conflicts_with_all = ["output", "sqlite", "no_sqlite", "no_indexes", "force"])]
    dry_run: bool,
}

/// Runs the command.
pub(super) fn run(args: Args, quiet: bool) -> Result<Outcome> {
    let jobs = args.jobs()?;
    if let [job] = jobs.as_slice() {
        job.run(quiet)?;
        return Ok(Outcome::Done);
    }
    let mut failed = 0;
    for job in &jobs {
        match job.run(quiet) {
            Ok(()) => {}
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => {
                failed += 1;
                let _closed = error.report(&mut io::stderr().lock());
            }
        }
    }
    if failed > 0 { Err(Error::Several { failed, total: jobs.len() }) } else { Ok(Outcome::Done) }
}

/// One snapshot and where it goes.
struct Job {
    source: PathBuf,
    options: Options,
    targets: Targets,
    dry_run: bool,
}

impl Args {
    /// What is to be done, or why it would make no sense, before anything is done.
    fn jobs(self) -> Result<Vec<Job>> {
        let sources: Vec<Vec<PathBuf>> =
            self.sources.iter().map(|source| store::snapshots_of(source)).collect::<Result<_>>()?;
        let sources = sources.concat();
        if self.sqlite.is_some() && sources.len() > 1 {
            return Err(usage("--sqlite", "names one database, but there are several snapshots"));
        }
        let jobs: Vec<Job> =
            sources.iter().map(|source| self.job(source, sources.len())).collect::<Result<_>>()?;
        let mut taken: HashMap<&Path, &Path> = HashMap::new();
        for Job { source, targets, .. } in &jobs {
            let database = targets.sqlite.as_ref().map(|(path, _)| path.as_path());
            for target in [Some(targets.parquet.as_path()), database].into_iter().flatten() {
                if let Some(other) = taken.insert(target, source) {
                    let reason = format!(
                        "would replace the result of `{}`, `{}`; choose another place for one of them with `-o`",
                        other.display(),
                        target.display()
                    );
                    return Err(usage(&format!("`{}`", source.display()), &reason));
                }
            }
        }
        Ok(jobs)
    }

    /// What is to be done with one of `count` snapshots.
    fn job(&self, source: &Path, count: usize) -> Result<Job> {
        let stem = match source.file_stem() {
            Some(_) if source == Path::new(STANDARD_INPUT) => OsStr::new("stdin"),
            Some(stem) => stem,
            None => return Err(usage(&format!("`{}`", source.display()), "names no file")),
        };
        let named = |extension: &str| {
            let mut name = stem.to_owned();
            name.push(extension);
            name
        };
        let is_store = |dir: &Path| dir.extension().is_some_and(|extension| extension == "npusnap");
        let (parquet, database) = match &self.output {
            None => (source.with_file_name(named(".npusnap")), source.with_file_name(named(".db"))),
            Some(dir) if is_store(dir) && count == 1 => (dir.clone(), dir.with_extension("db")),
            Some(dir) => (dir.join(named(".npusnap")), dir.join(named(".db"))),
        };
        let views = engine::exported_views()?;
        let sqlite = (!self.no_sqlite).then(|| {
            let indexes = if self.no_indexes { Indexes::LeaveOut } else { Indexes::Make };
            let path = self.sqlite.clone().unwrap_or(database);
            (path, SqliteOptions { indexes, views })
        });
        let targets =
            Targets { parquet, sqlite, foreign: if self.force { Foreign::Replace } else { Foreign::Refuse } };
        let filter = Filter {
            devices: self.devices.clone(),
            events: self.events.unwrap_or_default(),
            min_size: self.min_size,
        };
        let options = Options { salvage: self.salvage, filter, ..Options::default() };
        Ok(Job { source: source.to_owned(), options, targets, dry_run: self.dry_run })
    }
}

impl Job {
    fn run(&self, quiet: bool) -> Result<()> {
        let source = match super::source::find(&self.source)? {
            Source::Snapshot(source) => source,
            Source::Folder(_) => {
                return Err(usage(
                    &format!("`{}`", self.source.display()),
                    "is a folder; name the snapshot files to ingest",
                ));
            }
            Source::Database(path) => {
                let reason = "is a SQLite database; `sql`, `analyze` and `info` read it as it is";
                return Err(usage(&format!("`{}`", path.display()), reason));
            }
        };
        if self.dry_run {
            return self.read(&source, quiet);
        }
        if let Some(dir) = self.targets.parquet.parent() {
            fs::create_dir_all(dir).map_err(Error::io(dir, "cannot create"))?;
        }
        let bar = Bar::new(&source, quiet);
        let summary = store::ingest(&source, &self.options, self.targets.clone(), &bar);
        drop(bar);
        let summary = summary?;
        self.list()?;
        if !quiet {
            let written: Vec<String> = self.written().map(|(path, _)| path.display().to_string()).collect();
            let written = format!(" -> {}", written.join(", "));
            let _closed = self.summarise(&summary, &written, &mut io::stderr().lock());
        }
        Ok(())
    }

    /// Decodes the snapshot for nothing but its errors and counts.
    fn read(&self, source: &Path, quiet: bool) -> Result<()> {
        let bar = Bar::new(source, quiet);
        let summary = snapshot::check(source, &self.options, &bar);
        drop(bar);
        let summary = summary?;
        if !quiet {
            let _closed = self.summarise(&summary, "", &mut io::stderr().lock());
        }
        Ok(())
    }

    /// Things written, with their kind.
    fn written(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        let database = self.targets.sqlite.as_ref().map(|(path, _)| (path.as_path(), "sqlite"));
        std::iter::once((self.targets.parquet.as_path(), "parquet")).chain(database)
    }

    fn list(&self) -> Result<()> {
        let mut stdout = io::stdout().lock();
        for (path, kind) in self.written() {
            let bytes = size(path).map_err(Error::io(path, "cannot read"))?;
            writeln!(stdout, "{} {kind} {bytes}", path.display())
                .map_err(|source| Error::Output { source })?;
        }
        stdout.flush().map_err(|source| Error::Output { source })
    }

    fn summarise(&self, summary: &Summary, written: &str, out: &mut dyn io::Write) -> io::Result<()> {
        let counts = [(summary.events, "event"), (summary.devices, "device"), (summary.stacks, "stack")];
        let counts = counts.map(|(count, noun)| counted(count, noun));
        let name = self.source.file_name().unwrap_or_default();
        writeln!(out, "{}: {}{written}", name.display(), counts.join(", "))?;
        if summary.events == 0 && !self.options.filter.is_all() {
            writeln!(
                out,
                "note: {}: no event is left; `npusnap info` lists devices and events",
                name.display()
            )?;
        }
        if let Some(salvaged) = &summary.salvaged {
            let rest = format!("byte {}: {}; the rest is lost", salvaged.offset, salvaged.reason);
            writeln!(out, "warning: {}: salvaged up to {rest}", name.display())?;
        }
        if summary.warnings > 0 {
            let table = "table `import_stats` says what was lost or does not add up";
            writeln!(out, "{}: {}; {table}", name.display(), counted(summary.warnings, "warning"))?;
        }
        Ok(())
    }
}

fn usage(what: &str, reason: &str) -> Error {
    Error::Usage { what: what.to_owned(), reason: reason.to_owned() }
}

fn counted(count: u64, noun: &str) -> String {
    quantity::counted(i64::try_from(count).unwrap_or(i64::MAX), noun, &format!("{noun}s"))
}

/// Bytes of a file, or of the files in a folder. Where another run replaces the result meanwhile, its bytes count.
fn size(path: &Path) -> io::Result<u64> {
    loop {
        match size_at_once(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.exists() => {}
            result => return result,
        }
    }
}

fn size_at_once(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    fs::read_dir(path)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
