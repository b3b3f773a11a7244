//! Frames and call stacks by content. The identity of a list says nothing: every `gather()` of PyTorch makes a new one.
//!
//! A frame is interned by its JSON, so that two stacks are the same exactly when the JSON of their frames is.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use md5::{Digest as _, Md5};

use super::{FRAME, python_json, words};
use crate::pickle::{Interner, State, Value};
use crate::schema::{CallStack, FrameRow};

/// What the nested column shows of a frame.
#[derive(Debug)]
struct Frame {
    name: Option<u32>,
    filename: Option<u32>,
    line: i64,
}

/// All frames and stacks of an import.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    frame_texts: Interner,
    frames: Vec<Frame>,
    /// Whether a file name says that torch_npu is installed.
    saw_npu_frame: bool,
    hasher: RandomState,
    numbers: HashTable<(u64, u32)>,
    /// Frame numbers of all stacks, one stack after the other.
    members: Vec<u32>,
    ends: Vec<usize>,
    /// `call_stacks.id` by stack number; 0 for a stack no row refers to yet.
    rows: Vec<u32>,
    /// Stack numbers in the order of `call_stacks.id`.
    order: Vec<u32>,
    scratch: String,
}

fn index(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

fn span<'a>(members: &'a [u32], ends: &[usize], id: u32) -> &'a [u32] {
    let id = index(id);
    let start = id.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(id).and_then(|end| members.get(start..*end)).unwrap_or_default()
}

impl Stacks {
    /// The number of a frame; `None` if the dict is none.
    pub(super) fn frame(&mut self, state: &State, items: &[Value]) -> Option<u32> {
        let mut frame = Frame { name: None, filename: None, line: 0 };
        let mut has_line = false;
        for pair in items.chunks_exact(2) {
            match pair {
                [Value::Text(words::NAME), Value::Text(id)] => frame.name = Some(*id),
                [Value::Text(words::FILENAME), Value::Text(id)] => frame.filename = Some(*id),
                [Value::Text(words::LINE), Value::Int(line)] => (frame.line, has_line) = (*line, true),
                // CPython's "no such line" is -1 written without sign.
                [Value::Text(words::LINE), Value::Wide(u64::MAX)] => (frame.line, has_line) = (-1, true),
                [Value::Text(words::NAME | words::FILENAME | words::LINE), _] => return None,
                _ => {}
            }
        }
        let filename = frame.filename?;
        if !has_line {
            return None;
        }
        let mut json = std::mem::take(&mut self.scratch);
        json.clear();
        python_json::write_dict(&mut json, state, self, items);
        let id = self.frame_texts.intern(json.as_bytes());
        self.scratch = json;
        let id = id?;
        if index(id) == self.frames.len() {
            self.saw_npu_frame |= state.text(filename).contains("torch_npu");
            self.frames.push(frame);
        }
        Some(id)
    }

    /// The number of the stack of these frames behind those of `begun`; `None` if one of the items is no frame.
    pub(super) fn stack(&mut self, begun: Option<u32>, items: &[Value]) -> Option<u32> {
        let mut frames: Vec<u32> = begun.map(|id| self.members_of(id).to_vec()).unwrap_or_default();
        for item in items {
            let Value::Kept { kind: FRAME, id } = item else { return None };
            frames.push(*id);
        }
        self.intern(&frames)
    }

    /// The number of the stack of these frames, innermost first.
    pub(super) fn intern(&mut self, frames: &[u32]) -> Option<u32> {
        let hash = self.hasher.hash_one(frames);
        let (members, ends) = (&self.members, &self.ends);
        let same = |entry: &(u64, u32)| entry.0 == hash && span(members, ends, entry.1) == frames;
        if let Some((_, id)) = self.numbers.find(hash, same) {
            return Some(*id);
        }
        let id = u32::try_from(self.ends.len()).ok().filter(|id| *id < 1 << 28)?;
        self.members.extend_from_slice(frames);
        self.ends.push(self.members.len());
        self.rows.push(0);
        self.numbers.insert_unique(hash, (hash, id), |entry| entry.0);
        Some(id)
    }

    fn members_of(&self, id: u32) -> &[u32] {
        span(&self.members, &self.ends, id)
    }

    /// `call_stacks.id` of a stack; handed out when the first row refers to it.
    #[inline]
    pub(super) fn row(&mut self, id: u32) -> i64 {
        let next = u32::try_from(self.order.len() + 1).unwrap_or(u32::MAX);
        let Some(row) = self.rows.get_mut(index(id)) else { return 0 };
        if *row == 0 {
            *row = next;
            self.order.push(id);
        }
        i64::from(*row)
    }

    /// Stacks that rows refer to.
    pub(super) fn row_count(&self) -> usize {
        self.order.len()
    }

    /// Whether any frame lies in torch_npu.
    pub(super) fn saw_npu_frame(&self) -> bool {
        self.saw_npu_frame
    }

    /// The JSON of a frame.
    pub(super) fn frame_json(&self, id: u32) -> &str {
        self.frame_texts.get(id).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("null")
    }

    /// Appends the JSON of a stack.
    pub(super) fn write_json(&self, out: &mut String, id: u32) {
        let mut separator = "[";
        for frame in self.members_of(id) {
            out.push_str(separator);
            out.push_str(self.frame_json(*frame));
            separator = ", ";
        }
        out.push_str(if separator == "[" { "[]" } else { "]" });
    }

    /// The row with this `call_stacks.id`, from 1.
    pub(super) fn call_stack(&self, state: &State, row: usize) -> Option<CallStack> {
        let id = *self.order.get(row.checked_sub(1)?)?;
        let mut frames_json = String::new();
        self.write_json(&mut frames_json, id);
        let frames = self
            .members_of(id)
            .iter()
            .filter_map(|frame| self.frames.get(index(*frame)))
            .map(|frame| FrameRow {
                name: frame.name.map(|id| state.text(id)).unwrap_or_default().to_owned(),
                filename: frame.filename.map(|id| state.text(id)).unwrap_or_default().to_owned(),
                line: frame.line,
            })
            .collect();
        let stack_hash = hex(&Md5::digest(frames_json.as_bytes()));
        Some(CallStack { id: i64::try_from(row).ok()?, stack_hash, frames_json, frames })
    }
}

/// Bytes in lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}
