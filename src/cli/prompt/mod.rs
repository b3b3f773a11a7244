//! `npusnap sql` on a terminal without a query: statement after statement, until the user has enough.
//!
//! A failed statement ends nothing but itself. Ctrl-C ends the query that runs, and never the session.

mod command;
mod complete;

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use super::interrupt::{Armed, Interrupt};
use crate::engine::{self, Engine, QueryOptions, Value};
use crate::error::{Error, Result};
use crate::output::{Format, Redaction, Sink};

use command::Command;
use complete::Assistant;

const PROMPT: &str = "npusnap> ";

/// What stands before the lines that go on with a statement, as wide as the prompt.
const GOES_ON: &str = "    ...> ";

/// Statements that are remembered.
const REMEMBERED: usize = 10_000;

/// Rows shown at once on a terminal that does not tell its height, or that is too low to be useful.
const FEWEST_ROWS: usize = 20;

/// Lines of a terminal that are not for rows: header, rule, count of more rows, next prompt.
const OTHER_LINES: usize = 4;

/// A session, with what its queries have in common.
pub(super) struct Session<'a> {
    engine: &'a Engine,
    /// Values for the parameters of every statement that has them.
    pub(super) params: &'a [(String, Value)],
    pub(super) timeout: Option<Duration>,
    pub(super) format: Format,
    /// Rows shown of a result; none where the terminal's height decides.
    pub(super) max_rows: Option<usize>,
    /// What is left out of texts.
    pub(super) redaction: Redaction,
}

enum Next {
    GoOn,
    Leave,
}

impl<'a> Session<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        let redaction = Redaction::none();
        Self { engine, params: &[], timeout: None, format: Format::Table, max_rows: None, redaction }
    }

    /// Reads and answers until the user leaves.
    pub(super) fn run(mut self, title: &str, interrupt: &Interrupt) -> Result<()> {
        let mut editor = self.editor().map_err(terminal_error)?;
        let history = history_file();
        if let Some(file) = &history {
            // The first session has none, and one that cannot be read is no reason to answer no questions.
            let _missing = editor.load_history(file);
        }
        say(&format!("npusnap {}: {title}\n\\h for help, \\q to leave\n", env!("CARGO_PKG_VERSION")))?;
        let mut typed = String::new();
        loop {
            if let Some(assistant) = editor.helper_mut() {
                assistant.earlier.clone_from(&typed);
            }
            let line = match editor.readline(if typed.is_empty() { PROMPT } else { GOES_ON }) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    typed.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(terminal_error(error)),
            };
            let Some(text) = whole(&mut typed, line) else { continue };
            let _kept = editor.add_history_entry(text.as_str());
            if let Some(file) = &history {
                let _full = editor.append_history(file);
            }
            // Not while it waits for a line: a wish to terminate is for the program then.
            let armed = interrupt.arm();
            match self.answer(&text, &armed) {
                Ok(Next::GoOn) => {}
                Ok(Next::Leave) => return Ok(()),
                Err(error) if matches!(error, Error::Output { .. }) => return Err(error),
                Err(error) => {
                    let _closed = error.report(&mut io::stderr().lock());
                }
            }
        }
    }

    fn editor(&self) -> rustyline::Result<Editor<Assistant, FileHistory>> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)?
            .history_ignore_dups(true)?
            .completion_type(rustyline::CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant::new(self.engine.names())));
        Ok(editor)
    }

    fn answer(&mut self, text: &str, armed: &Armed<'_>) -> Result<Next> {
        if let Some(command) = Command::parse(text)? {
            match command {
                Command::Leave => return Ok(Next::Leave),
                Command::Help => say(&command::help())?,
                Command::List => say(&command::list(self.engine)?)?,
                Command::Describe(name) => say(&command::describe(self.engine, &name)?)?,
                Command::Rows(rows) => self.max_rows = Some(rows),
            }
            return Ok(Next::GoOn);
        }
        for statement in engine::statements(text) {
            self.query(statement, armed)?;
        }
        Ok(Next::GoOn)
    }

    fn query(&self, sql: &str, armed: &Armed<'_>) -> Result<()> {
        let used = engine::parameters(sql);
        let params = self.params.iter().filter(|(name, _)| used.contains(&name.as_str()));
        let options = QueryOptions {
            params: params.cloned().collect(),
            timeout: self.timeout,
            interrupt: Some(armed.flag()),
        };
        let batches = self.engine.query_with(sql, &options)?;
        super::query::say_unknown(self.engine, &batches, &mut io::stderr().lock())?;
        let mut sink = Sink::open(None, &[])?;
        let written = super::query::write(self.format, batches, self.rows(), &self.redaction, &mut sink)?;
        if let Some(remark) = written.remark(self.format, "\\rows N") {
            writeln!(sink, "{remark}").map_err(|source| Error::Output { source })?;
        }
        sink.finish()
    }

    fn rows(&self) -> usize {
        let height = || terminal_size::terminal_size().map_or(0, |(_, height)| usize::from(height.0));
        self.max_rows.unwrap_or_else(|| height().saturating_sub(OTHER_LINES).max(FEWEST_ROWS))
    }
}

/// What is to be answered now that a line is there: the statement that it ends, or the command that it is. A command between
/// the lines of a statement leaves that as it is, unless the line is in the middle of a text.
fn whole(typed: &mut String, line: String) -> Option<String> {
    let is_open = !typed.is_empty() && !engine::is_ended(&format!("{typed}\n;"));
    if line.trim_start().starts_with('\\') && !is_open {
        return Some(line);
    }
    if !typed.is_empty() {
        typed.push('\n');
    }
    typed.push_str(&line);
    is_whole(typed).then(|| std::mem::take(typed))
}

/// Whether Enter ends the input: it does after a `;`, after a word that is a command and where there is nothing.
fn is_whole(text: &str) -> bool {
    text.trim().is_empty() || command::is_word(text) || engine::is_ended(text)
}

fn say(text: &str) -> Result<()> {
    let mut sink = Sink::open(None, &[])?;
    sink.write_all(text.as_bytes()).map_err(|source| Error::Output { source })?;
    sink.finish()
}

fn terminal_error(error: ReadlineError) -> Error {
    let source = match error {
        ReadlineError::Io(source) => source,
        other => io::Error::other(other),
    };
    Error::io("-", "cannot read from the terminal")(source)
}

/// Where the statements are remembered: a file in the user's data folder, which is made if it is not there.
fn history_file() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
    let folder = data.join("npusnap");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is answered after each of some lines.
    fn answered(lines: &[&str]) -> Vec<String> {
        let mut typed = String::new();
        lines.iter().filter_map(|line| whole(&mut typed, (*line).to_owned())).collect()
    }

    #[test]
    fn enter_ends_what_is_whole() {
        for text in ["", " \n", "\\d tr", "quit", "help", "?", "SELECT 1;"] {
            assert_eq!(answered(&[text]), [text]);
        }
        assert_eq!(answered(&["SELECT 1"]), [""; 0]);
        assert_eq!(answered(&["SELECT 1", "help;"]), ["SELECT 1\nhelp;"]);
    }

    #[test]
    fn a_command_between_the_lines_of_a_statement_leaves_the_statement() {
        assert_eq!(answered(&["SELECT 1", "\\d traces", "+ 1;"]), ["\\d traces", "SELECT 1\n+ 1;"]);
        assert_eq!(answered(&["SELECT 'a", "\\d';"]), ["SELECT 'a\n\\d';"]);
        assert_eq!(answered(&["SELECT 1 -- one", "\\q"]), ["\\q"]);
    }
}
