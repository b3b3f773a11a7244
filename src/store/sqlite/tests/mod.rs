//! Databases whose pages were written here are those that SQLite writes of the same rows.

mod tables;
mod trees;

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

fn open(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

/// All rows of a query, as text that tells values of different types apart.
fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let width = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let values = (0..width).map(|column| match row.get_ref(column).unwrap() {
            ValueRef::Text(text) => format!("{:?}", String::from_utf8(text.to_vec()).unwrap()),
            other => format!("{other:?}"),
        });
        found.push(values.collect::<Vec<_>>().join(" "));
    }
    found
}

/// SQLite finds nothing wrong.
fn check(connection: &Connection) {
    for pragma in ["integrity_check", "quick_check"] {
        assert_eq!(rows(connection, &format!("PRAGMA {pragma}")), ["\"ok\""], "{pragma}");
    }
    assert!(rows(connection, "PRAGMA foreign_key_check").is_empty());
}
