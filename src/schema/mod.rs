//! What a snapshot is, declared once: tables, columns, types, keys and indexes.
//!
//! Everything else that lists columns (Arrow schemas, SQLite DDL, docs, help) is derived from the `tables!` call below.

mod collect;
mod column;
mod ddl;
mod doc;
mod frames;
mod interned;
pub(crate) mod note;
#[macro_use]
mod table;

pub use collect::Collect;
pub use column::ColumnValue;
pub use ddl::{create_index, create_table};
pub use doc::{table_markdown, table_text};
pub use frames::{FrameRow, FramesBuilder};
pub use interned::{Names, NoNames, Symbol};
pub(crate) use table::{ByColumn, WAITING_ROWS};
pub use table::{Column, Table, VERSION, column_name};

tables! {
    /// One row per device that has a segment or a recorded event. Devices are never added together.
    Device / DevicesBuilder = devices {
        /// Row number, from 1.
        id: i64 ["PRIMARY KEY"],
        /// Device number in the snapshot; -1 is pinned host memory, a domain of its own.
        device_index: i64 ["UNIQUE"],
        /// `Ascend-NPU` or `CUDA-GPU`: what kind of producer wrote the snapshot.
        device_type: String,
    } indexes []

    /// One row per distinct call stack. Stacks are the same when their frames are; list identity does not count.
    CallStack / CallStacksBuilder = call_stacks {
        /// Row number in order of first appearance in the file, from 1.
        id: i64 ["PRIMARY KEY"],
        /// MD5 (hex) of `frames_json`.
        stack_hash: String ["UNIQUE"],
        /// Frames as a JSON array of objects with sorted keys, innermost first, with whatever extra keys a frame had.
        frames_json: String,
        /// The same frames as a list of (name, filename, line), innermost first. Parquet only.
        frames: Vec<FrameRow>,
    } indexes []

    /// Memory the allocator reserved from the driver: one row per segment in the final state.
    Segment / SegmentsBuilder = segments {
        /// Row number in the snapshot, from 1.
        id: i64 ["PRIMARY KEY"],
        /// Device that owns it: `devices.id`.
        device_id: i64 ["REFERENCES devices(id)"],
        /// Start address, 64-bit two's complement; NULL where the snapshot has none.
        address: Option<i64>,
        /// Bytes reserved from the driver.
        total_size: i64,
        /// Bytes in blocks in state `active_allocated`, rounded sizes.
        allocated_size: Option<i64>,
        /// Bytes in blocks that are allocated or wait for a pending free, rounded sizes.
        active_size: Option<i64>,
        /// Bytes that were asked for in active blocks; NULL before PyTorch 2.0.
        requested_size: Option<i64>,
        /// Stream that owns the segment, as the allocator's pointer-sized number.
        stream: Option<i64>,
        /// `large` or `small`: which pool of the allocator.
        segment_type: Option<Symbol>,
        /// First word of the memory pool's id; (0, 0) is the default pool.
        pool_id_0: Option<i64>,
        /// Second word of the memory pool's id.
        pool_id_1: Option<i64>,
        /// 1 for an expandable (virtual memory) segment, else 0; NULL where the snapshot does not say.
        is_expandable: Option<i64>,
        /// Call stack that made the segment grow: `call_stacks.id`; NULL where none was recorded.
        stack_id: Option<i64> ["REFERENCES call_stacks(id)"],
    } indexes [
        "idx_segments_stack" ("stack_id"),
        "idx_segments_device" ("device_id"),
        "idx_segments_device_type" ("device_id, segment_type"),
    ]

    /// A piece of a segment in the final state; the blocks of a segment tile it without gaps.
    Block / BlocksBuilder = blocks {
        /// Row number in the snapshot, from 1.
        id: i64 ["PRIMARY KEY"],
        /// Segment it lies in: `segments.id`.
        segment_id: i64 ["REFERENCES segments(id) ON DELETE CASCADE"],
        /// Start address, 64-bit two's complement. Summed up from the segment's where the snapshot has none.
        address: Option<i64>,
        /// Bytes it occupies, rounding included.
        size: i64,
        /// Bytes last asked for; stale in inactive blocks.
        requested_size: Option<i64>,
        /// `active_allocated`, `active_pending_free` or `inactive`.
        state: Symbol,
        /// Call stack of the allocation: `call_stacks.id`; NULL where none was recorded.
        stack_id: Option<i64> ["REFERENCES call_stacks(id)"],
    } indexes [
        "idx_blocks_state" ("state"),
        "idx_blocks_stack" ("stack_id"),
        "idx_blocks_segment" ("segment_id"),
        "idx_blocks_segment_state" ("segment_id, state"),
    ]

    /// What the allocator did, event by event, oldest first within a device.
    TraceEvent / TracesBuilder = traces {
        /// Row number in file order, from 1.
        id: i64 ["PRIMARY KEY"],
        /// Device whose list it stands in: `devices.id`.
        device_id: i64 ["REFERENCES devices(id)"],
        /// Position in the device's list, from 0. The order of time; the axis where there is no clock.
        trace_index: i64,
        /// `alloc`, `free_requested`, `free_completed`, `segment_alloc`, `segment_free`, `segment_map`, `segment_unmap`,
        /// `snapshot`, `oom`, `annotate`, `workspace_snapshot`, or what an unknown producer wrote.
        action: Symbol,
        /// Address, 64-bit two's complement; NULL for `oom`.
        addr: Option<i64>,
        /// Bytes the driver reported as free; only `oom` has it.
        device_free: Option<i64>,
        /// Bytes: requested for alloc and frees, real for segment events, rounded request for `oom`.
        size: Option<i64>,
        /// Stream, as the allocator's pointer-sized number.
        stream: Option<i64>,
        /// Call stack of the event: `call_stacks.id`; NULL where none was recorded.
        stack_id: Option<i64> ["REFERENCES call_stacks(id)"],
        /// Microseconds since the Unix epoch; NULL on NPU and before PyTorch 2.2.
        time_us: Option<i64>,
        /// First word of the memory pool's id; NULL where the producer does not write it.
        pool_id_0: Option<i64>,
        /// Second word of the memory pool's id.
        pool_id_1: Option<i64>,
        /// `torch.compile` context, `N/A` outside one; NULL where the producer does not write it.
        compile_context: Option<Symbol>,
        /// What the program attached to the event; NULL where the producer does not write it.
        user_metadata: Option<Symbol>,
        /// 1 for the three entries that torch_npu puts before the history for each workspace block: a description of
        /// the moment of the dump, not events. Else 0.
        is_workspace: i64,
    } indexes [
        "idx_traces_stack" ("stack_id"),
        "idx_traces_device_action" ("device_id, action"),
        "idx_traces_device_index" ("device_id, trace_index"),
    ]

    /// One row per lifetime of an allocation, paired from events and final state. In the order of devices; those from before
    /// the window come first, by address, then the others by alloc_index.
    Allocation / AllocationsBuilder = allocations {
        /// Row number, from 1.
        id: i64 ["PRIMARY KEY"],
        /// Device: `devices.id`.
        device_id: i64 ["REFERENCES devices(id)"],
        /// Address, 64-bit two's complement.
        addr: i64,
        /// Bytes asked for.
        size: i64,
        /// Bytes of the block, rounding included.
        block_size: Option<i64>,
        /// 1 where `block_size` is proven: by the final state, by the allocator's rules or by the neighbours of the block.
        /// 0 where it is only what the request is rounded to, and the block may be larger.
        block_size_exact: Option<i64>,
        /// Stream, as the allocator's pointer-sized number.
        stream: Option<i64>,
        /// First word of the memory pool's id.
        pool_id_0: Option<i64>,
        /// Second word of the memory pool's id.
        pool_id_1: Option<i64>,
        /// `traces.trace_index` of the alloc; NULL before the window. Where the trace lacks the alloc, that of the free
        /// before it.
        alloc_index: Option<i64>,
        /// `traces.trace_index` of free_requested; NULL where it never came, and where it came before the window: then
        /// free_completed_index is set or fate is `pending_free`. Where the trace lacks it, that of free_completed.
        free_requested_index: Option<i64>,
        /// `traces.trace_index` of free_completed; NULL where it never came. Where the trace lacks it, that of
        /// free_requested.
        free_completed_index: Option<i64>,
        /// Time of the alloc in microseconds since the Unix epoch; NULL without a clock.
        alloc_time_us: Option<i64>,
        /// Time of the last free event in microseconds since the Unix epoch; NULL without a clock.
        free_time_us: Option<i64>,
        /// Call stack of the alloc: `call_stacks.id`; the block's, where the event has none or came before the window.
        stack_id: Option<i64> ["REFERENCES call_stacks(id)"],
        /// Call stack of free_requested: `call_stacks.id`.
        free_stack_id: Option<i64> ["REFERENCES call_stacks(id)"],
        /// `window` or `before_window`: where the allocation began.
        origin: Symbol,
        /// `live`, `pending_free` or `freed` at the end.
        fate: Symbol,
    } indexes []

    /// One row: what the file is and how it was read.
    Snapshot / SnapshotBuilder = snapshot {
        /// File name without its folder.
        source_name: String,
        /// Bytes of the file.
        source_bytes: i64,
        /// SHA-256 (hex) of the file.
        sha256: String,
        /// `pickle` or `json`, and what it is wrapped in, from inside to outside: `pickle+html+gzip`.
        container: String,
        /// `npu`, `cuda` or `legacy_list`: which set of fields the snapshot has.
        dialect: String,
        /// Form of the top level: `dict` or `list`.
        form: String,
        /// Best guess of the producer, such as `torch_npu` or `torch >= 2.8, CPython pickle`.
        producer: String,
        /// Pickle protocol; NULL for other containers.
        protocol: Option<i64>,
        /// Lists under `device_traces`; NULL where the key is absent.
        trace_lists: Option<i64>,
        /// Events in `traces`.
        event_count: i64,
        /// Rows in `segments`.
        segment_count: i64,
        /// Rows in `blocks`.
        block_count: i64,
        /// Rows in `call_stacks`.
        stack_count: i64,
        /// `allocator_settings` as a JSON object; NULL where the snapshot has none.
        allocator_settings: Option<String>,
        /// Bytes the allocator adds to a request before it rounds it up to 512: 32 on most NPUs, else 0. Where nothing in an
        /// NPU's snapshot shows it, 32 is assumed and import_stats has `block_padding_unknown`.
        block_padding: Option<i64>,
        /// Version of the tables.
        schema_version: i64,
        /// Version of npusnap that read the file.
        npusnap_version: String,
    } indexes []

    /// `external_annotations`: ranges the program named while it recorded.
    Annotation / AnnotationsBuilder = annotations {
        /// Device that was current: `devices.id`; NULL where it has neither segments nor events.
        device_id: Option<i64> ["REFERENCES devices(id)"],
        /// `START` or `END`.
        stage: Option<String>,
        /// Name of the range.
        name: Option<String>,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// `traces.trace_index` of the last event of the device at or before that time; NULL without one.
        trace_index: Option<i64>,
    } indexes []

    /// All that was skipped, repaired, guessed or did not add up while reading.
    ImportStat / ImportStatsBuilder = import_stats {
        /// What it is about.
        name: String,
        /// `info`, `data_loss` or `error`.
        severity: String,
        /// Device it is about: `devices.id`; NULL where it is about the file.
        device_id: Option<i64> ["REFERENCES devices(id)"],
        /// How many, or how much.
        value: i64,
        /// What it means for the numbers.
        doc: String,
    } indexes []

    /// One row per counter of every device that has events or segments: where its curve starts and ends, and if it adds up.
    ReplayCheck / ReplayChecksBuilder = replay_checks {
        /// Device: `devices.id`.
        device_id: i64 ["REFERENCES devices(id)"],
        /// `reserved`, `allocated`, `active`, `allocated_requested` or `active_requested`.
        counter: String,
        /// Bytes before the first event: final minus what the events changed; NULL where events are missing, so that it
        /// would be wrong.
        base: Option<i64>,
        /// Bytes in the final state.
        r#final: Option<i64>,
        /// Base minus what the blocks alive before the window add up to, in bytes; 0 where all adds up, else
        /// `import_stats` has the reason.
        residual: Option<i64>,
        /// 1 where every event fits and, for the rounded counters, every block's real size is proven; else 0.
        exact: i64,
    } indexes []

    /// What the NPU's driver counts by component: one row per device, component and file that says so. From
    /// `device_<n>_memUsageInfo_<time>.csv`, which torch_npu writes when it dumps, and `npu_module_mem*.csv`, which its
    /// profiler exports, where these stand beside the snapshot; no row without them.
    ModuleMemory / ModuleMemoryBuilder = module_memory {
        /// Device: `devices.id`.
        device_id: i64 ["REFERENCES devices(id)"],
        /// Component, as the driver calls it: `APP` is what the program asked for itself, the allocator's pool with it;
        /// `HCCL` is communication.
        component: String,
        /// Bytes it held last; NULL where the file does not say, because only frees were seen.
        bytes: Option<i64>,
        /// The most bytes it held; NULL likewise.
        peak_bytes: Option<i64>,
        /// Time of the last sample in microseconds, of the profiler's clock; NULL where the file has none.
        time_us: Option<i64>,
        /// Lines of the file that the row was made from.
        sample_count: i64,
        /// Name of the file without its folder.
        source_name: String,
    } indexes []
}

/// The table called `name`.
#[must_use]
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().copied().find(|table| table.name == name)
}
