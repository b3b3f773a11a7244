//! The simulation as a whole: what it writes, and what its allocator promises at every event.

use super::*;
use crate::pickle::writer::Layout;

/// A short run of a small model.
pub(super) fn settings() -> Settings {
    Settings {
        dialect: Dialect::Npu,
        layout: Layout::CPython(4),
        length: Length::Steps(6),
        devices: 1,
        idle_devices: 0,
        seed: 1,
        max_entries: None,
        leak: false,
        oom: false,
        expandable: false,
        teardown: false,
        context: Context::All,
        frames: Frames::Python,
        stack_count: 40,
        depth: 2,
        layers: 2,
        empty_cache_every: 4,
        capacity: 8 << 30,
        address_base: None,
        padding: 32,
        workspace: true,
        pool_id: true,
        order: Order::SegmentsFirst,
    }
}
