//! The truth layer: events and final state together give the lifetime of every allocation, and the base of every curve.
//!
//! [`Replay`] stands between the decoder and the stores. Rows pass through it; the few columns it needs it keeps until the
//! final state is known, and then it reads the events backward, from the state that is known to the one that is not.

mod checks;
mod chunk;
mod columns;
mod device;
mod ends;
mod event;
mod events;
mod line;
mod narrow;
mod notes;
mod open;
mod order;
mod output;
mod padding;
mod part;
mod ranges;
mod row;
mod rows;
mod rules;
mod sizes;
mod spool;
mod state;
mod streams;
mod tally;
mod walk;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};

use self::checks::Checks;
use self::device::{Detached, Device};
use self::events::Events;
use self::notes::Notes;
use self::rows::Rows;
use self::rules::Rules;
pub(crate) use self::rules::SMALL_SEGMENT;
use self::state::FinalState;
use crate::error::{Error, Result};
use crate::schema::{
    Block, ImportStat, ImportStatsBuilder, NoNames, ReplayChecksBuilder, Segment, Snapshot, Table, TraceEvent,
};
use crate::snapshot::{Options, RowSink, Summary};

/// Passes rows on to a sink, and adds what follows from them.
#[expect(missing_debug_implementations, reason = "sinks are not required to be printable")]
pub struct Replay<'a> {
    sink: &'a mut dyn RowSink,
    events: Events,
    rows: Rows,
    state: FinalState,
    /// Events by device that the filter left out.
    left_out: BTreeMap<i64, i64>,
    /// The row of `snapshot`, which waits for what the replay finds out.
    snapshot: Option<RecordBatch>,
}

impl RowSink for Replay<'_> {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        match table.name {
            name if name == TraceEvent::TABLE.name => self.events.push(&batch)?,
            name if name == Block::TABLE.name => self.state.push_blocks(&batch)?,
            name if name == Segment::TABLE.name => self.state.push_segments(&batch)?,
            name if name == crate::schema::Device::TABLE.name => self.state.push_devices(&batch)?,
            name if name == ImportStat::TABLE.name => self.read_stats(&batch)?,
            name if name == Snapshot::TABLE.name => {
                self.snapshot = Some(batch);
                return Ok(());
            }
            _ => {}
        }
        self.sink.write(table, batch)
    }
}

impl<'a> Replay<'a> {
    /// A replay whose temporary files, if it needs any, are in `dir`.
    pub fn new(dir: &Path, sink: &'a mut dyn RowSink) -> Self {
        Self {
            sink,
            events: Events::new(dir),
            rows: Rows::new(dir),
            state: FinalState::default(),
            left_out: BTreeMap::new(),
            snapshot: None,
        }
    }

    /// How many events of each device have no row is known to the importer alone.
    fn read_stats(&mut self, batch: &RecordBatch) -> Result<()> {
        let (device, value) = (columns::integers(batch, "device_id")?, columns::integers(batch, "value")?);
        for (row, name) in columns::texts(batch, "name")?.into_iter().enumerate() {
            if name == Some("events_left_out") {
                self.left_out.insert(device.value(row), value.value(row));
            }
        }
        Ok(())
    }

    /// Replays every device when all rows have come, writes `allocations` and `replay_checks` and what there is to say about
    /// them, and returns how many warnings that is.
    ///
    /// # Errors
    /// The sink's, or a temporary file that cannot be written or read.
    pub fn finish(mut self, options: &Options, summary: &Summary) -> Result<u64> {
        let settings = match &self.snapshot {
            Some(batch) => columns::texts(batch, "allocator_settings")?.into_iter().next().flatten(),
            None => None,
        };
        let mut places = std::mem::take(&mut self.events.places);
        let is_workspace =
            |segment: &state::Segment| self.events.is_workspace(segment.device_id, segment.address);
        let mut shares = self.state.shares(is_workspace);
        let only_pool = self.state.only_pool();
        let is_untold = only_pool.is_some() && !places.tell_pools();
        let only_pool = only_pool.filter(|pool| places.have_another_pool(*pool));
        let mut devices = Vec::new();
        for (id, index) in self.state.devices.iter().rev() {
            let seen = self.events.seen.get(id).cloned().unwrap_or_default();
            let detached = self.detached(*id, &seen, options, summary);
            let share = shares.remove(id).unwrap_or_default();
            let only_pool = only_pool.filter(|_| *index != device::HOST);
            let looks_outside = is_untold && *index != device::HOST && detached.is_none();
            devices.push(Device { id: *id, index: *index, share, seen, detached, only_pool, looks_outside });
        }
        devices.retain(|device| !device.is_empty());
        let rules = Rules::new(settings, self.padding(&devices)?);
        let mut checks = Vec::new();
        for device in devices {
            checks.push(device.replay(&rules, &self.events, &mut places, &mut self.rows)?);
        }
        checks.reverse();
        self.rows.write(&places, self.sink)?;
        let mut notes = Notes::default();
        notes.add(
            notes::Severity::Info,
            "block_padding_unknown",
            None,
            i128::from(rules.padding.is_none() && !checks.is_empty()),
            "nothing shows whether this NPU's allocator adds 32 bytes to a request; rounded sizes assume it does",
        );
        for check in &checks {
            check.report(&mut notes);
            streams::report(&mut notes, check.device_id, check.other_streams);
        }
        self.write_checks(&checks)?;
        self.write_notes(&mut notes)?;
        self.write_snapshot(rules.rounding.padding)?;
        Ok(notes.warnings)
    }

    /// Bytes the allocator adds to a request before it rounds.
    fn padding(&self, devices: &[Device<'_>]) -> Result<Option<i64>> {
        if !self.state.is_npu {
            return Ok(Some(0));
        }
        let is_host = |id| self.state.devices.get(&id) == Some(&device::HOST);
        if let Some(padding) = padding::of_blocks(&self.state, is_host) {
            return Ok(Some(padding));
        }
        for device in
            devices.iter().filter(|device| device.index != device::HOST && device.detached.is_none())
        {
            if let Some(padding) = padding::of_events(&self.events, &device.seen, &device.share)? {
                return Ok(Some(padding));
            }
        }
        Ok(None)
    }

    fn detached(
        &self,
        device: i64,
        seen: &events::Seen,
        options: &Options,
        summary: &Summary,
    ) -> Option<Detached> {
        let total = seen.kept.saturating_add(self.left_out.get(&device).copied().unwrap_or_default());
        if summary.salvaged.is_some() {
            Some(Detached::Salvaged)
        } else if options.filter.min_size.is_some() {
            Some(Detached::SizesLeftOut)
        } else if total > 0 && (seen.kept == 0 || seen.last_index + 1 < total) {
            Some(Detached::EndLeftOut)
        } else {
            None
        }
    }

    fn write_checks(&mut self, checks: &[Checks]) -> Result<()> {
        let mut builder = ReplayChecksBuilder::default();
        checks.iter().flat_map(Checks::rows).for_each(|row| builder.push(row));
        if builder.is_empty() {
            return Ok(());
        }
        let batch = builder
            .finish(&NoNames)
            .map_err(Error::store("replay_checks", "cannot build a batch of rows"))?;
        self.sink.write(&crate::schema::ReplayCheck::TABLE, batch)
    }

    fn write_notes(&mut self, notes: &mut Notes) -> Result<()> {
        let mut builder = ImportStatsBuilder::default();
        notes.rows.drain(..).for_each(|row| builder.push(row));
        if builder.is_empty() {
            return Ok(());
        }
        let batch =
            builder.finish(&NoNames).map_err(Error::store("import_stats", "cannot build a batch of rows"))?;
        self.sink.write(&ImportStat::TABLE, batch)
    }

    /// Lets the row of `snapshot` go on, with the padding that sizes were rounded with.
    fn write_snapshot(&mut self, padding: i64) -> Result<()> {
        let Some(batch) = self.snapshot.take() else { return Ok(()) };
        let schema = batch.schema();
        let place = schema.index_of("block_padding").ok();
        let columns = batch.columns().iter().enumerate().map(|(number, column)| {
            if Some(number) == place { Arc::new(Int64Array::from(vec![padding])) } else { Arc::clone(column) }
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect())
            .map_err(Error::store("snapshot", "cannot build a batch of rows"))?;
        self.sink.write(&Snapshot::TABLE, batch)
    }
}
