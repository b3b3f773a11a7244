//! Rows of `import_stats` that the replay adds.

use crate::schema::ImportStat;

/// What a note means for the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Good to know.
    Info,
    /// Something is missing in the recording.
    DataLoss,
    /// Something contradicts itself.
    Error,
}

/// The notes so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) rows: Vec<ImportStat>,
    /// How many of them are no mere information.
    pub(super) warnings: u64,
}

impl Notes {
    /// Adds a note, if there is anything to say.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        name: &str,
        device: Option<i64>,
        value: i128,
        doc: impl Into<String>,
    ) {
        if value == 0 {
            return;
        }
        self.warnings += u64::from(severity != Severity::Info);
        self.rows.push(ImportStat {
            name: name.to_owned(),
            severity: match severity {
                Severity::Info => "info",
                Severity::DataLoss => "data_loss",
                Severity::Error => "error",
            }
            .to_owned(),
            device_id: device,
            value: narrow(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX }),
            doc: doc.into(),
        });
    }
}

/// A sum as the tables hold it; `None` where no real allocator could have come to it.
pub(super) fn narrow(sum: i128) -> Option<i64> {
    i64::try_from(sum).ok()
}
