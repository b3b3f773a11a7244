//! `npusnap sql`: a query of the user's, its rows as they come.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::engine::{Batches, Engine, Options};
use crate::error::{Error, Result};
use crate::output::{Format, RowWriter, Sink};
use crate::quantity;
use crate::snapshot::STANDARD_INPUT;
use crate::store::Cache;

/// Rows a terminal gets where `--max-rows` does not say.
const SCREENFUL: usize = 1000;

/// Run SQL on a snapshot.
///
/// The query reads the tables that `npusnap schema` lists and the macros that `npusnap macros` lists. It is one
/// statement, and it can only read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or its `.npusnap` folder.
    source: PathBuf,
    /// The query; `-` reads it from standard input.
    #[arg(required_unless_present = "file")]
    query: Option<String>,
    /// Read the query from a file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "query")]
    file: Option<PathBuf>,
    /// How the rows are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write to a file, which has its name only when it is whole.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write at most so many rows, and say how many there are more. Default: 1000 for a table on a terminal, else all.
    #[arg(long, value_name = "N")]
    max_rows: Option<usize>,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    if args.source == Path::new(STANDARD_INPUT) && args.reads_query_from_stdin() {
        let reason = "cannot be both the snapshot and the query; write the query as an argument or in a file";
        return Err(Error::Usage { what: "standard input".to_owned(), reason: reason.to_owned() });
    }
    let sql = args.sql()?;
    let cache = if args.no_cache { Cache::Off } else { Cache::Keep };
    let store = super::open(&args.source, cache, quiet)?;
    let engine = Engine::open(store, Options::default())?;
    let batches = engine.query(&sql)?;
    let mut sink = Sink::open(args.output.as_deref())?;
    let limit = args.limit(sink.is_terminal());
    let more = write(args.format, batches, limit, &mut sink)?;
    sink.finish()?;
    if more > 0 && !quiet {
        let more = quantity::count(i64::try_from(more).unwrap_or(i64::MAX));
        let _closed =
            writeln!(io::stderr().lock(), "{more} more rows; `--max-rows N` sets how many are shown");
    }
    Ok(Outcome::Done)
}

impl Args {
    fn reads_query_from_stdin(&self) -> bool {
        self.query.as_deref() == Some("-") || self.file.as_deref() == Some(Path::new("-"))
    }

    fn sql(&self) -> Result<String> {
        match (&self.file, self.query.as_deref()) {
            (Some(file), _) if file != Path::new("-") => {
                fs::read_to_string(file).map_err(Error::io(file, "cannot read the query"))
            }
            (Some(_), _) | (None, Some("-")) => {
                let mut sql = String::new();
                io::stdin().read_to_string(&mut sql).map_err(Error::io("-", "cannot read the query"))?;
                Ok(sql)
            }
            (None, query) => Ok(query.unwrap_or_default().to_owned()),
        }
    }

    fn limit(&self, terminal: bool) -> usize {
        match (self.max_rows, self.format, terminal) {
            (Some(rows), ..) => rows,
            (None, Format::Table, true) => SCREENFUL,
            _ => usize::MAX,
        }
    }
}

/// Writes at most `limit` rows, then counts the others.
fn write(format: Format, batches: Batches<'_>, limit: usize, sink: &mut Sink) -> Result<usize> {
    let width = sink.terminal_width();
    let mut writer = match RowWriter::new(format, batches.schema(), width, &mut *sink) {
        Ok(writer) => writer,
        Err(error) => return Err(sink.error(error)),
    };
    let mut room = limit;
    let mut more = 0;
    for batch in batches {
        let batch = batch?;
        let shown = batch.num_rows().min(room);
        if shown > 0
            && let Err(error) = writer.write(&batch.slice(0, shown))
        {
            return Err(sink.error(error));
        }
        room -= shown;
        more += batch.num_rows() - shown;
    }
    writer.finish().map(|_| more).map_err(|error| sink.error(error))
}
