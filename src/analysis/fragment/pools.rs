//! Memory pools, and why they grew.

use crate::engine::row;

row! {
    /// A memory pool.
    pub struct PoolOverview from "pool_overview" {
        /// Device number in the snapshot.
        device_index: i64,
        /// First word of the pool's id.
        pool_id_0: Option<i64>,
        /// Second word.
        pool_id_1: Option<i64>,
        /// 1 for a pool other than (0, 0).
        is_private: i64,
        /// Segments.
        segment_count: i64,
        /// Bytes in them.
        reserved: i64,
        /// Bytes in allocated blocks.
        allocated: i64,
        /// Bytes in blocks that wait for a pending free.
        pending_free_bytes: i64,
        /// Bytes free inside segments in use.
        hole_bytes: i64,
        /// Bytes in whole free segments.
        unused_segment_bytes: i64,
        /// Bytes of the largest free block.
        largest_free_block: i64,
        /// (reserved - allocated) / reserved.
        fragmentation_ratio: Option<f64>,
    }
}

row! {
    /// Growth of reserved memory by its cause.
    pub struct ExpansionCause from "expansion_cause_dist" {
        /// Device number in the snapshot.
        device_index: i64,
        /// `first`, `fragmented`, `pending_free`, `other_pool` or `full`; NULL where no request followed, or what was
        /// free is not known.
        cause: Option<String>,
        /// Requests that needed new memory.
        expansion_count: i64,
        /// Bytes that were added for them.
        grown_bytes: i64,
        /// The most that was free for the stream and kind when one of them came; NULL where that is not known.
        most_free_before: Option<i64>,
    }
}
