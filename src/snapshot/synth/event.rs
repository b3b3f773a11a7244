//! What the simulated allocator says while it works: events, the counters behind them, and who listens.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use crate::pickle::writer::Ref;

/// What happened, by the names of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    Snapshot,
    Oom,
    WorkspaceSnapshot,
}

impl Action {
    /// All of them.
    pub(super) const ALL: [Self; 10] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Snapshot,
        Self::Oom,
        Self::WorkspaceSnapshot,
    ];

    /// Where it stands in [`Self::ALL`].
    pub(super) fn place(self) -> usize {
        Self::ALL.iter().position(|action| *action == self).unwrap_or(0)
    }

    /// The text in the trace.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Snapshot => "snapshot",
            Self::Oom => "oom",
            Self::WorkspaceSnapshot => "workspace_snapshot",
        }
    }
}

/// Number of a call stack of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackId(pub(super) usize);

/// Number of a stream of the device: 0 is the default stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stream(pub(super) usize);

/// One walk of the call stack.
///
/// The snapshot has one list of frames per walk, not per distinct stack: whoever shows the same walk (an allocation, its
/// block, the segment it made grow) shares the list, two walks of the same line of code do not.
#[derive(Debug)]
pub(super) struct Gather {
    /// Number of the walk on its device: the same walk has the same number when the simulation is run again.
    pub(super) number: u64,
    /// Where the program was.
    pub(super) stack: StackId,
    /// Where the pickle has its list, once it has.
    pub(super) list: Cell<Option<Ref>>,
}

/// The allocation an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    /// Where the program asked for it.
    pub(super) stack: StackId,
    /// Bytes of its block.
    pub(super) block_size: u64,
    /// Bytes asked for.
    pub(super) requested: u64,
    /// Index of the alloc event.
    pub(super) born: u64,
}

/// One entry of the trace.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) action: Action,
    /// Address; for an OOM, what the driver reports as free.
    pub(super) address: u64,
    pub(super) size: u64,
    /// `None` for the snapshot marker, which is no stream's.
    pub(super) stream: Option<Stream>,
    pub(super) context: Option<Rc<Gather>>,
    pub(super) time_us: u64,
    /// For alloc and the frees.
    pub(super) allocation: Option<Allocation>,
}

/// What the allocator counts as it works, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counters {
    pub(super) reserved: u64,
    pub(super) allocated: u64,
    pub(super) active: u64,
    pub(super) allocated_requested: u64,
    pub(super) active_requested: u64,
}

impl Counters {
    /// Names and values, in the order of the truth file.
    pub(super) fn named(self) -> [(&'static str, u64); 5] {
        [
            ("reserved", self.reserved),
            ("allocated", self.allocated),
            ("active", self.active),
            ("allocated_requested", self.allocated_requested),
            ("active_requested", self.active_requested),
        ]
    }
}

/// The highest value of each counter, and the event that first reached it.
#[derive(Debug, Clone, Default)]
pub(super) struct Peaks([(u64, Option<u64>); 5]);

impl Peaks {
    /// Peaks of a time that begins with these values.
    pub(super) fn starting_from(counters: Counters) -> Self {
        Self(counters.named().map(|(_, value)| (value, None)))
    }

    /// Takes the counters after the event `index`.
    pub(super) fn update(&mut self, index: u64, counters: Counters) {
        for (peak, (_, value)) in self.0.iter_mut().zip(counters.named()) {
            if value > peak.0 {
                *peak = (value, Some(index));
            }
        }
    }

    /// Name, bytes and event of each peak; no event where the time began with it.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, u64, Option<u64>)> {
        Counters::default()
            .named()
            .into_iter()
            .zip(self.0)
            .map(|((name, _), (bytes, index))| (name, bytes, index))
    }
}

/// Hears every event at the moment it happens.
pub(super) trait Recorder {
    /// Takes the event `index` and the counters after it.
    ///
    /// # Errors
    /// What it is written to does not take it; the simulation stops.
    fn record(&mut self, index: u64, event: &Event, counters: Counters) -> io::Result<()>;
}

/// Hears nothing: for the run that only wants to know the end.
#[derive(Debug)]
pub(super) struct Nobody;

impl Recorder for Nobody {
    fn record(&mut self, _index: u64, _event: &Event, _counters: Counters) -> io::Result<()> {
        Ok(())
    }
}

/// Why the simulated program does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// It has done what the settings ask for.
    Full,
    /// The device has no more memory.
    OutOfMemory,
    /// The recorder failed.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}
