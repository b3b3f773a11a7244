//! Which files beside a snapshot are read with it: step markers, and what the NPU's driver counts by component.
//!
//! torch_npu writes the latter when it dumps, under the device and the second; a folder can have those of many dumps and
//! ranks. Of each device the one that is nearest in time is taken.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;

/// `device_index` and `id` of the rows in a batch of `devices`.
pub(super) fn device_ids(batch: &RecordBatch) -> Vec<(i64, i64)> {
    let column = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let Some((ids, indexes)) = column("id").zip(column("device_index")) else { return Vec::new() };
    indexes.values().iter().copied().zip(ids.values().iter().copied()).collect()
}

/// Seconds between the names of a snapshot and of its usage file, beyond which they are of different dumps.
const OF_ONE_DUMP: u64 = 60 * 60;

/// Files of one snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Markers of steps.
    pub(super) steps: Option<PathBuf>,
    /// Memory by component, of the device with this number, as it was dumped with the snapshot.
    pub(super) usage: BTreeMap<i64, PathBuf>,
    /// Memory by component as the profiler exports it, of one or more devices.
    pub(super) exported: Option<PathBuf>,
    /// Usage files that were passed over because their names say another time.
    pub(super) of_other_times: i64,
}

/// The files beside `snapshot` that an import of it reads.
#[must_use]
pub fn side_files(snapshot: &Path) -> Vec<PathBuf> {
    let Beside { steps, usage, exported, .. } = Beside::find(snapshot);
    steps.into_iter().chain(usage.into_values()).chain(exported).collect()
}

/// A file that may be the one, and what tells how well it fits.
struct Candidate {
    path: PathBuf,
    /// Seconds from the snapshot: by their names where both have a time, else by when they were written.
    distance: u64,
    is_named: bool,
    name: String,
}

impl Candidate {
    fn of(path: PathBuf, name: &str, snapshot: &Moment) -> Option<Self> {
        let moment = Moment::of(&path)?;
        let named = moment.named.zip(snapshot.named).map(|(one, other)| one.abs_diff(other));
        let distance = named.unwrap_or_else(|| moment.written.abs_diff(snapshot.written));
        Some(Self { path, distance, is_named: named.is_some(), name: name.to_owned() })
    }

    /// Whether `self` fits better than `other`: in doubt, what comes later by its name.
    fn is_better(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.is_named, std::cmp::Reverse(it.distance), it.name.clone());
        rank(self) > rank(other)
    }
}

/// When a file is of.
struct Moment {
    /// By its name, in seconds of the machine's local time.
    named: Option<u64>,
    /// When it was written last, in seconds since the Unix epoch.
    written: u64,
}

impl Moment {
    /// The moment of a regular file; a pipe would be waited for.
    fn of(path: &Path) -> Option<Self> {
        let metadata = regular(path)?;
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Self {
            named: path.file_stem().and_then(OsStr::to_str).and_then(stamp),
            written: written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        })
    }
}

impl Beside {
    /// Looks at what is in the folder of `snapshot`. What cannot be listed has nothing beside it.
    pub(super) fn find(snapshot: &Path) -> Self {
        let mut markers = snapshot.as_os_str().to_owned();
        markers.push(".steps.jsonl");
        let markers = PathBuf::from(markers);
        let steps = regular(&markers).map(|_| markers);
        let mut found = Self { steps, ..Self::default() };
        let folder = snapshot.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Some((moment, entries)) =
            Moment::of(snapshot).zip(fs::read_dir(folder.unwrap_or(Path::new("."))).ok())
        else {
            return found;
        };
        let mut usage: BTreeMap<i64, Candidate> = BTreeMap::new();
        let mut exported: Option<Candidate> = None;
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let candidate = || Candidate::of(snapshot.with_file_name(&name), &name, &moment);
            if let Some(device) = device_of(&name) {
                let Some(candidate) = candidate() else { continue };
                if candidate.is_named && candidate.distance > OF_ONE_DUMP {
                    found.of_other_times += 1;
                } else if usage.get(&device).is_none_or(|other| candidate.is_better(other)) {
                    usage.insert(device, candidate);
                }
            } else if is_exported(&name) {
                exported = candidate()
                    .filter(|it| exported.as_ref().is_none_or(|other| it.is_better(other)))
                    .or(exported);
            }
        }
        found.usage = usage.into_iter().map(|(device, candidate)| (device, candidate.path)).collect();
        found.exported = exported.map(|candidate| candidate.path);
        found
    }
}

fn regular(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

/// The device in `device_<n>_memUsageInfo_<time>.csv`.
fn device_of(name: &str) -> Option<i64> {
    let (device, time) = name.strip_prefix("device_")?.split_once("_memUsageInfo")?;
    time.strip_suffix(".csv")?;
    device.parse().ok()
}

/// Whether a file is called `npu_module_mem*.csv`.
fn is_exported(name: &str) -> bool {
    name.strip_prefix("npu_module_mem").and_then(|rest| rest.strip_suffix(".csv")).is_some()
}

/// Seconds from the year 0 to the last `YYYYmmddHHMMSS` in a name.
fn stamp(name: &str) -> Option<u64> {
    let mut runs = name.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() == 14);
    let digits = runs.next_back()?;
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    // Days by the rule of leap years, with a year that begins in March, so that its odd day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_names_are_told_apart_to_the_second() {
        let seconds = |name: &str| stamp(name).unwrap();
        let apart = |one: &str, other: &str| seconds(other) - seconds(one);
        assert_eq!(apart("oom_snapshot_77_20240228235959", "device_0_memUsageInfo_20240229000001"), 2);
        assert_eq!(apart("a_20230228235959", "b_20230301000000"), 1);
        assert_eq!(apart("a_20231231235959", "b_20240101000000"), 1);
        assert_eq!(apart("a_20240101000000", "b_20250101000000"), 366 * 86400);
        assert_eq!(stamp("oom_snapshot_77_20241399000000"), None);
        assert_eq!(stamp("snapshot"), None);
    }

    #[test]
    fn names_of_usage_files_hold_a_device() {
        assert_eq!(device_of("device_12_memUsageInfo_20250102030405.csv"), Some(12));
        assert_eq!(device_of("device_0_memUsageInfo_20250102030405 (1).csv"), Some(0));
        assert_eq!(device_of("device_x_memUsageInfo_1.csv"), None);
        assert_eq!(device_of("device_0_memUsageInfo_1.csv.bak"), None);
        assert!(is_exported("npu_module_mem_20250102030405.csv") && is_exported("npu_module_mem.csv"));
        assert!(!is_exported("my_npu_module_mem.csv") && !is_exported("npu_module_mem.txt"));
    }

    #[test]
    fn of_many_usage_files_the_one_of_the_dump_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in [
            "oom_snapshot_5_20250102030405.pickle",
            "device_0_memUsageInfo_20250102030407.csv",
            "device_0_memUsageInfo_20250102033000.csv",
            "device_0_memUsageInfo_20250103030405.csv",
            "device_1_memUsageInfo_20240102030405.csv",
            "npu_module_mem_20250601000000.csv",
        ] {
            fs::write(path(name), "").unwrap();
        }
        fs::create_dir(path("device_3_memUsageInfo_20250102030407.csv")).unwrap();
        let found = Beside::find(&path("oom_snapshot_5_20250102030405.pickle"));
        let expected = BTreeMap::from([(0, path("device_0_memUsageInfo_20250102030407.csv"))]);
        assert_eq!(found.usage, expected);
        assert_eq!(found.of_other_times, 2);
        assert_eq!(found.exported, Some(path("npu_module_mem_20250601000000.csv")));
        assert_eq!(found.steps, None);
    }
}
