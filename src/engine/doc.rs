//! Macros as text for people: a terminal listing and Markdown.

use std::fmt::Write as _;

use super::sql_macro::SqlMacro;

/// What is said of a macro that compares two snapshots.
const NEEDS_REF: &str = "Needs a second snapshot: `--ref OTHER`.";

/// What stands under a list of macros: how arguments are given.
const CALLS: &str = "\
An argument is given by its place or by its name, and what is left out has its default:
    SELECT * FROM peak_contributors(0, 10)
    SELECT * FROM peak_contributors(limit => 10)
Without arguments and brackets, as in `SELECT * FROM peak_contributors`, there is no limit.
";

/// The macros for a terminal, a line each.
#[must_use]
pub fn macro_list(macros: &[SqlMacro]) -> String {
    let mut text = String::new();
    for definition in macros {
        let _infallible = writeln!(text, "{}\n    {}", definition.signature(), macro_summary(definition));
    }
    text.push('\n');
    text.push_str(CALLS);
    text
}

/// A macro's first sentence, and whether it needs a second snapshot.
#[must_use]
pub fn macro_summary(definition: &SqlMacro) -> String {
    let needs = if definition.needs_base { format!(" {NEEDS_REF}") } else { String::new() };
    format!("{}{needs}", definition.summary)
}

/// One macro for a terminal: how to call it, what its columns are, and its statement.
#[must_use]
pub fn macro_text(definition: &SqlMacro) -> String {
    let mut text = format!("{}\n\n{}\n", definition.signature(), macro_summary(definition));
    if !definition.doc.is_empty() {
        let _infallible = write!(text, "\n{}\n", definition.doc);
    }
    for (title, rows) in [("arguments", parameters(definition)), ("columns", columns(definition))] {
        if rows.is_empty() {
            continue;
        }
        let _infallible = writeln!(text, "\n{title}:");
        let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        for (name, sql_type, doc) in rows {
            let _infallible = writeln!(text, "  {name:width$}  {sql_type:7}  {doc}");
        }
    }
    let _infallible = write!(text, "\n{}\n", definition.body);
    text
}

/// One macro as a Markdown section.
#[must_use]
pub fn macro_markdown(definition: &SqlMacro) -> String {
    let mut text =
        format!("## {}\n\n`{}`\n\n{}\n", definition.name, definition.signature(), macro_summary(definition));
    if !definition.doc.is_empty() {
        let _infallible = write!(text, "\n{}\n", definition.doc);
    }
    for (title, rows) in [("argument", parameters(definition)), ("column", columns(definition))] {
        if rows.is_empty() {
            continue;
        }
        let _infallible = write!(text, "\n| {title} | type | meaning |\n|---|---|---|\n");
        for (name, sql_type, doc) in rows {
            let _infallible = writeln!(text, "| {name} | {sql_type} | {doc} |");
        }
    }
    let _infallible = write!(text, "\n```sql\n{}\n```\n", definition.body);
    text
}

fn parameters(definition: &SqlMacro) -> Vec<(&'static str, &'static str, &str)> {
    definition.params.iter().map(|param| (param.name, param.sql_type.as_str(), param.doc.as_str())).collect()
}

fn columns(definition: &SqlMacro) -> Vec<(&'static str, &'static str, &str)> {
    definition
        .columns
        .iter()
        .map(|column| (column.name, column.sql_type.as_str(), column.doc.as_str()))
        .collect()
}
