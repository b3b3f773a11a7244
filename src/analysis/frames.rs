//! Frames of a call stack as the tables carry them: handed on as JSON, or named in a few words for people.

use serde_json::{Value, json};

/// Folders and files of frameworks: the innermost frame outside them is where a person starts to look.
const FRAMEWORK: [&str; 6] =
    ["/torch/", "/torch_npu/", "/site-packages/", "/dist-packages/", "/lib/python", "<frozen"];

/// `call_stacks.frames_json` as a JSON array; empty where there is no stack.
#[must_use]
pub fn frames(frames_json: Option<&str>) -> Value {
    frames_json.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| json!([]))
}

/// The frame that says most, as `name (file:line)`: the innermost outside the framework, else the innermost. `None`
/// without frames.
#[must_use]
pub fn place(frames_json: Option<&str>) -> Option<String> {
    let frames = frames(frames_json);
    let frames = frames.as_array()?;
    let text = |frame: &Value, key: &str| frame.get(key).and_then(Value::as_str).unwrap_or("??").to_owned();
    let own = |frame: &&Value| {
        let file = text(frame, "filename");
        file != "??"
            && frame.get("line").and_then(Value::as_i64) > Some(0)
            && !FRAMEWORK.iter().any(|part| file.contains(part))
    };
    let frame = frames.iter().find(own).or_else(|| frames.first())?;
    let file = text(frame, "filename");
    let short = file.rsplit('/').next().unwrap_or(&file);
    let line = frame.get("line").and_then(Value::as_i64).unwrap_or(0);
    Some(format!("{} ({short}:{line})", text(frame, "name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frame_of_ones_own_code_is_the_place() {
        let stack = r#"[
            {"name": "at::empty", "filename": "??", "line": 0},
            {"name": "linear", "filename": "/venv/lib/python3.11/site-packages/torch/nn/functional.py", "line": 5},
            {"name": "log_step", "filename": "/work/train/metrics.py", "line": 31},
            {"name": "main", "filename": "/work/train/main.py", "line": 9}
        ]"#;
        assert_eq!(place(Some(stack)).unwrap(), "log_step (metrics.py:31)");
    }

    #[test]
    fn without_own_code_it_is_the_innermost_frame() {
        let stack = r#"[{"name": "wait", "filename": "/x/torch/futures.py", "line": 7}, {"name": 3}]"#;
        assert_eq!(place(Some(stack)).unwrap(), "wait (futures.py:7)");
        assert_eq!(place(Some("[]")), None);
        assert_eq!(place(Some("not json")), None);
        assert_eq!(place(None), None);
    }
}
