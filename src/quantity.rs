//! Bytes, counts, ratios and addresses as text: the one place that formats numbers.

/// Bytes in binary units, two decimals from KiB on: `42.56 GiB`, `512 B`.
#[must_use]
pub fn bytes(value: i64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let magnitude = value.unsigned_abs();
    if magnitude < 1024 {
        return format!("{value} B");
    }
    // Only for show: a f64 holds 53 bits, two decimals of the largest unit need far fewer.
    #[expect(clippy::cast_precision_loss, reason = "rounded to two decimals below")]
    let mut scaled = magnitude as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if scaled < 1023.995 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{scaled:.2} {unit}")
}

/// A count with thousands separators: `7,700,004`.
#[must_use]
pub fn count(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        text.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of one as a percentage: `10.3 %`; `-` where it is not defined.
#[must_use]
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// A 64-bit address in hexadecimal, also where the signed number is negative.
#[must_use]
pub fn address(value: i64) -> String {
    format!("{value:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_unit_before_they_round_up_to_1024() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB");
        assert_eq!(bytes(45_698_449_408), "42.56 GiB");
        assert_eq!(bytes(-2_097_152), "-2.00 MiB");
        assert_eq!(bytes(i64::MAX), "8192.00 PiB");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(7_700_004), "7,700,004");
        assert_eq!(count(-1_000), "-1,000");
    }

    #[test]
    fn an_address_keeps_its_64_bits() {
        assert_eq!(address(-1), "0xffffffffffffffff");
        assert_eq!(address(0x12c0_4000_0000), "0x12c040000000");
    }

    #[test]
    fn an_undefined_ratio_is_no_number() {
        assert_eq!(ratio(None), "-");
        assert_eq!(ratio(Some(0.1034)), "10.3 %");
    }
}
