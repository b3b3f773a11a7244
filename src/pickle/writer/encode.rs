//! Integers and memo indexes as the shortest opcodes that the layout has for them.

use super::Layout;

/// A memo index behind its opcode: `short` with one byte, `long` with four.
pub(super) fn index(buffer: &mut Vec<u8>, index: u32, short: u8, long: u8) {
    if let Ok(index) = u8::try_from(index) {
        buffer.extend_from_slice(&[short, index]);
    } else {
        buffer.push(long);
        buffer.extend_from_slice(&index.to_le_bytes());
    }
}

/// BININT1, BININT2, BININT or LONG1.
pub(super) fn signed(buffer: &mut Vec<u8>, layout: Layout, value: i64) {
    if let Ok(value) = u8::try_from(value) {
        buffer.extend_from_slice(&[b'K', value]);
    } else if let Ok(value) = u16::try_from(value) {
        buffer.push(b'M');
        buffer.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        buffer.push(b'J');
        buffer.extend_from_slice(&value.to_le_bytes());
    } else {
        long(buffer, layout, &value.to_le_bytes());
    }
}

/// The same for 64 bits without a sign, which the C++ layout reads as signed ones.
pub(super) fn unsigned(buffer: &mut Vec<u8>, layout: Layout, value: u64) {
    if let Ok(value) = i64::try_from(value) {
        signed(buffer, layout, value);
    } else if layout == Layout::Jit {
        signed(buffer, layout, value.cast_signed());
    } else {
        long(buffer, layout, &i128::from(value).to_le_bytes());
    }
}

/// LONG1: as many bytes as the two's complement needs, or always eight.
fn long(buffer: &mut Vec<u8>, layout: Layout, little_endian: &[u8]) {
    let mut digits = little_endian;
    while let ([rest @ .., top], Layout::CPython(_)) = (digits, layout) {
        let Some(below) = rest.last() else { break };
        // The top byte says nothing if it only repeats the sign of the one below.
        if *top != if below & 0x80 == 0 { 0x00 } else { 0xff } {
            break;
        }
        digits = rest;
    }
    buffer.push(0x8a);
    buffer.push(u8::try_from(digits.len()).unwrap_or(u8::MAX));
    buffer.extend_from_slice(digits);
}
