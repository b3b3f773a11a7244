//! Numbers of a few bits each, packed from the lowest bit of a byte on, as all of Parquet's encodings want them.

/// Bits that `value` needs; none for 0.
pub(super) fn width(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends `values`, none of which needs more than `width` bits, and fills the last byte up with zeros.
#[inline]
pub(super) fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut word, mut used) = (0_u64, 0);
    for value in values {
        word |= value << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // What of the value did not fit; all of it did where its bits ended with the word's.
            word = value.checked_shr(width - used).unwrap_or(0);
        }
    }
    let bytes = usize::try_from(used.div_ceil(u8::BITS)).unwrap_or_default();
    out.extend_from_slice(word.to_le_bytes().get(..bytes).unwrap_or_default());
}

/// Appends a number in groups of seven bits, the lowest first; the top bit of a byte says that more follow.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a number with a sign, so that small ones stay short on both sides of 0.
pub(super) fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_from_the_lowest_bit_on() {
        let mut out = Vec::new();
        // The example of the format's description: 0 to 7 in three bits each.
        pack(0..8, 3, &mut out);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn a_number_across_the_border_of_two_words_is_whole() {
        let values = [(1 << 33) - 1, 5, 1 << 32, 0, (1 << 33) - 2];
        let mut out = Vec::new();
        pack(values.into_iter(), 33, &mut out);
        let bit = |at: usize| u64::from(out[at / 8] >> (at % 8) & 1);
        let read: Vec<u64> = (0..values.len()).map(|n| (0..33).map(|b| bit(n * 33 + b) << b).sum()).collect();
        assert_eq!(read, values);
        assert_eq!(out.len(), (5 * 33_usize).div_ceil(8));
    }

    #[test]
    fn whole_words_and_no_bits_at_all_are_widths_too() {
        let mut out = Vec::new();
        pack([u64::MAX, 1].into_iter(), 64, &mut out);
        assert_eq!(out, [[0xff; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat());
        out.clear();
        pack([0, 0].into_iter(), 0, &mut out);
        assert!(out.is_empty());
        assert_eq!([width(0), width(1), width(255), width(256), width(u64::MAX)], [0, 1, 8, 9, 64]);
    }

    #[test]
    fn varints_have_seven_bits_a_byte() {
        let written = |value| {
            let mut out = Vec::new();
            varint(value, &mut out);
            out
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(127), [0x7f]);
        assert_eq!(written(300), [0xac, 0x02]);
        assert_eq!(written(u64::MAX), [vec![0xff; 9], vec![1]].concat());
    }

    #[test]
    fn zigzag_takes_the_signs_in_turn() {
        let written = |value| {
            let mut out = Vec::new();
            zigzag(value, &mut out);
            out
        };
        assert_eq!([written(0), written(-1), written(1), written(-2)], [[0], [1], [2], [3]]);
        assert_eq!(written(i64::MIN), [vec![0xff; 9], vec![1]].concat());
    }
}
