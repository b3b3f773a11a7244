//! `npusnap completions` and `npusnap man`: what a shell and a reader of manuals want to know of the command line.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Outcome};
use crate::error::{Error, Result};
use crate::output::Sink;

const NAME: &str = "npusnap";

/// Write a completion script for a shell to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap completions bash > ~/.local/share/bash-completion/completions/npusnap\n  \
    npusnap completions zsh > ~/.zfunc/_npusnap          # a folder of $fpath\n  \
    npusnap completions fish > ~/.config/fish/completions/npusnap.fish")]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the manual page to standard output, or the pages of all commands into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  npusnap man | man -l -\n  npusnap man -o ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Folder for npusnap.1 and a page for each command; made if it is not there.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs `npusnap completions`.
pub(super) fn completions(args: &CompletionsArgs) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    print(&script)
}

/// Runs `npusnap man`.
pub(super) fn man(args: &ManArgs) -> Result<Outcome> {
    let mut command = Cli::command();
    // What every command has in common stands on its page too.
    command.build();
    let Some(folder) = &args.output else { return print(&page(command)?) };
    fs::create_dir_all(folder).map_err(Error::io(folder, "cannot create"))?;
    let of_commands = command.get_subcommands().filter(|known| known.get_name() != "help").cloned();
    for of_command in of_commands.collect::<Vec<_>>() {
        let name = format!("{NAME}-{}", of_command.get_name());
        put(&folder.join(format!("{name}.1")), &page(of_command)?)?;
    }
    put(&folder.join(format!("{NAME}.1")), &page(command)?)?;
    Ok(Outcome::Done)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(|source| Error::Output { source })?;
    Ok(page)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut sink = Sink::open(Some(path), &[])?;
    sink.write_all(bytes).map_err(|source| sink.error(source))?;
    sink.finish()
}

fn print(bytes: &[u8]) -> Result<Outcome> {
    let mut sink = Sink::open(None, &[])?;
    sink.write_all(bytes).map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(Outcome::Done)
}
