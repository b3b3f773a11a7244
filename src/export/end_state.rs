//! Segments and blocks after the last exported event: as the snapshot has them, or rewound to that event.

use std::collections::{BTreeMap, HashSet};

use super::rewind;
use super::rows::{Allocation, BlockRow, Event, SegmentRow, WorkspaceSegment};
use crate::analysis::Device;
use crate::engine::Engine;
use crate::error::Result;

/// A segment with its blocks in the order of their addresses.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    pub(super) row: SegmentRow,
    pub(super) blocks: Vec<BlockRow>,
}

/// The state of the devices after the last exported event.
#[derive(Debug, Default)]
pub(super) struct EndState {
    pub(super) segments: Vec<Segment>,
    /// Segments of the workspace allocator among them, by `segments.id`.
    pub(super) workspace: HashSet<i64>,
    /// What of the later events could not be taken back: the state is right but for these.
    pub(super) contradictions: u64,
}

impl EndState {
    /// The state of `devices` before the event `end` of each.
    pub(super) fn read(engine: &Engine, devices: &[Device], end: i64) -> Result<Self> {
        let wanted: HashSet<i64> = devices.iter().map(|device| device.id).collect();
        let workspace = engine.rows::<WorkspaceSegment>(&[])?;
        let workspace: HashSet<i64> = workspace.into_iter().map(|segment| segment.segment_id).collect();
        let mut segments: BTreeMap<i64, Segment> = BTreeMap::new();
        for row in engine.scan::<SegmentRow>(&[])? {
            let row = row?;
            if wanted.contains(&row.device_id) {
                segments.insert(row.id, Segment { row, blocks: Vec::new() });
            }
        }
        for block in engine.scan::<BlockRow>(&[])? {
            let block = block?;
            if let Some(segment) = segments.get_mut(&block.segment_id) {
                segment.blocks.push(block);
            }
        }
        let mut state = Self { segments: segments.into_values().collect(), workspace, contradictions: 0 };
        for device in devices {
            state.rewind(engine, device, end)?;
        }
        Ok(state)
    }

    /// Takes the events of a device from `end` on back, if there are any.
    fn rewind(&mut self, engine: &Engine, device: &Device, end: i64) -> Result<()> {
        let own = device.id..=device.id;
        let later = [("device_id", own.clone()), ("trace_index", end..=i64::MAX)];
        let mut any = false;
        let mut changes = Vec::new();
        for event in engine.scan::<Event>(&later)? {
            let event = event?;
            any |= event.is_workspace == 0;
            if event.is_workspace == 0 && event.action.starts_with("segment_") {
                changes.push(event);
            }
        }
        if !any {
            return Ok(());
        }
        let (theirs, others) = std::mem::take(&mut self.segments).into_iter().partition(|segment| {
            segment.row.device_id == device.id && !self.workspace.contains(&segment.row.id)
        });
        let mut live = Vec::new();
        for allocation in engine.scan::<Allocation>(&[("device_id", own)])? {
            let allocation = allocation?;
            if allocation.is_active_at(end) {
                live.push(allocation);
            }
        }
        let rewound = rewind::rewind(theirs, &changes, &live, end);
        self.segments = others;
        self.segments.extend(rewound.segments);
        self.contradictions += rewound.contradictions;
        Ok(())
    }
}
