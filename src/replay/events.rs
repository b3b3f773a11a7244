//! The events of a snapshot, kept by column until they are read backward.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::Int32Type;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::columns::{self, NO_TIME};
use super::spool::Spool;
use crate::error::Result;

/// Bytes of events that stay in memory: about 250,000 of them.
const MEMORY: usize = 8 << 20;

/// What an event does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    /// A mark of an earlier dump.
    Snapshot,
    /// Nothing.
    Other,
}

/// Actions by the number that stands for each in a spooled column.
const ACTIONS: [Action; 9] = [
    Action::Alloc,
    Action::FreeRequested,
    Action::FreeCompleted,
    Action::SegmentAlloc,
    Action::SegmentFree,
    Action::SegmentMap,
    Action::SegmentUnmap,
    Action::Snapshot,
    Action::Other,
];

impl Action {
    fn of(name: &str) -> Self {
        match name {
            "alloc" => Self::Alloc,
            "free_requested" => Self::FreeRequested,
            "free_completed" => Self::FreeCompleted,
            "segment_alloc" => Self::SegmentAlloc,
            "segment_free" => Self::SegmentFree,
            "segment_map" => Self::SegmentMap,
            "segment_unmap" => Self::SegmentUnmap,
            "snapshot" => Self::Snapshot,
            _ => Self::Other,
        }
    }

    fn number(self) -> u8 {
        ACTIONS.iter().zip(0_u8..).find(|(action, _)| **action == self).map_or(u8::MAX, |(_, number)| number)
    }
}

/// An event as the replay needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) action: Action,
    /// `trace_index`.
    pub(super) index: i64,
    pub(super) addr: i64,
    pub(super) size: i64,
    /// [`NO_TIME`] without a clock.
    pub(super) time: i64,
    /// `stack_id`, 0 without one.
    pub(super) stack: i64,
    pub(super) place: u32,
}

/// Stream and memory pool of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Place {
    pub(super) stream: Option<i64>,
    pub(super) pool: Option<(i64, i64)>,
}

/// The different places, numbered as they come.
#[derive(Debug, Default)]
pub(super) struct Places {
    numbers: HashMap<Place, u32, FixedState>,
    places: Vec<Place>,
    last: Option<(Place, u32)>,
}

impl Places {
    /// The number of a place.
    pub(super) fn number(&mut self, place: Place) -> u32 {
        if let Some((last, number)) = self.last
            && last == place
        {
            return number;
        }
        let next = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        self.last = Some((place, number));
        number
    }

    /// The place behind a number.
    pub(super) fn get(&self, number: u32) -> Place {
        usize::try_from(number).ok().and_then(|number| self.places.get(number)).copied().unwrap_or_default()
    }
}

/// What the events of a device showed while they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Events by action, in the order of [`Action`].
    counts: [u64; ACTIONS.len()],
    /// Events earlier than the one before.
    pub(super) backward_steps: u64,
    last_time: Option<i64>,
    /// Events that were kept, those of workspaces included.
    pub(super) kept: i64,
    /// `trace_index` of the last of them.
    pub(super) last_index: i64,
    /// Addresses of the workspace blocks that the list announces.
    pub(super) workspaces: Vec<i64>,
}

impl Seen {
    /// How many events did that.
    pub(super) fn count(&self, action: Action) -> u64 {
        self.counts.get(usize::from(action.number())).copied().unwrap_or_default()
    }
}

/// A run of events of one device.
#[derive(Debug)]
struct Chunk {
    device_id: i64,
    /// `trace_index` of the first, where the others follow without a gap.
    first_index: Option<i64>,
    timed: bool,
}

/// All events, in the order they came.
#[derive(Debug)]
pub(super) struct Events {
    spool: Spool,
    chunks: Vec<Chunk>,
    /// By device id.
    pub(super) seen: BTreeMap<i64, Seen>,
    pub(super) places: Places,
}

/// The columns of a batch of `traces` that the replay needs.
struct Batch<'a> {
    device_id: &'a Int64Array,
    index: &'a Int64Array,
    actions: Vec<u8>,
    addr: &'a Int64Array,
    size: &'a Int64Array,
    stack: &'a Int64Array,
    time: &'a Int64Array,
    places: Vec<u32>,
}

impl Events {
    /// None yet; what does not stay in memory goes to a file in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            spool: Spool::new(dir, MEMORY),
            chunks: Vec::new(),
            seen: BTreeMap::new(),
            places: Places::default(),
        }
    }

    /// Takes a batch of `traces`.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let (stream, first, second) = (
            columns::integers(batch, "stream")?,
            columns::integers(batch, "pool_id_0")?,
            columns::integers(batch, "pool_id_1")?,
        );
        let places = stream
            .iter()
            .zip(first.iter().zip(second.iter()))
            .map(|(stream, (first, second))| self.places.number(Place { stream, pool: first.zip(second) }))
            .collect();
        let columns = Batch {
            device_id: columns::integers(batch, "device_id")?,
            index: columns::integers(batch, "trace_index")?,
            actions: self.actions(batch)?,
            addr: columns::integers(batch, "addr")?,
            size: columns::integers(batch, "size")?,
            stack: columns::integers(batch, "stack_id")?,
            time: columns::integers(batch, "time_us")?,
            places,
        };
        let devices = columns.device_id.values();
        let mut start = 0;
        for run in devices.chunk_by(|one, next| one == next) {
            if let Some(device_id) = run.first() {
                self.push_run(*device_id, &columns, start, run.len())?;
            }
            start += run.len();
        }
        Ok(())
    }

    /// Actions by number. An entry that describes a workspace block is no event.
    fn actions(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let is_workspace = columns::integers(batch, "is_workspace")?.values();
        let (device_id, addr) = (columns::integers(batch, "device_id")?, columns::integers(batch, "addr")?);
        let column = columns::column(batch, "action")?;
        let dictionary = column.as_dictionary_opt::<Int32Type>();
        let names = dictionary.and_then(|dictionary| dictionary.values().as_string_opt::<i32>());
        let (Some(dictionary), Some(names)) = (dictionary, names) else {
            return Err(columns::unexpected("action"));
        };
        let numbers: Vec<u8> =
            names.iter().map(|name| Action::of(name.unwrap_or_default()).number()).collect();
        let other = Action::Other.number();
        let number = |key: &i32| usize::try_from(*key).ok().and_then(|key| numbers.get(key)).copied();
        let mut actions: Vec<u8> =
            dictionary.keys().values().iter().map(|key| number(key).unwrap_or(other)).collect();
        if is_workspace.iter().any(|flag| *flag != 0) {
            for (row, (action, flag)) in actions.iter_mut().zip(is_workspace).enumerate() {
                if *flag != 0 {
                    *action = other;
                    let seen = self.seen.entry(device_id.value(row)).or_default();
                    seen.workspaces.push(addr.value(row));
                }
            }
        }
        Ok(actions)
    }

    fn push_run(&mut self, device_id: i64, batch: &Batch<'_>, start: usize, length: usize) -> Result<()> {
        let slice = |array: &Int64Array| array.values().slice(start, length);
        let index = slice(batch.index);
        let actions = batch.actions.get(start..start + length).unwrap_or_default();
        let places = batch.places.get(start..start + length).unwrap_or_default();
        let time = columns::times(&batch.time.slice(start, length));
        let seen = self.seen.entry(device_id).or_default();
        for action in actions {
            if let Some(count) = seen.counts.get_mut(usize::from(*action)) {
                *count += 1;
            }
        }
        for time in time.iter().flat_map(|time| time.iter()).filter(|time| **time != NO_TIME) {
            seen.backward_steps += u64::from(seen.last_time.replace(*time).is_some_and(|last| *time < last));
        }
        seen.kept = seen.kept.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
        let (Some(first), Some(last)) = (index.first().copied(), index.last().copied()) else {
            return Ok(());
        };
        seen.last_index = last;
        let is_dense = usize::try_from(last.wrapping_sub(first)) == Ok(length - 1);
        let mut parts = vec![
            Buffer::from_slice_ref(actions),
            Buffer::from_slice_ref(places),
            slice(batch.addr).into_inner(),
            slice(batch.size).into_inner(),
            slice(batch.stack).into_inner(),
        ];
        self.chunks.push(Chunk { device_id, first_index: is_dense.then_some(first), timed: time.is_some() });
        parts.extend(time.map(ScalarBuffer::into_inner));
        parts.extend((!is_dense).then(|| index.into_inner()));
        self.spool.push(parts)
    }

    /// Hands the events of a device to `take`, the last one first.
    pub(super) fn backward(&self, device_id: i64, mut take: impl FnMut(&Event) -> Result<()>) -> Result<()> {
        for (number, chunk) in self.chunks.iter().enumerate().rev() {
            if chunk.device_id == device_id {
                Columns::read(chunk, self.spool.get(number)?).backward(&mut take)?;
            }
        }
        Ok(())
    }
}

/// A chunk as it is read again.
struct Columns {
    actions: Buffer,
    places: ScalarBuffer<u32>,
    addr: ScalarBuffer<i64>,
    size: ScalarBuffer<i64>,
    stack: ScalarBuffer<i64>,
    time: ScalarBuffer<i64>,
    index: ScalarBuffer<i64>,
}

impl Columns {
    fn read(chunk: &Chunk, parts: Vec<Buffer>) -> Self {
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let (actions, places) = (next(), ScalarBuffer::from(next()));
        let length = actions.len();
        let (addr, size, stack) = (next().into(), next().into(), next().into());
        let time = if chunk.timed { next().into() } else { vec![NO_TIME; length].into() };
        let index = match chunk.first_index {
            Some(first) => (first..).take(length).collect(),
            None => next().into(),
        };
        Self { actions, places, addr, size, stack, time, index }
    }

    fn backward(&self, take: &mut impl FnMut(&Event) -> Result<()>) -> Result<()> {
        let head = self.actions.iter().zip(self.places.iter()).zip(self.index.iter());
        let memory = self.addr.iter().zip(self.size.iter());
        let rest = self.stack.iter().zip(self.time.iter());
        for (((action, place), index), ((addr, size), (stack, time))) in head.zip(memory.zip(rest)).rev() {
            let action = ACTIONS.get(usize::from(*action)).copied().unwrap_or(Action::Other);
            let event = Event {
                action,
                index: *index,
                addr: *addr,
                size: *size,
                time: *time,
                stack: *stack,
                place: *place,
            };
            take(&event)?;
        }
        Ok(())
    }
}
