//! Who holds memory: devices, call stacks, and the same by call path.

use super::stacks::StackWords;

/// One device of several.
#[derive(Debug, Clone)]
pub struct DeviceBar {
    /// Device number in the snapshot.
    pub device_index: i64,
    /// Bytes, in the order of [`Counter::ALL`](super::Counter::ALL).
    pub bytes: [i64; 3],
    /// (reserved - allocated) / reserved; none where nothing is reserved.
    pub fragmentation_ratio: Option<f64>,
}

/// Memory of one call stack.
#[derive(Debug, Clone)]
pub struct StackBar {
    /// `call_stacks.id`; none for all that has no stack.
    pub stack_id: Option<i64>,
    /// Bytes, rounding included.
    pub bytes: i64,
    /// Bytes asked for; none where a block does not say.
    pub requested: Option<i64>,
    /// Blocks.
    pub block_count: i64,
}

/// Bytes by call stack.
#[derive(Debug, Clone)]
pub struct Stacks {
    /// Largest first.
    pub bars: Vec<StackBar>,
    /// Stacks that have no bar of their own, how many where that is known, and their bytes.
    pub other: Option<(Option<i64>, i64)>,
    /// Bytes of all.
    pub total: i64,
    /// Words for the stacks.
    pub stacks: Vec<StackWords>,
}

/// A frame of a flame graph with all that was called from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameNode {
    /// Function and place.
    pub name: String,
    /// Bytes in it and below it.
    pub bytes: i64,
    /// What it called, largest first.
    pub children: Vec<FlameNode>,
}

/// Bytes by call path, outermost frame at the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// All of it.
    pub root: FlameNode,
}
