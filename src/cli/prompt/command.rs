//! What begins with a backslash, and is no SQL.

use std::fmt::Write as _;

use crate::engine::{self, Engine, SqlMacro};
use crate::error::{Error, Result};
use crate::schema::{self, TABLES};

/// Names of the commands with what they take and do.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    ("\\d", "[NAME]", "list the tables and macros, or show the columns of one"),
    ("\\h", "[NAME]", "this help, as `help` and `?` too, or what a table or macro is"),
    ("\\rows", "N", "show at most so many rows of a result"),
    ("\\q", "", "leave; Ctrl-D does too"),
];

/// What the user wants of the prompt itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    List,
    Describe(String),
    Rows(usize),
    Leave,
}

/// Whether a text is a command without a backslash.
pub(super) fn is_word(text: &str) -> bool {
    Command::of_word(bare(text)).is_some()
}

fn bare(text: &str) -> &str {
    text.trim().trim_end_matches(';').trim_end()
}

impl Command {
    fn of_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "exit" | "quit" => Some(Self::Leave),
            "help" | "?" => Some(Self::Help),
            _ => None,
        }
    }

    /// The command that `text` is; none where it is SQL.
    pub(super) fn parse(text: &str) -> Result<Option<Self>> {
        let text = bare(text);
        if let Some(command) = Self::of_word(text) {
            return Ok(Some(command));
        }
        if !text.starts_with('\\') {
            return Ok(None);
        }
        let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let argument = argument.trim();
        match (name, argument) {
            ("\\q", _) => Ok(Some(Self::Leave)),
            ("\\h" | "\\?" | "\\help", "") => Ok(Some(Self::Help)),
            ("\\d", "") => Ok(Some(Self::List)),
            ("\\d" | "\\h", name) => Ok(Some(Self::Describe(name.to_ascii_lowercase()))),
            ("\\rows", rows) => match rows.parse() {
                Ok(rows) => Ok(Some(Self::Rows(rows))),
                Err(_) => Err(Error::Usage {
                    what: "`\\rows`".to_owned(),
                    reason: format!("takes a number of rows, found `{rows}`"),
                }),
            },
            (name, _) => Err(Error::Sql {
                reason: format!("no command called `{name}`"),
                place: None,
                hint: Some("`\\h` lists them".to_owned()),
            }),
        }
    }
}

/// What the prompt understands.
pub(super) fn help() -> String {
    let mut text =
        "A statement ends with `;` and may have many lines. Tab completes names, Ctrl-R searches what was\n\
                    asked before, Ctrl-C ends a query that runs or drops what is being typed. A command has a line of its own,\n\
                    also between the lines of a statement.\n\n"
            .to_owned();
    for (name, argument, doc) in COMMANDS {
        let _infallible = writeln!(text, "  {:12}  {doc}", format!("{name} {argument}"));
    }
    text
}

/// The tables and macros, a line each.
pub(super) fn list(engine: &Engine) -> Result<String> {
    let mut text = String::from("tables:\n");
    for table in TABLES {
        let doc = table.doc.trim().lines().next().unwrap_or_default();
        let _infallible = writeln!(text, "  {}\n      {doc}", table.name);
    }
    text.push_str("\nmacros:\n");
    for definition in engine::catalog()?.iter().filter(|definition| !definition.is_private()) {
        let _infallible =
            writeln!(text, "  {}\n      {}", definition.signature(), engine::macro_summary(definition));
    }
    if engine.names().relations.iter().any(|name| name.starts_with("base.")) {
        text.push_str("\nThe second snapshot has all of them with `base.` in front.\n");
    }
    Ok(text)
}

/// A table or macro with its columns.
pub(super) fn describe(engine: &Engine, name: &str) -> Result<String> {
    let known = engine.names().relations;
    let bare = name.rsplit('.').next().unwrap_or(name);
    let is_known = known.iter().any(|known| known == name);
    if is_known && let Some(table) = schema::table(bare) {
        return Ok(schema::table_text(table));
    }
    // What compares two snapshots can be read about before there are two.
    let is_named = |definition: &SqlMacro| {
        definition.name == bare && (is_known || (definition.needs_base && bare == name))
    };
    if let Some(definition) = engine::catalog()?.iter().find(|definition| is_named(definition)) {
        return Ok(engine::macro_text(definition));
    }
    Err(Error::Unknown {
        kind: "table or macro",
        name: name.to_owned(),
        nearest: engine::nearest(name, known.iter().map(String::as_str)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_begins_with_a_backslash() {
        for (text, command) in [
            ("SELECT 1;", None),
            ("\\q", Some(Command::Leave)),
            (" Quit ; ", Some(Command::Leave)),
            ("\\h", Some(Command::Help)),
            ("HELP;", Some(Command::Help)),
            ("?", Some(Command::Help)),
            ("\\d", Some(Command::List)),
            ("\\d Traces;", Some(Command::Describe("traces".to_owned()))),
            ("\\h top_allocations", Some(Command::Describe("top_allocations".to_owned()))),
            ("\\rows 5", Some(Command::Rows(5))),
        ] {
            assert_eq!(Command::parse(text).unwrap(), command, "{text}");
        }
        for (text, message) in [
            ("\\rows many", "`\\rows`: takes a number of rows, found `many`"),
            ("\\x", "no command called `\\x`"),
        ] {
            assert_eq!(Command::parse(text).unwrap_err().to_string(), message);
        }
    }
}
