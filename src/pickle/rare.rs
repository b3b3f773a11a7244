//! Opcodes that snapshots do not have, or have once: protocol 0's lines of text, and everything that is refused.

use std::io::Read;

use super::containers::{append, check_even, close_open, duplicate, get, open_dict};
use super::error::PickleErrorKind;
use super::machine::{Machine, Sink, Stop};
use super::value::Value;
use super::{number, opcode as op, text};

fn bad_text(opcode: &'static str, line: &[u8]) -> PickleErrorKind {
    let shown = line.get(..line.len().min(40)).unwrap_or_default();
    PickleErrorKind::BadText { opcode, argument: String::from_utf8_lossy(shown).into_owned() }
}

impl<R: Read> Machine<R> {
    /// Opcodes that snapshots do not have, or have once.
    pub(super) fn rare<S: Sink>(&mut self, sink: &mut S, opcode: u8) -> Result<(), Stop<S::Error>> {
        let state = &mut self.state;
        let reader = &mut self.reader;
        match opcode {
            op::PROTO => {
                let [protocol] = reader.array("PROTO")?;
                if protocol > 5 {
                    return Err(PickleErrorKind::Protocol(protocol).into());
                }
                state.named_protocol = Some(protocol);
            }
            op::BINUNICODE8 => {
                let length = u64::from_le_bytes(reader.array("BINUNICODE8")?);
                self.string(length, "BINUNICODE8")?;
            }
            op::BINSTRING => {
                let length = u64::from(u32::from_le_bytes(reader.array("BINSTRING")?));
                self.string(length, "BINSTRING")?;
            }
            op::SHORT_BINSTRING => {
                let length = u64::from(u8::from_le_bytes(reader.array("SHORT_BINSTRING")?));
                self.string(length, "SHORT_BINSTRING")?;
            }
            op::BINBYTES | op::SHORT_BINBYTES | op::BINBYTES8 => {
                let length = match opcode {
                    op::BINBYTES => u64::from(u32::from_le_bytes(reader.array("BINBYTES")?)),
                    op::SHORT_BINBYTES => u64::from(u8::from_le_bytes(reader.array("SHORT_BINBYTES")?)),
                    _ => u64::from_le_bytes(reader.array("BINBYTES8")?),
                };
                reader.skip(length, "bytes")?;
                state.push(Value::Opaque)?;
            }
            op::LONG4 => {
                let length = u32::from_le_bytes(reader.array("LONG4")?);
                let length = u8::try_from(length).map_err(|_| PickleErrorKind::IntegerTooLarge)?;
                let value = number::from_little_endian(reader.take(usize::from(length), "LONG4")?)?;
                state.push(value)?;
            }
            op::EMPTY_TUPLE | op::TUPLE1 | op::TUPLE3 | op::TUPLE => {
                let from = match opcode {
                    op::EMPTY_TUPLE => state.stack.len(),
                    op::TUPLE1 => state.below_top(0, "TUPLE1")?,
                    op::TUPLE3 => state.below_top(2, "TUPLE3")?,
                    _ => state.unmark("TUPLE")? + 1,
                };
                close_open(state, sink, from)?;
                state.tuple(from)?;
                if opcode == op::TUPLE {
                    // The tuple stands above its mark, which is gone from `marks`.
                    let at = from - 1;
                    state.stack.swap_remove(at);
                }
            }
            op::POP => state.pop()?,
            op::POP_MARK => {
                let mark = state.unmark("POP_MARK")?;
                state.take_from(mark);
            }
            op::DUP => duplicate(state, sink)?,
            op::LIST => {
                let mark = state.unmark("LIST")?;
                state.replace(mark, Value::EmptyList);
                close_open(state, sink, mark + 1)?;
                append(state, sink, mark, mark + 1, "LIST")?;
            }
            op::DICT => {
                let mark = state.unmark("DICT")?;
                close_open(state, sink, mark + 1)?;
                state.take_from(mark + 1);
                state.stack.truncate(mark);
                check_even(&state.taken, "DICT")?;
                open_dict(state)?;
            }
            _ => self.protocol_zero(sink, opcode)?,
        }
        Ok(())
    }

    /// Opcodes with a line of text as argument; then everything that is refused.
    fn protocol_zero<S: Sink>(&mut self, sink: &mut S, opcode: u8) -> Result<(), Stop<S::Error>> {
        let limit = usize::try_from(self.state.limits.text_bytes).unwrap_or(usize::MAX);
        let state = &mut self.state;
        let reader = &mut self.reader;
        match opcode {
            op::INT => {
                let value = number::from_int_line(reader.line(limit, "INT")?)?;
                state.push(value)?;
            }
            op::LONG => {
                let value = number::from_long_line(reader.line(limit, "LONG")?)?;
                state.push(value)?;
            }
            op::FLOAT => {
                let value = number::from_float_line(reader.line(limit, "FLOAT")?)?;
                state.push(value)?;
            }
            op::UNICODE => {
                let line = reader.line(limit, "UNICODE")?;
                let text = text::from_raw_unicode_escape(line).ok_or_else(|| bad_text("UNICODE", line))?;
                let id = state.intern(text.as_bytes())?;
                state.push(Value::Text(id))?;
            }
            op::STRING => {
                let line = reader.line(limit, "STRING")?;
                let bytes = text::from_quoted(line).ok_or_else(|| bad_text("STRING", line))?;
                let id = state.intern(&bytes)?;
                state.push(Value::Text(id))?;
            }
            op::GET => {
                let index = number::from_index_line("GET", reader.line(limit, "GET")?)?;
                get(state, sink, index)?;
            }
            op::PUT => {
                let index = number::from_index_line("PUT", reader.line(limit, "PUT")?)?;
                state.put(index, "PUT")?;
            }
            _ => return Err(self.refuse(opcode).into()),
        }
        Ok(())
    }

    /// Says what an opcode would have done that this machine does not do.
    fn refuse(&mut self, opcode: u8) -> PickleErrorKind {
        let Some(name) = op::name(opcode) else { return PickleErrorKind::UnknownOpcode(opcode) };
        let what = match opcode {
            op::GLOBAL | op::INST => self.global_name(name),
            op::STACK_GLOBAL => {
                let mut names = self.state.stack.iter().rev().map_while(|slot| match slot.value {
                    Value::Text(id) => Some(self.state.text(id)),
                    _ => None,
                });
                let name = names.next();
                names.next().zip(name).map(|(module, name)| format!("{module}.{name}"))
            }
            op::NEXT_BUFFER | op::READONLY_BUFFER | op::BYTEARRAY8 => {
                Some("no memory snapshot holds buffers".to_owned())
            }
            op::EMPTY_SET | op::ADDITEMS | op::FROZENSET => Some("no memory snapshot holds sets".to_owned()),
            _ => None,
        };
        PickleErrorKind::Refused { opcode: name, what }
    }

    /// Module and name of GLOBAL and INST, if they look like names.
    fn global_name(&mut self, opcode: &'static str) -> Option<String> {
        let mut parts = Vec::new();
        for _ in 0..2 {
            let line = self.reader.line(256, opcode).ok()?;
            let is_name =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'<' | b'>');
            if line.is_empty() || !line.iter().all(is_name) {
                return None;
            }
            parts.push(String::from_utf8_lossy(line).into_owned());
        }
        Some(parts.join("."))
    }
}
