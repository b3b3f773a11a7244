//! Call stacks by their id, frames shared between them: the only thing of a snapshot's size that an export keeps.

use std::collections::HashMap;

use super::label::{self, Frame};
use super::rows::CallStack;
use crate::engine::Engine;
use crate::error::Result;
use crate::output::Redaction;

/// All call stacks of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    frames: Vec<Frame>,
    /// Whether each frame is the program's own, which its file does not tell any more when it is redacted.
    own: Vec<bool>,
    by_id: HashMap<i64, Box<[usize]>, foldhash::fast::FixedState>,
}

impl Stacks {
    /// Reads them, without what is not for others.
    pub(super) fn read(engine: &Engine, redaction: &Redaction) -> Result<Self> {
        let mut stacks = Self::default();
        let mut known: HashMap<String, usize, foldhash::fast::FixedState> = HashMap::default();
        for row in engine.scan::<CallStack>(&[])? {
            let row = row?;
            // What is no list of objects has no frames that a tool could show.
            let frames: Vec<Frame> = serde_json::from_str(&row.frames_json).unwrap_or_default();
            let mut indexes = Vec::with_capacity(frames.len());
            for frame in frames {
                let text = serde_json::to_string(&frame).unwrap_or_default();
                indexes.push(*known.entry(text).or_insert_with(|| {
                    stacks.own.push(label::is_own(&frame));
                    stacks.frames.push(label::redacted(frame, redaction));
                    stacks.frames.len() - 1
                }));
            }
            stacks.by_id.insert(row.id, indexes.into());
        }
        Ok(stacks)
    }

    /// Numbers of the frames of a stack, innermost first; none where none was recorded.
    pub(super) fn of(&self, stack_id: Option<i64>) -> &[usize] {
        stack_id.and_then(|id| self.by_id.get(&id)).map_or(&[], |frames| frames)
    }

    /// The frame of a stack that says most: the innermost outside the framework, else the innermost.
    pub(super) fn place(&self, stack_id: Option<i64>) -> Option<&Frame> {
        let numbers = self.of(stack_id);
        let own = numbers.iter().find(|number| self.own.get(**number).copied().unwrap_or_default());
        own.or_else(|| numbers.first()).and_then(|number| self.frame(*number))
    }

    /// A frame by its number.
    pub(super) fn frame(&self, number: usize) -> Option<&Frame> {
        self.frames.get(number)
    }

    /// All frames, in the order of their numbers.
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }
}
