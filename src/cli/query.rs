//! `npusnap sql`: a query of the user's, its rows as they come.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Outcome;
use super::interrupt::Interrupt;
use super::prompt::Session;
use crate::engine::{BASE, Batches, Engine, Options, QueryOptions, Thing, Value};
use crate::error::{Error, Result};
use crate::output::{Format, Redaction, RowWriter, Sink};
use crate::quantity;
use crate::snapshot::STANDARD_INPUT;
use crate::store::Cache;

/// Rows a terminal gets where `--max-rows` does not say.
const SCREENFUL: usize = 1000;

/// Bytes of a query that are read; a good many more than are run, so that the error of one too long can say its size.
const MOST_READ: u64 = 16 << 20;

/// Run SQL on a snapshot.
///
/// The query reads the tables that `npusnap schema` lists and the macros that `npusnap macros` lists. It is one
/// statement, and it can only read.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  npusnap sql snapshot.pickle \"SELECT * FROM top_allocations(limit => 10)\"\n  \
    npusnap sql snapshot.pickle -f query.sql --param device=0 --format csv -o rows.csv\n  \
    npusnap sql after.pickle --ref before.pickle \"SELECT a.reserved - b.reserved AS grown\n    \
    FROM device_overview AS a JOIN base.device_overview AS b ON b.device_index = a.device_index\"\n  \
    npusnap sql snapshot.pickle \"SELECT * FROM traces\" --format arrow > traces.arrow\n  \
    npusnap sql snapshot.pickle                                  # a prompt, on a terminal"
)]
pub(super) struct Args {
    /// Snapshot (pickle, JSON or HTML, also in gzip or zstd; `-` is standard input), or the `.npusnap`
    /// folder or `.db` made of it.
    source: PathBuf,
    /// The query; `-` reads it from standard input. Without one, a terminal gets a prompt.
    query: Option<String>,
    /// What stands behind the query, only to say what to do with it.
    #[arg(hide = true)]
    others: Vec<String>,
    /// Read the query from a file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "query")]
    file: Option<PathBuf>,
    /// A second snapshot: its tables and macros have `base.` in front of their names.
    #[arg(long = "ref", value_name = "SOURCE")]
    reference: Option<PathBuf>,
    /// Value for `$NAME` in the query: an integer, a number, `null` or a text; `'10'` is a text too.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param)]
    params: Vec<(String, Value)>,
    /// How the rows are written. Default: what the name of the output file says, else a table.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to FILE, which has its name only when it is whole; a file that is there is replaced then.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write at most so many rows, and say how many there are more. Default: 1000 for a table on a terminal, else all.
    #[arg(long, value_name = "N")]
    max_rows: Option<usize>,
    /// End a query that takes longer, with exit code 2.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Memory that sorts and aggregations may hold, such as 512MiB; what is beyond it goes to temporary files.
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes)]
    memory_limit: usize,
    /// Leave out the folders that lead to files, and user names with them, in every text of the rows. What the query cuts texts
    /// apart with is not undone.
    #[arg(long)]
    redact: bool,
    /// Neither use nor keep the Parquet made of a snapshot.
    #[arg(long)]
    no_cache: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool, interrupt: &Interrupt) -> Result<Outcome> {
    args.check()?;
    if args.stdin_uses() > 1 {
        let reason = if args.reads_query_from_stdin() {
            "cannot be both the snapshot and the query; write the query as an argument or in a file"
        } else {
            "cannot be both snapshots; give one of them as a file"
        };
        return Err(Error::Usage { what: "standard input".to_owned(), reason: reason.to_owned() });
    }
    if args.is_interactive() {
        return args.prompt(quiet, interrupt);
    }
    let sql = args.sql()?;
    let format = args.format();
    let mut sink = Sink::open(args.output.as_deref(), &args.sources())?;
    if sink.is_terminal() {
        refuse_binary(format)?;
    }
    let engine = args.engine(quiet)?;
    let armed = interrupt.arm();
    let options =
        QueryOptions { params: args.params.clone(), timeout: args.timeout, interrupt: Some(armed.flag()) };
    let batches = engine.query_with(&sql, &options)?;
    if !quiet {
        say_unknown(&engine, &batches, &mut io::stderr().lock())?;
    }
    let limit = args.limit(format, sink.is_terminal());
    let redaction = args.redaction(&engine)?;
    let written = write(format, batches, limit, &redaction, &mut sink)?;
    sink.finish()?;
    if let Some(remark) = written.remark(format, "--max-rows N").filter(|_| !quiet) {
        let _closed = writeln!(io::stderr().lock(), "{remark}");
    }
    Ok(Outcome::Done)
}

impl Args {
    /// Whether there is one SOURCE and one query; a second SOURCE stands where the query would.
    fn check(&self) -> Result<()> {
        let Some(query) = &self.query else { return Ok(()) };
        let reason = if Path::new(query).is_dir() {
            format!("is a folder and no query; a second snapshot: `--ref {query}`")
        } else if Path::new(query).exists() {
            format!(
                "is a file and no query; a second snapshot: `--ref {query}`; a file with a query: `-f {query}`"
            )
        } else if let Some(other) = self.others.first() {
            format!(
                "the query is one argument, in quotes; behind it stands `{other}`; a second snapshot: `--ref SOURCE`"
            )
        } else {
            return Ok(());
        };
        Err(Error::Usage { what: format!("`{query}`"), reason })
    }

    /// What is read.
    fn sources(&self) -> Vec<&Path> {
        let paths = [Some(self.source.as_path()), self.reference.as_deref(), self.file.as_deref()];
        paths.into_iter().flatten().collect()
    }

    /// How many things standard input would have to be.
    fn stdin_uses(&self) -> usize {
        let stdin = Path::new(STANDARD_INPUT);
        let snapshots = [Some(self.source.as_path()), self.reference.as_deref()];
        let snapshots = snapshots.into_iter().filter(|place| *place == Some(stdin)).count();
        snapshots + usize::from(self.reads_query_from_stdin())
    }

    fn is_interactive(&self) -> bool {
        let asked = self.query.is_some() || self.file.is_some() || self.output.is_some();
        !asked && self.stdin_uses() == 0 && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    fn prompt(&self, quiet: bool, interrupt: &Interrupt) -> Result<Outcome> {
        let format = self.format();
        refuse_binary(format)?;
        let engine = self.engine(quiet)?;
        let mut session = Session::new(&engine);
        session.params = &self.params;
        session.timeout = self.timeout;
        session.format = format;
        session.max_rows = self.max_rows;
        session.redaction = self.redaction(&engine)?;
        let mut title = self.source.display().to_string();
        if let Some(reference) = &self.reference {
            title = format!("{title}, and {} as `{BASE}`", reference.display());
        }
        session.run(&title, interrupt)?;
        Ok(Outcome::Done)
    }

    fn reads_query_from_stdin(&self) -> bool {
        self.query.as_deref() == Some("-") || self.file.as_deref() == Some(Path::new("-"))
    }

    fn sql(&self) -> Result<String> {
        match (&self.file, self.query.as_deref()) {
            (Some(file), _) if file != Path::new("-") => {
                let opened = File::open(file).map_err(Error::io(file, "cannot read the query"))?;
                read_query(file, opened)
            }
            (Some(_), _) | (None, Some("-")) => read_query(Path::new("-"), io::stdin().lock()),
            (None, Some(query)) => Ok(query.to_owned()),
            (None, None) => Err(Error::Usage {
                what: "no query".to_owned(),
                reason: "give one as an argument or with `-f FILE`; `-` reads it from standard input"
                    .to_owned(),
            }),
        }
    }

    fn format(&self) -> Format {
        let named = || self.output.as_deref().and_then(Format::of_name);
        self.format.or_else(named).unwrap_or(Format::Table)
    }

    fn engine(&self, quiet: bool) -> Result<Engine> {
        let cache = if self.no_cache { Cache::Off } else { Cache::Keep };
        let store = super::open(&self.source, cache, quiet)?;
        let reference =
            self.reference.as_ref().map(|source| super::open(source, cache, quiet)).transpose()?;
        let mut engine =
            Engine::open(store, Options { memory_limit: self.memory_limit, ..Options::default() })?;
        if let Some(store) = reference {
            engine.attach(BASE, store)?;
        }
        Ok(engine)
    }

    fn redaction(&self, engine: &Engine) -> Result<Redaction> {
        if self.redact { Redaction::learn(engine, &self.sources()) } else { Ok(Redaction::none()) }
    }

    fn limit(&self, format: Format, terminal: bool) -> usize {
        match (self.max_rows, format, terminal) {
            (Some(rows), ..) => rows,
            (None, Format::Table, true) => SCREENFUL,
            _ => usize::MAX,
        }
    }
}

/// Reads a query to its end; what has none, as `/dev/zero`, is given up where no query goes on.
fn read_query(path: &Path, from: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(MOST_READ).read_to_end(&mut bytes).map_err(Error::io(path, "cannot read the query"))?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read == MOST_READ) {
        let most = quantity::bytes(i64::try_from(MOST_READ).unwrap_or(i64::MAX));
        let reason = format!("has {most} and does not end, so it is no query");
        return Err(Error::Usage { what: format!("`{}`", path.display()), reason });
    }
    // Editors on Windows put a mark before the text.
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes).to_vec();
    String::from_utf8(text).map_err(|_| Error::Usage {
        what: format!("`{}`", path.display()),
        reason: "is no text in UTF-8, so it is no query".to_owned(),
    })
}

/// Says which devices and events a query asks for in vain: it would give back no rows, or those of the end or the beginning.
pub(super) fn say_unknown(engine: &Engine, batches: &Batches<'_>, out: &mut dyn io::Write) -> Result<()> {
    for (asked, known) in engine.unknown(batches)? {
        let snapshot = if asked.of_base { "the second snapshot" } else { "the snapshot" };
        let list = known.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let note = match (asked.thing, known.as_slice()) {
            (Thing::Device(device), _) => format!("{snapshot} has no device {device}; it has: {list}"),
            (Thing::Event(event, _), [first, _]) if event < *first => format!(
                "{snapshot} has no event {event}, the first one is {first}: this is the state before it, for which -1 stands too"
            ),
            (Thing::Event(event, _), [_, last]) => {
                format!("{snapshot} has no event {event}, the last one is {last}: this is how it ended")
            }
            (Thing::Event(event, _), _) => {
                format!("{snapshot} has no event {event}, and no other: this is how it ended")
            }
        };
        // Nobody listening is no failure.
        let _closed = writeln!(out, "note: {note}");
    }
    Ok(())
}

/// Rows of a result.
pub(super) struct Written {
    shown: usize,
    more: usize,
}

impl Written {
    /// What the rows do not show themselves: that there are others, which `option` would show, or that there are none.
    pub(super) fn remark(&self, format: Format, option: &str) -> Option<String> {
        if self.more > 0 {
            let more = quantity::count(i64::try_from(self.more).unwrap_or(i64::MAX));
            return Some(format!("{more} more rows; `{option}` sets how many are shown"));
        }
        (self.shown == 0 && format == Format::Table).then(|| "(0 rows)".to_owned())
    }
}

/// Writes at most `limit` rows, then counts the others.
pub(super) fn write(
    format: Format,
    mut batches: Batches<'_>,
    limit: usize,
    redaction: &Redaction,
    sink: &mut Sink,
) -> Result<Written> {
    // A query that fails before its first row has not even a header.
    let first = batches.next().transpose()?;
    let width = sink.terminal_width();
    let schema = redaction.schema(batches.schema());
    let mut writer = match RowWriter::new(format, &schema, width, &mut *sink) {
        Ok(writer) => writer,
        Err(error) => return Err(sink.error(error)),
    };
    let mut room = limit;
    let mut written = Written { shown: 0, more: 0 };
    for batch in first.map(Ok).into_iter().chain(batches) {
        let batch = batch?;
        let shown = batch.num_rows().min(room);
        if shown > 0 {
            let rows = redaction.batch(&batch.slice(0, shown), &schema).map_err(io::Error::other);
            if let Err(error) = rows.and_then(|rows| writer.write(&rows)) {
                return Err(sink.error(error));
            }
        }
        room -= shown;
        written.shown += shown;
        written.more += batch.num_rows() - shown;
    }
    writer.finish().map(|_| written).map_err(|error| sink.error(error))
}

fn name(format: Format) -> String {
    let value = clap::ValueEnum::to_possible_value(&format);
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads `NAME=VALUE`.
pub(super) fn param(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("there is no `=`")?;
    let name = name.strip_prefix('$').unwrap_or(name);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("`{name}` is no name; one has letters, digits and `_`"));
    }
    Ok((name.to_owned(), Value::infer(value)))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds")?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "it is no time that a query could take".to_owned())
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes = quantity::parse_bytes(text).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or("it is no number of bytes, such as 512MiB")?;
    if bytes == 0 { Err("a query needs some memory".to_owned()) } else { Ok(bytes) }
}

fn refuse_binary(format: Format) -> Result<()> {
    if !format.is_binary() {
        return Ok(());
    }
    let what = format!("--format {}", name(format));
    let reason = "is nothing for a terminal; write it to a file with `-o FILE`, or into a pipe";
    Err(Error::Usage { what, reason: reason.to_owned() })
}
