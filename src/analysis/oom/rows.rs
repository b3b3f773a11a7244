//! The relations that tell of failed requests, as rows.

use crate::engine::row;

row! {
    /// An out-of-memory event and the state of its device.
    pub struct OomContext from "oom_context" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// Bytes asked for, rounded.
        requested: Option<i64>,
        /// Bytes the driver reported as free.
        device_free: Option<i64>,
        /// Bytes mapped.
        reserved: Option<i64>,
        /// Bytes in allocated blocks.
        allocated: Option<i64>,
        /// Bytes in blocks that waited for a pending free.
        pending_free_bytes: Option<i64>,
        /// Bytes in no block, in the default pool.
        pool_free_bytes: Option<i64>,
        /// Bytes of the largest gap in the default pool.
        largest_free_block: Option<i64>,
        /// Gaps in the default pool.
        hole_count: Option<i64>,
        /// Bytes mapped for private pools.
        private_reserved: Option<i64>,
        /// Bytes in no block there.
        private_free_bytes: Option<i64>,
        /// Bytes in no block, in segments of other streams.
        other_stream_bytes: Option<i64>,
        /// Bytes of mapped ranges without any block.
        unused_segment_bytes: Option<i64>,
        /// Bytes in no block in segments of the request's kind and pool.
        kind_free_bytes: Option<i64>,
        /// Bytes of the largest gap there.
        kind_largest_free: Option<i64>,
        /// Gaps there.
        kind_hole_count: Option<i64>,
        /// Of `kind_free_bytes`, what belongs to other streams.
        kind_other_bytes: Option<i64>,
        /// Bytes in gaps of segments of the request's kind in other pools.
        kind_private_bytes: Option<i64>,
        /// Of `kind_free_bytes`, what lies around blocks in segments that were large enough for the request.
        kind_cut_bytes: Option<i64>,
        /// Bytes in blocks that waited for a pending free, in segments of the request's kind, pool and stream.
        kind_pending_bytes: Option<i64>,
        /// Bytes of NPU workspaces at the moment of the dump.
        workspace_bytes: i64,
        /// The most that reserved and driver-free bytes came to.
        capacity_seen: Option<i64>,
        /// Stream of the request.
        stream: Option<i64>,
        /// First word of the id of the request's memory pool.
        pool_id_0: Option<i64>,
        /// Second word.
        pool_id_1: Option<i64>,
        /// Bytes in no block in the request's pool.
        own_free_bytes: Option<i64>,
        /// Bytes in no block in segments of the request's kind, pool and stream that `max_split_size` kept from it.
        kind_oversize_bytes: Option<i64>,
        /// Bytes of the largest gap that the request could have been served from.
        largest_usable_block: Option<i64>,
        /// Call stack of the request.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// An out-of-memory event, and nothing about its device.
    pub struct OomEvent from "_oom_events" {
        /// Row of table `devices`.
        device_id: i64,
        /// Position in the device's history.
        trace_index: i64,
    }
}

row! {
    /// A call stack at an out-of-memory event.
    pub struct OomGrowth from "oom_growth" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the out-of-memory event.
        oom_index: i64,
        /// Call stack; NULL for what has none.
        stack_id: Option<i64>,
        /// Bytes in use that were allocated lately.
        recent_bytes: i64,
        /// Those allocations.
        recent_count: i64,
        /// Bytes in use.
        live_bytes: i64,
        /// Those allocations.
        live_count: i64,
        /// The stack's frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// An event before an out-of-memory event.
    pub struct OomPreceding from "oom_preceding" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position of the out-of-memory event.
        oom_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// What was done.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

row! {
    /// One of the newest events of a device.
    pub struct LastEvent from "last_events" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Position in the device's history.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// What was done.
        action: String,
        /// Address.
        addr: Option<i64>,
        /// Bytes.
        size: Option<i64>,
        /// Stream.
        stream: Option<i64>,
        /// Call stack.
        stack_id: Option<i64>,
        /// Its frames as JSON.
        frames_json: Option<String>,
    }
}

impl From<OomPreceding> for LastEvent {
    fn from(event: OomPreceding) -> Self {
        Self {
            device_index: event.device_index,
            trace_index: event.trace_index,
            time_us: event.time_us,
            action: event.action,
            addr: event.addr,
            size: event.size,
            stream: event.stream,
            stack_id: event.stack_id,
            frames_json: event.frames_json,
        }
    }
}
