//! A row or an index entry as SQLite keeps it: a header with the type of every value, then the values.
//!
//! The header begins with its own length. A type is a number: 0 NULL; 1 to 6 integers of 1, 2, 3, 4, 6 and 8 bytes; 7 a float;
//! 8 and 9 the integers 0 and 1, which take no bytes; 13 and all odd numbers above, text of (type - 13) / 2 bytes. Types
//! and lengths are varints: seven bits a byte, the high bit set where another byte follows, and a ninth byte with all
//! its eight bits.

/// A record in the making.
#[derive(Debug, Default)]
pub(super) struct Record {
    types: Vec<u8>,
    values: Vec<u8>,
}

/// How far a record has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    types: usize,
    values: usize,
}

impl Record {
    /// Takes all values out.
    pub(super) fn clear(&mut self) {
        self.types.clear();
        self.values.clear();
    }

    /// The place behind the values so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { types: self.types.len(), values: self.values.len() }
    }

    /// Takes out the values behind `mark`.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.types.truncate(mark.types);
        self.values.truncate(mark.values);
    }

    /// Appends a NULL.
    pub(super) fn null(&mut self) {
        self.types.push(0);
    }

    /// Appends an integer.
    pub(super) fn integer(&mut self, value: i64) {
        let (kind, length) = match value {
            0 => (8, 0),
            1 => (9, 0),
            -0x80..=0x7f => (1, 1),
            -0x8000..=0x7fff => (2, 2),
            -0x80_0000..=0x7f_ffff => (3, 3),
            -0x8000_0000..=0x7fff_ffff => (4, 4),
            -0x8000_0000_0000..=0x7fff_ffff_ffff => (5, 6),
            _ => (6, 8),
        };
        self.types.push(kind);
        self.values.extend_from_slice(value.to_be_bytes().get(8 - length..).unwrap_or_default());
    }

    /// Appends a float. What is no number is NULL in SQLite.
    pub(super) fn real(&mut self, value: f64) {
        if value.is_nan() {
            return self.null();
        }
        self.types.push(7);
        self.values.extend_from_slice(&value.to_be_bytes());
    }

    /// Appends a text.
    pub(super) fn text(&mut self, value: &str) {
        put_varint(&mut self.types, 13 + 2 * count(value.len()));
        self.values.extend_from_slice(value.as_bytes());
    }

    /// Bytes of the record.
    pub(super) fn len(&self) -> usize {
        self.header_len() + self.values.len()
    }

    /// Appends the record to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, count(self.header_len()));
        out.extend_from_slice(&self.types);
        out.extend_from_slice(&self.values);
    }

    /// Bytes of the header, with those that say how many there are.
    fn header_len(&self) -> usize {
        let types = self.types.len();
        // So many columns that it takes more than two bytes to say it, no table has.
        if types < 0x7f { types + 1 } else { types + 2 }
    }
}

/// Appends a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(low(value));
    } else {
        put_long_varint(out, value);
    }
}

fn put_long_varint(out: &mut Vec<u8>, value: u64) {
    if value >> 56 != 0 {
        out.extend((1..=8).rev().map(|group| low(value >> (7 * group + 1)) | 0x80));
        return out.push(low(value));
    }
    for group in (1..8).rev().filter(|group| value >> (7 * group) != 0) {
        out.push(low(value >> (7 * group)) | 0x80);
    }
    out.push(low(value) & 0x7f);
}

/// The lowest eight bits.
fn low(value: u64) -> u8 {
    let [.., byte] = value.to_be_bytes();
    byte
}

/// A length as the number that is written.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        out
    }

    /// Reads a varint as the format's description says.
    fn read(bytes: &[u8]) -> u64 {
        let mut value = 0;
        for (place, byte) in bytes.iter().enumerate() {
            if place == 8 {
                return (value << 8) | u64::from(*byte);
            }
            value = (value << 7) | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("no end in {bytes:?}");
    }

    #[test]
    fn varints_are_read_as_they_were_written() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(127), [127]);
        assert_eq!(varint(128), [0x81, 0]);
        assert_eq!(varint(u64::MAX), [0xff; 9]);
        for bit in 0..64 {
            let one = 1_u64 << bit;
            for value in [one - 1, one, one + 1, !one, u64::MAX >> bit] {
                let bytes = varint(value);
                assert_eq!(read(&bytes), value);
                let bits = 64 - value.leading_zeros();
                let length = if bits > 56 { 9 } else { bits.div_ceil(7).max(1) };
                assert_eq!(bytes.len(), usize::try_from(length).unwrap(), "{value}");
            }
        }
    }

    #[test]
    fn integers_take_as_few_bytes_as_they_can() {
        let cases: [(i64, u8, usize); 16] = [
            (0, 8, 0),
            (1, 9, 0),
            (-1, 1, 1),
            (127, 1, 1),
            (128, 2, 2),
            (-128, 1, 1),
            (-129, 2, 2),
            (32_768, 3, 3),
            (-8_388_608, 3, 3),
            (8_388_608, 4, 4),
            (i64::from(i32::MIN), 4, 4),
            (i64::from(i32::MAX) + 1, 5, 6),
            ((1 << 47) - 1, 5, 6),
            (1 << 47, 6, 8),
            (i64::MIN, 6, 8),
            (i64::MAX, 6, 8),
        ];
        for (value, kind, length) in cases {
            let mut record = Record::default();
            record.integer(value);
            let mut out = Vec::new();
            record.write(&mut out);
            assert_eq!(out.len(), record.len());
            assert_eq!((out[0], out[1], out.len()), (2, kind, 2 + length), "{value}");
            assert_eq!(out[2..], value.to_be_bytes()[8 - length..], "{value}");
        }
    }
}
