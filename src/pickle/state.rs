//! The machine's stack, memo and strings: everything but the input.

use super::Limits;
use super::error::{PickleError, PickleErrorKind};
use super::intern::Interner;
use super::memo::{Entry, ID_LIMIT, Memo, Remembered};
use super::pairs::Pairs;
use super::text;
use super::tree::{NodeKind, Tree};
use super::value::{FROZEN, NOT_MEMOIZED, Slot, Value};

type Checked<T> = Result<T, PickleErrorKind>;

/// What the machine knows at one moment. A sink reads it to see where a container stands.
#[derive(Debug)]
pub struct State {
    pub(super) stack: Vec<Slot>,
    /// Positions of the marks on the stack.
    pub(super) marks: Vec<u32>,
    pub(super) memo: Memo,
    texts: Interner,
    escaped_texts: u64,
    pairs: Pairs,
    pub(super) tree: Tree,
    pub(super) limits: Limits,
    /// Where the opcode that is carried out begins.
    pub(super) offset: u64,
    /// Values taken off the stack by the opcode that is carried out.
    pub(super) taken: Vec<Value>,
    /// Whether any container was ever filled in several steps.
    pub(super) has_open: bool,
    /// The protocol the pickle names; none does below 2.
    pub(super) named_protocol: Option<u8>,
    /// Whether a container opcode that protocol 0 lacks was seen.
    pub(super) is_binary: bool,
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl State {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            texts: Interner::default(),
            escaped_texts: 0,
            pairs: Pairs::default(),
            tree: Tree::new(limits.depth, limits.tree_values),
            limits,
            offset: 0,
            taken: Vec::new(),
            has_open: false,
            named_protocol: None,
            is_binary: false,
        }
    }

    /// The stack, bottom first, marks included.
    #[inline]
    #[must_use]
    pub fn stack(&self) -> &[Slot] {
        &self.stack
    }

    /// The value at a position of the stack.
    #[inline]
    #[must_use]
    pub fn at(&self, position: usize) -> Option<Value> {
        self.stack.get(position).map(|slot| slot.value)
    }

    /// Positions of the marks on the stack, lowest first.
    #[inline]
    #[must_use]
    pub fn marks(&self) -> &[u32] {
        &self.marks
    }

    /// The memo.
    #[inline]
    #[must_use]
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// The memo, for a sink that reads ahead.
    #[inline]
    pub fn memo_mut(&mut self) -> &mut Memo {
        &mut self.memo
    }

    /// Small containers that are kept.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Keeps a small container, as the machine does with those no sink takes.
    ///
    /// # Errors
    /// [`PickleError`] if it is nested too deep.
    pub fn keep(&mut self, kind: NodeKind, items: &[Value]) -> Result<Value, PickleError> {
        self.tree.add(kind, items).map_err(|kind| PickleError { offset: self.offset, kind })
    }

    /// Where the opcode that is carried out begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Strings that were no valid UTF-8 and are kept with escapes.
    #[must_use]
    pub fn escaped_texts(&self) -> u64 {
        self.escaped_texts
    }

    /// Memo entries that were stored a second time.
    #[must_use]
    pub fn overwritten_memo(&self) -> u64 {
        self.memo.overwritten()
    }

    /// The protocol: what the pickle names, or what it uses.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.named_protocol.unwrap_or(u8::from(self.is_binary))
    }

    /// The string behind a number.
    #[inline]
    #[must_use]
    pub fn text(&self, id: u32) -> &str {
        // Only valid UTF-8 gets in; the check costs less than unsafe code would.
        self.texts.get(id).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Bytes of the string behind a number.
    #[inline]
    #[must_use]
    pub fn text_length(&self, id: u32) -> usize {
        self.texts.get(id).map_or(0, <[u8]>::len)
    }

    /// The number of a string as the pickle has it, UTF-8 or not.
    #[inline]
    pub(super) fn intern(&mut self, bytes: &[u8]) -> Checked<u32> {
        match self.texts.find(bytes) {
            Some(id) => Ok(id),
            None => self.intern_new(bytes),
        }
    }

    /// The number of a string that is valid UTF-8; `None` if it is not, or there are no numbers left.
    #[inline]
    pub fn intern_valid(&mut self, bytes: &[u8]) -> Option<u32> {
        if let Some(id) = self.texts.find(bytes) {
            return Some(id);
        }
        std::str::from_utf8(bytes).ok()?;
        self.texts.intern(bytes).filter(|id| *id < ID_LIMIT)
    }

    fn intern_new(&mut self, bytes: &[u8]) -> Checked<u32> {
        let id = match text::escaped(bytes) {
            None => self.texts.intern(bytes),
            Some(escaped) => {
                self.escaped_texts += 1;
                self.texts.intern(escaped.as_bytes())
            }
        };
        let limit = ID_LIMIT;
        id.filter(|id| *id < limit)
            .ok_or(PickleErrorKind::LimitExceeded { of: "distinct strings", limit: u64::from(limit) })
    }

    /// The number of a string the sink wants to know beforehand.
    pub fn know(&mut self, text: &str) -> Option<u32> {
        self.texts.intern(text.as_bytes())
    }

    /// The two integers behind a number.
    #[inline]
    #[must_use]
    pub fn pair(&self, id: u32) -> Option<(i64, i64)> {
        self.pairs.get(id)
    }

    /// The number of a pair of integers; `None` when there are too many distinct ones.
    #[inline]
    pub fn pair_number(&mut self, pair: (i64, i64)) -> Option<u32> {
        self.pairs.number(pair)
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value) -> Checked<()> {
        if self.stack.len() >= self.limits.stack {
            let limit = u64::try_from(self.limits.stack).unwrap_or(u64::MAX);
            return Err(PickleErrorKind::LimitExceeded { of: "values at once on the stack", limit });
        }
        self.stack.push(Slot { value, memo: NOT_MEMOIZED });
        Ok(())
    }

    pub(super) fn mark(&mut self) -> Checked<()> {
        self.marks.push(position(self.stack.len()));
        self.push(Value::Mark)
    }

    /// Takes the last mark away, but not what is above it, and says where it was.
    pub(super) fn unmark(&mut self, opcode: &'static str) -> Checked<usize> {
        let mark = self.marks.pop().and_then(|mark| usize::try_from(mark).ok());
        mark.ok_or(PickleErrorKind::Mark { opcode, problem: "there is no MARK" })
    }

    /// Position of the value `depth` below the top, none of them a mark.
    pub(super) fn below_top(&self, depth: usize, opcode: &'static str) -> Checked<usize> {
        let lowest =
            self.stack.len().checked_sub(depth + 1).ok_or(PickleErrorKind::StackUnderflow { opcode })?;
        let mark = self.marks.last().and_then(|mark| usize::try_from(*mark).ok());
        if mark.is_some_and(|mark| mark >= lowest) {
            return Err(PickleErrorKind::Mark { opcode, problem: "a MARK is in its way" });
        }
        Ok(lowest)
    }

    /// Moves the values from `from` on into `taken`. Whoever takes them makes them final: their memo entries stop saying
    /// "open".
    pub(super) fn take_from(&mut self, from: usize) {
        self.taken.clear();
        for (index, slot) in self.stack.iter().enumerate().skip(from) {
            if slot.memo < FROZEN {
                self.memo.settle(slot.memo, position(index), slot.value);
            }
            self.taken.push(slot.value);
        }
        self.stack.truncate(from);
    }

    /// Whether nothing else has a copy of the container at `at`.
    pub(super) fn check_unshared(&self, at: usize) -> Checked<()> {
        let memo = self.stack.get(at).map_or(NOT_MEMOIZED, |slot| slot.memo);
        if memo == NOT_MEMOIZED || (memo != FROZEN && self.memo.is_open(memo, position(at))) {
            return Ok(());
        }
        Err(PickleErrorKind::SelfReference)
    }

    pub(super) fn replace(&mut self, at: usize, value: Value) {
        if let Some(slot) = self.stack.get_mut(at) {
            slot.value = value;
        }
    }

    /// Stores the top of the stack in the memo.
    pub(super) fn put(&mut self, index: u64, opcode: &'static str) -> Checked<()> {
        let top = self.below_top(0, opcode)?;
        let Some(slot) = self.stack.get_mut(top) else { return Ok(()) };
        let is_open = matches!(
            slot.value,
            Value::EmptyList | Value::EmptyDict { .. } | Value::OpenList(_) | Value::OpenDict(_)
        );
        let entry = if is_open && slot.memo == NOT_MEMOIZED {
            slot.memo = u32::try_from(index).unwrap_or(FROZEN);
            Entry::open(position(top))
        } else {
            // The slot follows one entry only, so the one before has to say what it stands for now.
            self.memo.settle(slot.memo, position(top), slot.value);
            slot.memo = FROZEN;
            self.memo.encode(slot.value)
        };
        self.memo.put(index, self.offset, entry)
    }

    pub(super) fn memoize(&mut self) -> Checked<()> {
        self.put(self.memo.next(), "MEMOIZE")
    }

    /// Pushes what the memo has under `index`. A container that others can see may not change any more.
    #[inline]
    pub(super) fn get(&mut self, index: u64) -> Checked<()> {
        let value = match self.memo.get(index) {
            Remembered::Value(value) => value,
            Remembered::Vacant => return Err(PickleErrorKind::MissingMemo(index)),
            Remembered::Taken => return Err(PickleErrorKind::TakenMemo(index)),
            Remembered::Open(position) => self.freeze(index, position)?,
        };
        self.push(value)?;
        if let Some(slot) = self.stack.last_mut() {
            slot.memo = FROZEN;
        }
        Ok(())
    }

    /// Where on the stack the open container is that the memo has under `index`.
    pub(super) fn open_at(&self, index: u64) -> Option<usize> {
        match self.memo.get(index) {
            Remembered::Open(position) => usize::try_from(position).ok(),
            _ => None,
        }
    }

    fn freeze(&mut self, index: u64, position: u32) -> Checked<Value> {
        let memo = u32::try_from(index).map_err(|_| PickleErrorKind::MissingMemo(index))?;
        let slot = usize::try_from(position).ok().and_then(|at| self.stack.get_mut(at));
        let slot = slot.filter(|slot| slot.memo == memo).ok_or(PickleErrorKind::MissingMemo(index))?;
        let value = slot.value;
        if matches!(value, Value::Taken { .. } | Value::TakenList { .. }) {
            return Err(PickleErrorKind::TakenMemo(index));
        }
        self.memo.settle(memo, position, value);
        Ok(value)
    }

    /// Takes the top away; a mark on top goes like a value.
    pub(super) fn pop(&mut self) -> Checked<()> {
        let top = self.stack.len().checked_sub(1).ok_or(PickleErrorKind::StackUnderflow { opcode: "POP" })?;
        if self.at(top) == Some(Value::Mark) {
            self.marks.pop();
        }
        self.take_from(top);
        Ok(())
    }

    /// Pushes the value at `top` a second time; neither may change any more.
    pub(super) fn duplicate(&mut self, top: usize) -> Checked<()> {
        let Some(slot) = self.stack.get_mut(top) else { return Ok(()) };
        let (value, memo) = (slot.value, slot.memo);
        if matches!(value, Value::Taken { .. } | Value::TakenList { .. }) {
            return Err(PickleErrorKind::WrongTarget { opcode: "DUP", found: value.describe() });
        }
        slot.memo = FROZEN;
        if memo < FROZEN {
            self.memo.settle(memo, position(top), value);
        }
        self.push(value)?;
        if let Some(slot) = self.stack.last_mut() {
            slot.memo = FROZEN;
        }
        Ok(())
    }

    /// Makes a tuple of the values from `from` on.
    pub(super) fn tuple(&mut self, from: usize) -> Checked<()> {
        self.take_from(from);
        let pair = match self.taken.as_slice() {
            [Value::Int(first), Value::Int(second)] => self.pair_number((*first, *second)),
            _ => None,
        };
        let value = match pair {
            Some(id) => Value::Pair(id),
            None => self.tree.add(NodeKind::Tuple, &self.taken)?,
        };
        self.push(value)
    }

    /// After the sink took the dict at the top: joins it with those it took before in the same list, so that a list of
    /// any length needs one value.
    #[inline]
    pub(super) fn join_taken(&mut self) {
        let [.., below, top] = self.stack.as_mut_slice() else { return };
        let (Value::Taken { kind, count }, Value::Taken { kind: above, count: more }) =
            (below.value, top.value)
        else {
            return;
        };
        if kind != above {
            return;
        }
        let (memos, above) = ([below.memo, top.memo], Value::Taken { kind, count: more });
        below.value = Value::Taken { kind, count: count.saturating_add(more) };
        below.memo = NOT_MEMOIZED;
        let top = self.stack.len() - 1;
        for (memo, at) in memos.into_iter().zip([top - 1, top]) {
            self.memo.settle(memo, position(at), above);
        }
        self.stack.pop();
    }
}
