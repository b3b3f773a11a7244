//! Rows of the tables as an export reads them.

use crate::engine::row;

row! {
    /// The snapshot as a whole.
    pub struct Whole from "snapshot" {
        /// `dict` or `list`.
        form: String,
        /// Lists under `device_traces`.
        trace_lists: Option<i64>,
        /// Settings of the allocator as JSON.
        allocator_settings: Option<String>,
        /// File name.
        source_name: String,
    }
}

row! {
    /// A call stack.
    pub struct CallStack from "call_stacks" {
        /// Row number.
        id: i64,
        /// Frames as JSON.
        frames_json: String,
    }
}

row! {
    /// A segment of the final state.
    pub struct SegmentRow from "segments" {
        /// Row number.
        id: i64,
        /// Device.
        device_id: i64,
        /// Start.
        address: Option<i64>,
        /// Bytes.
        total_size: i64,
        /// Bytes in allocated blocks.
        allocated_size: Option<i64>,
        /// Bytes in active blocks.
        active_size: Option<i64>,
        /// Bytes asked for in active blocks.
        requested_size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// `large` or `small`.
        segment_type: Option<String>,
        /// Memory pool.
        pool_id_0: Option<i64>,
        /// Memory pool.
        pool_id_1: Option<i64>,
        /// 1 for an expandable segment.
        is_expandable: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
    }
}

row! {
    /// A segment of the workspace allocator.
    pub struct WorkspaceSegment from "_workspace_segments" {
        /// `segments.id`.
        segment_id: i64,
    }
}

row! {
    /// A block of the final state.
    pub struct BlockRow from "blocks" {
        /// Segment it lies in.
        segment_id: i64,
        /// Start.
        address: Option<i64>,
        /// Bytes.
        size: i64,
        /// Bytes asked for.
        requested_size: Option<i64>,
        /// State.
        state: String,
        /// Call stack.
        stack_id: Option<i64>,
    }
}

row! {
    /// What has to be known of an event to count it.
    pub struct EventKind from "traces" {
        /// Device.
        device_id: i64,
        /// Position.
        trace_index: i64,
        /// What happened.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// 1 for an entry of the workspace allocator.
        is_workspace: i64,
    }
}

row! {
    /// When an event was.
    pub struct EventTime from "traces" {
        /// Device.
        device_id: i64,
        /// Position.
        trace_index: i64,
        /// Time.
        time_us: Option<i64>,
        /// 1 for an entry of the workspace allocator.
        is_workspace: i64,
    }
}

row! {
    /// An event.
    pub struct Event from "traces" {
        /// Device.
        device_id: i64,
        /// Position.
        trace_index: i64,
        /// What happened.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes the driver had.
        device_free: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// Time.
        time_us: Option<i64>,
        /// Memory pool.
        pool_id_0: Option<i64>,
        /// Memory pool.
        pool_id_1: Option<i64>,
        /// Context of `torch.compile`.
        compile_context: Option<String>,
        /// What the program attached.
        user_metadata: Option<String>,
        /// 1 for an entry of the workspace allocator.
        is_workspace: i64,
    }
}

row! {
    /// A lifetime.
    pub struct Allocation from "allocations" {
        /// Row number.
        id: i64,
        /// Device.
        device_id: i64,
        /// Address.
        addr: i64,
        /// Bytes asked for.
        size: i64,
        /// Bytes of the block.
        block_size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Event that began it.
        alloc_index: Option<i64>,
        /// Event that asked for its end.
        free_requested_index: Option<i64>,
        /// Event that ended it.
        free_completed_index: Option<i64>,
        /// Time of the alloc.
        alloc_time_us: Option<i64>,
        /// Time of the last free.
        free_time_us: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// `live`, `pending_free` or `freed` at the end.
        fate: String,
    }
}

impl Allocation {
    /// Bytes of the block; bytes asked for where that is not known.
    pub(super) fn bytes(&self) -> i64 {
        self.block_size.unwrap_or(self.size)
    }

    /// Whether it stands after the event before `end`: allocated, or waiting for its free to complete.
    pub(super) fn is_active_at(&self, end: i64) -> bool {
        self.alloc_index.is_none_or(|index| index < end)
            && self.free_completed_index.is_none_or(|index| index >= end)
    }

    /// Whether an active one waits for its free to complete. Without its own event, the free was asked for before the
    /// window.
    pub(super) fn is_pending_at(&self, end: i64) -> bool {
        match self.free_requested_index {
            Some(index) => index < end,
            None => self.free_completed_index.is_some() || self.fate == "pending_free",
        }
    }
}

row! {
    /// Numbers of a device's events.
    pub struct EventNumbers from "_event_ranges" {
        /// Device number.
        device_index: i64,
        /// First event.
        first_index: i64,
        /// Last event.
        last_index: i64,
    }
}

row! {
    /// A named range of the program's.
    pub struct AnnotationRow from "annotations" {
        /// Device that was current.
        device_id: Option<i64>,
        /// `START` or `END`.
        stage: Option<String>,
        /// Name.
        name: Option<String>,
        /// Time.
        time_us: Option<i64>,
        /// Nearest event.
        trace_index: Option<i64>,
    }
}

row! {
    /// The counters after an event.
    pub struct Moment from "memory_timeline" {
        /// Device.
        device_id: i64,
        /// Position of the event.
        trace_index: i64,
        /// Time.
        time_us: Option<i64>,
        /// What happened.
        action: String,
        /// Bytes of the event.
        size: Option<i64>,
        /// Bytes from the driver.
        reserved: Option<i64>,
        /// Bytes in allocated blocks.
        allocated: Option<i64>,
        /// Bytes in active blocks.
        active: Option<i64>,
        /// Bytes asked for in allocated blocks.
        allocated_requested: Option<i64>,
        /// Bytes asked for in active blocks.
        active_requested: Option<i64>,
    }
}
