//! Integers as differences to the one before: Parquet's `DELTA_BINARY_PACKED`.
//!
//! Differences come in blocks of 128. A block says its smallest difference, and each quarter of it how many bits the rest
//! of its differences needs.

use super::bits;

/// Differences in a block, and the parts of it that have a width of their own.
const BLOCK: usize = 128;
const PARTS: usize = 4;
const PART: usize = BLOCK / PARTS;

/// Appends `values`.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    for number in [BLOCK, PARTS, values.len()] {
        bits::varint(u64::try_from(number).unwrap_or(u64::MAX), out);
    }
    let mut before = values.first().copied().unwrap_or_default();
    bits::zigzag(before, out);
    for chunk in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut differences = [0; BLOCK];
        for (difference, value) in differences.iter_mut().zip(chunk) {
            *difference = value.wrapping_sub(before);
            before = *value;
        }
        block(differences.get_mut(..chunk.len()).unwrap_or_default(), out);
    }
}

fn block(differences: &mut [i64], out: &mut Vec<u8>) {
    // Most blocks are of one step: that of row numbers, or none.
    if let Some(first) = differences.first()
        && differences.iter().fold(0, |unlike, difference| unlike | (difference ^ first)) == 0
    {
        bits::zigzag(*first, out);
        return out.extend_from_slice(&[0; PARTS]);
    }
    let smallest = differences.iter().copied().min().unwrap_or_default();
    bits::zigzag(smallest, out);
    for difference in &mut *differences {
        *difference = difference.wrapping_sub(smallest);
    }
    let rest = |part: &[i64]| part.iter().fold(0, |all, difference| all | difference.cast_unsigned());
    let mut widths = [0; PARTS];
    for (width, part) in widths.iter_mut().zip(differences.chunks(PART)) {
        *width = bits::width(rest(part));
    }
    out.extend(widths.iter().map(|width| u8::try_from(*width).unwrap_or(u8::MAX)));
    for (width, part) in widths.into_iter().zip(differences.chunks(PART)) {
        // The last part is filled up; those behind it are not there.
        let zeros = std::iter::repeat_n(0, PART - part.len());
        bits::pack(part.iter().map(|difference| difference.cast_unsigned()).chain(zeros), width, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, &mut out);
        out
    }

    /// The head of a page: block of 128, four parts, count, first value.
    const HEAD: [u8; 3] = [0x80, 0x01, 4];

    #[test]
    fn equal_steps_cost_no_bits() {
        // The format's own example: 1 to 5 are the first value 1 and a smallest difference of 1.
        assert_eq!(encoded(&[1, 2, 3, 4, 5]), [&HEAD[..], &[5, 2], &[2, 0, 0, 0, 0]].concat());
    }

    #[test]
    fn unequal_steps_are_packed_above_the_smallest() {
        // The format's second example: differences -2, -2, -2, 1, 1, 1, 1 above -2 are 0, 0, 0, 3, 3, 3, 3 in two bits.
        let packed = [&[2, 0, 0, 0], &[0b1100_0000, 0b0011_1111, 0, 0][..], &[0; 4]].concat();
        let expected = [&HEAD[..], &[8, 14], &[3], &packed[..]].concat();
        assert_eq!(encoded(&[7, 5, 3, 1, 2, 3, 4, 5]), expected);
    }

    #[test]
    fn one_value_and_none_have_no_block() {
        assert_eq!(encoded(&[-1]), [&HEAD[..], &[1, 1]].concat());
        assert_eq!(encoded(&[]), [&HEAD[..], &[0, 0]].concat());
    }

    #[test]
    fn steps_that_leave_the_numbers_come_round() {
        // From the largest to the smallest is a step of 1.
        let expected = [&HEAD[..], &[2], &[0xfe], &[0xff; 8], &[1], &[2], &[0; 4]].concat();
        assert_eq!(encoded(&[i64::MAX, i64::MIN]), expected);
    }
}
