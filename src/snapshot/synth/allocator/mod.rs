//! The caching allocator of one device: rounding, best fit, splitting, coalescing, frees that wait for a stream.
//!
//! Rules and order of events follow the allocators of PyTorch and `torch_npu`. The counters are kept as it works; nothing
//! is summed up from the events afterwards.

mod release;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

pub(super) use release::Release;

use super::dice::Dice;
use super::event::{Action, Counters, Event, Gather, Peaks, Recorder, StackId, Stop, Stream};
use super::heap::{Block, Heap, Past, Pool, State};
use super::settings::{Context, Dialect, Settings};

const MIB: u64 = 1 << 20;
/// Blocks are multiples of this.
const BLOCK_ROUNDING: u64 = 512;
/// Blocks up to this size come from the small pool; a large block is not split for a rest up to this size.
const SMALL_LIMIT: u64 = MIB;
/// A segment of the small pool.
pub(super) const SMALL_SEGMENT: u64 = 2 * MIB;
/// A segment of the large pool for blocks below `LARGE_LIMIT`.
pub(super) const LARGE_SEGMENT: u64 = 20 * MIB;
/// Blocks of at least this size get a segment of their own, rounded to `SEGMENT_ROUNDING`.
const LARGE_LIMIT: u64 = 10 * MIB;
const SEGMENT_ROUNDING: u64 = 2 * MIB;

/// An allocator and what it has done.
#[derive(Debug)]
pub(super) struct Allocator {
    pub(super) heap: Heap,
    pub(super) counters: Counters,
    /// Highest values since the beginning.
    pub(super) peaks: Peaks,
    /// Events so far.
    pub(super) events: u64,
    /// Walks of the call stack so far.
    pub(super) gathers: u64,
    pub(super) oom_count: u64,
    pub(super) time_us: u64,
    /// Where the driver will put the next segment.
    pub(super) next_address: u64,
    pub(super) expandable: bool,
    pub(super) capacity: u64,
    padding: u64,
    frees_gather: bool,
    keeps_history: bool,
    /// Frees that wait for a stream: the malloc that will find them done, and the block.
    waiting: VecDeque<(u64, u64)>,
    mallocs: u64,
    /// Gaps between addresses, delays of streams.
    dice: Dice,
    clock: Dice,
}

impl Allocator {
    /// An allocator that has reserved nothing.
    pub(super) fn new(settings: &Settings, device: u64) -> Self {
        let base = settings.address_base.unwrap_or(match settings.dialect {
            Dialect::Npu => 0x12c0_4120_0000,
            Dialect::Cuda | Dialect::Legacy => 0x7f4c_8200_0000,
        });
        Self {
            heap: Heap::default(),
            counters: Counters::default(),
            peaks: Peaks::default(),
            events: 0,
            gathers: 0,
            oom_count: 0,
            time_us: 1_767_225_600_000_000 + device * 23,
            next_address: base.wrapping_add(device << 41),
            expandable: settings.expandable,
            capacity: settings.capacity,
            padding: settings.padding,
            frees_gather: settings.context == Context::All,
            keeps_history: settings.dialect == Dialect::Legacy,
            waiting: VecDeque::new(),
            mallocs: 0,
            dice: Dice::new(settings.seed, "allocator", device),
            clock: Dice::new(settings.seed, "clock", device),
        }
    }

    /// Gives out a block for `requested` bytes; returns its address.
    pub(super) fn malloc(
        &mut self,
        recorder: &mut dyn Recorder,
        requested: u64,
        stream: Stream,
        stack: StackId,
    ) -> Result<u64, Stop> {
        let context = Some(self.gather(stack));
        self.mallocs += 1;
        self.complete_frees(recorder, self.mallocs, context.as_ref())?;
        let size = (requested + self.padding).max(1).next_multiple_of(BLOCK_ROUNDING);
        let pool = Pool { stream, small: size <= SMALL_LIMIT };
        let mut found = self.find_or_grow(recorder, pool, size, context.as_ref())?;
        if found.is_none() {
            self.release_cached(recorder, context.as_ref())?;
            found = self.find_or_grow(recorder, pool, size, context.as_ref())?;
        }
        let Some(address) = found else {
            self.oom_count += 1;
            let device_free = self.capacity - self.counters.reserved;
            self.record(recorder, Action::Oom, device_free, size, Some(stream), context)?;
            return Err(Stop::OutOfMemory);
        };
        self.heap.claim(address)?;
        let rest = self.heap.block(address)?.size - size;
        if if pool.small || self.expandable { rest >= BLOCK_ROUNDING } else { rest > SMALL_LIMIT } {
            self.heap.split(address, size, State::Free)?;
        }
        let born = self.events;
        let keeps_history = self.keeps_history;
        let block = self.heap.block_mut(address)?;
        block.state = State::Allocated;
        block.requested = requested;
        block.born = born;
        block.context.clone_from(&context);
        if keeps_history {
            let end = address + block.size;
            block.history.retain(|past| past.address >= end);
            block.history.insert(0, Past { address, requested, context: context.clone() });
        }
        let size = block.size;
        self.counters.allocated += size;
        self.counters.active += size;
        self.counters.allocated_requested += requested;
        self.counters.active_requested += requested;
        self.record(recorder, Action::Alloc, address, requested, Some(stream), context)?;
        Ok(address)
    }

    /// Leaves the marker of a snapshot taken now.
    pub(super) fn mark_snapshot(&mut self, recorder: &mut dyn Recorder) -> Result<(), Stop> {
        self.record(recorder, Action::Snapshot, 0, self.counters.active, None, None)
    }

    /// Reports an event; the counters already say what it did.
    pub(super) fn record(
        &mut self,
        recorder: &mut dyn Recorder,
        action: Action,
        address: u64,
        size: u64,
        stream: Option<Stream>,
        context: Option<Rc<Gather>>,
    ) -> Result<(), Stop> {
        self.time_us += self.clock.between(1, 90);
        let allocation = match action {
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => {
                self.heap.block(address)?.allocation()
            }
            _ => None,
        };
        let event = Event { action, address, size, stream, context, time_us: self.time_us, allocation };
        let index = self.events;
        self.events += 1;
        self.peaks.update(index, self.counters);
        Ok(recorder.record(index, &event, self.counters)?)
    }

    /// Takes memory from the driver; false where it has not that much.
    pub(super) fn reserve(&mut self, size: u64) -> bool {
        let fits = self.counters.reserved + size <= self.capacity;
        if fits {
            self.counters.reserved += size;
        }
        fits
    }

    /// Address space for `size` bytes, at a multiple of `alignment`.
    pub(super) fn address_space(&mut self, size: u64, alignment: u64) -> Result<u64, Stop> {
        let gap = SEGMENT_ROUNDING * self.dice.between(0, 2);
        let address = self.next_address.checked_next_multiple_of(alignment);
        let end = address.and_then(|address| address.checked_add(size + gap));
        match (address, end) {
            (Some(address), Some(end)) => {
                self.next_address = end;
                Ok(address)
            }
            _ => Err(Stop::Failed(io::Error::other("the simulated device ran out of 64-bit addresses"))),
        }
    }

    fn gather(&mut self, stack: StackId) -> Rc<Gather> {
        self.gathers += 1;
        Rc::new(Gather { number: self.gathers, stack, list: Cell::new(None) })
    }

    fn find_or_grow(
        &mut self,
        recorder: &mut dyn Recorder,
        pool: Pool,
        size: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<Option<u64>, Stop> {
        match self.heap.best_fit(pool, size) {
            Some(address) => Ok(Some(address)),
            None if self.expandable => self.grow_expandable(recorder, pool, size, context),
            None => self.add_segment(recorder, pool, size, context),
        }
    }

    fn add_segment(
        &mut self,
        recorder: &mut dyn Recorder,
        pool: Pool,
        size: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<Option<u64>, Stop> {
        let segment_size = if pool.small {
            SMALL_SEGMENT
        } else if size < LARGE_LIMIT {
            LARGE_SEGMENT
        } else {
            size.next_multiple_of(SEGMENT_ROUNDING)
        };
        if !self.reserve(segment_size) {
            return Ok(None);
        }
        let address = self.address_space(segment_size, SEGMENT_ROUNDING)?;
        let mut block = Block::new(segment_size, State::Free, pool, address);
        block.segment_context = context.cloned();
        self.heap.add(address, block);
        self.record(
            recorder,
            Action::SegmentAlloc,
            address,
            segment_size,
            Some(pool.stream),
            context.cloned(),
        )?;
        Ok(Some(address))
    }
}
