//! Call stacks as results show them: all frames for programs, the frame that says most for people.

use serde_json::Value;

use super::language::Text;

/// The frames of a stack, innermost first; none without a stack.
pub(super) fn frames(json: Option<&str>) -> Vec<Value> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Where a stack comes from, in a few words: the innermost frame that is neither PyTorch's own nor without a file, else
/// the innermost one.
pub(super) fn place(json: Option<&str>) -> Text {
    let frames = frames(json);
    let own = frames.iter().find(|frame| is_own(filename(frame)));
    match own.or_else(|| frames.first()) {
        Some(frame) => Text::same(words(frame)),
        None => Text::new("no stack recorded", "未记录调用栈"),
    }
}

fn filename(frame: &Value) -> &str {
    frame.get("filename").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a file is likely the program's: neither native, nor of Python itself, nor of an installed package.
#[must_use]
pub fn is_own(filename: &str) -> bool {
    const FOREIGN: [&str; 7] =
        ["site-packages", "dist-packages", "/torch/", "/torch_npu/", "\\torch\\", "/lib/python", "<frozen"];
    filename.contains('.') && !is_native(filename) && !FOREIGN.iter().any(|part| filename.contains(part))
}

fn is_native(filename: &str) -> bool {
    const NATIVE: [&str; 7] = [".cpp", ".cc", ".c", ".h", ".hpp", ".so", ".cu"];
    NATIVE.iter().any(|ending| filename.ends_with(ending))
}

fn words(frame: &Value) -> String {
    let name = frame.get("name").and_then(Value::as_str).unwrap_or("?");
    let filename = filename(frame);
    let file = filename.rsplit(['/', '\\']).next().unwrap_or(filename);
    match frame.get("line").and_then(Value::as_u64).filter(|line| *line > 0 && *line < u64::MAX) {
        Some(line) => format!("{name} ({file}:{line})"),
        None => format!("{name} ({file})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Lang;

    #[test]
    fn the_place_is_the_programs_innermost_frame() {
        let stack = r#"[
            {"filename": "??", "line": 0, "name": "at::empty"},
            {"filename": "/opt/lib/python3.11/site-packages/torch/nn/functional.py", "line": 7, "name": "linear"},
            {"filename": "/work/model.py", "line": 42, "name": "forward"},
            {"filename": "/work/train.py", "line": 9, "name": "main"}
        ]"#;
        assert_eq!(place(Some(stack)).get(Lang::En), "forward (model.py:42)");
        assert_eq!(frames(Some(stack)).len(), 4);
    }

    #[test]
    fn without_a_frame_of_the_program_the_innermost_says_where() {
        let stack = r#"[{"filename": "??", "line": 0, "name": "at::empty"}]"#;
        assert_eq!(place(Some(stack)).get(Lang::En), "at::empty (??)");
        assert_eq!(place(None).get(Lang::En), "no stack recorded");
        assert_eq!(place(Some("[]")).get(Lang::Zh), "未记录调用栈");
    }
}
