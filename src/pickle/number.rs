//! Integers and floats as pickle writes them.

use super::error::PickleErrorKind;
use super::value::Value;

/// An integer if it fits 64 bits, with or without sign.
fn narrow(value: i128) -> Result<Value, PickleErrorKind> {
    if let Ok(value) = i64::try_from(value) {
        return Ok(Value::Int(value));
    }
    u64::try_from(value).map(Value::Wide).map_err(|_| PickleErrorKind::IntegerTooLarge)
}

/// LONG1 and LONG4: little-endian two's complement of any length; no bytes are 0.
pub(super) fn from_little_endian(bytes: &[u8]) -> Result<Value, PickleErrorKind> {
    let sign = if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 };
    let (low, rest) = bytes.split_at(bytes.len().min(9));
    if rest.iter().any(|byte| *byte != sign) {
        return Err(PickleErrorKind::IntegerTooLarge);
    }
    let mut wide = [sign; 16];
    for (to, from) in wide.iter_mut().zip(low) {
        *to = *from;
    }
    narrow(i128::from_le_bytes(wide))
}

fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument.get(..argument.len().min(40)).unwrap_or_default()).into_owned()
}

fn malformed(opcode: &'static str, argument: &[u8]) -> PickleErrorKind {
    PickleErrorKind::BadText { opcode, argument: shown(argument) }
}

/// INT: a decimal line, or `00` and `01` for the bools of protocol 0.
pub(super) fn from_int_line(line: &[u8]) -> Result<Value, PickleErrorKind> {
    match line.trim_ascii() {
        b"00" => Ok(Value::Bool(false)),
        b"01" => Ok(Value::Bool(true)),
        digits => from_digits("INT", digits),
    }
}

/// LONG: a decimal line with an `L` behind it.
pub(super) fn from_long_line(line: &[u8]) -> Result<Value, PickleErrorKind> {
    let line = line.trim_ascii();
    from_digits("LONG", line.strip_suffix(b"L").unwrap_or(line))
}

/// A decimal integer.
pub(super) fn from_digits(opcode: &'static str, digits: &[u8]) -> Result<Value, PickleErrorKind> {
    let unsigned = digits.strip_prefix(b"-").unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.iter().all(u8::is_ascii_digit) {
        return Err(malformed(opcode, digits));
    }
    let text = std::str::from_utf8(digits).map_err(|_| malformed(opcode, digits))?;
    narrow(text.parse().map_err(|_| PickleErrorKind::IntegerTooLarge)?)
}

/// FLOAT: `repr` of a Python float on a line.
pub(super) fn from_float_line(line: &[u8]) -> Result<Value, PickleErrorKind> {
    let text = std::str::from_utf8(line).map_err(|_| malformed("FLOAT", line))?;
    text.trim().parse().map(Value::Float).map_err(|_| malformed("FLOAT", line))
}

/// A number on a line that stands for a memo index.
pub(super) fn from_index_line(opcode: &'static str, line: &[u8]) -> Result<u64, PickleErrorKind> {
    let text = std::str::from_utf8(line.trim_ascii()).map_err(|_| malformed(opcode, line))?;
    text.parse().map_err(|_| malformed(opcode, line))
}
