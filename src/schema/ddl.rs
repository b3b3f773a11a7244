//! Tables as SQLite DDL.
//!
//! The text is understood by SQLite 3.25, which old Python installations carry: no STRICT tables.

use std::fmt::Write as _;

use super::Table;

/// `CREATE TABLE` for `table`.
#[must_use]
pub fn create_table(table: &Table) -> String {
    let columns: Vec<String> = table
        .sqlite_columns()
        .map(|column| {
            let mut text = format!("  \"{}\" {}", column.name, column.sqlite.unwrap_or_default());
            if !column.nullable {
                text.push_str(" NOT NULL");
            }
            if let Some(constraint) = column.constraint {
                let _infallible = write!(text, " {constraint}");
            }
            text
        })
        .collect();
    format!("CREATE TABLE {} (\n{}\n)", table.name, columns.join(",\n"))
}

/// `CREATE INDEX` statements for `table`, for after the rows are in.
pub fn create_index(table: &'static Table) -> impl Iterator<Item = String> {
    table
        .indexes
        .iter()
        .map(move |(name, columns)| format!("CREATE INDEX {name} ON {}({columns})", table.name))
}
