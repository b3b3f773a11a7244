//! Segments and blocks: the final state.

mod block;

use super::devices::{Devices, HOST};
use super::fault::{BadField, Fault};
use super::field::{self, Frames};
use super::output::Output;
use super::stacks::Stacks;
use super::stats::{IMPLAUSIBLE, Severity, Stats, is_implausible};
use super::{BLOCK, Options, words};
use crate::error::Result;
use crate::pickle::{State, Value};
use crate::schema::{Block, Segment, Symbol};

/// A segment and what its row does not say.
#[derive(Debug)]
pub(super) struct SegmentFacts {
    /// The row; `device_id` is the device's index until the ids are complete.
    pub(super) row: Segment,
    /// Whether it has one block and that one is inactive.
    pub(super) is_one_inactive_block: bool,
}

/// The segments so far, and the blocks of the one that closes next.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) rows: Vec<SegmentFacts>,
    /// Segments that have closed, those left out included.
    pub(super) read: u64,
    /// Segments of `host_segments` among them.
    pub(super) host_count: u64,
    /// Blocks since the last segment closed.
    open_blocks: u64,
    /// Those of them with a size that no device has.
    implausible_blocks: i64,
    last_state: u32,
    /// Where the next block begins within its segment.
    cursor: i64,
    /// Blocks that wait for their segment, with where they begin in it.
    waiting: Vec<(Block, Frames, i64)>,
    /// Whether blocks carry `history`, `address`, `requested_size`, segments a pool id and `is_expandable`.
    pub(super) seen: SeenFields,
    addresses_added: i64,
    high_addresses: i64,
    renamed_states: i64,
    legacy_histories: i64,
    without_frames: i64,
    options: Options,
    /// Blocks wait until their segment has closed: it may turn out that both are left out.
    holds_blocks: bool,
    left_out: i64,
    blocks_left_out: i64,
}

/// Fields that tell the producer's version.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent observations, not states")]
pub(super) struct SeenFields {
    pub(super) history: bool,
    pub(super) block_address: bool,
    pub(super) requested_size: bool,
    pub(super) pool_id: bool,
    pub(super) default_stream: bool,
}

fn stack_id(stacks: &mut Stacks, frames: Frames) -> Option<i64> {
    match frames {
        Frames::Stack(id) => Some(stacks.row(id)),
        Frames::Absent | Frames::Empty => None,
    }
}

/// Blocks in a list of them.
fn count_blocks(state: &State, value: Value) -> Result<u64, BadField> {
    match value {
        Value::EmptyList | Value::None => Ok(0),
        Value::TakenList { kind: BLOCK, count } => Ok(count),
        other => Err(BadField {
            field: "blocks",
            expected: "a list of blocks (dicts with `size` and `state`)",
            found: super::fault::found(state, other),
        }),
    }
}

impl Segments {
    /// No segments yet.
    pub(super) fn new(options: &Options) -> Self {
        let holds_blocks = options.salvage || !options.filter.devices.is_empty();
        Self { options: options.clone(), holds_blocks, ..Self::default() }
    }

    /// Position of the segment that closes next in the list it stands in.
    pub(super) fn next_number(&self) -> u64 {
        self.read - self.host_count
    }

    /// Gives up the segment that has not closed, and says how many of its blocks had been read.
    pub(super) fn drop_open(&mut self) -> i64 {
        let count = self.waiting.len();
        self.waiting.clear();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Path of the segment that closes next, for messages.
    fn path(&self, host: bool) -> String {
        if host {
            format!("host_segments[{}]", self.host_count)
        } else {
            format!("segments[{}]", self.next_number())
        }
    }

    /// Reads a segment, whose blocks have all been read.
    pub(super) fn segment(
        &mut self,
        host: bool,
        state: &State,
        items: &[Value],
        context: (&mut Stacks, &mut Stats, &mut Devices, &mut Output<'_>),
    ) -> Result<(), Fault> {
        let (stacks, stats, devices, output) = context;
        let (row, frames) = self
            .parse_segment(host, state, items, stats)
            .map_err(|bad| bad.within(&self.path(host), state.offset()))?;
        self.read += 1;
        self.host_count += u64::from(host);
        let cursor = std::mem::take(&mut self.cursor);
        let blocks = std::mem::take(&mut self.open_blocks);
        let implausible_blocks = std::mem::take(&mut self.implausible_blocks);
        if !self.options.filter.keeps_device(row.device_id) {
            self.left_out += 1;
            self.blocks_left_out += self.drop_open();
            return Ok(());
        }
        devices.see(row.device_id);
        let sizes = [Some(row.total_size), row.allocated_size, row.active_size, row.requested_size];
        let is_implausible = i64::from(sizes.into_iter().flatten().any(is_implausible));
        let (name, doc) = IMPLAUSIBLE;
        stats.add(Severity::Error, name, Some(row.device_id), implausible_blocks + is_implausible, doc);
        for (mut block, frames, begins) in self.waiting.drain(..) {
            block.stack_id = stack_id(stacks, frames);
            if block.address.is_none() {
                block.address = row.address.map(|address| address.wrapping_add(begins));
                self.addresses_added += 1;
            }
            output.block(state, block)?;
        }
        let row = Segment { stack_id: stack_id(stacks, frames), ..row };
        if cursor != row.total_size {
            let doc = "segments whose blocks do not add up to total_size: the file was cut or changed";
            stats.add(Severity::Error, "segment_size_mismatch", Some(row.device_id), 1, doc);
        }
        let is_one_inactive_block = blocks == 1 && self.last_state == words::INACTIVE;
        self.rows.push(SegmentFacts { row, is_one_inactive_block });
        Ok(())
    }

    fn parse_segment(
        &mut self,
        host: bool,
        state: &State,
        items: &[Value],
        stats: &mut Stats,
    ) -> Result<(Segment, Frames), BadField> {
        let mut row = Segment {
            id: i64::try_from(self.rows.len()).unwrap_or(i64::MAX).saturating_add(1),
            device_id: HOST,
            address: None,
            total_size: 0,
            allocated_size: None,
            active_size: None,
            requested_size: None,
            stream: None,
            segment_type: None,
            pool_id_0: None,
            pool_id_1: None,
            is_expandable: None,
            stack_id: None,
        };
        let (mut device, mut total, mut blocks) = (None, None, None);
        let (mut frames, mut pool) = (Frames::Absent, None);
        for pair in items.chunks_exact(2) {
            let [key, value] = *pair else { continue };
            match key {
                Value::Text(words::DEVICE) => device = field::integer(state, "device", value)?,
                Value::Text(words::ADDRESS) => row.address = field::bits(state, "address", value)?,
                Value::Text(words::TOTAL_SIZE) => total = field::size(state, "total_size", value)?,
                Value::Text(words::ALLOCATED_SIZE) => {
                    row.allocated_size = field::size(state, "allocated_size", value)?;
                }
                Value::Text(words::ACTIVE_SIZE) => {
                    row.active_size = field::size(state, "active_size", value)?;
                }
                Value::Text(words::REQUESTED_SIZE) => {
                    row.requested_size = field::size(state, "requested_size", value)?;
                }
                Value::Text(words::STREAM) => row.stream = field::bits(state, "stream", value)?,
                Value::Text(words::SEGMENT_TYPE) => {
                    row.segment_type = field::text(state, "segment_type", value)?.map(Symbol);
                }
                Value::Text(words::SEGMENT_POOL_ID) => pool = field::pool(state, "segment_pool_id", value)?,
                Value::Text(words::IS_EXPANDABLE) => {
                    row.is_expandable = field::flag(state, "is_expandable", value)?;
                }
                Value::Text(words::FRAMES) => frames = field::frames(state, "frames", value)?,
                Value::Text(words::BLOCKS) => blocks = Some(count_blocks(state, value)?),
                Value::Text(other) => stats.unknown_key("segments", other),
                _ => {}
            }
        }
        row.total_size = total.ok_or_else(|| BadField::missing("total_size", "a number of bytes"))?;
        let blocks = blocks.ok_or_else(|| BadField::missing("blocks", "a list of blocks"))?;
        if blocks != self.open_blocks {
            let found = format!("{blocks} blocks after {} were read", self.open_blocks);
            return Err(BadField { field: "blocks", expected: "each block once", found });
        }
        row.device_id = match (host, device) {
            (true, _) => HOST,
            (false, Some(device)) if device >= HOST => device,
            (false, Some(device)) => {
                let found = format!("the integer {device}");
                return Err(BadField { field: "device", expected: "a device number", found });
            }
            (false, None) => return Err(BadField::missing("device", "a device number")),
        };
        (row.pool_id_0, row.pool_id_1) = pool.unzip();
        self.seen.pool_id |= pool.is_some();
        self.seen.requested_size |= row.requested_size.is_some();
        self.seen.default_stream |= !host && row.stream == Some(0);
        self.high_addresses += i64::from(row.address.is_some_and(|address| address < 0));
        Ok((row, frames))
    }

    /// Turns the counts into statistics.
    pub(super) fn report(&self, stats: &mut Stats) {
        let mut add = |name, value, doc| stats.add(Severity::Info, name, None, value, doc);
        add("segments_left_out", self.left_out, "segments of other devices, left out by --device");
        add("blocks_left_out", self.blocks_left_out, "blocks of other devices, left out by --device");
        add(
            "block_addresses_added_up",
            self.addresses_added,
            "blocks without an address; it is the segment's plus the sizes before",
        );
        add(
            "blocks_with_history",
            self.legacy_histories,
            "blocks as PyTorch 1.13 and 2.0 write them; frames and requested size are those of the first entry",
        );
        add("blocks_without_frames_key", self.without_frames, "blocks whose producer recorded no frames");
        add(
            "state_renamed",
            self.renamed_states,
            "blocks in state active_awaiting_free, the documentation's name for active_pending_free",
        );
        add(
            "high_segment_addresses",
            self.high_addresses,
            "segment and block addresses of 2^63 and more; they show negative",
        );
    }
}
