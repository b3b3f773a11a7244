//! The events of a snapshot, kept by column until they are read backward.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::datatypes::Int32Type;
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::chunk::{Chunk, Columns};
use super::columns::{self, NO_TIME};
use super::event::{ACTIONS, Action, Event, Place, Places};
use super::narrow::Narrow;
use super::order;
use super::spool::Spool;
use crate::error::Result;

/// Bytes of events that stay in memory: half a million of them or more.
const MEMORY: usize = 8 << 20;

/// Events that are made whole at a time: all their columns fit a near cache beside what the replay looks up.
const PART: usize = 2048;

/// Microseconds by which clocks of different threads disagree at most. An event that is earlier than the one before by
/// more is in another place than where it happened.
const JITTER: i64 = 1000;

/// What the events of a device showed while they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Events by action, in the order of [`Action`].
    counts: [u64; ACTIONS.len()],
    /// Events earlier than the one before by more than jitter.
    pub(super) jump_count: u64,
    /// Chunk and position of the first of them, as many as pieces can be merged.
    pub(super) jumps: Vec<(usize, usize)>,
    last_time: Option<i64>,
    untimed: u64,
    /// Events that were kept, those of workspaces included.
    pub(super) kept: i64,
    /// `trace_index` of the last of them.
    pub(super) last_index: i64,
    /// Which chunks they are in.
    pub(super) chunks: Range<usize>,
}

impl Seen {
    /// How many events did that.
    pub(super) fn count(&self, action: Action) -> u64 {
        self.counts.get(usize::from(action.number())).copied().unwrap_or_default()
    }

    /// Whether the list is a few pieces in the wrong order, and times say in which they belong.
    pub(super) fn is_in_pieces(&self) -> bool {
        (1..order::MOST_RUNS).contains(&self.jumps.len()) && self.untimed == 0
    }

    fn look(&mut self, chunk: usize, columns: &Columns) {
        for action in &columns.actions {
            if let Some(count) = self.counts.get_mut(usize::from(*action)) {
                *count += 1;
            }
        }
        let length = columns.len();
        self.kept = self.kept.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
        self.last_index = columns.index.last().copied().unwrap_or(self.last_index);
        if self.chunks.is_empty() {
            self.chunks.start = chunk;
        }
        self.chunks.end = chunk + 1;
        if columns.timed {
            self.look_at_times(chunk, &columns.time);
        } else {
            self.untimed += u64::try_from(length).unwrap_or_default();
        }
    }

    fn look_at_times(&mut self, chunk: usize, times: &[i64]) {
        for (position, time) in times.iter().enumerate() {
            if *time == NO_TIME {
                self.untimed += 1;
                continue;
            }
            let Some(last) = self.last_time.replace(*time).filter(|last| time < last) else { continue };
            if last.saturating_sub(*time) <= JITTER {
                continue;
            }
            self.jump_count += 1;
            if self.jumps.len() < order::MOST_RUNS {
                self.jumps.push((chunk, position));
            }
        }
    }
}

/// All events, in the order they came.
#[derive(Debug)]
pub(super) struct Events {
    spool: Spool,
    chunks: Vec<Chunk>,
    /// By device id.
    pub(super) seen: BTreeMap<i64, Seen>,
    /// Device id and address of the workspace blocks that the lists announce.
    workspaces: HashSet<(i64, i64), FixedState>,
    pub(super) places: Places,
}

/// The columns of a batch of `traces` that the replay needs.
struct Batch<'a> {
    index: &'a Int64Array,
    actions: Vec<u8>,
    addr: &'a Int64Array,
    size: &'a Int64Array,
    stack: &'a Int64Array,
    time: &'a Int64Array,
    places: Vec<u32>,
}

impl Batch<'_> {
    fn columns(&self, at: &Range<usize>) -> Columns {
        let slice = |array: &Int64Array| array.values().slice(at.start, at.len());
        let (time, timed) = columns::times(&self.time.slice(at.start, at.len()));
        Columns {
            actions: self.actions.get(at.clone()).unwrap_or_default().to_vec(),
            places: self.places.get(at.clone()).unwrap_or_default().to_vec().into(),
            addr: slice(self.addr),
            size: slice(self.size),
            stack: columns::zeros(&self.stack.slice(at.start, at.len())),
            time,
            timed,
            index: slice(self.index),
        }
    }
}

impl Events {
    /// None yet; what does not stay in memory goes to a file in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            spool: Spool::new(dir, MEMORY),
            chunks: Vec::new(),
            seen: BTreeMap::new(),
            workspaces: HashSet::default(),
            places: Places::default(),
        }
    }

    /// Takes a batch of `traces`.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let integers = |name| columns::integers(batch, name);
        let places = self.places(integers("stream")?, integers("pool_id_0")?, integers("pool_id_1")?);
        let columns = Batch {
            index: integers("trace_index")?,
            actions: self.actions(batch)?,
            addr: integers("addr")?,
            size: integers("size")?,
            stack: integers("stack_id")?,
            time: integers("time_us")?,
            places,
        };
        let mut start = 0;
        for run in integers("device_id")?.values().chunk_by(|one, next| one == next) {
            let at = start..start + run.len();
            start = at.end;
            let Some(device_id) = run.first() else { continue };
            let columns = columns.columns(&at);
            self.seen.entry(*device_id).or_default().look(self.chunks.len(), &columns);
            let (chunk, parts) = columns.into_parts();
            self.chunks.push(chunk);
            self.spool.push(parts)?;
        }
        Ok(())
    }

    /// Places by number. Nearly always all events are in one pool, and often on one stream.
    fn places(&mut self, stream: &Int64Array, first: &Int64Array, second: &Int64Array) -> Vec<u32> {
        let pool = columns::only(first).zip(columns::only(second)).map(|(first, second)| first.zip(second));
        let mut number = |stream, pool| self.places.number(Place { stream, pool });
        match (columns::only(stream), pool) {
            (Some(only), Some(pool)) => vec![number(only, pool); stream.len()],
            (None, Some(pool)) => {
                let mut last = None;
                let numbers = stream.iter().map(|stream| match last {
                    Some((known, number)) if known == stream => number,
                    _ => last.insert((stream, number(stream, pool))).1,
                });
                numbers.collect()
            }
            _ => {
                let pools = first.iter().zip(second).map(|(first, second)| first.zip(second));
                stream.iter().zip(pools).map(|(stream, pool)| number(stream, pool)).collect()
            }
        }
    }

    /// Actions by number. An entry that describes a workspace block is no event.
    fn actions(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
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
        let is_workspace = columns::integers(batch, "is_workspace")?.values();
        if is_workspace.iter().any(|flag| *flag != 0) {
            let (device_id, addr) =
                (columns::integers(batch, "device_id")?, columns::integers(batch, "addr")?);
            for (row, (action, flag)) in actions.iter_mut().zip(is_workspace).enumerate() {
                if *flag != 0 {
                    *action = other;
                    self.workspaces.insert((device_id.value(row), addr.value(row)));
                }
            }
        }
        Ok(actions)
    }

    /// Whether a device's list announces a workspace block at that address.
    pub(super) fn is_workspace(&self, device_id: i64, address: Option<i64>) -> bool {
        address.is_some_and(|address| self.workspaces.contains(&(device_id, address)))
    }

    /// A chunk as it was spooled.
    pub(super) fn chunk(&self, number: usize) -> Result<Option<Columns>> {
        let Some(chunk) = self.chunks.get(number) else { return Ok(None) };
        Ok(Some(Columns::from_parts(*chunk, &self.spool.get(number)?, &(0..usize::MAX))))
    }

    /// Hands the events of a device to `take`, the last one first, until it has had enough.
    pub(super) fn backward(
        &self,
        seen: &Seen,
        mut take: impl FnMut(&Event) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if seen.is_in_pieces() {
            return order::backward(self, seen, take);
        }
        for number in seen.chunks.clone().rev() {
            let Some(chunk) = self.chunks.get(number) else { continue };
            let parts = self.spool.get(number)?;
            let length = parts.first().map_or(0, Narrow::len);
            for start in (0..length).step_by(PART).rev() {
                let columns = Columns::from_parts(*chunk, &parts, &(start..start + PART));
                for event in columns.events(0..columns.len()).rev() {
                    if take(&event)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}
