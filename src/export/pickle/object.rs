//! The objects of a snapshot's pickle: dicts with fixed keys, call stacks and frames that are written once, and JSON.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::Value;

use super::super::stacks::Stacks;
use crate::pickle::writer::{Layout, Ref, Writer};

/// A value of a dict with fixed keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field<'a> {
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
    Pair(u64, u64),
    /// A text that many dicts have.
    Shared(&'a str),
    /// `call_stacks.id`; the empty list where there is none.
    Stack(Option<i64>),
}

/// Writes objects and knows which were written.
pub(super) struct Objects<'a> {
    writer: Writer<&'a mut dyn Write>,
    stacks: &'a Stacks,
    frames: Vec<Option<Ref>>,
    written: HashMap<Option<i64>, Ref, foldhash::fast::FixedState>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(out: &'a mut dyn Write, layout: Layout, stacks: &'a Stacks) -> io::Result<Self> {
        Ok(Self {
            writer: Writer::new(out, layout)?,
            stacks,
            frames: vec![None; stacks.frames().len()],
            written: HashMap::default(),
        })
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish().map(|_| ())
    }

    pub(super) fn open_list(&mut self, length: u64) -> io::Result<()> {
        self.writer.open_list(length)
    }

    pub(super) fn open_dict(&mut self, length: u64) -> io::Result<()> {
        self.writer.open_dict(length)
    }

    pub(super) fn close(&mut self) -> io::Result<()> {
        self.writer.close()
    }

    /// A text that is one object wherever it stands.
    pub(super) fn key(&mut self, text: &str) -> io::Result<()> {
        let symbol = self.writer.intern(text);
        self.writer.symbol(symbol)
    }

    pub(super) fn dict(&mut self, fields: &[(&'static str, Field<'_>)]) -> io::Result<()> {
        self.open_dict(length(fields.len()))?;
        self.fields(fields)?;
        self.close()
    }

    pub(super) fn fields(&mut self, fields: &[(&'static str, Field<'_>)]) -> io::Result<()> {
        for (key, field) in fields {
            self.key(key)?;
            match *field {
                Field::Signed(value) => self.writer.signed(value)?,
                Field::Unsigned(value) => self.writer.unsigned(value)?,
                Field::Bool(value) => self.writer.boolean(value)?,
                Field::Pair(first, second) => self.writer.pair(first, second)?,
                Field::Shared(text) => self.key(text)?,
                Field::Stack(id) => self.stack(id)?,
            }
        }
        Ok(())
    }

    fn stack(&mut self, id: Option<i64>) -> io::Result<()> {
        if let Some(written) = self.written.get(&id) {
            return self.writer.reference(*written);
        }
        let stacks = self.stacks;
        let frames = stacks.of(id);
        self.open_list(length(frames.len()))?;
        for number in frames {
            self.frame(*number)?;
        }
        let written = self.writer.close_shared()?;
        self.written.insert(id, written);
        Ok(())
    }

    fn frame(&mut self, number: usize) -> io::Result<()> {
        if let Some(Some(written)) = self.frames.get(number) {
            return self.writer.reference(*written);
        }
        let stacks = self.stacks;
        let Some(frame) = stacks.frame(number) else { return Ok(()) };
        self.open_dict(length(frame.len()))?;
        for (key, value) in frame {
            self.key(key)?;
            self.json(value)?;
        }
        let written = self.writer.close_shared()?;
        if let Some(place) = self.frames.get_mut(number) {
            *place = Some(written);
        }
        Ok(())
    }

    /// Anything that JSON can say.
    pub(super) fn json(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Null => self.writer.none(),
            Value::Bool(value) => self.writer.boolean(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), ..) => self.writer.signed(value),
                (None, Some(value), _) => self.writer.unsigned(value),
                (None, None, value) => self.writer.float(value.unwrap_or(f64::NAN)),
            },
            Value::String(text) => self.key(text),
            Value::Array(items) => {
                self.open_list(length(items.len()))?;
                for item in items {
                    self.json(item)?;
                }
                self.close()
            }
            Value::Object(pairs) => {
                self.open_dict(length(pairs.len()))?;
                for (key, value) in pairs {
                    self.key(key)?;
                    self.json(value)?;
                }
                self.close()
            }
        }
    }
}

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}
