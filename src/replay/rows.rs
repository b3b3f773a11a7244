//! Finished rows of `allocations`: they come last first, and are turned round on their way to the stores.

use std::ops::Range;
use std::path::Path;

use arrow::buffer::ScalarBuffer;

use super::columns::NO_TIME;
use super::event::Places;
use super::narrow::{self, Narrow};
use super::row::{Fate, NO_INDEX, Origin, PROOFS, Proof, Reading, Row};
use super::spool::Spool;
use crate::error::{Error, Result};
use crate::schema::{Allocation, AllocationsBuilder, Names, Symbol};
use crate::snapshot::RowSink;

/// Bytes of rows that stay in memory.
const MEMORY: usize = 8 << 20;
/// Rows in a chunk of the spool: few enough for a near cache.
const CHUNK_ROWS: usize = 8 * 1024;
/// Rows in a batch for the stores.
const BATCH_ROWS: usize = 64 * 1024;

/// Rows of it that are made whole at a time.
const PART_ROWS: usize = 1024;

/// Columns of integers.
const INTEGERS: usize = 10;

/// Rows by column, as they are spooled.
#[derive(Debug, Default)]
struct Columns {
    integers: [Vec<i64>; INTEGERS],
    places: Vec<u32>,
    kinds: Vec<u8>,
}

impl Columns {
    fn push(&mut self, row: &Row) {
        let Row { addr, size, block, alloc, requested, completed, alloc_time, free_time, .. } = *row;
        let values = [
            addr,
            size,
            block,
            alloc,
            requested,
            completed,
            alloc_time,
            free_time,
            row.stack,
            row.free_stack,
        ];
        for (column, value) in self.integers.iter_mut().zip(values) {
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

/// Proof, origin and fate in one byte.
fn kind(row: &Row) -> u8 {
    let proof =
        PROOFS.iter().zip(0_u8..).find(|(proof, _)| **proof == row.proof).map_or(0, |(_, number)| number);
    let origin = match row.origin {
        Origin::Window => 0,
        Origin::BeforeWindow => 1,
    };
    let fate = match row.fate {
        Fate::Live => 0,
        Fate::PendingFree => 1,
        Fate::Freed => 2,
    };
    proof | origin << 3 | fate << 4
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
        let mut output = Output { builder: AllocationsBuilder::default(), id: 0, sink };
        let starts = [0].into_iter().chain(self.devices.iter().map(|(_, _, end)| *end));
        let chunks: Vec<_> = starts.zip(&self.devices).collect();
        for (start, (device_id, reading, end)) in chunks.into_iter().rev() {
            for number in (start..*end).rev() {
                let parts = self.spool.get(number)?;
                for start in (0..CHUNK_ROWS).step_by(PART_ROWS).rev() {
                    for row in Chunk::read(&parts, &(start..start + PART_ROWS)).rows().rev() {
                        output.push(*device_id, places, &reading.apply(row), reading.is_proven(row.proof))?;
                    }
                }
            }
        }
        output.flush()
    }
}

/// A chunk of rows, by column.
struct Chunk {
    kinds: Vec<u8>,
    places: Vec<u32>,
    integers: [ScalarBuffer<i64>; INTEGERS],
}

impl Chunk {
    /// A part of what was spooled.
    fn read(parts: &[Narrow], at: &Range<usize>) -> Self {
        let mut parts = parts.iter().map(|part| part.slice(at));
        let kinds = parts.next().map_or_else(Vec::new, |part| part.values(narrow::low));
        let places = parts.next().map_or_else(Vec::new, |part| part.values(narrow::low));
        let integers =
            std::array::from_fn(|_| parts.next().map_or_else(|| Vec::new().into(), |part| part.integers()));
        Self { kinds, places, integers }
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = Row> {
        let [addr, size, block, alloc, requested, completed, alloc_time, free_time, stack, free_stack] =
            &self.integers;
        let memory = addr.iter().zip(size.iter()).zip(block.iter());
        let indices = alloc.iter().zip(requested.iter()).zip(completed.iter());
        let times = alloc_time.iter().zip(free_time.iter());
        let stacks = stack.iter().zip(free_stack.iter());
        let heads = self.kinds.iter().zip(self.places.iter());
        heads.zip(memory.zip(indices)).zip(times.zip(stacks)).map(
            |(((kind, place), (memory, indices)), (times, stacks))| Row {
                addr: *memory.0.0,
                size: *memory.0.1,
                block: *memory.1,
                proof: PROOFS.get(usize::from(kind & 7)).copied().unwrap_or(Proof::None),
                alloc: *indices.0.0,
                requested: *indices.0.1,
                completed: *indices.1,
                alloc_time: *times.0,
                free_time: *times.1,
                stack: *stacks.0,
                free_stack: *stacks.1,
                place: *place,
                origin: if kind & 8 == 0 { Origin::Window } else { Origin::BeforeWindow },
                fate: match kind >> 4 {
                    0 => Fate::Live,
                    1 => Fate::PendingFree,
                    _ => Fate::Freed,
                },
            },
        )
    }
}

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

/// Rows on their way to the stores.
struct Output<'a> {
    builder: AllocationsBuilder,
    id: i64,
    sink: &'a mut dyn RowSink,
}

impl Output<'_> {
    fn push(&mut self, device_id: i64, places: &Places, row: &Row, is_proven: bool) -> Result<()> {
        let known = |value: i64, unknown: i64| Some(value).filter(|value| *value != unknown);
        let place = places.get(row.place);
        self.id += 1;
        self.builder.push(Allocation {
            id: self.id,
            device_id,
            addr: row.addr,
            size: row.size,
            block_size: Some(row.block),
            block_size_exact: Some(i64::from(is_proven)),
            stream: place.stream,
            pool_id_0: place.pool.map(|pool| pool.0),
            pool_id_1: place.pool.map(|pool| pool.1),
            alloc_index: known(row.alloc, NO_INDEX),
            free_requested_index: known(row.requested, NO_INDEX),
            free_completed_index: known(row.completed, NO_INDEX),
            alloc_time_us: known(row.alloc_time, NO_TIME),
            free_time_us: known(row.free_time, NO_TIME),
            stack_id: known(row.stack, 0),
            free_stack_id: known(row.free_stack, 0),
            origin: match row.origin {
                Origin::Window => WINDOW,
                Origin::BeforeWindow => BEFORE_WINDOW,
            },
            fate: match row.fate {
                Fate::Live => LIVE,
                Fate::PendingFree => PENDING_FREE,
                Fate::Freed => FREED,
            },
        });
        if self.builder.len() < BATCH_ROWS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let batch = self.builder.finish(&Words);
        let batch = batch.map_err(Error::store("allocations", "cannot build a batch of rows"))?;
        self.sink.write(&Allocation::TABLE, batch)
    }
}
