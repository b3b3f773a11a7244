//! Call stacks as a page carries them: nothing that two of them have in common stands there twice.
//!
//! Names, files and frames are shared, and so are callers: most stacks of a program end alike. Room is limited: stacks
//! that come first have their frames in full, of the others the page knows the label.

use hashbrown::{HashMap, HashSet};
use serde_json::{Value, json};

use crate::analysis::chart::{Frame, StackWords};

/// Bytes of frames that a page carries, if it has room for them, and those that it has room for in any case.
const MOST: usize = 500_000;
const LEAST: usize = 60_000;
/// Characters of a name that a page carries; the database has all of it.
const LONGEST_NAME: usize = 600;
/// Frames of a stack that a page carries.
const DEEPEST: usize = 200;

/// `names` and `files`, the latter with whether a user wrote it; `frames` as name, file and line of one after the other;
/// `list` of stacks: id, label or place of the frame that is its label, frames of its own, and the earlier stack that it
/// shares its outer frames with and how many of them. A stack without frames ends behind its label.
pub(super) fn shared(stacks: &[&StackWords], room: usize) -> Value {
    let mut made = Shared { room: room.clamp(LEAST, MOST), ..Shared::default() };
    let mut seen = HashSet::new();
    for words in stacks {
        if seen.insert(words.stack_id) {
            made.add(words);
        }
    }
    json!({"names": made.names.items, "files": made.files.items, "frames": made.frames, "list": made.list})
}

/// Texts by place.
#[derive(Debug, Default)]
struct Table {
    items: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Table {
    /// The place of a text, and the bytes it takes if it is new.
    fn place(&mut self, key: &str, item: impl FnOnce() -> Value) -> (usize, usize) {
        if let Some(place) = self.places.get(key) {
            return (*place, 0);
        }
        let item = item();
        let bytes = item.to_string().len() + 1;
        self.items.push(item);
        self.places.insert(key.to_owned(), self.items.len() - 1);
        (self.items.len() - 1, bytes)
    }
}

#[derive(Debug, Default)]
struct Shared {
    room: usize,
    names: Table,
    files: Table,
    frames: Vec<i64>,
    places: HashMap<[i64; 3], usize>,
    /// By a frame and the path of its callers: that path with it, and the stack that had it first.
    paths: HashMap<(usize, usize), (usize, usize)>,
    list: Vec<Value>,
}

impl Shared {
    fn add(&mut self, words: &StackWords) {
        if self.room == 0 || words.frames.is_empty() {
            self.list.push(json!([words.stack_id, words.label]));
            return;
        }
        let places: Vec<usize> = words.frames.iter().take(DEEPEST).map(|frame| self.frame(frame)).collect();
        let (mut path, mut common) = (0, None);
        let mut count = 0;
        for place in places.iter().rev() {
            let next = self.paths.len() + 1;
            let (below, first) = *self.paths.entry((path, *place)).or_insert((next, self.list.len()));
            if first != self.list.len() {
                (common, count) = (Some(first), count + 1);
            }
            path = below;
        }
        let own = places.get(..places.len() - count).unwrap_or_default();
        let label = words.frames.iter().take(DEEPEST).position(|frame| says(frame, &words.label));
        let label = label.map_or_else(|| json!(words.label), |place| json!(place));
        let stack = match common {
            Some(first) => json!([words.stack_id, label, own, first, count]),
            None => json!([words.stack_id, label, own]),
        };
        self.room = self.room.saturating_sub(stack.to_string().len() + 1);
        self.list.push(stack);
    }

    fn frame(&mut self, frame: &Frame) -> usize {
        let (name, of_name) = self.names.place(&frame.name, || json!(cut(&frame.name)));
        let (file, of_file) =
            self.files.place(&frame.filename, || json!([cut(&frame.filename), i32::from(frame.is_own())]));
        let key = [i64::try_from(name).unwrap_or(0), i64::try_from(file).unwrap_or(0), frame.line.max(0)];
        let next = self.places.len();
        let place = *self.places.entry(key).or_insert(next);
        let mut bytes = of_name + of_file;
        if place == next {
            self.frames.extend(key);
            bytes += key.map(|number| number.to_string().len() + 1).iter().sum::<usize>();
        }
        self.room = self.room.saturating_sub(bytes);
        place
    }
}

/// Whether the page can make this label of the frame: it is [`Frame::short`] with the whole name, a file and a line.
fn says(frame: &Frame, label: &str) -> bool {
    let is_whole = label.strip_prefix(&frame.name).is_some_and(|place| place.starts_with(" ("));
    frame.line > 0 && is_whole && frame.short() == label
}

fn cut(name: &str) -> String {
    let kept: String = name.chars().take(LONGEST_NAME).collect();
    let end = if kept.len() < name.len() { "…" } else { "" };
    format!("{kept}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stack_id: i64, frames: &[(&str, &str, i64)]) -> StackWords {
        let frames: Vec<Value> = frames
            .iter()
            .map(|(name, filename, line)| json!({"name": name, "filename": filename, "line": line}))
            .collect();
        StackWords::parse(stack_id, &json!(frames).to_string())
    }

    const MAIN: (&str, &str, i64) = ("main", "/home/me/train.py", 3);
    const STEP: (&str, &str, i64) = ("step", "/home/me/train.py", 9);

    #[test]
    fn callers_of_an_earlier_stack_are_not_said_again() {
        let (relu, gelu) = (("relu", "/home/me/act.py", 5), ("gelu", "/home/me/act.py", 7));
        let stacks = [
            words(8, &[relu, STEP, MAIN]),
            words(3, &[gelu, STEP, MAIN]),
            words(8, &[relu, STEP, MAIN]),
            words(5, &[("at::empty", "", 0)]),
            words(4, &[STEP, MAIN]),
        ];
        let made = shared(&stacks.iter().collect::<Vec<_>>(), MOST);
        assert_eq!(made["names"], json!(["relu", "step", "main", "gelu", "at::empty"]));
        assert_eq!(made["files"], json!([["/home/me/act.py", 1], ["/home/me/train.py", 1], ["", 0]]));
        assert_eq!(made["frames"], json!([0, 0, 5, 1, 1, 9, 2, 1, 3, 3, 0, 7, 4, 2, 0]));
        assert_eq!(
            made["list"],
            json!([[8, 0, [0, 1, 2]], [3, 0, [3], 0, 2], [5, "at::empty", [4]], [4, 0, [], 0, 2],])
        );
    }

    #[test]
    fn stacks_beyond_the_room_keep_their_label() {
        let names: Vec<String> = (0..4000).map(|place| format!("function_{place:0>60}")).collect();
        let stacks: Vec<StackWords> = names
            .iter()
            .zip(0..)
            .map(|(name, id)| words(id, &[(name, "/home/me/model.py", 1), MAIN]))
            .collect();
        let of = |room| shared(&stacks.iter().collect::<Vec<_>>(), room);
        let (little, much) = (of(0), of(usize::MAX));
        assert!((LEAST..LEAST + 200).contains(&frames_of(&little)), "{}", frames_of(&little));
        assert!(frames_of(&much) < MOST + 200);
        let labels = |made: &Value| made["list"].as_array().unwrap().len();
        assert_eq!((labels(&little), labels(&much)), (4000, 4000));
        assert_eq!(little["list"][3999], json!([3999, format!("{} (model.py:1)", names[3999])]));
    }

    /// Bytes of all that stacks with frames take.
    fn frames_of(made: &Value) -> usize {
        let list = made["list"].as_array().unwrap();
        let own = list.iter().filter(|stack| stack.as_array().unwrap().len() > 2);
        let tables = ["names", "files", "frames"].map(|key| made[key].to_string().len());
        own.map(|stack| stack.to_string().len() + 1).sum::<usize>() + tables.iter().sum::<usize>()
    }
}
