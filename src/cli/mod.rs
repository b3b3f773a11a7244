//! Commands: what the command line says, and who does it.

mod analyze;
mod catalog;
mod export;
mod info;
mod ingest;
mod interrupt;
mod mode;
mod progress;
mod prompt;
mod query;
mod report;
mod shell;
mod skill;
mod source;
mod synth;
mod thresholds;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::error::Result;

use source::open;

/// How a run ended when it did what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All done: exit code 0.
    Done,
    /// Done, and a finding reached `--fail-on`: exit code 1.
    FindingReached,
}

/// Memory snapshots of Ascend NPU and CUDA GPU jobs as Parquet, SQLite and SQL, with numbers that add up.
#[derive(Debug, Parser)]
#[command(
    name = "npusnap",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
    npusnap info snapshot.pickle                                 # what is in it, and what is not\n  \
    npusnap analyze snapshot.pickle --mode oom                   # why it ran out of memory\n  \
    npusnap analyze snapshot.pickle --mode all -o report.html    # everything on one page\n  \
    npusnap analyze after.pickle --mode compare --ref before.pickle\n  \
    npusnap sql snapshot.pickle \"SELECT * FROM peak_contributors(0, 10)\""
)]
pub struct Cli {
    /// Say nothing but errors on standard error.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Reads the command line, and ends the program where it makes no sense.
    #[must_use]
    pub fn from_command_line() -> Self {
        Self::parse_from(std::env::args_os().map(comment_first))
    }
}

/// A query that begins with a comment looks like an option. An option's name ends with the argument or at a `=`; where a
/// blank or a new line comes first, the argument gets a blank in front, which no query minds.
fn comment_first(argument: OsString) -> OsString {
    let is_query = argument
        .to_str()
        .and_then(|text| text.strip_prefix("--"))
        .and_then(|rest| rest.chars().find(|c| c.is_whitespace() || *c == '='))
        .is_some_and(char::is_whitespace);
    if !is_query {
        return argument;
    }
    let mut query = OsString::from(" ");
    query.push(argument);
    query
}

#[derive(Debug, Subcommand)]
enum Command {
    Ingest(ingest::Args),
    Info(info::Args),
    Analyze(analyze::Args),
    Sql(query::Args),
    Export(export::Args),
    Macros(catalog::MacrosArgs),
    Schema(catalog::SchemaArgs),
    Thresholds(thresholds::Args),
    Synth(synth::Args),
    Skill(skill::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// Does what the command line asks for.
///
/// # Errors
/// Whatever ends the command with exit code 2.
pub fn run(cli: Cli) -> Result<Outcome> {
    let interrupt = interrupt::Interrupt::listen()?;
    match cli.command {
        Command::Info(args) => info::run(&args, cli.quiet),
        Command::Ingest(args) => ingest::run(args, cli.quiet),
        Command::Analyze(args) => analyze::run(&args, cli.quiet),
        Command::Sql(args) => query::run(&args, cli.quiet, &interrupt),
        Command::Export(args) => export::run(&args, cli.quiet),
        Command::Macros(args) => catalog::macros(&args),
        Command::Schema(args) => catalog::schema(&args),
        Command::Thresholds(args) => thresholds::run(&args),
        Command::Synth(args) => synth::run(&args, cli.quiet),
        Command::Skill(args) => skill::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}
