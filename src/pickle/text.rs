//! Strings as pickle writes them, made into valid UTF-8 without loss.
//!
//! CPython writes lone surrogates, which odd file names contain, as if they were characters; that is no UTF-8. They become
//! the text Python's `backslashreplace` shows (`\udcff`), and so does any other byte that does not belong.

use std::fmt::Write as _;

/// The text with every odd byte escaped; `None` if there is none.
pub(super) fn escaped(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(_) if text.is_empty() && rest.len() == bytes.len() => return None,
            Ok(valid) => {
                text.push_str(valid);
                return Some(text);
            }
            Err(error) => {
                let (valid, odd) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                rest = escape_one(odd, &mut text);
            }
        }
    }
}

/// Escapes a surrogate (three bytes) or a single byte, and returns what is behind it.
fn escape_one<'a>(odd: &'a [u8], text: &mut String) -> &'a [u8] {
    if let [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, rest @ ..] = odd {
        let code = 0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
        let _infallible = write!(text, "\\u{code:04x}");
        return rest;
    }
    match odd {
        [byte, rest @ ..] => {
            let _infallible = write!(text, "\\x{byte:02x}");
            rest
        }
        [] => odd,
    }
}

fn push_code(text: &mut String, code: u32) {
    match char::from_u32(code) {
        Some(character) => text.push(character),
        None => {
            let _infallible = write!(text, "\\u{code:04x}");
        }
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

/// UNICODE of protocol 0: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(super) fn from_raw_unicode_escape(line: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let [first, behind @ ..] = rest {
        let digits = match rest {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            _ => 0,
        };
        if digits == 0 {
            text.push(char::from(*first));
            rest = behind;
        } else {
            let code = hex(rest.get(2..2 + digits)?)?;
            if code > 0x10_ffff {
                return None;
            }
            push_code(&mut text, code);
            rest = rest.get(2 + digits..)?;
        }
    }
    Some(text)
}

/// STRING of protocol 0: `repr` of a Python 2 string, quotes included.
pub(super) fn from_quoted(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    let inner =
        [b'\'', b'"'].iter().find_map(|quote| line.strip_prefix(&[*quote])?.strip_suffix(&[*quote]))?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let [code, behind @ ..] = rest else { return None };
        rest = behind;
        match code {
            b'\\' | b'\'' | b'"' => bytes.push(*code),
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            b'x' => {
                bytes.push(u8::try_from(hex(rest.get(..2)?)?).ok()?);
                rest = rest.get(2..)?;
            }
            other => bytes.extend([b'\\', *other]),
        }
    }
    Some(bytes)
}
