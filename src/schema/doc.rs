//! Tables as text for people: a terminal listing and Markdown.

use std::fmt::Write as _;

use super::{Column, Table};

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Type as SQL readers know it.
fn type_name(column: &Column) -> &'static str {
    match column.sqlite {
        Some("INTEGER") => "BIGINT",
        Some("TEXT") => "VARCHAR",
        Some("REAL") => "DOUBLE",
        _ => "LIST<STRUCT>",
    }
}

fn nullability(column: &Column) -> &'static str {
    if column.nullable { "NULL" } else { "NOT NULL" }
}

/// A table and its columns for a terminal.
#[must_use]
pub fn table_text(table: &Table) -> String {
    let mut text = format!("{}: {}\n", table.name, one_line(table.doc));
    let width = table.columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    for column in table.columns {
        let _infallible = writeln!(
            text,
            "  {:width$}  {:12}  {:8}  {}",
            column.name,
            type_name(column),
            nullability(column),
            one_line(column.doc)
        );
    }
    text
}

/// A table and its columns as a Markdown section.
#[must_use]
pub fn table_markdown(table: &Table) -> String {
    let mut text = format!(
        "## {}\n\n{}\n\n| column | type | null | meaning |\n|---|---|---|---|\n",
        table.name,
        one_line(table.doc)
    );
    for column in table.columns {
        let _infallible = writeln!(
            text,
            "| {} | {} | {} | {} |",
            column.name,
            type_name(column),
            if column.nullable { "yes" } else { "no" },
            one_line(column.doc)
        );
    }
    text
}
