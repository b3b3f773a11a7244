//! What the pool looks like from inside: blocks at their place in segments, and how segments came and went.

use super::stacks::StackWords;
use crate::analysis::language::Text;
use crate::replay::SMALL_SEGMENT;

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
    /// Whether the segment serves the pool of large blocks.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.change.abs() > SMALL_SEGMENT
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

/// What the line of a chart of growth counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Segments that came, less those that went.
    Segments,
    /// Bytes likewise, where segments grow in place and their number says nothing.
    Bytes,
}

impl Growth {
    /// What tells the growth of a pool.
    #[must_use]
    pub fn of(expansion: &Expansion) -> Self {
        if expansion.events.iter().any(|event| event.net_segments != 0) {
            Self::Segments
        } else {
            Self::Bytes
        }
    }

    /// Its value after an event.
    #[must_use]
    pub fn at(self, event: &PoolEvent) -> i64 {
        match self {
            Self::Segments => event.net_segments,
            Self::Bytes => event.net_size,
        }
    }

    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Segments => Text::new("segments since the recording began", "记录以来的段数变化"),
            Self::Bytes => Text::new("bytes since the recording began", "记录以来的字节变化"),
        }
    }
}
