//! What can be drawn, as plain data: sizes in bytes, positions by `trace_index`, words in both languages.
//!
//! A chart says nothing of colours, pixels or libraries. The report draws each one twice, for a browser and for paper.

mod held;
mod moments;
mod pool;
mod stacks;

pub use held::{HeldRow, attribution, bars, devices, flame, held};
pub use moments::{MomentRow, moments};
pub use pool::{GrowthRow, LayoutRow, expansion, layout};
pub use stacks::{Frame, StackRow, StackWords, frames, frames_by_stack, own_frame, words};

use super::language::Text;

/// A chart with what identifies it on a page.
#[derive(Debug, Clone)]
pub struct ChartFigure {
    /// Which of the charts it is; explanations are looked up by it.
    pub name: &'static str,
    /// Device it speaks of; none where it shows several.
    pub device: Option<i64>,
    /// What it shows.
    pub title: Text,
    /// The data.
    pub chart: Chart,
}

impl ChartFigure {
    /// The name that links, scripts and files use, in the section of a mode.
    #[must_use]
    pub fn anchor(&self, mode: &str) -> String {
        let device = self.device.map_or_else(String::new, |device| format!("-{device}"));
        format!("{mode}-{}{device}", self.name)
    }
}

/// The kinds of chart there are.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Counters over time.
    Timeline(Timeline),
    /// Devices side by side.
    Devices(Vec<DeviceBar>),
    /// Blocks at their place in segments.
    Layout(Layout),
    /// How the pool grew and shrank.
    Expansion(Expansion),
    /// Bytes by call stack.
    Stacks(Stacks),
    /// Bytes by call path.
    Flame(Flame),
    /// Events before a moment, newest first.
    Sequence(Sequence),
    /// A counter of two snapshots.
    Overlay(Overlay),
}

/// A counter of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Bytes in segments.
    Reserved,
    /// Rounded bytes in allocated blocks.
    Allocated,
    /// Rounded bytes in allocated and pending-free blocks.
    Active,
}

impl Counter {
    /// All of them, the largest first.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Active, Self::Allocated];

    /// The name that SQL and JSON use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Allocated => "allocated",
            Self::Active => "active",
        }
    }

    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Reserved => Text::new("reserved", "预留"),
            Self::Allocated => Text::new("allocated", "已分配"),
            Self::Active => Text::new("active", "活跃"),
        }
    }
}

/// All counters at one event, after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Position of the event.
    pub trace_index: i64,
    /// Microseconds since the Unix epoch; none without a clock.
    pub time_us: Option<i64>,
    /// Bytes, in the order of [`Counter::ALL`]; none where a counter is not known.
    pub bytes: [Option<i64>; 3],
}

impl Level {
    /// Bytes in allocated blocks.
    #[must_use]
    pub fn allocated(&self) -> Option<i64> {
        self.bytes[2]
    }
}

/// What happened at a marked event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The pool took a segment from the driver, or mapped memory.
    Growth,
    /// An allocation failed.
    OutOfMemory,
    /// A snapshot was taken.
    Snapshot,
    /// A step of the job began.
    Step,
}

impl Mark {
    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Growth => Text::new("segment growth", "段增长"),
            Self::OutOfMemory => Text::new("out of memory", "内存不足（OOM）"),
            Self::Snapshot => Text::new("snapshot", "快照"),
            Self::Step => Text::new("step", "训练步"),
        }
    }
}

/// A marked event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedEvent {
    /// What happened.
    pub mark: Mark,
    /// Position of the event.
    pub trace_index: i64,
    /// Microseconds since the Unix epoch; none without a clock.
    pub time_us: Option<i64>,
    /// What else there is to say, such as bytes or the name of the step.
    pub detail: Text,
}

/// Where a counter was highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// The counter.
    pub counter: Counter,
    /// Position of the first event at which it was.
    pub trace_index: i64,
    /// Bytes then.
    pub bytes: i64,
}

/// What lived at a moment, largest first.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Position of the event.
    pub trace_index: i64,
    /// Call stack and the bytes it held.
    pub live: Vec<StackBytes>,
    /// Bytes of all stacks that are not listed.
    pub other_bytes: i64,
}

/// Bytes of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackBytes {
    /// `call_stacks.id`; none for all that has no stack.
    pub stack_id: Option<i64>,
    /// Bytes.
    pub bytes: i64,
}

/// Counters over time.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Levels by position, oldest first.
    pub levels: Vec<Level>,
    /// Marked events, oldest first.
    pub marks: Vec<MarkedEvent>,
    /// Highest points.
    pub peaks: Vec<Peak>,
    /// What lived at some moments, oldest first.
    pub moments: Vec<Moment>,
    /// Words for the stacks of the moments.
    pub stacks: Vec<StackWords>,
}

/// One device of several.
#[derive(Debug, Clone)]
pub struct DeviceBar {
    /// Device number in the snapshot.
    pub device_index: i64,
    /// Bytes, in the order of [`Counter::ALL`].
    pub bytes: [i64; 3],
    /// (reserved - allocated) / reserved; none where nothing is reserved.
    pub fragmentation_ratio: Option<f64>,
}

/// State of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// In use.
    Allocated,
    /// Freed, but another stream may still use it.
    PendingFree,
    /// Cached and free.
    Inactive,
}

impl BlockState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Allocated, Self::PendingFree, Self::Inactive];

    /// The state of that name; what is not known is not in use.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "active_allocated" => Self::Allocated,
            "active_pending_free" => Self::PendingFree,
            _ => Self::Inactive,
        }
    }

    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Allocated => Text::new("allocated", "已分配"),
            Self::PendingFree => Text::new("pending free", "等待释放"),
            Self::Inactive => Text::new("free", "空闲"),
        }
    }
}

/// A block, or neighbours of one state that are too small to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Bytes from the segment's start.
    pub offset: i64,
    /// Bytes.
    pub size: i64,
    /// State of all of it.
    pub state: BlockState,
    /// Blocks in it.
    pub block_count: i64,
    /// Call stack of the largest block; none where none was recorded.
    pub stack_id: Option<i64>,
}

/// A segment with its blocks.
#[derive(Debug, Clone)]
pub struct SegmentRow {
    /// `segments.id`.
    pub segment_id: i64,
    /// Start address; none where the snapshot has none.
    pub address: Option<i64>,
    /// Bytes.
    pub total_size: i64,
    /// Bytes in allocated blocks.
    pub allocated_size: i64,
    /// Whether so little of it is in use that it stands out.
    pub is_low_use: bool,
    /// `large` or `small`.
    pub segment_type: String,
    /// Stream that owns it; none where the snapshot does not say.
    pub stream: Option<i64>,
    /// Blocks by position.
    pub spans: Vec<Span>,
}

/// Blocks at their place in segments.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Segments with the most free bytes, first.
    pub segments: Vec<SegmentRow>,
    /// All others together.
    pub other: Option<OtherSegments>,
    /// Words for the stacks of the blocks.
    pub stacks: Vec<StackWords>,
}

/// Segments that have no row of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherSegments {
    /// How many.
    pub count: i64,
    /// Bytes.
    pub total_size: i64,
    /// Bytes in allocated blocks.
    pub allocated_size: i64,
}

/// A step of the pool's growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolEvent {
    /// Position of the event.
    pub trace_index: i64,
    /// Microseconds since the Unix epoch; none without a clock.
    pub time_us: Option<i64>,
    /// Bytes added, or given back where less than 0.
    pub change: i64,
    /// Segments since the recording began, this event included.
    pub net_segments: i64,
    /// Bytes since the recording began, likewise.
    pub net_size: i64,
    /// Call stack of the event.
    pub stack_id: Option<i64>,
}

impl PoolEvent {
    /// Largest segment that the allocator makes for its pool of small blocks.
    const SMALL_SEGMENT: i64 = 2 << 20;

    /// Whether the segment serves the pool of large blocks.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.change.abs() > Self::SMALL_SEGMENT
    }
}

/// How the pool grew and shrank.
#[derive(Debug, Clone)]
pub struct Expansion {
    /// Events, oldest first; the largest of each stretch where there are many.
    pub events: Vec<PoolEvent>,
    /// How many there are in all.
    pub event_count: i64,
    /// Words for the stacks of the events.
    pub stacks: Vec<StackWords>,
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

/// What an event did to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Memory was taken.
    Alloc,
    /// Memory was given back, or a free was asked for.
    Free,
    /// The event the sequence leads to.
    Trigger,
    /// Something else.
    Other,
}

/// An event of a sequence.
#[derive(Debug, Clone)]
pub struct SequenceEvent {
    /// Position of the event.
    pub trace_index: i64,
    /// Microseconds since the Unix epoch; none without a clock.
    pub time_us: Option<i64>,
    /// The allocator's name of the event.
    pub action: String,
    /// What it did.
    pub kind: EventKind,
    /// Bytes.
    pub size: i64,
    /// Address; none for an out-of-memory event.
    pub address: Option<i64>,
    /// Its call stack.
    pub stack_id: Option<i64>,
}

/// Events before a moment.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Newest first; the trigger is the first.
    pub events: Vec<SequenceEvent>,
    /// Words for the stacks of the events.
    pub stacks: Vec<StackWords>,
}

/// A counter of two snapshots when the same share of their recordings had passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    /// The share, up to 1.
    pub position: f64,
    /// Bytes in this snapshot, A.
    pub a: Option<i64>,
    /// Bytes in the snapshot compared with, B.
    pub b: Option<i64>,
}

/// A counter of two snapshots over the share of each recording that has passed.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Names of the two, A and B.
    pub names: [String; 2],
    /// Levels at equal steps.
    pub courses: Vec<Course>,
}
