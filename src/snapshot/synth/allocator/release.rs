//! Giving memory back: frees that are done at once or wait for a stream, and segments that return to the driver.

use std::rc::Rc;

use super::Allocator;
use crate::snapshot::synth::event::{Action, Gather, Recorder, StackId, Stop};
use crate::snapshot::synth::heap::State;

/// How a block is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::snapshot::synth) enum Release {
    /// Nobody else uses it.
    AtOnce,
    /// Another stream was told of it (`record_stream`) and is not done.
    Later,
}

impl Allocator {
    /// Takes a block back.
    pub(in crate::snapshot::synth) fn free(
        &mut self,
        recorder: &mut dyn Recorder,
        address: u64,
        stack: StackId,
        release: Release,
    ) -> Result<(), Stop> {
        let context = self.frees_gather.then(|| self.gather(stack));
        let block = self.heap.block_mut(address)?;
        block.state = State::PendingFree;
        let (size, requested, stream) = (block.size, block.requested, block.pool.stream);
        let shown = context.clone().or_else(|| block.context.clone());
        self.counters.allocated -= size;
        self.counters.allocated_requested -= requested;
        self.record(recorder, Action::FreeRequested, address, requested, Some(stream), shown)?;
        match release {
            Release::AtOnce => self.complete_free(recorder, address, context.as_ref()),
            Release::Later => {
                let delay = self.dice.between(3, 40);
                self.waiting.push_back((self.mallocs + delay, address));
                Ok(())
            }
        }
    }

    /// Gives cached memory back to the driver, as `empty_cache()` does.
    pub(in crate::snapshot::synth) fn empty_cache(
        &mut self,
        recorder: &mut dyn Recorder,
        stack: StackId,
    ) -> Result<(), Stop> {
        let context = self.frees_gather.then(|| self.gather(stack));
        self.release_cached(recorder, context.as_ref())
    }

    /// Waits for all streams.
    pub(in crate::snapshot::synth) fn synchronize(
        &mut self,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Stop> {
        self.complete_frees(recorder, u64::MAX, None)
    }

    /// Ends the frees whose stream is done by the malloc number `now`.
    ///
    /// The walk they show is that of whoever looked, usually a malloc that has nothing to do with them.
    pub(super) fn complete_frees(
        &mut self,
        recorder: &mut dyn Recorder,
        now: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<(), Stop> {
        while let Some((_, address)) = self.waiting.pop_front_if(|(ready, _)| *ready <= now) {
            self.complete_free(recorder, address, context)?;
        }
        Ok(())
    }

    fn complete_free(
        &mut self,
        recorder: &mut dyn Recorder,
        address: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<(), Stop> {
        let block = self.heap.block(address)?;
        let (size, requested, stream) = (block.size, block.requested, block.pool.stream);
        let shown = context.cloned().or_else(|| block.context.clone());
        self.counters.active -= size;
        self.counters.active_requested -= requested;
        self.record(recorder, Action::FreeCompleted, address, requested, Some(stream), shown)?;
        self.heap.block_mut(address)?.context = None;
        self.heap.release(address, State::Free)?;
        Ok(())
    }

    /// Waits for all streams and gives every segment back that is free as a whole.
    pub(super) fn release_cached(
        &mut self,
        recorder: &mut dyn Recorder,
        context: Option<&Rc<Gather>>,
    ) -> Result<(), Stop> {
        self.complete_frees(recorder, u64::MAX, context)?;
        for pool in self.heap.pools() {
            for address in self.heap.free_blocks(pool) {
                if self.expandable {
                    self.unmap(recorder, address, context)?;
                } else if self.heap.before(address)?.is_none() && self.heap.behind(address)?.is_none() {
                    self.drop_segment(recorder, address, context)?;
                }
            }
        }
        Ok(())
    }

    fn drop_segment(
        &mut self,
        recorder: &mut dyn Recorder,
        address: u64,
        context: Option<&Rc<Gather>>,
    ) -> Result<(), Stop> {
        let block = self.heap.block(address)?;
        let (size, stream) = (block.size, block.pool.stream);
        let shown = context.cloned().or_else(|| block.segment_context.clone());
        self.heap.claim(address)?;
        self.heap.remove(address);
        self.counters.reserved -= size;
        self.record(recorder, Action::SegmentFree, address, size, Some(stream), shown)
    }
}
