//! Expandable segments: a reservation of addresses per pool that grows and shrinks page by page.

use std::rc::Rc;

use super::allocator::{Allocator, LARGE_SEGMENT, SMALL_SEGMENT};
use super::event::{Action, Gather, Recorder, Stop};
use super::heap::{Block, Pool, State};

/// Bytes that are mapped at once.
fn page(pool: Pool) -> u64 {
    if pool.small { SMALL_SEGMENT } else { LARGE_SEGMENT }
}

impl Allocator {
    /// Maps pages until there is a free block of `size` bytes; `None` where the device has not that many.
    pub(super) fn grow_expandable(
        &mut self,
        recorder: &mut dyn Recorder,
        pool: Pool,
        size: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<Option<u64>, Stop> {
        let mut candidate = match self.candidate(pool, size)? {
            Some(address) => address,
            None => self.add_reservation(pool)?,
        };
        loop {
            let block = self.heap.block(candidate)?;
            let (start, missing) = match block.state {
                State::Unmapped => (candidate, size.min(block.size)),
                _ if block.size >= size => return Ok(Some(candidate)),
                _ => {
                    let missing = size - block.size;
                    match self.heap.behind(candidate)? {
                        Some((next, unmapped)) => (next, missing.min(unmapped.size)),
                        None => return Ok(None),
                    }
                }
            };
            match self.map(recorder, start, missing, context)? {
                Some(address) => candidate = address,
                None => return Ok(None),
            }
        }
    }

    /// The lowest place with address space for `size` bytes: an unmapped block, or the free block right before it.
    fn candidate(&self, pool: Pool, size: u64) -> Result<Option<u64>, Stop> {
        for unmapped in self.heap.unmapped_blocks(pool) {
            let before = self.heap.before(unmapped)?;
            let start =
                before.filter(|(_, block)| block.state == State::Free).map_or(unmapped, |(start, _)| start);
            if self.room_from(start, size)? {
                return Ok(Some(start));
            }
        }
        Ok(None)
    }

    /// Whether free and unmapped blocks from `start` on reach over `size` bytes.
    fn room_from(&self, start: u64, size: u64) -> Result<bool, Stop> {
        let mut room = self.heap.block(start)?.size;
        let mut last = start;
        while room < size {
            match self.heap.behind(last)? {
                Some((next, block)) if matches!(block.state, State::Free | State::Unmapped) => {
                    room += block.size;
                    last = next;
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reserves more addresses than the device has memory, so that one reservation is enough.
    fn add_reservation(&mut self, pool: Pool) -> Result<u64, Stop> {
        let size = (self.capacity / 8 * 9).max(1).next_multiple_of(page(pool));
        let address = self.address_space(size, page(pool))?;
        self.heap.add(address, Block::new(size, State::Unmapped, pool, address));
        Ok(address)
    }

    /// Maps at least `size` bytes from the start of an unmapped block on; says where the free block they are in begins.
    fn map(
        &mut self,
        recorder: &mut dyn Recorder,
        address: u64,
        size: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<Option<u64>, Stop> {
        let block = self.heap.block(address)?;
        let (pool, segment, available) = (block.pool, block.segment, block.size);
        let mapped = size.next_multiple_of(page(pool)).min(available);
        if !self.reserve(mapped) {
            return Ok(None);
        }
        self.heap.claim(address)?;
        if mapped < available {
            self.heap.split(address, mapped, State::Unmapped)?;
        }
        let start = self.heap.release(address, State::Free)?;
        self.record(recorder, Action::SegmentMap, address, mapped, Some(pool.stream), context.cloned())?;
        if start == segment {
            let head = self.heap.block_mut(start)?;
            head.segment_context = head.segment_context.take().or_else(|| context.cloned());
        }
        Ok(Some(start))
    }

    /// Gives the whole pages of a free block back; what is left of it at the ends stays free.
    pub(super) fn unmap(
        &mut self,
        recorder: &mut dyn Recorder,
        address: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<(), Stop> {
        let block = self.heap.block(address)?;
        let (pool, segment, block_end) = (block.pool, block.segment, address + block.size);
        let shown = context.cloned().or_else(|| block.segment_context.clone());
        let page = page(pool);
        let start = segment + (address - segment).next_multiple_of(page);
        let end = segment + (block_end - segment) / page * page;
        if end <= start {
            return Ok(());
        }
        self.heap.claim(address)?;
        self.heap.remove(address);
        if start > address {
            self.heap.add(address, Block::new(start - address, State::Free, pool, segment));
        }
        if end < block_end {
            self.heap.add(end, Block::new(block_end - end, State::Free, pool, segment));
        }
        self.heap.add(start, Block::new(end - start, State::Unmapped, pool, segment));
        self.heap.claim(start)?;
        let merged = self.heap.release(start, State::Unmapped)?;
        if self.heap.before(merged)?.is_none() && self.heap.behind(merged)?.is_none() {
            self.heap.claim(merged)?;
            self.heap.remove(merged);
        }
        self.counters.reserved -= end - start;
        self.record(recorder, Action::SegmentUnmap, start, end - start, Some(pool.stream), shown)
    }
}
