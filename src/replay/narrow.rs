//! Integers in as few bytes as they need. What is spooled is written and read once more, and most columns are sizes, places
//! or numbers of rows.
//!
//! A value is stored as what it is above the lowest that there may be, without the low bits that all of them lack: addresses
//! and many sizes are multiples of 512. Of a column with one value no bytes are left.

use std::ops::Range;

use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;

/// A column of integers.
#[derive(Debug, Clone)]
pub(super) struct Narrow {
    form: Form,
    buffer: Buffer,
}

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    length: usize,
    lowest: i64,
    shift: u32,
    width: Width,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    None,
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl Form {
    /// Bytes of the column.
    pub(super) fn bytes(self) -> usize {
        self.length.saturating_mul(self.width.bytes())
    }
}

impl Narrow {
    /// Stores `values`.
    pub(super) fn of(values: impl Iterator<Item = i64> + Clone) -> Self {
        let first = values.clone().next().unwrap_or_default();
        if values.clone().all(|value| value == first) {
            return Self::same(first, values.count());
        }
        // Bits of how far values lie above and below the first. Of these operations the processor does several at a time; of
        // comparisons it does not.
        let (mut length, mut unlike, mut above, mut below, mut signs) = (0, 0, 0, 0, 0);
        for value in values.clone() {
            length += 1;
            let difference = value.wrapping_sub(first);
            let sign = difference >> 63;
            unlike |= difference;
            above |= difference & !sign;
            below |= !difference & sign;
            signs |= sign;
        }
        let (above, below) = (above.cast_unsigned(), below.cast_unsigned());
        let span = if signs == 0 { 0 } else { 1_u64 << (u64::BITS - below.leading_zeros()) };
        let lowest = first.wrapping_sub(span.cast_signed());
        // Low bits that are the same in all of them are those of the first.
        let shift = unlike.trailing_zeros();
        let stored = values.map(|value| value.wrapping_sub(lowest).cast_unsigned() >> shift);
        let (width, buffer) = match u64::BITS - (above.wrapping_add(span) >> shift).leading_zeros() {
            ..=8 => (Width::One, low_bytes(stored, |[a, ..]| a)),
            9..=16 => (Width::Two, low_bytes(stored, |[a, b, ..]| u16::from_le_bytes([a, b]))),
            17..=32 => (Width::Four, low_bytes(stored, |[a, b, c, d, ..]| u32::from_le_bytes([a, b, c, d]))),
            _ => (Width::Eight, low_bytes(stored, u64::from_le_bytes)),
        };
        Self { form: Form { length, lowest, shift, width }, buffer }
    }

    /// Stores small numbers as they are.
    pub(super) fn bytes(values: Vec<u8>) -> Self {
        let form = Form { length: values.len(), lowest: 0, shift: 0, width: Width::One };
        Self { form, buffer: Buffer::from_vec(values) }
    }

    /// Stores one value so many times.
    pub(super) fn same(value: i64, length: usize) -> Self {
        let form = Form { length, lowest: value, shift: 0, width: Width::None };
        Self { form, buffer: Buffer::from_vec(Vec::<u8>::new()) }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.form.length
    }

    /// A part of the column, without a copy.
    pub(super) fn slice(&self, at: &Range<usize>) -> Self {
        let end = at.end.min(self.form.length);
        let start = at.start.min(end);
        let form = Form { length: end - start, ..self.form };
        let buffer = self.buffer.slice_with_length(start.saturating_mul(form.width.bytes()), form.bytes());
        Self { form, buffer }
    }

    /// A column whose bytes have been away.
    pub(super) fn read(form: Form, buffer: Buffer) -> Self {
        Self { form, buffer }
    }

    /// How it is stored.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// What is stored.
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The values, each as `make` makes it.
    pub(super) fn values<T>(&self, make: impl Fn(i64) -> T) -> Vec<T>
    where
        T: Copy,
    {
        let Form { length, lowest, shift, width } = self.form;
        let make = |above: u64| make((above << shift).cast_signed().wrapping_add(lowest));
        match width {
            Width::None => vec![make(0); length],
            Width::One => self.stored::<u8>().iter().map(|value| make(u64::from(*value))).collect(),
            Width::Two => self.stored::<u16>().iter().map(|value| make(u64::from(*value))).collect(),
            Width::Four => self.stored::<u32>().iter().map(|value| make(u64::from(*value))).collect(),
            Width::Eight => self.stored::<u64>().iter().map(|value| make(*value)).collect(),
        }
    }

    /// The values as they are.
    pub(super) fn integers(&self) -> ScalarBuffer<i64> {
        self.values(|value| value).into()
    }

    fn stored<T: ArrowNativeType>(&self) -> ScalarBuffer<T> {
        self.buffer.clone().into()
    }
}

/// A value that was of this type before it was stored.
pub(super) fn low<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}

/// What is made of the bytes of each value, the lowest first.
fn low_bytes<T: ArrowNativeType>(values: impl Iterator<Item = u64>, low: impl Fn([u8; 8]) -> T) -> Buffer {
    Buffer::from_vec(values.map(|value| low(value.to_le_bytes())).collect::<Vec<T>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_what_went_in_at_every_width() {
        for (values, bytes) in [
            (vec![], 0),
            (vec![-7; 5], 0),
            (vec![3, 258, 3], 3),
            (vec![-1, 65_534, 0], 6),
            (vec![0, 1 << 31, 5], 12),
            (vec![0, 1 << 40, 5], 24),
            (vec![i64::MIN, i64::MAX, 0], 24),
            (vec![100, 0, 355], 6),
            (vec![100, 99, 227], 3),
            (vec![0, -128, 64], 3),
            (vec![i64::MAX, i64::MIN, i64::MAX], 3),
            (vec![1 << 20, 0, 1 << 19], 3),
            // 32 bits above the nine that all lack.
            (vec![0x7f00_0000_0000, 0x7f00_0000_0200, 0x7f80_0000_0000], 12),
        ] {
            let narrow = Narrow::of(values.iter().copied());
            assert_eq!(narrow.buffer().len(), bytes, "{values:?}");
            assert_eq!(narrow.form().bytes(), bytes, "{values:?}");
            let read = Narrow::read(narrow.form(), narrow.buffer().clone());
            assert_eq!(read.integers().to_vec(), values);
            assert_eq!(read.slice(&(1..3)).integers().to_vec(), values.get(1..3).unwrap_or_default());
            assert_eq!(read.slice(&(2..9)).integers().to_vec(), values.get(2..).unwrap_or_default());
        }
    }

    #[test]
    fn values_come_back_as_what_they_are_made_to() {
        let narrow = Narrow::of([1_u8, 2, 3].iter().map(|value| i64::from(*value)));
        assert_eq!(narrow.values(low::<u32>), [1, 2, 3]);
    }
}
