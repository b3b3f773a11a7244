//! Runs of small numbers: definition levels and places in a dictionary. Parquet calls the encoding `RLE`.
//!
//! A run is one number many times, or numbers packed bit by bit in groups of eight. One run holds a page here: where numbers
//! repeat without being all the same, the codec sees it as well as shorter runs would.

use arrow::buffer::NullBuffer;

use super::bits;

/// Numbers in a group of a packed run.
const GROUP: usize = 8;

/// Appends a run of one number.
fn repeated(count: usize, value: u32, width: u32, out: &mut Vec<u8>) {
    bits::varint(wide(count) << 1, out);
    let bytes = usize::try_from(width.div_ceil(u8::BITS)).unwrap_or_default();
    out.extend_from_slice(value.to_le_bytes().get(..bytes).unwrap_or_default());
}

/// Appends the head of a packed run of so many numbers.
fn packed(count: usize, out: &mut Vec<u8>) {
    bits::varint(wide(count.div_ceil(GROUP)) << 1 | 1, out);
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Appends numbers of at most `width` bits.
pub(super) fn numbers(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    if values.iter().all(|value| value == first) {
        return repeated(values.len(), *first, width, out);
    }
    packed(values.len(), out);
    match width {
        8 => bytes::<1>(values, out),
        16 => bytes::<2>(values, out),
        24 => bytes::<3>(values, out),
        _ => {
            let filled = values.len().next_multiple_of(GROUP) - values.len();
            let zeros = std::iter::repeat_n(0, filled);
            bits::pack(values.iter().map(|value| u64::from(*value)).chain(zeros), width, out);
        }
    }
}

/// Appends groups of numbers of so many whole bytes.
fn bytes<const WIDTH: usize>(values: &[u32], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + values.len().next_multiple_of(GROUP) * WIDTH, 0);
    let (slots, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<WIDTH>();
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value.to_le_bytes().first_chunk().copied().unwrap_or([0; WIDTH]);
    }
}

/// Appends the definition levels of a page of `rows`, with their length before them: 1 for a value, 0 for NULL.
pub(super) fn levels(rows: usize, nulls: Option<&NullBuffer>, out: &mut Vec<u8>) {
    let head = out.len();
    out.extend_from_slice(&[0; 4]);
    match nulls.map_or(0, NullBuffer::null_count) {
        0 => repeated(rows, 1, 1, out),
        count if count == rows => repeated(rows, 0, 1, out),
        _ => {
            packed(rows, out);
            // A validity bit is the level, and lies where the packed level does.
            let valid = nulls.map(|nulls| nulls.inner().sliced());
            let bytes = valid.as_deref().and_then(|bytes| bytes.get(..rows.div_ceil(8))).unwrap_or_default();
            out.extend_from_slice(bytes);
        }
    }
    let length = u32::try_from(out.len() - head - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(head..head + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[u32], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        numbers(values, width, &mut out);
        out
    }

    fn levels_of(valid: &[bool]) -> Vec<u8> {
        let mut out = Vec::new();
        levels(valid.len(), Some(&NullBuffer::from(valid.to_vec())), &mut out);
        out
    }

    #[test]
    fn one_number_again_and_again_is_its_count_and_itself() {
        // 100 << 1 = 0xc8 in seven bits each; the number takes as many bytes as its width.
        assert_eq!(encoded(&[4; 100], 3), [0xc8, 0x01, 4]);
        assert_eq!(encoded(&[300; 2], 9), [4, 0x2c, 0x01]);
    }

    #[test]
    fn different_numbers_are_packed_in_groups_of_eight() {
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0x88, 0xc6, 0xfa]);
        // Nine are two groups, and the second is filled up.
        assert_eq!(encoded(&[1, 0, 0, 0, 0, 0, 0, 0, 1], 1), [5, 1, 1]);
        assert!(encoded(&[], 1).is_empty());
    }

    #[test]
    fn numbers_of_whole_bytes_stand_in_them() {
        assert_eq!(encoded(&[1, 2], 8), [3, 1, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(encoded(&[0x102, 3], 16), [[3, 2, 1, 3, 0].as_slice(), &[0; 12]].concat());
        assert_eq!(encoded(&[0x1_0203, 4], 24), [[3, 3, 2, 1, 4, 0, 0].as_slice(), &[0; 18]].concat());
        assert_eq!(
            encoded(&[0x102_0304, 5], 32),
            [[3, 4, 3, 2, 1, 5, 0, 0, 0].as_slice(), &[0; 24]].concat()
        );
    }

    #[test]
    fn levels_are_the_validity_bits() {
        assert_eq!(levels_of(&[true; 10]), [2, 0, 0, 0, 20, 1]);
        assert_eq!(levels_of(&[false; 10]), [2, 0, 0, 0, 20, 0]);
        assert_eq!(levels_of(&[true, false, true]), [2, 0, 0, 0, 3, 0b101]);
        let mut out = Vec::new();
        levels(3, None, &mut out);
        assert_eq!(out, [2, 0, 0, 0, 6, 1]);
    }

    #[test]
    fn levels_of_a_part_begin_with_its_first_row() {
        let nulls = NullBuffer::from(vec![false, true, true, false, true]).slice(1, 3);
        let mut out = Vec::new();
        levels(3, Some(&nulls), &mut out);
        assert_eq!(out, [2, 0, 0, 0, 3, 0b011]);
    }
}
