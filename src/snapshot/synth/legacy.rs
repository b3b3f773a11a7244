//! The list that PyTorch 1.13's `memory_snapshot()` gave: no addresses of blocks, no trace, a history instead.

use std::io::{self, Write};

use super::emit::{Emitter, length, stream_pointer};
use super::heap::{Block, Past, Segment};

impl<W: Write> Emitter<'_, W> {
    /// A segment of the list.
    pub(super) fn legacy_segment(&mut self, device: usize, segment: &Segment<'_>) -> io::Result<()> {
        let Some((_, head)) = segment.blocks.first() else { return Ok(()) };
        self.pickle.open_dict(8)?;
        let numbers = [
            ("device", u64::try_from(device).map_err(io::Error::other)?),
            ("address", segment.address),
            ("total_size", segment.total_size()),
            ("allocated_size", segment.allocated_size()),
            ("active_size", segment.active_size()),
            ("stream", stream_pointer(self.settings.dialect, device, head.pool.stream)),
        ];
        for (key, value) in numbers {
            self.word(key)?;
            self.pickle.unsigned(value)?;
        }
        self.word("segment_type")?;
        self.word(if head.pool.small { "small" } else { "large" })?;
        self.word("blocks")?;
        self.pickle.open_list(length(&segment.blocks)?)?;
        for (_, block) in &segment.blocks {
            self.legacy_block(device, block)?;
        }
        self.pickle.close()?;
        self.pickle.close()
    }

    fn legacy_block(&mut self, device: usize, block: &Block) -> io::Result<()> {
        let remembers = !block.history.is_empty();
        self.pickle.open_dict(2 + u64::from(remembers))?;
        self.word("size")?;
        self.pickle.unsigned(block.size)?;
        self.word("state")?;
        self.word(block.state.name())?;
        if remembers {
            self.word("history")?;
            self.pickle.open_list(length(&block.history)?)?;
            for past in &block.history {
                self.past(device, past)?;
            }
            self.pickle.close()?;
        }
        self.pickle.close()
    }

    fn past(&mut self, device: usize, past: &Past) -> io::Result<()> {
        let walk = past.context.as_deref();
        self.pickle.open_dict(2 + u64::from(walk.is_some()))?;
        self.word("addr")?;
        self.pickle.unsigned(past.address)?;
        self.word("real_size")?;
        self.pickle.unsigned(past.requested)?;
        if let Some(walk) = walk {
            self.word("frames")?;
            self.walk(device, walk)?;
        }
        self.pickle.close()
    }
}
