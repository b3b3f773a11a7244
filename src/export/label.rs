//! Frames as short texts, whatever a hostile snapshot has in them.

use serde_json::{Map, Value};

use crate::analysis::is_own_code;

/// A frame of a call stack, as the snapshot has it.
pub(super) type Frame = Map<String, Value>;

fn field<'a>(frame: &'a Frame, key: &str) -> &'a str {
    frame.get(key).and_then(Value::as_str).unwrap_or("??")
}

/// Name of the function.
pub(super) fn name(frame: &Frame) -> &str {
    field(frame, "name")
}

/// Name of the file, with its folders.
pub(super) fn file(frame: &Frame) -> &str {
    field(frame, "filename")
}

/// Line in it, where it has one.
pub(super) fn line(frame: &Frame) -> Option<i64> {
    frame.get("line").and_then(Value::as_i64).filter(|line| *line > 0)
}

/// `name (file:line)`, the file without its folders.
pub(super) fn short(frame: &Frame) -> String {
    let file = file(frame);
    let file = file.rsplit('/').next().unwrap_or(file);
    match line(frame) {
        Some(line) => format!("{} ({file}:{line})", name(frame)),
        None => format!("{} ({file})", name(frame)),
    }
}

/// The frame that says most: the innermost outside the framework, else the innermost.
pub(super) fn place<'a>(frames: &[&'a Frame]) -> Option<&'a Frame> {
    frames.iter().find(|frame| is_own_code(file(frame), line(frame))).or_else(|| frames.first()).copied()
}

/// [`short`] as one field of a line of folded stacks, in which `;` parts frames and a line break ends the stack.
pub(super) fn folded(frame: &Frame) -> String {
    short(frame).replace(';', ":").replace(|symbol: char| symbol.is_control() || symbol.is_whitespace(), " ")
}
