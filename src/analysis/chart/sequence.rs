//! What happened before a moment, event by event.

use super::stacks::StackWords;

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
