//! The fast way through trace entries: reads a whole entry from the raw bytes, or changes nothing and leaves it to the
//! opcode loop.
//!
//! It knows what the picklers write and nothing else. Whatever it does not expect (a FRAME, a new frame, an unknown key, an
//! odd value) makes it step back; so it can be wrong about speed, but not about meaning.

use super::event::{Event, has};
use super::field::Frames;
use super::list_cache::ListCache;
use super::stacks::Stacks;
use super::token::{Parsed, Seen, again, bytes_in_full, integer, op, pair, reference, size, store, text};
use super::{FRAME, FRAME_STACK, words};
use crate::pickle::{Entry, State};

/// Keys an entry has at most.
const MOST_KEYS: usize = 16;

/// Reads entries, and remembers the lists of frames in them.
#[derive(Debug, Default)]
pub(super) struct EntryParser {
    /// Keys by their place in the entry.
    keys: [Option<Seen>; MOST_KEYS],
    /// The last `compile_context` that stood there in full, as it does in every entry.
    context: Option<Seen>,
    lists: ListCache,
    /// What the memo's count of overwritten entries was when keys and lists were remembered.
    overwritten: u64,
    frames: Vec<u32>,
    /// The entry that was read last.
    pub(super) event: Event,
}

impl EntryParser {
    /// Reads the entry whose `EMPTY_DICT` stands just before `window` into `event` and returns what is behind it. `None`
    /// leaves everything else as it was.
    #[inline]
    pub(super) fn parse<'w>(
        &mut self,
        state: &mut State,
        stacks: &mut Stacks,
        window: &'w [u8],
    ) -> Option<&'w [u8]> {
        let before = state.memo().len();
        if !state.memo().is_dense() {
            return None;
        }
        if self.overwritten != state.memo().overwritten() {
            self.overwritten = state.memo().overwritten();
            self.lists.clear();
            self.keys = [None; MOST_KEYS];
        }
        let parsed = self.attempt(state, stacks, window);
        if parsed.is_none() {
            state.memo_mut().truncate(before);
        }
        parsed
    }

    fn attempt<'w>(&mut self, state: &mut State, stacks: &mut Stacks, window: &'w [u8]) -> Option<&'w [u8]> {
        let rest = store(state, window, Entry::TAKEN)?;
        let mut rest = rest.strip_prefix(&[op::MARK])?;
        self.event.clear();
        for place in 0..MOST_KEYS {
            let Some((key, behind)) = self.key(state, place, rest)? else { break };
            rest = behind;
            let bit = match key {
                words::ACTION => {
                    (self.event.action, rest) = text(state, rest)?;
                    has::ACTION
                }
                words::FRAMES => {
                    (self.event.frames, rest) = self.frames(state, stacks, rest)?;
                    has::FRAMES
                }
                words::ADDR => {
                    let (addr, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_addr(addr)
                }
                words::SIZE => {
                    let (bytes, behind) = size(rest)?;
                    rest = behind;
                    self.event.set_size(bytes)
                }
                words::STREAM => {
                    let (stream, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_stream(stream)
                }
                words::TIME_US => {
                    let (time, behind) = integer(rest)?;
                    rest = behind;
                    self.event.set_time_us(time)
                }
                words::POOL_ID => {
                    let (pool, behind) = pair(state, rest)?;
                    rest = behind;
                    self.event.set_pool(pool)
                }
                words::COMPILE_CONTEXT => {
                    let (id, behind) = self.context(state, rest)?;
                    rest = behind;
                    self.event.set_compile_context(id)
                }
                words::USER_METADATA => {
                    let (id, behind) = text(state, rest)?;
                    rest = behind;
                    self.event.set_user_metadata(id)
                }
                words::DEVICE_FREE => {
                    let (bytes, behind) = size(rest)?;
                    rest = behind;
                    self.event.set_device_free(bytes)
                }
                _ => return None,
            };
            if self.event.present & bit != 0 {
                return None;
            }
            self.event.present |= bit;
        }
        let rest = rest.strip_prefix(&[op::SETITEMS])?;
        // At the end of the window nobody knows whether the entry is stored.
        let rest = if rest.is_empty() { return None } else { store(state, rest, Entry::TAKEN)? };
        (self.event.is_known() && self.event.check().is_ok()).then_some(rest)
    }

    /// The key at a place of the entry, `Some(None)` at the end of the entry.
    #[inline]
    fn key<'w>(&mut self, state: &mut State, place: usize, window: &'w [u8]) -> Option<Parsed<'w, u32>> {
        let seen = self.keys.get_mut(place)?;
        if let Some(known) = again(*seen, window) {
            return Some(Some(known));
        }
        if window.starts_with(&[op::SETITEMS]) {
            return Some(None);
        }
        let (key, rest) = text(state, window)?;
        if let [op::BINGET | op::LONG_BINGET, ..] = window {
            *seen = Seen::new(window, window.len() - rest.len(), key);
        }
        Some(Some((key, rest)))
    }

    /// A `compile_context`, which mostly is that of the entry before.
    fn context<'w>(&mut self, state: &mut State, window: &'w [u8]) -> Parsed<'w, u32> {
        if let Some((id, rest)) = again(self.context, window) {
            return Some((id, store(state, rest, Entry::text(id))?));
        }
        let (id, rest) = text(state, window)?;
        if let Some((_, behind)) = bytes_in_full(window) {
            self.context = Seen::new(window, window.len() - behind.len(), id);
        }
        Some((id, rest))
    }

    /// The list of frames: a reference, empty, of one frame, or of many.
    fn frames<'w>(&mut self, state: &mut State, stacks: &mut Stacks, window: &'w [u8]) -> Parsed<'w, Frames> {
        let [op::EMPTY_LIST, rest @ ..] = window else {
            let (entry, rest) = reference(state, window)?;
            if entry.is_empty_list() {
                return Some((Frames::Empty, rest));
            }
            return Some((Frames::Stack(entry.as_kept(FRAME_STACK)?), rest));
        };
        let index = state.memo().len();
        let rest = store(state, rest, Entry::EMPTY_LIST)?;
        let is_stored = state.memo().len() > index;
        let (stack, rest) = match rest {
            [op::MARK, op::APPENDS, rest @ ..] => (None, rest),
            [op::MARK, list @ ..] => {
                let (stack, length) = self.stack(state, stacks, list)?;
                (Some(stack), list.get(length..)?)
            }
            [op::BINGET, _, op::APPEND, ..] | [op::LONG_BINGET, _, _, _, _, op::APPEND, ..] => {
                let (entry, rest) = reference(state, rest)?;
                let stack = stacks.intern(&[entry.as_kept(FRAME)?])?;
                (Some(stack), rest.get(1..)?)
            }
            _ => (None, rest),
        };
        // A second batch of items follows.
        if let [op::MARK, ..] = rest {
            return None;
        }
        let entry = stack.map_or(Entry::EMPTY_LIST, |stack| Entry::kept(FRAME_STACK, stack));
        let rest = if is_stored {
            state.memo_mut().set(index, entry);
            rest
        } else {
            store(state, rest, entry)?
        };
        Some((stack.map_or(Frames::Empty, Frames::Stack), rest))
    }

    /// Stack and length of a list of references up to its APPENDS.
    #[inline]
    fn stack(&mut self, state: &State, stacks: &mut Stacks, window: &[u8]) -> Option<(u32, usize)> {
        if let Some(found) = self.lists.guess(window) {
            return Some(found);
        }
        let mut length = 0;
        loop {
            match window.get(length..)? {
                [op::BINGET, ..] => length += 2,
                [op::LONG_BINGET, ..] => length += 5,
                [op::APPENDS, ..] => break,
                _ => return None,
            }
        }
        length += 1;
        let list = window.get(..length)?;
        if let Some(stack) = self.lists.find(list) {
            return Some((stack, length));
        }
        let stack = self.resolve(state, stacks, list)?;
        self.lists.remember(list, stack);
        Some((stack, length))
    }

    fn resolve(&mut self, state: &State, stacks: &mut Stacks, list: &[u8]) -> Option<u32> {
        self.frames.clear();
        let mut rest = list;
        while let [op::BINGET | op::LONG_BINGET, ..] = rest {
            let (entry, behind) = reference(state, rest)?;
            self.frames.push(entry.as_kept(FRAME)?);
            rest = behind;
        }
        stacks.intern(&self.frames)
    }
}
