//! The opcode loop: complete, plain, and without a single opcode that constructs anything.

use std::io::Read;

use super::containers::{append, close_open, get, set_item, set_items};
use super::error::{Lookalike, PickleError, PickleErrorKind, is_text};
use super::reader::Reader;
use super::state::State;
use super::value::Value;
use super::{Limits, number, opcode as op};

/// Takes what the machine reads, container by container.
///
/// Values arrive bottom-up: when a dict closes, its items are already what the sink made of them.
pub trait Sink {
    /// What stops the machine.
    type Error: From<PickleError>;

    /// A dict at stack position `at` has got its items (key, value, key, value, …). Returns what stands for it from now
    /// on: [`Value::Taken`] or [`Value::Kept`]; `None` leaves it to the machine to keep it as a node.
    ///
    /// # Errors
    /// The dict cannot be what its place says it must be.
    fn dict(&mut self, state: &mut State, at: usize, items: &[Value]) -> Result<Option<Value>, Self::Error>;

    /// A list has got its items. Returns the [`Value::Kept`] that stands for it from now on; `None` leaves it to the
    /// machine to keep it as a node.
    ///
    /// # Errors
    /// The list cannot be what its place says it must be.
    fn list(&mut self, state: &mut State, items: &[Value]) -> Result<Option<Value>, Self::Error>;

    /// The items of a list that [`list`](Self::list) has made a [`Value::Kept`] of, because it gets more of them. `None` if
    /// it is no list.
    fn reopen(&self, list: Value) -> Option<Vec<Value>>;

    /// A dict begins; `window` is what stands behind its `EMPTY_DICT`. A sink that knows what is coming may read dicts from
    /// the bytes itself. Whatever it reads must leave the state as the machine would.
    ///
    /// # Errors
    /// As for [`dict`](Self::dict).
    fn read_ahead(&mut self, _state: &mut State, _window: &[u8]) -> Result<Option<Ahead>, Self::Error> {
        Ok(None)
    }

    /// Whether [`read_ahead`](Self::read_ahead) is worth asking for the dict that begins.
    fn expects_more(&mut self, _state: &State) -> bool {
        false
    }
}

/// What a sink has read ahead.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    /// Bytes, up to the end of the last dict.
    pub consumed: usize,
    /// The sink's kind of [`Value::Taken`].
    pub kind: u8,
    /// How many dicts.
    pub count: u64,
}

/// Bytes that are made available before the sink reads ahead, so that few dicts are cut by the end of the window.
const AHEAD_BYTES: usize = 1 << 14;

/// What stops a step: the pickle itself, or the sink.
pub(super) enum Stop<E> {
    Pickle(PickleErrorKind),
    Sink(E),
}

impl<E> From<PickleErrorKind> for Stop<E> {
    fn from(kind: PickleErrorKind) -> Self {
        Self::Pickle(kind)
    }
}

/// What the machine found around the value it returns.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// The value that STOP returned.
    pub root: Value,
    /// Offset behind STOP.
    pub offset: u64,
    /// Bytes behind STOP that are not zero. Viewers pad pickles with zeros.
    pub trailing: u64,
}

/// Reads one pickle.
#[derive(Debug)]
pub struct Machine<R> {
    pub(super) reader: Reader<R>,
    /// Everything but the input.
    pub state: State,
}

impl<R: Read> Machine<R> {
    /// A machine at the beginning of `input`, whose length may be known.
    pub fn new(input: R, length: Option<u64>, limits: Limits) -> Self {
        let mut state = State::new(limits);
        state.memo.make_room(length.unwrap_or_default());
        Self { reader: Reader::new(input, length), state }
    }

    fn error(&self, kind: PickleErrorKind) -> PickleError {
        PickleError { offset: self.state.offset, kind }
    }

    /// Reads to STOP and on to the end of the input.
    ///
    /// # Errors
    /// [`PickleError`] with the offset of what is wrong, or the sink's own.
    pub fn run<S: Sink>(&mut self, sink: &mut S) -> Result<End, S::Error> {
        self.check_head()?;
        let head_is_text = !self.reader.window().starts_with(&[op::PROTO]) && {
            let window = self.reader.window();
            is_text(window.get(..window.len().min(64)).unwrap_or_default())
        };
        let mut steps = 0_u32;
        while self.step(sink).map_err(|stop| self.explain(stop, head_is_text && steps < 3))? {
            steps = steps.saturating_add(1);
        }
        self.finish(sink)
    }

    /// Refuses what is certainly no pickle before its bytes are taken for opcodes.
    fn check_head(&mut self) -> Result<(), PickleError> {
        if !self.reader.fill(16).map_err(|kind| self.error(kind))? && self.reader.window().is_empty() {
            return Err(self.error(PickleErrorKind::Empty));
        }
        let head = self.reader.window();
        if head.starts_with(&[op::PROTO]) {
            return Ok(());
        }
        let looks_like = Lookalike::of(head);
        let begins = head.first().is_some_and(|byte| op::name(*byte).is_some());
        if looks_like.is_certain() || !begins {
            return Err(self.error(PickleErrorKind::NotAPickle(looks_like)));
        }
        Ok(())
    }

    /// Text whose first letters happen to be opcodes is text, not a damaged pickle.
    fn explain<E: From<PickleError>>(&self, stop: Stop<E>, is_text: bool) -> E {
        match stop {
            Stop::Pickle(
                kind @ (PickleErrorKind::Io(_) | PickleErrorKind::Refused { what: Some(_), .. }),
            ) => self.error(kind).into(),
            Stop::Pickle(_) if is_text => {
                PickleError { offset: 0, kind: PickleErrorKind::NotAPickle(Lookalike::Text) }.into()
            }
            Stop::Pickle(kind) => self.error(kind).into(),
            Stop::Sink(error) => error,
        }
    }

    /// Carries out one opcode; `false` after STOP.
    fn step<S: Sink>(&mut self, sink: &mut S) -> Result<bool, Stop<S::Error>> {
        self.state.offset = self.reader.offset();
        let Some(opcode) = self.reader.opcode()? else {
            return Err(PickleErrorKind::Truncated { inside: "the pickle, before its STOP" }.into());
        };
        let state = &mut self.state;
        let reader = &mut self.reader;
        match opcode {
            op::BINGET => get(state, sink, u64::from(u8::from_le_bytes(reader.array("BINGET")?)))?,
            op::LONG_BINGET => get(state, sink, u64::from(u32::from_le_bytes(reader.array("LONG_BINGET")?)))?,
            op::MEMOIZE => state.memoize()?,
            op::BINPUT => state.put(u64::from(u8::from_le_bytes(reader.array("BINPUT")?)), "BINPUT")?,
            op::LONG_BINPUT => {
                state.put(u64::from(u32::from_le_bytes(reader.array("LONG_BINPUT")?)), "LONG_BINPUT")?;
            }
            op::BININT1 => state.push(Value::Int(i64::from(u8::from_le_bytes(reader.array("BININT1")?))))?,
            op::BININT2 => state.push(Value::Int(i64::from(u16::from_le_bytes(reader.array("BININT2")?))))?,
            op::BININT => state.push(Value::Int(i64::from(i32::from_le_bytes(reader.array("BININT")?))))?,
            op::LONG1 => {
                let length = usize::from(u8::from_le_bytes(reader.array("LONG1")?));
                let value = number::from_little_endian(reader.take(length, "LONG1")?)?;
                state.push(value)?;
            }
            op::MARK => state.mark()?,
            op::EMPTY_LIST => {
                state.is_binary = true;
                state.push(Value::EmptyList)?;
            }
            op::EMPTY_DICT => {
                state.is_binary = true;
                if sink.expects_more(state) {
                    if reader.window().len() < AHEAD_BYTES {
                        reader.fill(AHEAD_BYTES)?;
                    }
                    let ahead = sink.read_ahead(state, reader.window()).map_err(Stop::Sink)?;
                    if let Some(Ahead { consumed, kind, count }) = ahead {
                        reader.consume(consumed);
                        state.push(Value::Taken { kind, count })?;
                        state.join_taken();
                        return Ok(true);
                    }
                }
                let floor = state.tree.floor();
                state.push(Value::EmptyDict { floor })?;
            }
            op::APPENDS => {
                let mark = state.unmark("APPENDS")?;
                let target =
                    mark.checked_sub(1).ok_or(PickleErrorKind::StackUnderflow { opcode: "APPENDS" })?;
                close_open(state, sink, mark + 1)?;
                append(state, sink, target, mark, "APPENDS")?;
            }
            op::APPEND => {
                let target = state.below_top(1, "APPEND")?;
                close_open(state, sink, target + 1)?;
                append(state, sink, target, target + 1, "APPEND")?;
            }
            op::SETITEMS => {
                let mark = state.unmark("SETITEMS")?;
                let target =
                    mark.checked_sub(1).ok_or(PickleErrorKind::StackUnderflow { opcode: "SETITEMS" })?;
                close_open(state, sink, mark + 1)?;
                set_items(state, sink, target, mark)?;
            }
            op::SETITEM => {
                let target = state.below_top(2, "SETITEM")?;
                close_open(state, sink, target + 1)?;
                set_item(state, target)?;
            }
            op::SHORT_BINUNICODE => {
                let length = u64::from(u8::from_le_bytes(reader.array("SHORT_BINUNICODE")?));
                self.string(length, "SHORT_BINUNICODE")?;
            }
            op::BINUNICODE => {
                let length = u64::from(u32::from_le_bytes(reader.array("BINUNICODE")?));
                self.string(length, "BINUNICODE")?;
            }
            op::TUPLE2 => {
                let from = state.below_top(1, "TUPLE2")?;
                close_open(state, sink, from)?;
                state.tuple(from)?;
            }
            op::FRAME => reader.skip(8, "FRAME")?,
            op::NONE => state.push(Value::None)?,
            op::NEWTRUE => state.push(Value::Bool(true))?,
            op::NEWFALSE => state.push(Value::Bool(false))?,
            op::BINFLOAT => state.push(Value::Float(f64::from_be_bytes(reader.array("BINFLOAT")?)))?,
            op::STOP => return Ok(false),
            _ => self.rare(sink, opcode)?,
        }
        Ok(true)
    }

    pub(super) fn string(&mut self, length: u64, inside: &'static str) -> Result<(), PickleErrorKind> {
        if length > self.state.limits.text_bytes {
            let limit = self.state.limits.text_bytes;
            return Err(PickleErrorKind::LimitExceeded { of: "bytes in one string", limit });
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = self.reader.take(length, inside)?;
        let id = self.state.intern(bytes)?;
        self.state.push(Value::Text(id))?;
        Ok(())
    }

    fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<End, S::Error> {
        if self.state.stack.len() != 1 || !self.state.marks.is_empty() {
            let count = u64::try_from(self.state.stack.len()).unwrap_or(u64::MAX);
            return Err(self.error(PickleErrorKind::UnfinishedStop(count)).into());
        }
        close_open(&mut self.state, sink, 0).map_err(|stop| self.explain(stop, false))?;
        let offset = self.reader.offset();
        let trailing = self.reader.drain().map_err(|kind| self.error(kind))?;
        self.state.take_from(0);
        Ok(End { root: self.state.taken.first().copied().unwrap_or(Value::None), offset, trailing })
    }
}
