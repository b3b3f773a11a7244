//! JSON exactly as Python's `json.dumps(value, ensure_ascii=False, sort_keys=True)` writes it, because the hashes of
//! call stacks in existing databases were made from that text.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::stacks::Stacks;
use super::{FRAME, FRAME_STACK};
use crate::pickle::{NodeKind, State, Value};

/// JSON under construction. A pickle shares objects, so a few kilobytes of it can stand for terabytes of JSON: what grows
/// beyond the limit is not finished.
#[derive(Debug, Default)]
pub(super) struct Json {
    text: String,
    limit: usize,
}

impl Json {
    /// Empty, with room for `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self::reusing(String::new(), limit)
    }

    /// Empty, in a string that was used before.
    pub(super) fn reusing(mut text: String, limit: usize) -> Self {
        text.clear();
        Self { text, limit }
    }

    /// The text, and whether it is complete.
    pub(super) fn into_parts(self) -> (String, bool) {
        let complete = !self.is_full();
        (self.text, complete)
    }

    fn is_full(&self) -> bool {
        self.text.len() > self.limit
    }

    fn push(&mut self, text: &str) {
        if !self.is_full() {
            self.text.push_str(text);
        }
    }

    /// Appends a string in quotes.
    fn text(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                control if control < ' ' => {
                    let _infallible = write!(self.text, "\\u{:04x}", u32::from(control));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    /// Appends a dict given as key, value, key, value, …; of equal keys the last one counts.
    pub(super) fn dict(&mut self, state: &State, stacks: &Stacks, items: &[Value]) {
        let mut entries: Vec<(Cow<'_, str>, Value)> = items
            .chunks_exact(2)
            .filter_map(|pair| match pair {
                [name, value] => Some((key(state, *name), *value)),
                _ => None,
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut separator = "{";
        for (index, (name, value)) in entries.iter().enumerate() {
            if entries.get(index + 1).is_some_and(|next| next.0 == *name) {
                continue;
            }
            self.push(separator);
            self.text(name);
            self.push(": ");
            self.value(state, stacks, *value);
            separator = ", ";
        }
        self.push(if separator == "{" { "{}" } else { "}" });
    }

    /// Appends a value. Its depth is bounded by [`Limits::depth`](crate::pickle::Limits::depth).
    fn value(&mut self, state: &State, stacks: &Stacks, value: Value) {
        if self.is_full() {
            return;
        }
        match value {
            Value::Bool(flag) => self.push(if flag { "true" } else { "false" }),
            Value::Int(number) => self.push(&number.to_string()),
            Value::Wide(number) => self.push(&number.to_string()),
            Value::Float(number) => self.push(&float(number)),
            Value::Text(id) => self.text(state.text(id)),
            Value::Pair(id) => {
                let (first, second) = state.pair(id).unwrap_or_default();
                self.push(&format!("[{first}, {second}]"));
            }
            Value::EmptyList => self.push("[]"),
            Value::EmptyDict { .. } => self.push("{}"),
            Value::Node(node) | Value::OpenDict(node) | Value::OpenList(node) => {
                match state.tree().get(node) {
                    Some((NodeKind::Dict, items)) => self.dict(state, stacks, items),
                    Some((_, items)) => self.list(items, |json, item| json.value(state, stacks, *item)),
                    None => self.push("null"),
                }
            }
            Value::Kept { kind: FRAME, id } => self.push(stacks.frame_json(id)),
            Value::Kept { kind: FRAME_STACK, id } => {
                self.list(stacks.frames_of(id), |json, frame| json.push(stacks.frame_json(*frame)));
            }
            _ => self.push("null"),
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        let mut separator = "[";
        for item in items {
            if self.is_full() {
                return;
            }
            self.push(separator);
            write(self, item);
            separator = ", ";
        }
        self.push(if separator == "[" { "[]" } else { "]" });
    }
}

/// Python's `repr` of a float: shortest digits, exponent from 1e16 and below 1e-4.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A dict's key as Python's `json` turns it into a string.
fn key(state: &State, value: Value) -> Cow<'_, str> {
    match value {
        Value::Text(id) => state.text(id).into(),
        Value::Int(number) => number.to_string().into(),
        Value::Wide(number) => number.to_string().into(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Float(number) => float(number).into(),
        Value::None => "null".into(),
        other => other.describe().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_like_python_does() {
        let mut json = Json::new(100);
        json.text("a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀/");
        assert_eq!(json.text, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é😀/\"");
    }

    #[test]
    fn floats_are_written_like_python_does() {
        // Expected values: Python 3.11, `json.dumps`.
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.8, "0.8"),
            (1.0, "1.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (1e100, "1e+100"),
            (1e22, "1e+22"),
            (123_456_789.125, "123456789.125"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value), expected);
        }
    }
}
