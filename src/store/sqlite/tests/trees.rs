//! Trees of every number of entries, on pages so small that they are high.

use std::path::{Path, PathBuf};

use tempfile::tempdir;

use super::{check, open, rows};
use crate::store::sqlite::cell::CellWriter;
use crate::store::sqlite::page_file::PageFile;
use crate::store::sqlite::record::Record;
use crate::store::sqlite::tree::{IndexTree, TableTree};

const SCHEMA: &str = "PRAGMA synchronous = OFF;
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
    CREATE INDEX i ON t (a);";

fn text(number: i64, length: usize) -> String {
    format!("{number:06}{}", "x".repeat(length))
}

/// A table of `count` rows with a text of `length` bytes and more, and its index.
fn database(dir: &Path, page_size: usize, count: i64, length: usize) -> PathBuf {
    let path = dir.join(format!("{page_size}-{count}-{length}"));
    let connection = open(&path);
    connection.execute_batch(&format!("PRAGMA page_size = {page_size}; {SCHEMA}")).unwrap();
    let mut pages = PageFile::open(&path).unwrap();
    assert_eq!(pages.page_size(), page_size);
    let (mut table, mut index) = (TableTree::new(page_size), IndexTree::new(page_size));
    let (mut record, mut cells) = (Record::default(), CellWriter::default());
    for number in 1..=count {
        record.clear();
        record.null();
        record.text(&text(number, length));
        table.add(number * 3, cells.row(number * 3, &record, &mut pages).unwrap(), &mut pages).unwrap();
        record.clear();
        record.text(&text(number, length));
        record.integer(number * 3);
        index.add(cells.entry(&record, &mut pages).unwrap(), &mut pages).unwrap();
    }
    let root = |name: &str| {
        let sql = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, u32>(0)).unwrap()
    };
    table.finish(root("t"), &mut pages).unwrap();
    index.finish(root("i"), &mut pages).unwrap();
    pages.publish().unwrap();
    path
}

/// The rows are there, in order, by number as by text.
fn has_rows(path: &Path, count: i64, length: usize) {
    let connection = open(path);
    check(&connection);
    let expected: Vec<String> =
        (1..=count).map(|number| format!("Integer({}) {:?}", number * 3, text(number, length))).collect();
    assert_eq!(rows(&connection, "SELECT id, a FROM t NOT INDEXED ORDER BY id"), expected);
    assert_eq!(rows(&connection, "SELECT id, a FROM t INDEXED BY i ORDER BY a"), expected);
}

/// Rows can be changed as in any database.
fn takes_changes(path: &Path) {
    let connection = open(path);
    let changes = [
        "INSERT INTO t SELECT id + 1, a || 'y' FROM t",
        "DELETE FROM t WHERE id % 5 = 0",
        "UPDATE t SET a = 'z' || id WHERE id % 7 < 3",
        "VACUUM",
        "DELETE FROM t",
    ];
    for change in changes {
        connection.execute_batch(change).unwrap();
        check(&connection);
    }
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["Integer(0)"]);
}

#[test]
fn a_tree_of_any_number_of_entries_is_whole() {
    let dir = tempdir().unwrap();
    // An entry of the index takes a fifth of a page; then a row takes half a page and an entry overflows.
    for length in [84, 220] {
        for count in 0..=330 {
            let path = database(dir.path(), 512, count, length);
            has_rows(&path, count, length);
            if count % 33 == 0 {
                takes_changes(&path);
            }
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn texts_of_any_length_are_whole() {
    let dir = tempdir().unwrap();
    for page_size in [512, 1024] {
        // Both sides of what stands on a page of an index (94) and of a table (477), and of full overflow pages.
        for length in (0..120).chain(460..530).chain(960..1030).chain([5000]) {
            let path = database(dir.path(), page_size, 9, length);
            has_rows(&path, 9, length);
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn high_trees_take_changes() {
    let dir = tempdir().unwrap();
    for (page_size, count, length) in [(512, 20_000, 84), (4096, 20_000, 60), (32768, 300, 5000)] {
        let path = database(dir.path(), page_size, count, length);
        has_rows(&path, count, length);
        takes_changes(&path);
    }
}

#[test]
#[ignore = "writes 2.5 GB"]
fn a_file_beyond_the_byte_that_is_locked_is_whole() {
    let dir = tempdir().unwrap();
    let path = database(dir.path(), 4096, 300_000, 4000);
    assert!(std::fs::metadata(&path).unwrap().len() > 2 << 30);
    let connection = open(&path);
    check(&connection);
    assert_eq!(rows(&connection, "SELECT count(*) FROM t WHERE length(a) = 4006"), ["Integer(300000)"]);
}
