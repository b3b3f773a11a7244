//! The two CSV forms in which memory by component comes: as torch_npu dumps it, and as the profiler exports it.
//!
//! They are told by their columns. A number keeps all its digits on the way to bytes, and what is no number is counted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use crate::error::{Error, Result};

/// More than so many bytes of a file are not read.
const MOST_BYTES: u64 = 64 << 20;
/// A first line that is longer names no columns.
const LONGEST_HEADER: usize = 1 << 16;
/// More components than the driver has of one device are none.
const MOST_COMPONENTS: usize = 4096;
/// The driver's own names have less than 32 bytes.
const LONGEST_NAME: usize = 128;

/// What one component held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bytes: Option<i64>,
    pub(super) peak_bytes: Option<i64>,
    pub(super) time_us: Option<i64>,
    pub(super) samples: i64,
}

/// What a file says, by device and component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Usages {
    pub(super) rows: BTreeMap<(i64, String), Usage>,
    /// Lines that are no rows.
    pub(super) unreadable: i64,
    /// Whether the first line names the columns of either form.
    pub(super) is_known: bool,
    /// Whether the file is longer than what was read of it.
    pub(super) is_cut: bool,
}

/// Where the columns are, and what a unit of each is in bytes.
struct Columns {
    component: usize,
    current: (usize, i64),
    peak: Option<(usize, i64)>,
    time: Option<usize>,
    device: Option<usize>,
}

/// Reads the file at `path`; `device` is that of a file whose rows do not say.
pub(super) fn read(path: &Path, device: Option<i64>) -> Result<Usages> {
    let file = File::open(path).map_err(Error::io(path, "cannot open"))?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut input = BufReader::with_capacity(LONGEST_HEADER, file.take(MOST_BYTES));
    let head = input.fill_buf().map_err(Error::io(path, "cannot read"))?;
    if head.len() == LONGEST_HEADER && !head.contains(&b'\n') {
        return Ok(Usages::default());
    }
    let mut usages = parse(input, device);
    usages.is_cut = length > MOST_BYTES;
    Ok(usages)
}

fn parse(input: impl Read, device: Option<i64>) -> Usages {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut usages = Usages::default();
    let mut record = ByteRecord::new();
    let Ok(true) = reader.read_byte_record(&mut record) else { return usages };
    let Some(columns) = Columns::find(&record) else { return usages };
    usages.is_known = true;
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) if columns.take(&record, device, &mut usages.rows).is_some() => {}
            Ok(true) => usages.unreadable += 1,
            Ok(false) => return usages,
            // What cannot be read on is where the file ends.
            Err(_) => {
                usages.unreadable += 1;
                return usages;
            }
        }
    }
}

impl Columns {
    fn find(header: &ByteRecord) -> Option<Self> {
        let names: Vec<(String, i64)> = header.iter().map(heading).collect();
        let place = |wanted: &[&str]| {
            let place = names.iter().position(|(name, _)| wanted.contains(&name.as_str()))?;
            names.get(place).map(|(_, unit)| (place, *unit))
        };
        Some(Self {
            component: place(&["modulename", "component"])?.0,
            current: place(&["curmemsize", "totalreserved"])?,
            peak: place(&["mempeaksize"]),
            time: place(&["timestamp"]).map(|(place, _)| place),
            device: place(&["deviceid"]).or_else(|| place(&["device"])).map(|(place, _)| place),
        })
    }

    /// Adds a line; `None` where it is none of a component.
    fn take(
        &self,
        record: &ByteRecord,
        device: Option<i64>,
        rows: &mut BTreeMap<(i64, String), Usage>,
    ) -> Option<()> {
        let field = |place: usize| record.get(place).map(<[u8]>::trim_ascii);
        let component =
            field(self.component).filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)?;
        let component = String::from_utf8_lossy(component).into_owned();
        let current = Size::read(field(self.current.0)?, self.current.1)?.bytes();
        let peak = match self.peak {
            Some((place, unit)) => Size::read(field(place)?, unit)?.bytes(),
            None => current,
        };
        let device = match device {
            Some(device) => device,
            None => device_number(field(self.device?)?)?,
        };
        let time_us = match self.time {
            // The fraction of a microsecond orders nothing here.
            Some(place) => Some(digits(field(place)?.split(|byte| *byte == b'.').next()?)?),
            None => None,
        };
        let full = rows.len() >= MOST_COMPONENTS;
        let key = (device, component);
        if full && !rows.contains_key(&key) {
            return None;
        }
        let usage = rows.entry(key).or_default();
        usage.samples += 1;
        usage.peak_bytes = usage.peak_bytes.max(peak);
        if time_us >= usage.time_us {
            (usage.bytes, usage.time_us) = (current.or(usage.bytes), time_us);
        }
        Some(())
    }
}

/// A column's name without case, blanks and unit, and its unit in bytes.
fn heading(field: &[u8]) -> (String, i64) {
    let text = String::from_utf8_lossy(field);
    let text = text.trim_start_matches('\u{feff}').trim().to_ascii_lowercase();
    let (name, unit) = text.split_once('(').unwrap_or((&text, ""));
    let unit = match unit.trim_end_matches(')') {
        "kb" | "kib" => 1 << 10,
        "mb" | "mib" => 1 << 20,
        "gb" | "gib" => 1 << 30,
        _ => 1,
    };
    (name.chars().filter(char::is_ascii_alphabetic).collect(), unit)
}

/// A size as the driver gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// Bytes, rounded to whole ones.
    Bytes(i64),
    /// A negative number stands for that.
    Unknown,
}

impl Size {
    fn read(field: &[u8], unit: i64) -> Option<Self> {
        match field.strip_prefix(b"-") {
            Some(rest) => number(rest, unit).map(|_| Self::Unknown),
            None => number(field, unit).map(Self::Bytes),
        }
    }

    fn bytes(self) -> Option<i64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }
}

fn number(field: &[u8], unit: i64) -> Option<i64> {
    let point = field.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point.and_then(|point| field.split_at_checked(point)) {
        Some((whole, rest)) => (whole, rest.get(1..)?),
        None => (field, b"".as_slice()),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    // Digits beyond these are less than a byte, of any unit.
    let fraction = fraction.iter().all(u8::is_ascii_digit).then(|| fraction.get(..12).unwrap_or(fraction))?;
    let mut scale = 1_i128;
    let mut part = 0_i128;
    for digit in fraction {
        (scale, part) = (scale * 10, part * 10 + i128::from(digit - b'0'));
    }
    // At most 31 digits before the unit, which has up to 10: more than the type has.
    let bytes = (i128::from(whole) * scale + part).checked_mul(i128::from(unit))?;
    i64::try_from((bytes + scale / 2) / scale).ok()
}

/// A number without sign.
fn digits(field: &[u8]) -> Option<i64> {
    let is_number = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(field).ok()?.parse().ok())?
}

/// `3`, or the number at the end of `NPU:3`.
fn device_number(field: &[u8]) -> Option<i64> {
    digits(field.rsplit(|byte| *byte == b':').next()?)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn usages(text: &[u8]) -> Usages {
        parse(text, None)
    }

    fn of_device(text: &str) -> Usages {
        parse(text.as_bytes(), Some(2))
    }

    fn row(bytes: i64, peak: i64, time_us: Option<i64>, samples: i64) -> Usage {
        Usage { bytes: Some(bytes), peak_bytes: Some(peak), time_us, samples }
    }

    #[test]
    fn what_torch_npu_dumps_is_read_to_the_byte() {
        let usages = of_device(
            "moduleName,curMemSize(MB),memPeakSize(MB)\nAPP,1024.0000,2048.5000\nHCCL,400.0313,400.0625\nSLOG,0.0000,0.0010\n",
        );
        let expected = BTreeMap::from([
            ((2, "APP".to_owned()), row(1 << 30, 2_148_007_936, None, 1)),
            // 400.0313 MiB are 419463220.5…, 400.0625 are 419495936.
            ((2, "HCCL".to_owned()), row(419_463_220, 419_495_936, None, 1)),
            ((2, "SLOG".to_owned()), row(0, 1049, None, 1)),
        ]);
        assert_eq!(usages.rows, expected);
        assert!(usages.is_known && usages.unreadable == 0);
    }

    #[test]
    fn what_the_profiler_exports_is_the_last_sample_and_the_peak() {
        let text = "\u{feff}Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n\
            0,HCCL,1715000000000001.250\t,300,NPU:0\n\
            0,HCCL,1715000000000003\t,200,NPU:0\n\
            0,HCCL,1715000000000002\t,900,NPU:0\n\
            1,RUNTIME,1715000000000000,-1,NPU:1\n";
        let usages = usages(text.as_bytes());
        assert_eq!(
            usages.rows.get(&(0, "HCCL".to_owned())),
            Some(&row(200 << 10, 900 << 10, Some(1_715_000_000_000_003), 3))
        );
        let unknown = &usages.rows[&(1, "RUNTIME".to_owned())];
        assert_eq!((unknown.bytes, unknown.peak_bytes, unknown.samples), (None, None, 1));
        let other =
            parse(b"Component,Timestamp(us),Total Reserved(MB),Device\nAPP,5,1,NPU:7\n".as_slice(), None);
        assert_eq!(other.rows.get(&(7, "APP".to_owned())), Some(&row(1 << 20, 1 << 20, Some(5), 1)));
    }

    #[test]
    fn what_is_no_row_is_counted_and_the_others_stay() {
        let usages = of_device(
            "moduleName,curMemSize(MB),memPeakSize(MB)\nHCCL\n,1,1\nA,x,1\nB,1e3,1\nC,1,\nD,.,1\nE,9223372036854775807,1\n\
             F,9223372036854775807.999999999999999,1\n\
             \"un\"\"quoted, name\",1,2\nRUNTIME,1.5,2,more\n",
        );
        assert_eq!(usages.unreadable, 8);
        let names: Vec<&str> = usages.rows.keys().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["RUNTIME", "un\"quoted, name"]);
    }

    #[test]
    fn what_no_number_of_bytes_can_be_is_counted() {
        // 2^63 - 1 GiB with twelve digits behind the point would need more than 128 bits on the way; 2^33 GiB are 2^63 bytes.
        let usages = of_device(
            "moduleName,curMemSize(GB)\nA,9223372036854775807.000000000000\nB,8589934592\nC,8589934591\n",
        );
        let most = row((1 << 62) - (1 << 30) + (1 << 62), (1 << 62) - (1 << 30) + (1 << 62), None, 1);
        assert_eq!(usages.rows, BTreeMap::from([((2, "C".to_owned()), most)]));
        assert_eq!(usages.unreadable, 2);
    }

    #[test]
    fn other_columns_binary_and_nothing_are_no_usages() {
        for text in [
            b"".as_slice(),
            b"\n\n",
            b"name,size\nHCCL,1\n",
            b"\x80\x02}q\x00.",
            b"PK\x03\x04\x00\x00",
            b"\"moduleName,curMemSize(MB),memPeakSize(MB)\nHCCL,1,2\n",
        ] {
            let usages = parse(text, Some(0));
            assert!(!usages.is_known && usages.rows.is_empty(), "{text:?}");
        }
        let not_text = parse(b"moduleName,curMemSize(MB)\n\xff\xfe,1\n\x00,2\n".as_slice(), Some(0));
        assert_eq!(not_text.rows.len(), 2);
    }

    #[test]
    fn no_more_components_are_kept_than_a_driver_can_have() {
        let mut text = "moduleName,curMemSize(MB),memPeakSize(MB)\n".to_owned();
        for number in 0..MOST_COMPONENTS + 5 {
            writeln!(text, "M{number},1,1").unwrap();
        }
        let usages = of_device(&text);
        assert_eq!((usages.rows.len(), usages.unreadable), (MOST_COMPONENTS, 5));
    }
}
