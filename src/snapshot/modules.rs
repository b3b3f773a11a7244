//! Memory by component of the driver's account, from CSV files beside the snapshot, on its way to `module_memory`.
//!
//! A snapshot is whole without them: whatever is wrong with one is a row of `import_stats`, never the end of an import.

use std::collections::HashMap;
use std::path::Path;

use arrow::record_batch::RecordBatch;

use super::RowSink;
use super::beside::{Beside, device_ids};
use super::module_csv::{self, Usages};
use crate::error::{Error, Result};
use crate::schema::{
    ImportStat, ImportStatsBuilder, ModuleMemory, ModuleMemoryBuilder, NoNames, Snapshot, Table,
};

/// A sink that adds the rows of side files to `module_memory`.
pub(super) struct Counted<'a> {
    sink: &'a mut dyn RowSink,
    files: Vec<(String, Usages)>,
    /// Files that cannot be opened or read.
    unread: i64,
    of_other_times: i64,
    /// `devices.id` by `device_index`.
    devices: HashMap<i64, i64>,
    warnings: u64,
}

impl<'a> Counted<'a> {
    /// Reads the files that were found.
    pub(super) fn new(beside: &Beside, sink: &'a mut dyn RowSink) -> Self {
        let dumped = beside.usage.iter().map(|(device, path)| (path, Some(*device)));
        let (mut files, mut unread) = (Vec::new(), 0);
        for (path, device) in dumped.chain(beside.exported.iter().map(|path| (path, None))) {
            match module_csv::read(path, device) {
                Ok(usages) => files.push((name(path), usages)),
                Err(_) => unread += 1,
            }
        }
        let of_other_times = beside.of_other_times;
        Self { sink, files, unread, of_other_times, devices: HashMap::new(), warnings: 0 }
    }

    /// Rows in `import_stats` that tell of something lost.
    pub(super) fn warnings(&self) -> u64 {
        self.warnings
    }

    fn write_rows(&mut self) -> Result<()> {
        let mut rows = ModuleMemoryBuilder::default();
        let (mut count, mut elsewhere) = (0, 0);
        for (source_name, usages) in &self.files {
            for ((device, component), usage) in &usages.rows {
                let Some(device_id) = self.devices.get(device) else {
                    elsewhere += 1;
                    continue;
                };
                count += 1;
                rows.push(ModuleMemory {
                    device_id: *device_id,
                    component: component.clone(),
                    bytes: usage.bytes,
                    peak_bytes: usage.peak_bytes,
                    time_us: usage.time_us,
                    sample_count: usage.samples,
                    source_name: source_name.clone(),
                });
            }
        }
        if count > 0 {
            self.sink.write(&ModuleMemory::TABLE, built(rows.finish(&NoNames))?)?;
        }
        self.write_stats(count, elsewhere)
    }

    fn write_stats(&mut self, rows: i64, elsewhere: i64) -> Result<()> {
        let counted = |wanted: &dyn Fn(&Usages) -> bool| {
            let files = self.files.iter().filter(|(_, usages)| wanted(usages)).count();
            i64::try_from(files).unwrap_or(i64::MAX)
        };
        let unreadable = self.files.iter().map(|(_, usages)| usages.unreadable).sum();
        let foreign = self.unread + counted(&|usages| !usages.is_known);
        let cut = counted(&|usages| usages.is_cut);
        let mut stats = ImportStatsBuilder::default();
        let mut any = false;
        for (name, severity, value, doc) in [
            (
                "module_memory_rows",
                "info",
                rows,
                "components in files beside the snapshot that say what the driver counts; rows of module_memory",
            ),
            (
                "module_memory_of_other_devices",
                "info",
                elsewhere,
                "components of devices that the snapshot does not have; left out",
            ),
            (
                "module_memory_of_other_times",
                "info",
                self.of_other_times,
                "memUsageInfo files beside the snapshot whose names say another time than its own; left out",
            ),
            (
                "module_memory_lines_unreadable",
                "data_loss",
                unreadable,
                "lines of CSV files beside the snapshot that are no components; left out of module_memory",
            ),
            (
                "module_memory_files_unreadable",
                "data_loss",
                foreign,
                "CSV files beside the snapshot that cannot be read or have other columns than memory by component",
            ),
            (
                "module_memory_files_cut",
                "data_loss",
                cut,
                "CSV files beside the snapshot of which only the first 64 MiB were read",
            ),
        ] {
            if value > 0 {
                any = true;
                self.warnings += u64::from(severity != "info");
                let (name, severity, doc) = (name.to_owned(), severity.to_owned(), doc.to_owned());
                stats.push(ImportStat { name, severity, device_id: None, value, doc });
            }
        }
        if any { self.sink.write(&ImportStat::TABLE, built(stats.finish(&NoNames))?) } else { Ok(()) }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn built(batch: Result<RecordBatch, arrow::error::ArrowError>) -> Result<RecordBatch> {
    batch.map_err(Error::store("module_memory", "cannot build a batch of rows"))
}

impl RowSink for Counted<'_> {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        if table.name == "devices" {
            self.devices.extend(device_ids(&batch));
        }
        // It comes last, and it always comes.
        if table.name == Snapshot::TABLE.name {
            self.write_rows()?;
        }
        self.sink.write(table, batch)
    }
}
