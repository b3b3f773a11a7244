//! Containers: their marks and batches, and the count of what they still lack.

use std::io::{self, Write};

use super::{Layout, Ref, Writer, misuse};

/// Items per MARK … APPENDS group in CPython's pickler.
const BATCH: u32 = 1000;

const MARK: u8 = b'(';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    Dict,
}

#[derive(Debug)]
pub(super) struct Open {
    kind: Kind,
    /// Items (pairs of a dict) still to come.
    left: u64,
    /// Items written since the last MARK.
    batched: u32,
    /// The only item of a CPython container goes without a MARK.
    single: bool,
    /// A dict's key is written, its value is not.
    key_done: bool,
    /// Where CPython memoised it.
    memo: Option<Ref>,
}

impl<W: Write> Writer<W> {
    pub(super) fn open_container(&mut self, kind: Kind, opcode: u8, length: u64) -> io::Result<()> {
        self.begin_value()?;
        self.buffer.push(opcode);
        let memo = match self.layout {
            Layout::CPython(_) => Some(self.memoise()?),
            Layout::Jit => {
                self.buffer.push(MARK);
                None
            }
        };
        let single = memo.is_some() && length == 1;
        self.open.push(Open { kind, left: length, batched: 0, single, key_done: false, memo });
        Ok(())
    }

    pub(super) fn close_container(&mut self) -> io::Result<Option<Ref>> {
        let open = self.open.pop().ok_or_else(|| misuse("no container to close"))?;
        if open.left > 0 || open.key_done {
            return Err(misuse("a container is closed before the last of its items"));
        }
        if self.layout == Layout::Jit {
            self.buffer.push(plural(open.kind));
        }
        Ok(open.memo)
    }

    /// What stands before a value: the MARK of its batch, and perhaps the end of a frame.
    pub(super) fn begin_value(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.last_mut() {
            if open.left == 0 {
                return Err(misuse("a container gets more items than announced"));
            }
            if open.batched == 0 && !open.single && !open.key_done && open.memo.is_some() {
                self.buffer.push(MARK);
            }
        }
        self.boundary()
    }

    /// What stands behind a value: the opcode that puts it, or its batch, into the container.
    pub(super) fn end_value(&mut self) {
        let Some(open) = self.open.last_mut() else { return };
        if open.kind == Kind::Dict {
            open.key_done = !open.key_done;
            if open.key_done {
                return;
            }
        }
        open.left = open.left.saturating_sub(1);
        if open.memo.is_none() {
            return;
        }
        open.batched = open.batched.saturating_add(1);
        if open.single {
            self.buffer.push(if open.kind == Kind::List { b'a' } else { b's' });
        } else if open.left == 0 || open.batched == BATCH {
            self.buffer.push(plural(open.kind));
            // A dict that ends with a full batch gets an empty one behind it: CPython asks for more until a batch is
            // not full.
            if open.kind == Kind::Dict && open.left == 0 && open.batched == BATCH {
                self.buffer.extend_from_slice(&[MARK, plural(Kind::Dict)]);
            }
            open.batched = 0;
        }
    }
}

fn plural(kind: Kind) -> u8 {
    match kind {
        Kind::List => b'e',
        Kind::Dict => b'u',
    }
}
