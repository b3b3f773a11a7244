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

/// Bytes for the tick of an axis: as [`bytes()`], without zeros at the end.
#[must_use]
pub fn tick(value: i64) -> String {
    let text = bytes(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Reads bytes as people write them: `4096`, `512MiB`, `1.5 GiB`, `2G` (binary), `500MB` (decimal).
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let mut bytes = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if !part.is_empty() {
        let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
        bytes = bytes.checked_add(part.parse::<u64>().ok()?.checked_mul(unit)?.checked_div(scale)?)?;
    }
    Some(bytes)
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
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with what is counted: `1 event`, `2,000 events`.
#[must_use]
pub fn counted(value: i64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A share of one as a percentage: `10.3 %`; `-` where it is not defined.
#[must_use]
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// The share of a part in a whole as a percentage; `-` of nothing.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "one decimal of a share needs no more than 53 bits")]
pub fn percent(part: i64, whole: i64) -> String {
    ratio((whole != 0).then(|| part as f64 / whole as f64))
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
    fn a_tick_has_no_zeros_at_its_end() {
        for (value, text) in
            [(0, "0 B"), (500, "500 B"), (120 << 20, "120 MiB"), (3 << 29, "1.5 GiB"), (100 << 30, "100 GiB")]
        {
            assert_eq!(tick(value), text);
        }
    }

    #[test]
    fn bytes_are_read_in_every_usual_unit() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("512MiB", Some(512 << 20)),
            ("1.5 GiB", Some(3 << 29)),
            ("2g", Some(2 << 30)),
            ("500MB", Some(500_000_000)),
            ("16777216TiB", None),
            ("MiB", None),
            ("-1", None),
            ("1.2.3", None),
            ("5 apples", None),
            ("", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(7_700_004), "7,700,004");
        assert_eq!(count(-1_000), "-1,000");
        assert_eq!(counted(1, "entry", "entries"), "1 entry");
        assert_eq!(counted(0, "entry", "entries"), "0 entries");
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
