//! Writes a pickle while its values come: nothing is kept but the memo's count and the texts that are shared.
//!
//! Two writers of the wild are reproduced opcode for opcode: CPython's pickler, which memoises a container before its
//! items, and the C++ pickler, which memoises it after them. So a container's length is announced when it is opened
//! (CPython writes one item without a mark, and a thousand per batch), and the caller says which objects are one and
//! the same: [`Writer::reference`] points at an object that was written before, everything else is a new one.

mod container;
mod encode;
mod frame;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};

use container::{Kind, Open};

/// Bytes after which CPython closes a frame; also the size of our buffer.
const FRAME_TARGET: usize = 64 * 1024;
const STOP: u8 = b'.';

/// Which pickler's opcodes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// CPython's accelerated pickler at a protocol of 2 to 5.
    CPython(u8),
    /// The C++ pickler: protocol 2, containers memoised when complete, no batches, texts one object per value,
    /// eight-byte long integers.
    Jit,
}

/// A memoised object that can be pointed at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ref(u32);

/// A text that is one object wherever it stands, such as a dict key in a program's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol(usize);

/// Writes one pickle.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    layout: Layout,
    /// The frame in the making, or just a buffer where the protocol has no frames.
    buffer: Vec<u8>,
    written: u64,
    memo: u32,
    texts: Vec<(Box<str>, Option<Ref>)>,
    symbols: HashMap<Box<str>, Symbol, foldhash::fast::FixedState>,
    open: Vec<Open>,
}

impl<W: Write> Writer<W> {
    /// Begins a pickle.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W, layout: Layout) -> io::Result<Self> {
        let protocol = match layout {
            Layout::CPython(protocol) => protocol,
            Layout::Jit => 2,
        };
        out.write_all(&[0x80, protocol])?;
        Ok(Self {
            out,
            layout,
            buffer: Vec::with_capacity(FRAME_TARGET.saturating_mul(2)),
            written: 2,
            memo: 0,
            texts: Vec::new(),
            symbols: HashMap::default(),
            open: Vec::new(),
        })
    }

    /// Ends the pickle and gives back what it was written to, with the number of bytes.
    ///
    /// # Errors
    /// `out` cannot be written, or a container is still open.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        if !self.open.is_empty() {
            return Err(misuse("the pickle ends inside a container"));
        }
        self.buffer.push(STOP);
        self.end_frame()?;
        self.out.flush()?;
        Ok((self.out, self.written))
    }

    /// Writes `None`.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn none(&mut self) -> io::Result<()> {
        self.begin_value()?;
        self.buffer.push(b'N');
        self.end_value();
        Ok(())
    }

    /// Writes `true` or `false`.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn boolean(&mut self, value: bool) -> io::Result<()> {
        self.begin_value()?;
        self.buffer.push(if value { 0x88 } else { 0x89 });
        self.end_value();
        Ok(())
    }

    /// Writes a float.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn float(&mut self, value: f64) -> io::Result<()> {
        self.begin_value()?;
        self.buffer.push(b'G');
        self.buffer.extend_from_slice(&value.to_be_bytes());
        self.end_value();
        Ok(())
    }

    /// Writes a signed integer.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn signed(&mut self, value: i64) -> io::Result<()> {
        self.begin_value()?;
        encode::signed(&mut self.buffer, self.layout, value);
        self.end_value();
        Ok(())
    }

    /// Writes an unsigned integer. The C++ layout has 64 signed bits: what does not fit keeps its bit pattern.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn unsigned(&mut self, value: u64) -> io::Result<()> {
        self.begin_value()?;
        encode::unsigned(&mut self.buffer, self.layout, value);
        self.end_value();
        Ok(())
    }

    /// Writes a new tuple of two integers.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn pair(&mut self, first: u64, second: u64) -> io::Result<()> {
        self.begin_value()?;
        self.boundary()?;
        encode::unsigned(&mut self.buffer, self.layout, first);
        self.boundary()?;
        encode::unsigned(&mut self.buffer, self.layout, second);
        self.buffer.push(0x86);
        if self.layout != Layout::Jit {
            self.memoise()?;
        }
        self.end_value();
        Ok(())
    }

    /// Writes a text that is an object of its own, even if an equal one was written before.
    ///
    /// The C++ layout knows no such thing, and CPython keeps one object for the empty text and each Latin-1 character.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn text(&mut self, value: &str) -> io::Result<()> {
        let mut chars = value.chars();
        let lone = chars.next().is_none_or(|first| first <= '\u{ff}') && chars.next().is_none();
        if lone || self.layout == Layout::Jit {
            let symbol = self.intern(value);
            return self.symbol(symbol);
        }
        self.begin_value()?;
        self.put_text(value)?;
        self.memoise()?;
        self.end_value();
        Ok(())
    }

    /// Names a text that is one object wherever it stands.
    pub fn intern(&mut self, value: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(value) {
            return *symbol;
        }
        let symbol = Symbol(self.texts.len());
        self.texts.push((value.into(), None));
        self.symbols.insert(value.into(), symbol);
        symbol
    }

    /// Writes an interned text: in full the first time, then as a reference.
    ///
    /// # Errors
    /// `out` cannot be written, the container around is full, or the symbol is another writer's.
    pub fn symbol(&mut self, symbol: Symbol) -> io::Result<()> {
        let Some((text, memo)) = self.texts.get(symbol.0) else {
            return Err(misuse("a symbol of another pickle"));
        };
        if let Some(memo) = *memo {
            return self.reference(memo);
        }
        let text = text.clone();
        self.begin_value()?;
        self.put_text(&text)?;
        let memo = self.memoise()?;
        if let Some((_, unwritten)) = self.texts.get_mut(symbol.0) {
            *unwritten = Some(memo);
        }
        self.end_value();
        Ok(())
    }

    /// Writes an object that was written before.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn reference(&mut self, to: Ref) -> io::Result<()> {
        self.begin_value()?;
        encode::index(&mut self.buffer, to.0, b'h', b'j');
        self.end_value();
        Ok(())
    }

    /// Opens a list of `length` items.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn open_list(&mut self, length: u64) -> io::Result<()> {
        self.open_container(Kind::List, b']', length)
    }

    /// Opens a dict of `length` pairs; key and value come in turn.
    ///
    /// # Errors
    /// `out` cannot be written, or the container around is full.
    pub fn open_dict(&mut self, length: u64) -> io::Result<()> {
        self.open_container(Kind::Dict, b'}', length)
    }

    /// Closes the innermost container, which nothing else points at.
    ///
    /// # Errors
    /// `out` cannot be written, or items are missing.
    pub fn close(&mut self) -> io::Result<()> {
        self.close_container()?;
        self.end_value();
        Ok(())
    }

    /// Closes the innermost container and says how to point at it.
    ///
    /// # Errors
    /// `out` cannot be written, or items are missing.
    pub fn close_shared(&mut self) -> io::Result<Ref> {
        let memo = match self.close_container()? {
            Some(memo) => memo,
            None => self.memoise()?,
        };
        self.end_value();
        Ok(memo)
    }

    /// Gives the object on top of the reader's stack the next memo index.
    fn memoise(&mut self) -> io::Result<Ref> {
        let index = self.memo;
        self.memo = index.checked_add(1).ok_or_else(|| misuse("more objects than a memo has numbers for"))?;
        match self.layout {
            Layout::CPython(4..) => self.buffer.push(0x94),
            _ => encode::index(&mut self.buffer, index, b'q', b'r'),
        }
        Ok(Ref(index))
    }
}

fn misuse(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
