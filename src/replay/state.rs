//! The final state: what the segments and blocks of a snapshot say about the moment of the dump.

use std::collections::BTreeMap;

use arrow::array::{Array as _, Int64Array, RecordBatch};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::columns;
use super::event::Place;
use crate::error::Result;

/// A segment of the final state.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) device_id: i64,
    pub(super) address: Option<i64>,
    pub(super) size: i64,
    pub(super) is_small: bool,
    pub(super) is_expandable: bool,
    pub(super) place: Place,
}

/// A block that was active at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) segment_id: i64,
    pub(super) address: Option<i64>,
    pub(super) size: i64,
    pub(super) requested: Option<i64>,
    pub(super) is_pending: bool,
    /// 0 without one.
    pub(super) stack: i64,
}

/// Everything the snapshot says about the end.
#[derive(Debug, Default)]
pub(super) struct FinalState {
    /// Device id: its index.
    pub(super) devices: BTreeMap<i64, i64>,
    pub(super) is_npu: bool,
    /// In the order of their ids, from 1.
    pub(super) segments: Vec<Segment>,
    /// Active ones only: the others are what is left of a segment.
    pub(super) blocks: Vec<Block>,
    /// Inactive blocks beside another one: one of the two is in use, since free neighbours are merged.
    unmerged: Vec<Block>,
    last: Option<Block>,
}

/// What belongs to one device.
#[derive(Debug, Default)]
pub(super) struct Share<'a> {
    pub(super) segments: Vec<&'a Segment>,
    /// With the segments they lie in.
    pub(super) blocks: Vec<(&'a Block, &'a Segment)>,
    /// By address: inactive blocks that may be waiting for a free, which `torch_npu` shows as inactive where it is put off to
    /// the end of a graph's capture.
    pub(super) unmerged: HashMap<u64, Block, FixedState>,
}

fn optional(array: &Int64Array, row: usize) -> Option<i64> {
    array.is_valid(row).then(|| array.value(row))
}

impl FinalState {
    /// Takes a batch of `devices`.
    pub(super) fn push_devices(&mut self, batch: &RecordBatch) -> Result<()> {
        let ids = columns::integers(batch, "id")?.values().iter().copied();
        self.devices.extend(ids.zip(columns::integers(batch, "device_index")?.values().iter().copied()));
        self.is_npu |= columns::texts(batch, "device_type")?.contains(&Some("Ascend-NPU"));
        Ok(())
    }

    /// Takes a batch of `segments`.
    pub(super) fn push_segments(&mut self, batch: &RecordBatch) -> Result<()> {
        let device_id = columns::integers(batch, "device_id")?;
        let address = columns::integers(batch, "address")?;
        let size = columns::integers(batch, "total_size")?;
        let stream = columns::integers(batch, "stream")?;
        let first = columns::integers(batch, "pool_id_0")?;
        let second = columns::integers(batch, "pool_id_1")?;
        let expandable = columns::integers(batch, "is_expandable")?;
        for (row, kind) in columns::texts(batch, "segment_type")?.into_iter().enumerate() {
            self.segments.push(Segment {
                device_id: device_id.value(row),
                address: optional(address, row),
                size: size.value(row),
                is_small: kind == Some("small"),
                is_expandable: optional(expandable, row) == Some(1),
                place: Place {
                    stream: optional(stream, row),
                    pool: optional(first, row).zip(optional(second, row)),
                },
            });
        }
        Ok(())
    }

    /// Takes a batch of `blocks`.
    pub(super) fn push_blocks(&mut self, batch: &RecordBatch) -> Result<()> {
        let segment_id = columns::integers(batch, "segment_id")?;
        let address = columns::integers(batch, "address")?;
        let size = columns::integers(batch, "size")?;
        let requested = columns::integers(batch, "requested_size")?;
        let stack = columns::integers(batch, "stack_id")?;
        for (row, state) in columns::texts(batch, "state")?.into_iter().enumerate() {
            let block = Block {
                segment_id: segment_id.value(row),
                address: optional(address, row),
                size: size.value(row),
                requested: optional(requested, row),
                is_pending: state == Some("active_pending_free"),
                stack: optional(stack, row).unwrap_or_default(),
            };
            match state {
                Some("active_allocated" | "active_pending_free") => {
                    self.blocks.push(block);
                    self.last = None;
                }
                _ => {
                    let before = self.last.replace(block);
                    if let Some(before) = before.filter(|before| before.segment_id == block.segment_id) {
                        self.unmerged.extend([before, block]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Segments and blocks by device, without those that `is_workspace`.
    pub(super) fn shares(&self, is_workspace: impl Fn(&Segment) -> bool) -> BTreeMap<i64, Share<'_>> {
        let mut shares: BTreeMap<i64, Share<'_>> = BTreeMap::new();
        for segment in self.segments.iter().filter(|segment| !is_workspace(segment)) {
            shares.entry(segment.device_id).or_default().segments.push(segment);
        }
        for block in &self.blocks {
            if let Some(segment) = self.segment(block.segment_id)
                && let Some(share) = shares.get_mut(&segment.device_id)
                && !is_workspace(segment)
            {
                share.blocks.push((block, segment));
            }
        }
        for block in self.unmerged.iter().filter(|_| self.is_npu) {
            let share = self.segment(block.segment_id).and_then(|segment| shares.get_mut(&segment.device_id));
            if let Some((share, address)) = share.zip(block.address) {
                share.unmerged.insert(address.cast_unsigned(), *block);
            }
        }
        shares
    }

    /// The memory pool that all segments of devices are in, if it is one that the program made: a dump can be of one pool
    /// alone, and says so nowhere.
    pub(super) fn only_pool(&self) -> Option<(i64, i64)> {
        let is_host =
            |segment: &&Segment| self.devices.get(&segment.device_id).is_some_and(|index| *index < 0);
        let mut pools =
            self.segments.iter().filter(|segment| !is_host(segment)).map(|segment| segment.place.pool);
        let pool = pools.next()??;
        (pool != (0, 0) && pools.all(|other| other == Some(pool))).then_some(pool)
    }

    /// The segment with that id.
    pub(super) fn segment(&self, id: i64) -> Option<&Segment> {
        self.segments.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }
}
