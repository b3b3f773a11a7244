//! Paths without the folders that lead to a file.
//!
//! A path keeps what tells code apart: the package inside `site-packages`, else the last two parts of it.

use std::borrow::Cow;

/// What stands for the folders that were left out.
const CUT: &str = "…/";
/// Parts of a path that are kept at its end.
const KEPT: usize = 2;
/// Folders behind which a path is the same on every machine.
const ROOTS: [&str; 3] = ["site-packages", "dist-packages", "node_modules"];

/// The text with every absolute path in it shortened.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if !text.contains(['/', '\\']) {
        return Cow::Borrowed(text);
    }
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = path_start(rest) {
        let (before, from) = rest.split_at(start);
        redacted.push_str(before);
        let end = from.find(ends_path).unwrap_or(from.len());
        let (path, behind) = from.split_at(end);
        redacted.push_str(&shorten(path));
        rest = behind;
    }
    redacted.push_str(rest);
    Cow::Owned(redacted)
}

/// Where an absolute path begins: a slash, a drive letter, a home folder or a server, that no word stands before.
fn path_start(text: &str) -> Option<usize> {
    let mut before = None;
    for (at, symbol) in text.char_indices() {
        let begins =
            before.is_none_or(|before: char| !before.is_alphanumeric() && !"._-/\\~…)]".contains(before));
        let next = text.get(at + symbol.len_utf8()..).unwrap_or_default();
        let is_unix = symbol == '/' && next.starts_with(|c: char| c.is_alphanumeric() || "._-~".contains(c));
        let is_drive = symbol.is_ascii_alphabetic() && (next.starts_with(":\\") || next.starts_with(":/"));
        let is_home = symbol == '~' && (next.starts_with('/') || names_home(next));
        let is_server = symbol == '\\' && next.starts_with('\\');
        // Behind `file:` stand two slashes more than the path has.
        let is_file = is_unix && text.get(..at).is_some_and(|before| before.ends_with("file://"));
        if is_file || begins && (is_unix || is_drive || is_home || is_server) {
            return Some(at);
        }
        before = Some(symbol);
    }
    None
}

/// Whether what stands behind `~` is a user's name and a slash.
fn names_home(text: &str) -> bool {
    let name = text.split('/').next().unwrap_or_default();
    name.len() < text.len()
        && name.starts_with(char::is_alphabetic)
        && name.chars().all(|symbol| symbol.is_alphanumeric() || "._-".contains(symbol))
}

/// What a path as frames have it does not hold.
fn ends_path(symbol: char) -> bool {
    symbol.is_whitespace() || symbol.is_control() || "\"'<>|`,;()".contains(symbol)
}

/// The end of a path, with a mark for what was before it.
fn shorten(path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let root = parts.iter().rposition(|part| ROOTS.contains(part)).map(|at| at + 1);
    let from = root.unwrap_or_else(|| parts.len().saturating_sub(KEPT));
    if root.is_none() && parts.len() < KEPT {
        return path.to_owned();
    }
    // Of a path as short as /home/name/run.py even the last two parts name somebody.
    let is_home =
        |at: usize| parts.get(at).is_some_and(|part| matches!(*part, "home" | "Users" | "~" | "users"));
    let is_own = |at: usize| parts.get(at).is_some_and(|part| part.len() > 1 && part.starts_with('~'));
    let from = if is_own(from) || from > 0 && is_home(from - 1) {
        from + 1
    } else if is_home(from) {
        from + 2
    } else {
        from
    };
    let kept = parts.get(from..).unwrap_or_default();
    format!("{CUT}{}", kept.join("/"))
}
