//! `npusnap skill`: the agent skill, out of the binary.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use super::Outcome;
use crate::error::{Error, Result};
use crate::output::Sink;

/// Expands to name and text of each file of the skill.
macro_rules! skill_files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/skill/npusnap/", $name)))),+]
    };
}

/// What is written out, SKILL.md first.
const FILES: &[(&str, &str)] = skill_files![
    "SKILL.md",
    "references/capture.md",
    "references/macros.md",
    "references/methodology.md",
    "references/schema.md",
    "references/templates.md",
    "references/thresholds.md",
    "scripts/npusnap_capture.py",
    "evals/evals.json",
    "evals/run.py",
];

/// Show the agent skill, or write it into a folder of skills.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  npusnap skill\n  \
    npusnap skill --install ~/.claude/skills   # makes the folder npusnap in it")]
pub(super) struct Args {
    /// Folder of skills; the skill gets the folder `npusnap` in it, whose files of the same names are replaced.
    #[arg(long, value_name = "DIR")]
    install: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<Outcome> {
    let Some(folder) = &args.install else {
        let mut sink = Sink::open(None, &[])?;
        for (_, text) in FILES.iter().take(1) {
            sink.write_all(text.as_bytes()).map_err(|source| sink.error(source))?;
        }
        sink.finish()?;
        return Ok(Outcome::Done);
    };
    let folder = folder.join("npusnap");
    let mut list = Sink::open(None, &[])?;
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io(parent, "cannot create"))?;
        }
        let mut sink = Sink::open(Some(&path), &[])?;
        sink.write_all(text.as_bytes()).map_err(|source| sink.error(source))?;
        sink.finish()?;
        writeln!(list, "{}", path.display()).map_err(|source| list.error(source))?;
    }
    list.finish()?;
    Ok(Outcome::Done)
}
