//! Rows as a table in Markdown: for reports, issues and agents. A text shows as it is, whatever it holds.

use std::io;

use arrow::datatypes::Schema;

use super::column::{Column, is_number};
use crate::output::table::printable;

/// The two lines above the rows. Numbers stand right.
pub(super) fn header(schema: &Schema) -> Vec<u8> {
    let mut names = String::from("|");
    let mut rules = String::from("|");
    for field in schema.fields() {
        names.push(' ');
        append_escaped(&printable(field.name()), &mut names);
        names.push_str(" |");
        rules.push_str(if is_number(field.data_type()) { " ---: |" } else { " --- |" });
    }
    format!("{names}\n{rules}\n").into_bytes()
}

/// Appends a row.
pub(super) fn append_row(columns: &mut [Column<'_>], row: usize, line: &mut Vec<u8>) -> io::Result<()> {
    let mut text = String::from("|");
    for column in columns.iter_mut() {
        text.push(' ');
        match column.text(row)? {
            Some(value) => append_escaped(&printable(&value), &mut text),
            None => text.push_str("NULL"),
        }
        text.push_str(" |");
    }
    text.push('\n');
    line.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Escapes what Markdown would take for something else: a frame of `<module>` for HTML, `__init__` for bold. Underscores
/// within a word mean nothing to it and stay, so that names of columns and actions can be read in the source too.
fn append_escaped(text: &str, out: &mut String) {
    let mut before = None;
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        let next = symbols.peek().copied();
        let special = match symbol {
            '|' | '<' | '*' | '`' | '~' => true,
            '_' => !(before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric)),
            '\\' => next.is_none_or(|next| next.is_ascii_punctuation()),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(symbol);
        before = Some(symbol);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_take_for_markup_is_escaped() {
        for (text, expected) in [
            ("active_allocated", "active_allocated"),
            ("snake_case_2", "snake_case_2"),
            ("__init__", r"\_\_init\_\_"),
            ("<module>", r"\<module>"),
            ("a|b", r"a\|b"),
            (r"warm\nup", r"warm\nup"),
            (r#"say \"x\""#, r#"say \\"x\\""#),
            (r"C:\", r"C:\\"),
            ("*`~", r"\*\`\~"),
        ] {
            let mut escaped = String::new();
            append_escaped(text, &mut escaped);
            assert_eq!(escaped, expected);
        }
    }
}
