//! What to simulate and how to write it down.

use serde_json::{Value, json};

use crate::pickle::writer::Layout;

/// Which producer's fields the snapshot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `torch_npu`: no clock, workspace entries, 32 bytes of padding.
    Npu,
    /// PyTorch on CUDA: clock, allocator settings, annotations.
    Cuda,
    /// The list of segments that PyTorch 1.13 gave: blocks with a history, no trace.
    Legacy,
}

/// When the simulation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After so many training steps.
    Steps(u64),
    /// After the operation that reaches so many events, all devices together.
    Events(u64),
}

/// Which events carry a call stack (`context` of `_record_memory_history`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Every operation gathers its own.
    All,
    /// Allocations gather one; frees show that of the allocation.
    Alloc,
    /// Blocks have one, events have none.
    State,
}

/// How deep call stacks look into the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// Python functions.
    Python,
    /// C++ functions in front of them.
    All,
}

/// Order of the two big keys at the top level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As PyTorch writes them.
    SegmentsFirst,
    /// As no release does, but a dict rebuilt by a user's script may.
    TracesFirst,
}

/// Everything a simulation depends on; equal settings give equal bytes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch of the command line")]
pub struct Settings {
    /// Producer.
    pub dialect: Dialect,
    /// Pickler and protocol.
    pub layout: Layout,
    /// End of the simulation.
    pub length: Length,
    /// Devices that train.
    pub devices: u64,
    /// Devices behind them whose trace is empty.
    pub idle_devices: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Size of the ring buffer of each device; `None` keeps everything.
    pub max_entries: Option<u64>,
    /// A list of the program grows with every step.
    pub leak: bool,
    /// A last batch does not fit.
    pub oom: bool,
    /// Segments grow by mapping pages.
    pub expandable: bool,
    /// Everything is freed at the end; the segments stay.
    pub teardown: bool,
    /// Call stacks of events.
    pub context: Context,
    /// Functions in call stacks.
    pub frames: Frames,
    /// Different call stacks of the program.
    pub stack_count: u64,
    /// Modules that lie around the innermost one, at most.
    pub depth: u64,
    /// Layers of the model: the length of a step.
    pub layers: u64,
    /// Steps between two calls of `empty_cache`.
    pub empty_cache_every: u64,
    /// Bytes of device memory.
    pub capacity: u64,
    /// Address of the first segment of device 0; `None` takes one that is usual for the dialect.
    pub address_base: Option<u64>,
    /// Bytes added to a request before it is rounded.
    pub padding: u64,
    /// NPU: whether each stream has a workspace block.
    pub workspace: bool,
    /// Whether events say their memory pool.
    pub pool_id: bool,
    /// Order of the top level.
    pub order: Order,
}

impl Settings {
    /// Events after which a device's program ends, where that is how the end is given.
    pub(super) fn event_budget(&self, device: u64) -> Option<u64> {
        let Length::Events(events) = self.length else { return None };
        let share = events / self.devices.max(1);
        // The first device takes what the division leaves over.
        Some(if device == 0 { events - share * self.devices.saturating_sub(1) } else { share })
    }

    /// The settings as the truth file repeats them.
    pub(super) fn json(&self) -> Value {
        let (writer, protocol) = match self.layout {
            Layout::CPython(protocol) => ("cpython", protocol),
            Layout::Jit => ("cpp", 2),
        };
        let (steps, events) = match self.length {
            Length::Steps(steps) => (Some(steps), None),
            Length::Events(events) => (None, Some(events)),
        };
        json!({
            "dialect": match self.dialect {
                Dialect::Npu => "npu",
                Dialect::Cuda => "cuda",
                Dialect::Legacy => "legacy",
            },
            "writer": writer,
            "protocol": protocol,
            "steps": steps,
            "events": events,
            "devices": self.devices,
            "idle_devices": self.idle_devices,
            "seed": self.seed,
            "max_entries": self.max_entries.unwrap_or(0),
            "leak": self.leak,
            "oom": self.oom,
            "expandable": self.expandable,
            "teardown": self.teardown,
            "context": match self.context {
                Context::All => "all",
                Context::Alloc => "alloc",
                Context::State => "state",
            },
            "stacks": match self.frames {
                Frames::Python => "python",
                Frames::All => "all",
            },
            "n_stacks": self.stack_count,
            "depth": self.depth,
            "layers": self.layers,
            "capacity": self.capacity,
            "padding": self.padding,
            "pool_id": self.pool_id,
            "order": match self.order {
                Order::SegmentsFirst => "segments-first",
                Order::TracesFirst => "traces-first",
            },
        })
    }
}
