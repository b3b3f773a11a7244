//! Frames as short texts, whatever a hostile snapshot has in them.

use serde_json::{Map, Value};

use crate::analysis;

use crate::output::Redaction;

/// A frame of a call stack, as the snapshot has it.
pub(super) type Frame = Map<String, Value>;

/// The frame with every text in it redacted.
pub(super) fn redacted(frame: Frame, redaction: &Redaction) -> Frame {
    match redaction.value(&Value::Object(frame)) {
        Value::Object(frame) => frame,
        _ => Frame::new(),
    }
}

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

/// Whether a person starts to look at the frame: it is the program's.
pub(super) fn is_own(frame: &Frame) -> bool {
    analysis::is_own(file(frame))
}

/// [`short`] as one field of a line of folded stacks, in which `;` parts frames and a line break ends the stack.
pub(super) fn folded(frame: &Frame) -> String {
    short(frame).replace(';', ":").replace(|symbol: char| symbol.is_control() || symbol.is_whitespace(), " ")
}
