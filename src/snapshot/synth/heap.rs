//! The blocks of one device, by address, and which of them are free, by size.
//!
//! The blocks of a segment tile it, so neighbours are found by address and nothing is linked. This module keeps the
//! tiling and the free index in step; what is split and when is the allocator's business.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use super::event::{Allocation, Gather, Stop, Stream};

/// A set of segments that blocks of one kind are cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pool {
    pub(super) stream: Stream,
    pub(super) small: bool,
}

/// What a block is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Allocated,
    /// Freed by the program, still used by another stream.
    PendingFree,
    Free,
    /// Address space of an expandable segment without memory behind it.
    Unmapped,
}

impl State {
    /// The text in the snapshot, which shows no unmapped blocks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::PendingFree => "active_pending_free",
            Self::Free | Self::Unmapped => "inactive",
        }
    }
}

/// A piece of a segment.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    /// Bytes last asked for; stays behind when the block is freed.
    pub(super) requested: u64,
    pub(super) state: State,
    pub(super) pool: Pool,
    /// Start of the segment, or of the reservation of an expandable one.
    pub(super) segment: u64,
    /// Walk of the allocation, while it lives.
    pub(super) context: Option<Rc<Gather>>,
    /// Walk that made the segment, as long as no allocation was cut off in front of it.
    pub(super) segment_context: Option<Rc<Gather>>,
    /// Index of the alloc event.
    pub(super) born: u64,
    /// Allocations that lay here, by address: what PyTorch 1.13 kept instead of a trace.
    pub(super) history: Vec<Past>,
}

/// An allocation in a block's history.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub(super) address: u64,
    pub(super) requested: u64,
    pub(super) context: Option<Rc<Gather>>,
}

impl Block {
    pub(super) fn new(size: u64, state: State, pool: Pool, segment: u64) -> Self {
        Self {
            size,
            requested: 0,
            state,
            pool,
            segment,
            context: None,
            segment_context: None,
            born: 0,
            history: Vec::new(),
        }
    }

    /// What its events are about.
    pub(super) fn allocation(&self) -> Option<Allocation> {
        let stack = self.context.as_ref()?.stack;
        Some(Allocation { stack, block_size: self.size, requested: self.requested, born: self.born })
    }
}

/// A segment of the final state.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub(super) address: u64,
    pub(super) blocks: Vec<(u64, &'a Block)>,
}

impl Segment<'_> {
    /// Bytes of the blocks that `counts` says yes to.
    pub(super) fn size_where(&self, counts: impl Fn(State) -> bool) -> u64 {
        self.blocks.iter().filter(|(_, block)| counts(block.state)).map(|(_, block)| block.size).sum()
    }

    /// Bytes reserved from the driver.
    pub(super) fn total_size(&self) -> u64 {
        self.size_where(|_| true)
    }

    /// Bytes of blocks in use.
    pub(super) fn allocated_size(&self) -> u64 {
        self.size_where(|state| state == State::Allocated)
    }

    /// Bytes of blocks in use or waiting for a stream.
    pub(super) fn active_size(&self) -> u64 {
        self.size_where(|state| state != State::Free)
    }

    /// Bytes asked for in active blocks.
    pub(super) fn requested_size(&self) -> u64 {
        let active = self.blocks.iter().filter(|(_, block)| block.state != State::Free);
        active.map(|(_, block)| block.requested).sum()
    }
}

/// All blocks of a device.
#[derive(Debug, Default)]
pub(super) struct Heap {
    blocks: BTreeMap<u64, Block>,
    free: BTreeMap<Pool, BTreeSet<(u64, u64)>>,
    unmapped: BTreeMap<Pool, BTreeSet<u64>>,
}

impl Heap {
    /// The block at `address`.
    pub(super) fn block(&self, address: u64) -> Result<&Block, Stop> {
        self.blocks.get(&address).ok_or_else(|| lost(address))
    }

    /// The block at `address`.
    pub(super) fn block_mut(&mut self, address: u64) -> Result<&mut Block, Stop> {
        self.blocks.get_mut(&address).ok_or_else(|| lost(address))
    }

    /// Pools that have free blocks.
    pub(super) fn pools(&self) -> Vec<Pool> {
        self.free.keys().copied().collect()
    }

    /// The smallest free block of at least `size` bytes, lowest address first.
    pub(super) fn best_fit(&self, pool: Pool, size: u64) -> Option<u64> {
        let (_, address) = self.free.get(&pool)?.range((size, 0)..).next()?;
        Some(*address)
    }

    /// Free blocks of a pool, by size and address.
    pub(super) fn free_blocks(&self, pool: Pool) -> Vec<u64> {
        self.free
            .get(&pool)
            .map(|free| free.iter().map(|(_, address)| *address).collect())
            .unwrap_or_default()
    }

    /// Unmapped blocks of a pool, by address.
    pub(super) fn unmapped_blocks(&self, pool: Pool) -> impl Iterator<Item = u64> {
        self.unmapped.get(&pool).into_iter().flatten().copied()
    }

    /// The block that ends where the one at `address` begins, in the same segment.
    pub(super) fn before(&self, address: u64) -> Result<Option<(u64, &Block)>, Stop> {
        let segment = self.block(address)?.segment;
        let before = self.blocks.range(..address).next_back().filter(|(_, block)| block.segment == segment);
        Ok(before.map(|(address, block)| (*address, block)))
    }

    /// The block that begins where the one at `address` ends, in the same segment.
    pub(super) fn behind(&self, address: u64) -> Result<Option<(u64, &Block)>, Stop> {
        let block = self.block(address)?;
        let end = address + block.size;
        Ok(self.blocks.get(&end).filter(|behind| behind.segment == block.segment).map(|behind| (end, behind)))
    }

    /// Adds a block that is free or unmapped, without looking at its neighbours.
    pub(super) fn add(&mut self, address: u64, block: Block) {
        self.index(address, &block);
        self.blocks.insert(address, block);
    }

    /// Takes a block out of the free or unmapped ones; its neighbours stay as they are.
    pub(super) fn claim(&mut self, address: u64) -> Result<(), Stop> {
        let block = self.blocks.get(&address).ok_or_else(|| lost(address))?;
        let (pool, state, size) = (block.pool, block.state, block.size);
        self.unindex(address, pool, state, size);
        Ok(())
    }

    /// Forgets a claimed block.
    pub(super) fn remove(&mut self, address: u64) {
        self.blocks.remove(&address);
    }

    /// Cuts a claimed block after `size` bytes; the rest is added in `state`, with what the block knew of its past.
    pub(super) fn split(&mut self, address: u64, size: u64, state: State) -> Result<(), Stop> {
        let block = self.block_mut(address)?;
        let mut rest = Block::new(block.size - size, state, block.pool, block.segment);
        block.size = size;
        if state == State::Free {
            rest.requested = block.requested;
            rest.segment_context = block.segment_context.take();
            let kept = block.history.partition_point(|past| past.address < address + size);
            rest.history = block.history.split_off(kept);
        }
        self.add(address + size, rest);
        Ok(())
    }

    /// Makes a claimed block free (or unmapped), together with neighbours that are the same; says where it now begins.
    pub(super) fn release(&mut self, address: u64, state: State) -> Result<u64, Stop> {
        self.block_mut(address)?.state = state;
        if let Some((next, true)) = self.behind(address)?.map(|(next, block)| (next, block.state == state)) {
            self.claim(next)?;
            if let Some(absorbed) = self.blocks.remove(&next) {
                let block = self.block_mut(address)?;
                block.size += absorbed.size;
                block.history.extend(absorbed.history);
            }
        }
        let mut start = address;
        if let Some((previous, true)) =
            self.before(address)?.map(|(previous, block)| (previous, block.state == state))
        {
            self.claim(previous)?;
            if let Some(absorbed) = self.blocks.remove(&address) {
                let block = self.block_mut(previous)?;
                block.size += absorbed.size;
                block.requested = absorbed.requested;
                block.history.extend(absorbed.history);
            }
            start = previous;
        }
        let block = self.blocks.get(&start).ok_or_else(|| lost(start))?;
        let (pool, size) = (block.pool, block.size);
        self.index_as(start, pool, state, size);
        Ok(start)
    }

    /// Segments by address: runs of mapped blocks of one driver allocation or reservation.
    pub(super) fn segments(&self) -> Vec<Segment<'_>> {
        let mut segments: Vec<Segment<'_>> = Vec::new();
        let mut open = None;
        for (&address, block) in &self.blocks {
            if block.state == State::Unmapped {
                open = None;
                continue;
            }
            match segments.last_mut() {
                Some(segment) if open == Some(block.segment) => segment.blocks.push((address, block)),
                _ => segments.push(Segment { address, blocks: vec![(address, block)] }),
            }
            open = Some(block.segment);
        }
        segments
    }

    fn index(&mut self, address: u64, block: &Block) {
        self.index_as(address, block.pool, block.state, block.size);
    }

    fn index_as(&mut self, address: u64, pool: Pool, state: State, size: u64) {
        match state {
            State::Free => {
                self.free.entry(pool).or_default().insert((size, address));
            }
            State::Unmapped => {
                self.unmapped.entry(pool).or_default().insert(address);
            }
            State::Allocated | State::PendingFree => {}
        }
    }

    fn unindex(&mut self, address: u64, pool: Pool, state: State, size: u64) {
        match state {
            State::Free => {
                self.free.entry(pool).or_default().remove(&(size, address));
            }
            State::Unmapped => {
                self.unmapped.entry(pool).or_default().remove(&address);
            }
            State::Allocated | State::PendingFree => {}
        }
    }
}

fn lost(address: u64) -> Stop {
    Stop::Failed(io::Error::other(format!("the simulated allocator lost its block at {address:#x}")))
}
