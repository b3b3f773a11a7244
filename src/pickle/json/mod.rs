//! JSON drives the same stack as a pickle does: `{` is `EMPTY_DICT` `MARK`, `}` is `SETITEMS`, `[` is `EMPTY_LIST` `MARK`,
//! `]` is `APPENDS`. So a sink sees the same containers close in the same order, and rows leave as their object closes.
//!
//! Read the way Python's `json` writes: `NaN` and `Infinity` are floats, a lone surrogate is kept as the pickle keeps it.

mod text;

use std::io::Read;

use super::Limits;
use super::containers::{append, close_open, set_items};
use super::error::{PickleError, PickleErrorKind};
use super::machine::{End, Sink, Stop};
use super::number;
use super::reader::Reader;
use super::state::State;
use super::value::Value;

/// Characters in one number or word; Python writes no float of more than 25.
const MOST_DIGITS: usize = 1024;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A value.
    Value,
    /// A value, or the end of the list that has just begun.
    Item,
    /// A key, or the end of the dict that has just begun.
    FirstKey,
    /// A comma, or the end of the container.
    Comma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    List,
    Dict,
}

/// Reads one JSON document.
#[derive(Debug)]
pub struct JsonMachine<R> {
    reader: Reader<R>,
    /// Everything but the input.
    pub state: State,
    open: Vec<Container>,
    unescaped: Vec<u8>,
}

fn malformed(problem: &'static str) -> PickleErrorKind {
    PickleErrorKind::MalformedJson(problem)
}

impl<R: Read> JsonMachine<R> {
    /// A machine at the beginning of `input`, whose length may be known.
    pub fn new(input: R, length: Option<u64>, limits: Limits) -> Self {
        Self {
            reader: Reader::new(input, length),
            state: State::new(limits),
            open: Vec::new(),
            unescaped: Vec::new(),
        }
    }

    /// Reads the document and on to the end of the input.
    ///
    /// # Errors
    /// [`PickleError`] with the offset of what is wrong, or the sink's own.
    pub fn run<S: Sink>(&mut self, sink: &mut S) -> Result<End, S::Error> {
        match self.document(sink) {
            Ok(end) => Ok(end),
            Err(Stop::Pickle(kind)) => Err(PickleError { offset: self.state.offset, kind }.into()),
            Err(Stop::Sink(error)) => Err(error),
        }
    }

    fn document<S: Sink>(&mut self, sink: &mut S) -> Result<End, Stop<S::Error>> {
        self.reader.fill(3)?;
        if self.reader.window().starts_with(b"\xef\xbb\xbf") {
            self.reader.consume(3);
        }
        let mut next = Next::Value;
        loop {
            next = self.step(sink, next)?;
            if next == Next::Comma && self.open.is_empty() {
                break;
            }
        }
        close_open(&mut self.state, sink, 0)?;
        let offset = self.reader.offset();
        self.skip_space()?;
        let trailing = self.reader.drain()?;
        self.state.take_from(0);
        Ok(End { root: self.state.taken.first().copied().unwrap_or(Value::None), offset, trailing })
    }

    /// Reads one token and says what may come behind it.
    fn step<S: Sink>(&mut self, sink: &mut S, next: Next) -> Result<Next, Stop<S::Error>> {
        self.skip_space()?;
        self.state.offset = self.reader.offset();
        let Some(byte) = self.peek()? else {
            return Err(PickleErrorKind::Truncated { inside: "the JSON" }.into());
        };
        match (next, byte) {
            (Next::Comma, b',') => {
                self.reader.consume(1);
                match self.open.last() {
                    Some(Container::Dict) => Ok(self.key()?),
                    _ => Ok(Next::Value),
                }
            }
            (Next::Comma | Next::Item, b']') if self.open.last() == Some(&Container::List) => {
                self.reader.consume(1);
                self.open.pop();
                let mark = self.state.unmark("a JSON list")?;
                close_open(&mut self.state, sink, mark + 1)?;
                append(&mut self.state, sink, mark.saturating_sub(1), mark, "APPENDS")?;
                Ok(Next::Comma)
            }
            (Next::Comma | Next::FirstKey, b'}') if self.open.last() == Some(&Container::Dict) => {
                self.reader.consume(1);
                self.open.pop();
                let mark = self.state.unmark("a JSON object")?;
                close_open(&mut self.state, sink, mark + 1)?;
                set_items(&mut self.state, sink, mark.saturating_sub(1), mark)?;
                Ok(Next::Comma)
            }
            (Next::Comma, _) => Err(malformed("a comma or the end of a list or object is missing").into()),
            (Next::FirstKey, _) => Ok(self.key()?),
            (Next::Value | Next::Item, _) => Ok(self.value(byte)?),
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, PickleErrorKind> {
        if self.reader.window().is_empty() && !self.reader.fill(1)? {
            return Ok(None);
        }
        Ok(self.reader.window().first().copied())
    }

    fn skip_space(&mut self) -> Result<(), PickleErrorKind> {
        while matches!(self.peek()?, Some(b' ' | b'\n' | b'\r' | b'\t')) {
            let is_space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            let count = self.reader.window().iter().take_while(is_space).count();
            self.reader.consume(count);
        }
        Ok(())
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<Next, PickleErrorKind> {
        self.skip_space()?;
        self.state.offset = self.reader.offset();
        match self.peek()? {
            Some(b'"') => self.reader.consume(1),
            Some(_) => return Err(malformed("a key in quotes is missing")),
            None => return Err(PickleErrorKind::Truncated { inside: "a JSON object" }),
        }
        let key = self.string()?;
        self.state.push(Value::Text(key))?;
        self.skip_space()?;
        match self.peek()? {
            Some(b':') => self.reader.consume(1),
            Some(_) => return Err(malformed("the colon behind a key is missing")),
            None => return Err(PickleErrorKind::Truncated { inside: "a JSON object" }),
        }
        Ok(Next::Value)
    }

    fn value(&mut self, byte: u8) -> Result<Next, PickleErrorKind> {
        match byte {
            b'{' => self.begin(Container::Dict),
            b'[' => self.begin(Container::List),
            b'"' => {
                self.reader.consume(1);
                let id = self.string()?;
                self.state.push(Value::Text(id))?;
                Ok(Next::Comma)
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let value = self.word()?;
                self.state.push(value)?;
                Ok(Next::Comma)
            }
            _ => Err(malformed("a value is missing")),
        }
    }

    fn begin(&mut self, container: Container) -> Result<Next, PickleErrorKind> {
        self.reader.consume(1);
        let limit = u64::from(self.state.limits.depth);
        if u64::try_from(self.open.len()).is_ok_and(|depth| depth >= limit) {
            return Err(PickleErrorKind::LimitExceeded { of: "levels of nesting", limit });
        }
        self.open.push(container);
        let (value, next) = match container {
            Container::List => (Value::EmptyList, Next::Item),
            Container::Dict => (Value::EmptyDict { floor: self.state.tree.floor() }, Next::FirstKey),
        };
        self.state.push(value)?;
        self.state.mark()?;
        Ok(next)
    }

    /// Reads a number or a word such as `true`.
    fn word(&mut self) -> Result<Value, PickleErrorKind> {
        let belongs = |byte: &u8| matches!(byte, b'+' | b'-' | b'.') || byte.is_ascii_alphanumeric();
        let mut length = 0;
        loop {
            let fresh = self.reader.window().get(length..).unwrap_or_default();
            match fresh.iter().position(|byte| !belongs(byte)) {
                Some(more) => {
                    length += more;
                    break;
                }
                None => length += fresh.len(),
            }
            if length > MOST_DIGITS {
                return Err(malformed("a number or word without end"));
            }
            if !self.reader.fill(length + 1)? {
                // A number at the very end may have had more digits.
                return Err(PickleErrorKind::Truncated { inside: "a JSON number or word" });
            }
        }
        let word = self.reader.take(length, "a JSON number or word")?;
        match word {
            b"null" => Ok(Value::None),
            b"true" => Ok(Value::Bool(true)),
            b"false" => Ok(Value::Bool(false)),
            b"NaN" => Ok(Value::Float(f64::NAN)),
            b"Infinity" => Ok(Value::Float(f64::INFINITY)),
            b"-Infinity" => Ok(Value::Float(f64::NEG_INFINITY)),
            number => read_number(number),
        }
    }
}

fn read_number(number: &[u8]) -> Result<Value, PickleErrorKind> {
    let unsigned = number.strip_prefix(b"-").unwrap_or(number);
    match unsigned {
        [b'0', b'0'..=b'9', ..] => Err(malformed("a number with a leading zero")),
        [b'0'..=b'9', ..] if unsigned.iter().all(u8::is_ascii_digit) => {
            number::from_digits("a JSON number", number)
        }
        [b'0'..=b'9', ..] => {
            let text = std::str::from_utf8(number).unwrap_or_default();
            text.parse().map(Value::Float).map_err(|_| malformed("neither a number nor true, false or null"))
        }
        _ => Err(malformed("neither a number nor true, false or null")),
    }
}

#[cfg(test)]
mod tests;
