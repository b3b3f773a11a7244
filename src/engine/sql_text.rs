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
        let length = match tail.as_bytes() {
            [b'\'', ..] => quoted(tail, '\''),
            [b'"', ..] => quoted(tail, '"'),
            [b'-', b'-', ..] => tail.find('\n').unwrap_or(tail.len()),
            [b'/', b'*', ..] => tail.find("*/").map_or(tail.len(), |end| end + 2),
            _ => 1,
        };
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
    fn the_header_ends_with_the_first_line_of_the_statement() {
        assert_eq!(split_header("-- a\n--\nSELECT 1\n-- b\n"), ("-- a\n--\n", "SELECT 1\n-- b\n"));
        assert_eq!(split_header("SELECT 1"), ("", "SELECT 1"));
    }
}
