//! Rows of `allocations` on their way to the stores. They go from column to column: a row at a time would take three times as long.

use super::columns::NO_TIME;
use super::event::{Place, Places};
use super::part::{self, Part};
use super::row::{Fate, NO_INDEX, Origin, PROOFS, Reading};
use crate::error::{Error, Result};
use crate::schema::{Allocation, AllocationsBuilder, ByColumn as _, Names, Symbol};
use crate::snapshot::RowSink;

/// Rows in a batch for the stores.
const BATCH_ROWS: usize = 64 * 1024;

/// Words of the two columns that have words.
struct Words;

const WINDOW: Symbol = Symbol(0);
const BEFORE_WINDOW: Symbol = Symbol(1);
const LIVE: Symbol = Symbol(2);
const PENDING_FREE: Symbol = Symbol(3);
const FREED: Symbol = Symbol(4);

impl Names for Words {
    fn name(&self, symbol: Symbol) -> &'static str {
        match symbol {
            WINDOW => "window",
            BEFORE_WINDOW => "before_window",
            LIVE => "live",
            PENDING_FREE => "pending_free",
            FREED => "freed",
            _ => "",
        }
    }
}

/// Collects batches, and numbers the rows.
pub(super) struct Output<'a> {
    builder: AllocationsBuilder,
    id: i64,
    sink: &'a mut dyn RowSink,
}

impl<'a> Output<'a> {
    /// An output to `sink`, without rows yet.
    pub(super) fn new(sink: &'a mut dyn RowSink) -> Self {
        Self { builder: AllocationsBuilder::default(), id: 0, sink }
    }

    /// Rows that the batch has room for.
    pub(super) fn room(&self) -> usize {
        BATCH_ROWS.saturating_sub(self.builder.len()).max(1)
    }

    /// Adds rows of a device, the one at the end first, of which there is [`room`](Self::room) for all.
    pub(super) fn push(
        &mut self,
        device_id: i64,
        places: &Places,
        part: &Part,
        reading: &Reading,
    ) -> Result<()> {
        let count = part.kinds.len();
        let ids: Vec<i64> = (self.id.saturating_add(1)..).take(count).collect();
        self.id = ids.last().copied().unwrap_or(self.id);
        let [addr, size, block, alloc, requested, completed, alloc_time, free_time, stack, free_stack] =
            &part.integers;
        let kinds = || part.kinds.iter().rev();
        let places: Vec<Place> = part.places.iter().rev().map(|place| places.get(*place)).collect();
        let pools = || places.iter().map(|place| place.pool);
        let is_proven = PROOFS.map(|proof| i64::from(reading.is_proven(proof)));
        let rows = self.builder.by_column(count);
        rows.id.extend(ids.iter().map(|id| Some(*id)));
        rows.device_id.extend(std::iter::repeat_n(Some(device_id), count));
        rows.addr.extend(all(addr));
        rows.size.extend(all(size));
        rows.block_size.extend(all(block));
        rows.block_size_exact.extend(kinds().map(|kind| is_proven.get(part::proof_number(*kind)).copied()));
        rows.stream.extend(places.iter().map(|place| place.stream));
        rows.pool_id_0.extend(pools().map(|pool| pool.map(|pool| pool.0)));
        rows.pool_id_1.extend(pools().map(|pool| pool.map(|pool| pool.1)));
        rows.alloc_index.extend(known(alloc, NO_INDEX));
        rows.free_requested_index.extend(known(requested, NO_INDEX));
        rows.free_completed_index.extend(known(completed, NO_INDEX));
        rows.alloc_time_us.extend(known(alloc_time, NO_TIME));
        rows.free_time_us.extend(known(free_time, NO_TIME));
        rows.stack_id.extend(known(stack, 0));
        rows.free_stack_id.extend(known(free_stack, 0));
        rows.origin.extend(kinds().map(|kind| Some(origin(*kind).0)));
        rows.fate.extend(kinds().map(|kind| Some(fate(*kind).0)));
        if self.builder.len() < BATCH_ROWS { Ok(()) } else { self.flush() }
    }

    /// Hands on what is left.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let batch = self.builder.finish(&Words);
        let batch = batch.map_err(Error::store("allocations", "cannot build a batch of rows"))?;
        self.sink.write(&Allocation::TABLE, batch)
    }
}

fn all(column: &[i64]) -> impl ExactSizeIterator<Item = Option<i64>> + Clone {
    column.iter().rev().map(|value| Some(*value))
}

fn known(column: &[i64], unknown: i64) -> impl ExactSizeIterator<Item = Option<i64>> + Clone {
    column.iter().rev().map(move |value| (*value != unknown).then_some(*value))
}

fn origin(kind: u8) -> Symbol {
    match part::origin(kind) {
        Origin::Window => WINDOW,
        Origin::BeforeWindow => BEFORE_WINDOW,
    }
}

fn fate(kind: u8) -> Symbol {
    match part::fate(kind) {
        Fate::Live => LIVE,
        Fate::PendingFree => PENDING_FREE,
        Fate::Freed => FREED,
    }
}
