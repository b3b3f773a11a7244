//! Columns of numbers as a page carries them: differences of neighbours, in units that all of them share.
//!
//! Levels are multiples of 512 bytes and mostly change by little, so this is a third of what the numbers themselves take.

use serde_json::{Value, json};

/// Bytes that the allocator rounds to.
const ROUNDED: i64 = 512;

/// `[unit, differences]`: a number is the sum of the differences up to its place, times the unit; null where it is not known.
pub(super) fn packed(column: &[Option<i64>]) -> Value {
    if column.iter().all(Option::is_none) {
        return Value::Null;
    }
    let unit = if column.iter().flatten().all(|value| value % ROUNDED == 0) { ROUNDED } else { 1 };
    let mut before = 0;
    let differences: Vec<Option<i64>> = column
        .iter()
        .map(|value| {
            let value = value.as_ref()? / unit;
            Some(value.wrapping_sub(std::mem::replace(&mut before, value)))
        })
        .collect();
    json!([unit, differences])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sums_of_differences_in_a_shared_unit() {
        assert_eq!(packed(&[Some(1024), Some(512), None, Some(2048)]), json!([512, [2, -1, null, 3]]));
        assert_eq!(packed(&[Some(1024), Some(1025)]), json!([1, [1024, 1]]));
        assert_eq!(packed(&[None, None]), Value::Null);
        assert_eq!(packed(&[]), Value::Null);
    }
}
