//! Strings of JSON, with their escapes.

use std::io::Read;

use super::{JsonMachine, malformed};
use crate::pickle::error::PickleErrorKind;

impl<R: Read> JsonMachine<R> {
    /// Reads a string behind its opening quote, up to and with its closing one.
    pub(super) fn string(&mut self) -> Result<u32, PickleErrorKind> {
        let mut length = 0;
        loop {
            let fresh = self.reader.window().get(length..).unwrap_or_default();
            if let Some(found) = fresh.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
                let stop = fresh.get(found).copied();
                length += found;
                return match stop {
                    Some(b'"') => {
                        let id = self.state.intern(self.reader.take(length, "a JSON string")?)?;
                        self.reader.consume(1);
                        Ok(id)
                    }
                    Some(b'\\') => self.string_with_escapes(length),
                    _ => Err(malformed("a control character in a string")),
                };
            }
            length += fresh.len();
            self.check_text(length)?;
            if !self.reader.fill(length + 1)? {
                return Err(PickleErrorKind::Truncated { inside: "a JSON string" });
            }
        }
    }

    fn check_text(&self, length: usize) -> Result<(), PickleErrorKind> {
        let limit = self.state.limits.text_bytes;
        if u64::try_from(length).is_ok_and(|length| length <= limit) {
            return Ok(());
        }
        Err(PickleErrorKind::LimitExceeded { of: "bytes in one string", limit })
    }

    /// Like [`string`](Self::string), from the first escape on, which stands `length` bytes ahead.
    #[cold]
    fn string_with_escapes(&mut self, length: usize) -> Result<u32, PickleErrorKind> {
        const INSIDE: &str = "a JSON string";
        let mut text = std::mem::take(&mut self.unescaped);
        text.clear();
        text.extend_from_slice(self.reader.take(length, INSIDE)?);
        loop {
            let [byte] = self.reader.array(INSIDE)?;
            match byte {
                b'"' => break,
                b'\\' => self.escape(&mut text)?,
                0..=0x1f => return Err(malformed("a control character in a string")),
                other => text.push(other),
            }
            self.check_text(text.len())?;
        }
        let id = self.state.intern(&text);
        self.unescaped = text;
        id
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), PickleErrorKind> {
        let [code] = self.reader.array("a JSON string")?;
        let plain = match code {
            b'"' | b'\\' | b'/' => code,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let unit = self.four_digits()?;
                let character = self.paired(unit)?;
                push_character(text, character);
                return Ok(());
            }
            _ => return Err(malformed("an escape that JSON does not have")),
        };
        text.push(plain);
        Ok(())
    }

    fn four_digits(&mut self) -> Result<u32, PickleErrorKind> {
        let digits: [u8; 4] = self.reader.array("a JSON string")?;
        let valid = digits.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(&digits).ok().filter(|_| valid);
        text.and_then(|text| u32::from_str_radix(text, 16).ok())
            .ok_or_else(|| malformed("an escape without four hexadecimal digits"))
    }

    /// A high surrogate and the low one behind it are one character; alone, either stays what it is.
    fn paired(&mut self, unit: u32) -> Result<u32, PickleErrorKind> {
        if !(0xd800..0xdc00).contains(&unit) || !self.reader.fill(6)? {
            return Ok(unit);
        }
        let Some([b'\\', b'u', digits @ ..]) = self.reader.window().get(..6) else { return Ok(unit) };
        let low = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match low.filter(|low| (0xdc00..0xe000).contains(low)) {
            Some(low) => {
                self.reader.consume(6);
                Ok(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
            }
            None => Ok(unit),
        }
    }
}

/// Appends a character as CPython's `surrogatepass` encodes it.
fn push_character(text: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        let mut bytes = [0; 4];
        text.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
        return;
    }
    let low = |bits: u32| u8::try_from(bits & 0x3f).unwrap_or_default() | 0x80;
    text.extend([0xed, low(code >> 6), low(code)]);
}
