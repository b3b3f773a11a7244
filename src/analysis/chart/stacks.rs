//! Call stacks in few words: the innermost frame of the user's own code stands for the stack.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::analysis::frames::is_own;
use crate::engine::{Engine, row};
use crate::error::Result;

row! {
    /// The frames of a call stack.
    pub struct StackRow from "_stack_frames" {
        /// `call_stacks.id`.
        stack_id: i64,
        /// Frames as JSON, innermost first.
        frames_json: String,
    }
}

/// A frame of a call stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function.
    pub name: String,
    /// File as recorded.
    pub filename: String,
    /// Line; 0 where there is none.
    pub line: i64,
}

impl Frame {
    /// Function with the last part of its file: `forward (model.py:42)`; a C++ name without its parameters.
    #[must_use]
    pub fn short(&self) -> String {
        let name = self.function();
        let file = self.filename.rsplit(['/', '\\']).next().unwrap_or_default();
        if file.is_empty() || file == "??" {
            return name;
        }
        if self.line > 0 { format!("{name} ({file}:{})", self.line) } else { format!("{name} ({file})") }
    }

    /// File and line as one text; `-` where the file is not known.
    #[must_use]
    pub fn place(&self) -> String {
        if self.filename.is_empty() || self.filename == "??" {
            return "-".to_owned();
        }
        if self.line > 0 { format!("{}:{}", self.filename, self.line) } else { self.filename.clone() }
    }

    /// The function's name; of a C++ signature what stands before its parameters and template arguments.
    fn function(&self) -> String {
        const LONGEST: usize = 80;
        let name = if self.is_native() { native_name(&self.name) } else { self.name.as_str() };
        if name.chars().count() <= LONGEST {
            return name.to_owned();
        }
        let kept: String = name.chars().take(LONGEST).collect();
        format!("{kept}…")
    }

    /// Whether it is neither Python nor in Python's own files.
    pub(super) fn is_native(&self) -> bool {
        !is_python(&self.filename) && !self.filename.starts_with('<')
    }

    /// Whether a user wrote it.
    #[must_use]
    pub fn is_own(&self) -> bool {
        is_own(&self.filename)
    }
}

fn is_python(filename: &str) -> bool {
    Path::new(filename).extension().is_some_and(|extension| extension == "py")
}

/// `at::empty` of `at::empty<float>(int, long)`; an operator or a lambda keeps its brackets.
fn native_name(name: &str) -> &str {
    let name = name.strip_prefix("(anonymous namespace)::").unwrap_or(name);
    let end = name.match_indices(['<', '(']).map(|(at, _)| at).find(|at| {
        let before = name.get(..*at).unwrap_or_default();
        *at > 0 && !before.ends_with("::") && !before.ends_with("operator")
    });
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// A call stack and what to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackWords {
    /// `call_stacks.id`.
    pub stack_id: i64,
    /// What to call it.
    pub label: String,
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
}

impl StackWords {
    /// Reads a stack from the JSON of its frames.
    #[must_use]
    pub fn parse(stack_id: i64, frames_json: &str) -> Self {
        let frames = frames(frames_json);
        let label = own_frame(&frames).map_or_else(String::new, Frame::short);
        Self { stack_id, label, frames }
    }
}

/// Frames of a call stack from their JSON, innermost first; none where it is not what we write.
#[must_use]
pub fn frames(json: &str) -> Vec<Frame> {
    let parsed: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    let text = |frame: &Value, key: &str| {
        frame.get(key).and_then(Value::as_str).map_or_else(String::new, str::to_owned)
    };
    parsed
        .iter()
        .map(|frame| Frame {
            name: text(frame, "name"),
            filename: text(frame, "filename"),
            line: frame.get("line").and_then(Value::as_i64).unwrap_or(0),
        })
        .collect()
}

/// The innermost frame that the user wrote; else the innermost Python frame; else the innermost of all.
#[must_use]
pub fn own_frame(frames: &[Frame]) -> Option<&Frame> {
    frames
        .iter()
        .find(|frame| frame.is_own())
        .or_else(|| frames.iter().find(|frame| is_python(&frame.filename)))
        .or_else(|| frames.first())
}

/// Words for call stacks, by their ids.
///
/// # Errors
/// The relation failed.
pub fn words(engine: &Engine, ids: impl Iterator<Item = i64>) -> Result<Vec<StackWords>> {
    let frames = frames_by_stack(engine, ids)?;
    Ok(frames.iter().map(|(stack_id, json)| StackWords::parse(*stack_id, json)).collect())
}

/// Frames of call stacks as JSON, by their ids.
///
/// # Errors
/// The relation failed.
pub fn frames_by_stack(engine: &Engine, ids: impl Iterator<Item = i64>) -> Result<BTreeMap<i64, String>> {
    let ids: BTreeSet<i64> = ids.collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let list = format!(",{},", list.join(","));
    let rows: Vec<StackRow> = engine.rows(&[("ids", list.as_str().into())])?;
    Ok(rows.into_iter().map(|row| (row.stack_id, row.frames_json)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, filename: &str, line: i64) -> Frame {
        Frame { name: name.to_owned(), filename: filename.to_owned(), line }
    }

    #[test]
    fn the_users_own_frame_stands_for_the_stack() {
        let frames = [
            frame("at::empty(int)", "", 0),
            frame("forward", "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", 114),
            frame("forward", "/home/me/train/model.py", 42),
            frame("main", "/home/me/train/run.py", 7),
        ];
        assert_eq!(own_frame(&frames).unwrap().short(), "forward (model.py:42)");
        assert_eq!(own_frame(&frames[..2]).unwrap().short(), "forward (linear.py:114)");
        assert_eq!(own_frame(&frames[..1]).unwrap().short(), "at::empty");
        assert!(own_frame(&[]).is_none());
    }

    #[test]
    fn a_native_name_loses_its_parameters_only() {
        for (name, short) in [
            ("at::native::empty_cuda(c10::IntArrayRef, int)", "at::native::empty_cuda"),
            ("std::vector<int>::push_back(int)", "std::vector"),
            ("(anonymous namespace)::gather()", "gather"),
            ("torch::(anonymous namespace)::gather()", "torch::(anonymous namespace)::gather"),
            ("c10::operator<(int)", "c10::operator<"),
            ("plain", "plain"),
        ] {
            assert_eq!(native_name(name), short, "{name}");
        }
        let long = frame(&"n".repeat(3000), "", 0).short();
        assert_eq!(long.chars().count(), 81);
    }

    #[test]
    fn what_is_no_list_of_frames_has_no_frames() {
        assert!(frames("not json").is_empty());
        assert_eq!(frames(r#"[{"name": "f"}]"#), [frame("f", "", 0)]);
    }
}
