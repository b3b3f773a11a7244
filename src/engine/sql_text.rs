//! SQL as text: as much of its lexis as is needed to find parameters and to leave strings and comments alone.

/// A part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Anything else, verbatim.
    Text(&'a str),
    /// `$name`, without the `$`.
    Parameter(&'a str),
}

/// Cuts a statement at its parameters. What stands in quotes or comments is no parameter.
pub(super) fn pieces(statement: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = statement;
    let mut text = 0;
    while let Some(from) = rest.get(text..) {
        let Some(found) = from.find(['\'', '"', '$', '-', '/']) else { break };
        let at = text + found;
        let Some(tail) = rest.get(at..) else { break };
        let length = verbatim(tail);
        let name = tail.strip_prefix('$').map(identifier).unwrap_or_default();
        if name.is_empty() {
            text = at + length;
            continue;
        }
        if let Some(before) = rest.get(..at).filter(|before| !before.is_empty()) {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Parameter(name));
        rest = rest.get(at + 1 + name.len()..).unwrap_or_default();
        text = 0;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Names of the parameters in a statement: `$name`, without the `$`.
#[must_use]
pub fn parameters(statement: &str) -> Vec<&str> {
    let names = pieces(statement).into_iter().filter_map(|piece| match piece {
        Piece::Parameter(name) => Some(name),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// The statements of a text: what stands before each `;`, and what stands behind the last one, unless it is blank. What
/// stands in quotes or comments ends nothing; a comment alone is blank.
#[must_use]
pub fn statements(text: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut at, mut blank) = (0, 0, true);
    while let Some(tail) = text.get(at..).filter(|tail| !tail.is_empty()) {
        let length = verbatim(tail);
        let Some(first) = tail.chars().next() else { break };
        if length == 1 && first == ';' {
            if !blank {
                statements.extend(text.get(start..at).map(str::trim));
            }
            (start, blank) = (at + 1, true);
        } else {
            blank &= first.is_whitespace() || is_comment(tail);
        }
        at += length.max(first.len_utf8());
    }
    if !blank {
        statements.extend(text.get(start..).map(str::trim));
    }
    statements
}

/// Whether a text ends with a `;` that ends a statement, so that nothing more has to be waited for.
#[must_use]
pub fn is_ended(text: &str) -> bool {
    let (mut at, mut ended) = (0, false);
    while let Some(tail) = text.get(at..).filter(|tail| !tail.is_empty()) {
        let Some(first) = tail.chars().next() else { break };
        if !first.is_whitespace() && !is_comment(tail) {
            ended = first == ';';
        }
        at += verbatim(tail).max(first.len_utf8());
    }
    ended
}

/// Words that join what stands before and behind them, so that many in a row make a deep tree, as operators do.
const JOINING: &[&str] = &[
    "and",
    "at",
    "between",
    "case",
    "collate",
    "div",
    "except",
    "ilike",
    "in",
    "intersect",
    "is",
    "join",
    "like",
    "minus",
    "not",
    "or",
    "overlaps",
    "regexp",
    "rlike",
    "similar",
    "union",
    "xor",
];

/// Operators, brackets and joining words of a text: a bound on how deep the tree of it can be, found without making one.
pub(super) fn joints(text: &str) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(tail) = text.get(at..).filter(|tail| !tail.is_empty()) {
        let Some(first) = tail.chars().next() else { break };
        let length = verbatim(tail);
        let word = identifier(tail);
        if length > 1 {
            at += length;
        } else if word.is_empty() {
            count += usize::from("+-*/%|&^<>=!~#@?:([{".contains(first));
            at += first.len_utf8();
        } else {
            count += usize::from(JOINING.iter().any(|joining| joining.eq_ignore_ascii_case(word)));
            at += word.len();
        }
    }
    count
}

fn is_comment(text: &str) -> bool {
    text.starts_with("--") || text.starts_with("/*")
}

/// Bytes of the quoted text or the comment that `text` starts with, or 1.
fn verbatim(text: &str) -> usize {
    match text.as_bytes() {
        [b'\'', ..] => quoted(text, '\''),
        [b'"', ..] => quoted(text, '"'),
        [b'-', b'-', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => text.find("*/").map_or(text.len(), |end| end + 2),
        _ => 1,
    }
}

/// Bytes of the quoted text that `text` starts with; a doubled quote just starts the next one.
fn quoted(text: &str, quote: char) -> usize {
    text.char_indices().skip(1).find(|(_, c)| *c == quote).map_or(text.len(), |(at, _)| at + 1)
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The first word, and what stands behind it.
pub(super) fn word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// The comment lines at the top of a file, and the rest.
pub(super) fn split_header(text: &str) -> (&str, &str) {
    let header = text.split_inclusive('\n').take_while(|line| line.starts_with("--")).map(str::len).sum();
    text.split_at_checked(header).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_anywhere_but_in_quotes_and_comments() {
        assert_eq!(
            pieces("a = $x AND '$y''$z' <> \"$w\" -- $v\n/* $u */ OR 1 - $t_1 / 2"),
            [
                Piece::Text("a = "),
                Piece::Parameter("x"),
                Piece::Text(" AND '$y''$z' <> \"$w\" -- $v\n/* $u */ OR 1 - "),
                Piece::Parameter("t_1"),
                Piece::Text(" / 2"),
            ]
        );
        assert_eq!(pieces("$a$b"), [Piece::Parameter("a"), Piece::Parameter("b")]);
        assert_eq!(pieces("cost: 5 $"), [Piece::Text("cost: 5 $")]);
        assert_eq!(pieces("'open $x"), [Piece::Text("'open $x")]);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn a_statement_ends_where_a_semicolon_is_no_part_of_it() {
        assert_eq!(
            statements("SELECT ';'; -- one; two\n ;\nSELECT \";\" /* ; */ ; SELECT 'ä"),
            ["SELECT ';'", "SELECT \";\" /* ; */", "SELECT 'ä"]
        );
        assert_eq!(statements(" ; -- nothing\n"), <[&str; 0]>::default());
        for (text, ended) in [
            ("SELECT 1;", true),
            ("SELECT 1; -- done; \n", true),
            ("SELECT 1", false),
            ("SELECT ';", false),
            ("SELECT ';'", false),
            ("SELECT 1; SELECT 'ü'", false),
            ("SELECT 1 -- ;", false),
            ("SELECT /* ;", false),
            ("", false),
        ] {
            assert_eq!(is_ended(text), ended, "{text}");
        }
        assert_eq!(parameters("SELECT $a, '$b', $a"), ["a", "a"]);
    }

    #[test]
    fn what_can_make_a_tree_deep_is_counted_and_nothing_else() {
        for (text, count) in [
            ("", 0),
            ("SELECT a.b, 'x + y', \"a and b\", 1.5 -- + + +\nFROM t", 0),
            ("a + b * (c - 1)", 4),
            ("x::BIGINT[1]", 3),
            ("a IS NOT NULL and b in (1, 2)", 5),
            ("'it''s' || 'ä'", 2),
            ("orders, android, Union", 1),
        ] {
            assert_eq!(joints(text), count, "{text}");
        }
    }

    #[test]
    fn the_header_ends_with_the_first_line_of_the_statement() {
        assert_eq!(split_header("-- a\n--\nSELECT 1\n-- b\n"), ("-- a\n--\n", "SELECT 1\n-- b\n"));
        assert_eq!(split_header("SELECT 1"), ("", "SELECT 1"));
    }
}
