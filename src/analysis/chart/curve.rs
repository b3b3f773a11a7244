//! What curves are made of: counters over time, what happened along them, and two of them side by side.

use super::stacks::StackWords;
use crate::analysis::language::Text;

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
