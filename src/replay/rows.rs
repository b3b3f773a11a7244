//! Finished rows of `allocations`: they come last first, and are turned round on their way to the stores.

use std::path::Path;

use super::event::Places;
use super::narrow::Narrow;
use super::output::Output;
use super::part::{INTEGERS, Part, integers, kind};
use super::row::{Reading, Row};
use super::spool::Spool;
use crate::error::Result;
use crate::snapshot::RowSink;

/// Bytes of rows that stay in memory.
const MEMORY: usize = 8 << 20;
/// Rows in a chunk of the spool: few enough for a near cache.
const CHUNK_ROWS: usize = 8 * 1024;
/// Rows of it that are widened at a time.
const PART_ROWS: usize = 1024;

/// Rows by column, as they are spooled.
#[derive(Debug, Default)]
struct Columns {
    integers: [Vec<i64>; INTEGERS],
    places: Vec<u32>,
    kinds: Vec<u8>,
}

impl Columns {
    fn push(&mut self, row: &Row) {
        for (column, value) in self.integers.iter_mut().zip(integers(row)) {
            column.push(value);
        }
        self.places.push(row.place);
        self.kinds.push(kind(row));
    }

    fn take(&mut self) -> Vec<Narrow> {
        let kinds = Narrow::bytes(self.kinds.clone());
        let places = Narrow::of(self.places.iter().map(|place| i64::from(*place)));
        let integers = self.integers.each_ref().map(|column| Narrow::of(column.iter().copied()));
        self.kinds.clear();
        self.places.clear();
        self.integers.iter_mut().for_each(Vec::clear);
        [kinds, places].into_iter().chain(integers).collect()
    }
}

/// All finished rows.
#[derive(Debug)]
pub(super) struct Rows {
    spool: Spool,
    columns: Columns,
    /// Devices, the last one first, and behind which chunk their rows end.
    devices: Vec<(i64, Reading, usize)>,
}

impl Rows {
    /// None yet; what does not stay in memory goes to a file in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self { spool: Spool::new(dir, MEMORY), columns: Columns::default(), devices: Vec::new() }
    }

    /// Adds a row before those of its device that came before.
    pub(super) fn push(&mut self, row: &Row) -> Result<()> {
        self.columns.push(row);
        if self.columns.kinds.len() < CHUNK_ROWS { Ok(()) } else { self.spool.push(self.columns.take()) }
    }

    /// Ends the rows of a device; the next ones are of a device before it.
    pub(super) fn end_device(&mut self, device_id: i64, reading: Reading) -> Result<()> {
        if !self.columns.kinds.is_empty() {
            self.spool.push(self.columns.take())?;
        }
        self.devices.push((device_id, reading, self.spool.len()));
        Ok(())
    }

    /// Writes the rows, the one that came last first.
    pub(super) fn write(&self, places: &Places, sink: &mut dyn RowSink) -> Result<()> {
        let mut output = Output::new(sink);
        let starts = [0].into_iter().chain(self.devices.iter().map(|(_, _, end)| *end));
        let chunks: Vec<_> = starts.zip(&self.devices).collect();
        for (start, (device_id, reading, end)) in chunks.into_iter().rev() {
            for number in (start..*end).rev() {
                let chunk = self.spool.get(number)?;
                let mut end = chunk.first().map_or(0, Narrow::len);
                while end > 0 {
                    let start = end.saturating_sub(PART_ROWS.min(output.room()));
                    let mut part = Part::read(&chunk, &(start..end));
                    part.apply(reading);
                    output.push(*device_id, places, &part, reading)?;
                    end = start;
                }
            }
        }
        output.flush()
    }
}
