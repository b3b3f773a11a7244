//! Frames and call stacks by content. The identity of a list says nothing: every `gather()` of PyTorch makes a new one.
//!
//! A frame is interned by its JSON, so that two stacks are the same exactly when the JSON of their frames is.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use md5::{Digest as _, Md5};

use super::python_json::Json;
use super::{FRAME, words};
use crate::pickle::{Interner, State, Value};
use crate::schema::{CallStack, FrameRow};

/// A frame or a stack beyond what any program has.
#[derive(Debug)]
pub(super) struct TooLarge;

/// Bytes of JSON a frame may have. Template names of C++ frames reach a few thousand.
const FRAME_BYTES: usize = 1 << 20;
/// Bytes of JSON a stack may have.
const STACK_BYTES: usize = 1 << 28;
/// Bytes of JSON all stacks may have.
const ALL_STACKS_BYTES: u64 = 1 << 34;

/// All frames and stacks of an import.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    frame_texts: Interner,
    /// What the nested column shows of each frame.
    frames: Vec<FrameRow>,
    /// Names and file names, by the machine's number of the string.
    names: HashMap<u32, Arc<str>, RandomState>,
    /// Whether a file name says that `torch_npu` is installed.
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
    list: Vec<u32>,
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
    ///
    /// # Errors
    /// The frame is larger than any frame is.
    pub(super) fn frame(&mut self, state: &State, items: &[Value]) -> Result<Option<u32>, TooLarge> {
        let (mut name, mut filename, mut line) = (None, None, None);
        for pair in items.chunks_exact(2) {
            match pair {
                [Value::Text(words::NAME), Value::Text(id)] => name = Some(*id),
                [Value::Text(words::FILENAME), Value::Text(id)] => filename = Some(*id),
                [Value::Text(words::LINE), Value::Int(number)] => line = Some(*number),
                // CPython's "no such line" is -1 written without sign.
                [Value::Text(words::LINE), Value::Wide(u64::MAX)] => line = Some(-1),
                [Value::Text(words::NAME | words::FILENAME | words::LINE), _] => return Ok(None),
                _ => {}
            }
        }
        let (Some(filename), Some(line)) = (filename, line) else { return Ok(None) };
        let mut json = Json::reusing(std::mem::take(&mut self.scratch), FRAME_BYTES);
        json.dict(state, self, items);
        let (json, complete) = json.into_parts();
        let id = if complete { self.frame_texts.intern(json.as_bytes()) } else { None };
        self.scratch = json;
        let id = id.filter(|id| *id < 1 << 28).ok_or(TooLarge)?;
        if index(id) == self.frames.len() {
            self.saw_npu_frame |= state.text(filename).contains("torch_npu");
            let name = self.shared_text(state, name);
            let filename = self.shared_text(state, Some(filename));
            self.frames.push(FrameRow { name, filename, line });
        }
        Ok(Some(id))
    }

    fn shared_text(&mut self, state: &State, id: Option<u32>) -> Arc<str> {
        let text = id.map(|id| state.text(id)).unwrap_or_default();
        Arc::clone(self.names.entry(id.unwrap_or(u32::MAX)).or_insert_with(|| text.into()))
    }

    /// The number of the stack that a list is; `None` if one of the items is no frame.
    pub(super) fn stack(&mut self, items: &[Value]) -> Option<u32> {
        if !matches!(items.first(), Some(Value::Kept { kind: FRAME, .. })) {
            return None;
        }
        let mut frames = std::mem::take(&mut self.list);
        frames.clear();
        frames.extend(items.iter().map_while(|item| match item {
            Value::Kept { kind: FRAME, id } => Some(*id),
            _ => None,
        }));
        let stack = if frames.len() == items.len() { self.intern(&frames) } else { None };
        self.list = frames;
        stack
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

    /// The frames of a stack, innermost first.
    pub(super) fn frames_of(&self, id: u32) -> &[u32] {
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

    /// Whether any frame lies in `torch_npu`.
    pub(super) fn saw_npu_frame(&self) -> bool {
        self.saw_npu_frame
    }

    /// The JSON of a frame.
    pub(super) fn frame_json(&self, id: u32) -> &str {
        self.frame_texts.get(id).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("null")
    }

    fn json(&self, id: u32) -> String {
        // Joined as bytes: each frame is valid UTF-8, and the whole is checked once.
        let frames = self.frames_of(id).iter();
        let length: usize = frames.map(|frame| self.frame_texts.get(*frame).map_or(4, <[u8]>::len) + 2).sum();
        let mut json = Vec::with_capacity(length + 2);
        let mut separator = b"[".as_slice();
        for frame in self.frames_of(id) {
            json.extend_from_slice(separator);
            json.extend_from_slice(self.frame_texts.get(*frame).unwrap_or(b"null"));
            separator = b", ";
        }
        json.extend_from_slice(if separator == b"[" { b"[]" } else { b"]" });
        String::from_utf8(json).unwrap_or_default()
    }

    /// Makes sure that the rows can be written out: a few bytes of pickle can stand for any amount of JSON.
    ///
    /// # Errors
    /// A stack, or all of them together, are larger than those of any program.
    pub(super) fn check_sizes(&self) -> Result<(), TooLarge> {
        let mut total = 0_u64;
        for id in &self.order {
            let frames = self.frames_of(*id).iter();
            let length = frames.fold(2_usize, |sum, frame| {
                sum.saturating_add(self.frame_texts.get(*frame).map_or(0, <[u8]>::len) + 2)
            });
            total = total.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
            if length > STACK_BYTES || total > ALL_STACKS_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(())
    }

    /// The row with this `call_stacks.id`, from 1.
    pub(super) fn call_stack(&self, row: usize) -> Option<CallStack> {
        let id = *self.order.get(row.checked_sub(1)?)?;
        let frames_json = self.json(id);
        let frames = self.frames_of(id).iter().filter_map(|frame| self.frames.get(index(*frame)));
        let frames = frames.cloned().collect();
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
