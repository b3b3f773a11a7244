//! Blocks: what the segment that closes next is divided into.

use super::{Segments, stack_id};
use crate::pickle::{State, Value};
use crate::schema::{Block, Symbol};
use crate::snapshot::fault::{BadField, Fault};
use crate::snapshot::field::{self, Frames};
use crate::snapshot::output::Output;
use crate::snapshot::stacks::Stacks;
use crate::snapshot::stats::{Stats, is_implausible};
use crate::snapshot::words;

impl Segments {
    /// Reads a block.
    pub(in crate::snapshot) fn block(
        &mut self,
        host: bool,
        state: &State,
        items: &[Value],
        stacks: &mut Stacks,
        stats: &mut Stats,
        output: &mut Output<'_>,
    ) -> Result<(), Fault> {
        let (row, frames) = self.parse_block(state, items, stats).map_err(|bad| {
            let row = format!("{}.blocks[{}]", self.path(host), self.open_blocks);
            bad.within(&row, state.offset())
        })?;
        self.open_blocks += 1;
        self.last_state = row.state.0;
        let begins = self.cursor;
        self.cursor = self.cursor.saturating_add(row.size);
        if row.address.is_some() && self.waiting.is_empty() && !self.holds_blocks {
            output.block(state, Block { stack_id: stack_id(stacks, frames), ..row })?;
        } else {
            self.waiting.push((row, frames, begins));
        }
        Ok(())
    }

    fn parse_block(
        &mut self,
        state: &State,
        items: &[Value],
        stats: &mut Stats,
    ) -> Result<(Block, Frames), BadField> {
        let (mut address, mut size, mut requested, mut block_state) = (None, None, None, None);
        let (mut frames, mut history) = (None, None);
        for pair in items.chunks_exact(2) {
            let [key, value] = *pair else { continue };
            match key {
                Value::Text(words::ADDRESS) => address = field::bits(state, "address", value)?,
                Value::Text(words::SIZE) => size = field::size(state, "size", value)?,
                Value::Text(words::REQUESTED_SIZE) => {
                    requested = field::size(state, "requested_size", value)?;
                }
                Value::Text(words::STATE) => block_state = field::text(state, "state", value)?,
                Value::Text(words::FRAMES) => frames = Some(field::frames(state, "frames", value)?),
                Value::Text(words::HISTORY) => history = Some(field::history(state, value)?),
                Value::Text(other) => stats.unknown_key("blocks", other),
                _ => {}
            }
        }
        let size = size.ok_or_else(|| BadField::missing("size", "a number of bytes"))?;
        let block_state =
            block_state.ok_or_else(|| BadField::missing("state", "a string such as `active_allocated`"))?;
        self.implausible_blocks += i64::from(is_implausible(size) || requested.is_some_and(is_implausible));
        self.seen.block_address |= address.is_some();
        self.seen.requested_size |= requested.is_some();
        self.seen.history |= history.is_some();
        self.high_addresses += i64::from(address.is_some_and(|address| address < 0));
        // PyTorch 1.13 and 2.0 have the current allocation as the first entry of `history`, as PyTorch's viewers read it.
        if let (None, Some((old_frames, real_size))) = (frames, history) {
            self.legacy_histories += 1;
            frames = Some(old_frames);
            requested = real_size.or(requested);
        }
        self.without_frames += i64::from(frames.is_none());
        let block_state = self.known_state(block_state, stats);
        let row = Block {
            id: 0,
            segment_id: i64::try_from(self.rows.len()).unwrap_or(i64::MAX).saturating_add(1),
            address,
            size,
            requested_size: requested,
            state: Symbol(block_state),
            stack_id: None,
        };
        Ok((row, frames.unwrap_or(Frames::Absent)))
    }

    /// The documentation has a name for a state that no release ever wrote; both mean the same.
    fn known_state(&mut self, block_state: u32, stats: &mut Stats) -> u32 {
        match block_state {
            words::ACTIVE_AWAITING_FREE => {
                self.renamed_states += 1;
                words::ACTIVE_PENDING_FREE
            }
            words::INACTIVE | words::ACTIVE_ALLOCATED | words::ACTIVE_PENDING_FREE => block_state,
            unknown => {
                stats.unknown_state(unknown);
                unknown
            }
        }
    }
}
