//! What the editor asks while something is typed: how could the word go on.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::command::COMMANDS;
use crate::engine::Names;

/// Words of SQL that a query here can have.
const KEYWORDS: &[&str] = &[
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CROSS",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INTERSECT",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "ROWS",
    "SELECT",
    "THEN",
    "UNION",
    "UNNEST",
    "USING",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Knows the names that a query can use.
pub(super) struct Assistant {
    names: Names,
    /// Lines of the statement before the one that is being typed.
    pub(super) earlier: String,
}

impl Assistant {
    pub(super) fn new(names: Names) -> Self {
        Self { names, earlier: String::new() }
    }

    /// Where the word at the end of a line begins in it, and what it can become, after the lines before it.
    fn in_line(&self, line: &str) -> (usize, Vec<String>) {
        let before = format!("{}\n", self.earlier);
        let (start, found) = self.candidates(&format!("{before}{line}"));
        // A word does not reach over the end of a line.
        (start.saturating_sub(before.len()), found)
    }

    /// Where the word before the cursor begins, and what it can become.
    fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        let is_part = |symbol: char| symbol.is_alphanumeric() || matches!(symbol, '_' | '.' | '\\');
        let start = before.trim_end_matches(is_part).len();
        let (context, word) = before.split_at_checked(start).unwrap_or(("", before));
        if word.starts_with('\\') {
            return (start, matching(word, COMMANDS.iter().map(|(name, ..)| *name)));
        }
        let previous = context.split_whitespace().next_back().unwrap_or_default();
        let relations = matching(word, self.names.relations.iter().map(String::as_str));
        let is_relation =
            ["FROM", "JOIN", "\\d", "\\h"].iter().any(|word| previous.eq_ignore_ascii_case(word));
        if is_relation || (word.contains('.') && !relations.is_empty()) {
            return (start, relations);
        }
        let columns = self.names.columns.iter().map(String::as_str);
        if let Some((alias, column)) = word.rsplit_once('.') {
            return (start + alias.len() + 1, matching(column, columns));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        let functions = self.names.functions.iter().map(String::as_str);
        let others = columns.chain(functions).chain(KEYWORDS.iter().copied());
        let mut all = matching(word, others);
        all.extend(relations);
        all.sort_unstable();
        all.dedup();
        (start, all)
    }
}

/// Names that begin like `word`, whatever its case.
fn matching<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let begins = |name: &&str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    names.filter(begins).map(str::to_owned).collect()
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.in_line(line.get(..at).unwrap_or(line)))
    }
}

impl Validator for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::*;

    fn assistant() -> Assistant {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Assistant::new(Names {
            relations: owned(&["base.segments", "base.traces", "segments", "top_allocations", "traces"]),
            columns: owned(&["segment_id", "size", "total_size"]),
            functions: owned(&["sqrt", "sum"]),
        })
    }

    #[test]
    fn a_word_goes_on_as_what_can_stand_there() {
        for (before, start, expected) in [
            ("SELECT s", 7, &["SELECT", "segment_id", "segments", "size", "sqrt", "sum"][..]),
            ("SELECT * FROM s", 14, &["segments"]),
            (
                "SELECT * FROM\n",
                14,
                &["base.segments", "base.traces", "segments", "top_allocations", "traces"],
            ),
            ("select * from t join TO", 21, &["top_allocations"]),
            ("SELECT * FROM base.t", 14, &["base.traces"]),
            ("SELECT t.si", 9, &["size"]),
            ("SELECT (tot", 8, &["total_size"]),
            ("SELECT ", 7, &[]),
            ("\\", 0, &["\\d", "\\h", "\\rows", "\\q"]),
            ("\\d tr", 3, &["traces"]),
            ("SELECT 'ü", 8, &[]),
        ] {
            let (at, found) = assistant().candidates(before);
            assert_eq!(
                (at, found),
                (start, expected.iter().map(|name| (*name).to_owned()).collect()),
                "{before}"
            );
        }
    }

    #[test]
    fn a_word_goes_on_as_the_lines_before_it_want() {
        let mut assistant = assistant();
        assert_eq!(assistant.in_line("  si"), (2, vec!["size".to_owned()]));
        assistant.earlier = "SELECT 1\nFROM".to_owned();
        assert_eq!(assistant.in_line("  t"), (2, vec!["top_allocations".to_owned(), "traces".to_owned()]));
    }
}
