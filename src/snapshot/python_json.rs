//! JSON exactly as Python's `json.dumps(value, ensure_ascii=False, sort_keys=True)` writes it, because the hashes of
//! call stacks in existing databases were made from that text.

use std::fmt::Write as _;

use super::stacks::Stacks;
use super::{FRAME, FRAME_STACK};
use crate::pickle::{NodeKind, State, Value};

/// Appends a string in quotes.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _infallible = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
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
fn key(state: &State, value: Value) -> String {
    match value {
        Value::Text(id) => state.text(id).to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Wide(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) => float(number),
        Value::None => "null".to_owned(),
        other => other.describe().to_owned(),
    }
}

/// Appends a dict given as key, value, key, value, …; of equal keys the last one counts.
pub(super) fn write_dict(out: &mut String, state: &State, stacks: &Stacks, items: &[Value]) {
    let mut entries: Vec<(String, Value)> = items
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
        out.push_str(separator);
        write_text(out, name);
        out.push_str(": ");
        write(out, state, stacks, *value);
        separator = ", ";
    }
    out.push_str(if separator == "{" { "{}" } else { "}" });
}

/// Appends a value. Its depth is bounded by [`Limits::depth`](crate::pickle::Limits::depth).
pub(super) fn write(out: &mut String, state: &State, stacks: &Stacks, value: Value) {
    match value {
        Value::Bool(flag) => out.push_str(if flag { "true" } else { "false" }),
        Value::Int(number) => {
            let _infallible = write!(out, "{number}");
        }
        Value::Wide(number) => {
            let _infallible = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float(number)),
        Value::Text(id) => write_text(out, state.text(id)),
        Value::Pair(id) => {
            let (first, second) = state.pair(id).unwrap_or_default();
            let _infallible = write!(out, "[{first}, {second}]");
        }
        Value::EmptyList => out.push_str("[]"),
        Value::EmptyDict { .. } => out.push_str("{}"),
        Value::Node(node) | Value::OpenDict(node) => match state.tree().get(node) {
            Some((NodeKind::Dict, items)) => write_dict(out, state, stacks, items),
            Some((_, items)) => {
                let mut separator = "[";
                for item in items {
                    out.push_str(separator);
                    write(out, state, stacks, *item);
                    separator = ", ";
                }
                out.push_str(if separator == "[" { "[]" } else { "]" });
            }
            None => out.push_str("null"),
        },
        Value::Kept { kind: FRAME, id } => out.push_str(stacks.frame_json(id)),
        Value::Kept { kind: FRAME_STACK, id } => stacks.write_json(out, id),
        _ => out.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_like_python_does() {
        let mut out = String::new();
        write_text(&mut out, "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀/");
        assert_eq!(out, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é😀/\"");
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
