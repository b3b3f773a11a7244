//! `npusnap macros` and `npusnap schema`: what there is to query. Names are as in SQL, in which capitals do not matter.

use std::io::Write as _;

use serde_json::{Value, json};

use super::Outcome;
use crate::engine::{self, SqlMacro};
use crate::error::{Error, Result};
use crate::output::Sink;
use crate::schema::{self, TABLES, Table};

/// How a description is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal.
    Text,
    /// An array of objects; one object where a name is given.
    Json,
    /// A section for each.
    Markdown,
}

/// List the SQL macros, or show one with its columns and its text.
///
/// A macro is called with arguments, `SELECT * FROM top_allocations(10)` or `top_allocations(device => 0)`, or used by its bare name: then it has its
/// defaults and no limit. So it is a view in the SQLite database too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap macros\n  \
    npusnap macros peak_contributors\n  \
    npusnap macros --format markdown > macros.md")]
pub(super) struct MacrosArgs {
    /// Macro to show.
    name: Option<String>,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// List the tables, or show one with its columns.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap schema\n  \
    npusnap schema traces\n  \
    npusnap schema --format json > schema.json")]
pub(super) struct SchemaArgs {
    /// Table to show.
    table: Option<String>,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs `npusnap macros`.
pub(super) fn macros(args: &MacrosArgs) -> Result<Outcome> {
    let mut macros = engine::catalog()?;
    macros.retain(|definition| !definition.is_private());
    let Some(name) = &args.name else {
        return print(&match args.format {
            Format::Text => engine::macro_list(&macros),
            Format::Json => pretty(&macros.iter().map(macro_json).collect()),
            Format::Markdown => sections(macros.iter().map(engine::macro_markdown)),
        });
    };
    let definition = macros.iter().find(|definition| definition.name.eq_ignore_ascii_case(name));
    let definition =
        definition.ok_or_else(|| unknown("macro", name, macros.iter().map(|definition| definition.name)))?;
    print(&match args.format {
        Format::Text => engine::macro_text(definition),
        Format::Json => pretty(&macro_json(definition)),
        Format::Markdown => engine::macro_markdown(definition),
    })
}

/// Runs `npusnap schema`.
pub(super) fn schema(args: &SchemaArgs) -> Result<Outcome> {
    let Some(name) = &args.table else {
        return print(&match args.format {
            Format::Text => sections(TABLES.iter().map(|table| schema::table_text(table))),
            Format::Json => pretty(&TABLES.iter().map(|table| table_json(table)).collect()),
            Format::Markdown => sections(TABLES.iter().map(|table| schema::table_markdown(table))),
        });
    };
    let table = schema::table(&name.to_ascii_lowercase())
        .ok_or_else(|| unknown("table", name, TABLES.iter().map(|table| table.name)))?;
    print(&match args.format {
        Format::Text => schema::table_text(table),
        Format::Json => pretty(&table_json(table)),
        Format::Markdown => schema::table_markdown(table),
    })
}

fn unknown<'a>(kind: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    Error::Unknown { kind, name: name.to_owned(), nearest: engine::nearest(name, known) }
}

fn macro_json(definition: &SqlMacro) -> Value {
    json!({
        "name": definition.name,
        "signature": definition.signature(),
        "summary": definition.summary,
        "doc": definition.doc,
        "needs_ref": definition.needs_base,
        "params": definition.params.iter().map(|param| json!({
            "name": param.name,
            "type": param.sql_type.as_str(),
            "default": param.default.literal(),
            "doc": param.doc,
        })).collect::<Value>(),
        "columns": definition.columns.iter().map(|column| json!({
            "name": column.name,
            "type": column.sql_type.as_str(),
            "doc": column.doc,
        })).collect::<Value>(),
        "sql": definition.body,
    })
}

fn table_json(table: &Table) -> Value {
    let columns = table.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "type": engine::sql_type(&(column.data_type)()),
            "nullable": column.nullable,
            "doc": column.doc.trim(),
        })
    });
    json!({ "name": table.name, "doc": table.doc.trim(), "columns": columns.collect::<Value>() })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn sections(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn print(text: &str) -> Result<Outcome> {
    let mut sink = Sink::open(None, &[])?;
    sink.write_all(text.as_bytes()).map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(Outcome::Done)
}
