//! Rows of every table, made by hand through the builders of the schema.

use arrow::array::RecordBatch;
use npusnap::schema::{
    Annotation, AnnotationsBuilder, Block, BlocksBuilder, CallStack, CallStacksBuilder, Device,
    DevicesBuilder, FrameRow, ImportStat, ImportStatsBuilder, ModuleMemory, ModuleMemoryBuilder, Names,
    ReplayCheck, ReplayChecksBuilder, Segment, SegmentsBuilder, Snapshot, SnapshotBuilder, Symbol, Table,
    TraceEvent, TracesBuilder, VERSION, table,
};

/// Batches in the order a decoder gives them.
pub(super) type Batches = Vec<(&'static Table, RecordBatch)>;

/// Actions of the events, in turn.
pub(super) const ACTIONS: [&str; 4] = ["alloc", "free_requested", "free_completed", "行动"];

struct Text;

impl Names for Text {
    fn name(&self, symbol: Symbol) -> &str {
        ["alloc", "free_requested", "free_completed", "行动", "large", "inactive", "N/A", ""]
            [symbol.0 as usize]
    }
}

fn finish(
    table_name: &str,
    finish: impl FnOnce(&dyn Names) -> Result<RecordBatch, arrow::error::ArrowError>,
) -> (&'static Table, RecordBatch) {
    (table(table_name).unwrap(), finish(&Text).unwrap())
}

/// A small world: two devices, four stacks, and `events` events on each device, in batches of 1,000.
pub(super) fn sample(events: i64) -> Batches {
    let mut batches = traces(events);
    let mut devices = DevicesBuilder::default();
    for (id, device_index) in [(1, 0), (2, -1)] {
        devices.push(Device { id, device_index, device_type: "Ascend-NPU".to_owned() });
    }
    batches.push(finish("devices", |names| devices.finish(names)));

    let mut stacks = CallStacksBuilder::default();
    for id in 1..=4 {
        let frames =
            (0..id).map(|line| FrameRow { name: format!("f{line}").into(), filename: "a.py".into(), line });
        stacks.push(CallStack {
            id,
            stack_hash: format!("{id:032x}"),
            frames_json: format!("[{id}, \"é\\u0000\"]"),
            frames: if id == 4 { Vec::new() } else { frames.collect() },
        });
    }
    batches.push(finish("call_stacks", |names| stacks.finish(names)));

    let mut segments = SegmentsBuilder::default();
    let mut blocks = BlocksBuilder::default();
    for id in 1..=150 {
        segments.push(Segment {
            id,
            device_id: id % 2 + 1,
            address: (id != 3).then_some(id << 20),
            total_size: 1 << 20,
            allocated_size: None,
            active_size: Some(0),
            requested_size: Some(id),
            stream: Some(0),
            segment_type: Some(Symbol(4)),
            pool_id_0: None,
            pool_id_1: None,
            is_expandable: Some(id % 2),
            stack_id: Some(1),
        });
        blocks.push(Block {
            id,
            segment_id: id,
            address: Some(id << 20),
            size: 1 << 20,
            requested_size: None,
            state: Symbol(5),
            stack_id: None,
        });
    }
    batches.push(finish("segments", |names| segments.finish(names)));
    batches.push(finish("blocks", |names| blocks.finish(names)));

    let mut snapshot = SnapshotBuilder::default();
    snapshot.push(Snapshot {
        source_name: "sample.pickle".to_owned(),
        source_bytes: 1,
        sha256: "0".repeat(64),
        dialect: "npu".to_owned(),
        form: "dict".to_owned(),
        producer: "by hand".to_owned(),
        protocol: Some(4),
        container: "pickle".to_owned(),
        trace_lists: Some(2),
        event_count: 2 * events,
        segment_count: 150,
        block_count: 150,
        stack_count: 4,
        allocator_settings: None,
        block_padding: Some(32),
        schema_version: VERSION,
        npusnap_version: "0".to_owned(),
    });
    batches.push(finish("snapshot", |names| snapshot.finish(names)));

    let mut annotations = AnnotationsBuilder::default();
    annotations.push(Annotation {
        device_id: Some(1),
        stage: Some("START".to_owned()),
        name: None,
        time_us: Some(1),
        trace_index: None,
    });
    batches.push(finish("annotations", |names| annotations.finish(names)));
    let mut stats = ImportStatsBuilder::default();
    stats.push(ImportStat {
        name: "x".to_owned(),
        severity: "info".to_owned(),
        device_id: None,
        value: -1,
        doc: "it's".to_owned(),
    });
    batches.push(finish("import_stats", |names| stats.finish(names)));
    let mut checks = ReplayChecksBuilder::default();
    checks.push(ReplayCheck {
        device_id: 1,
        counter: "reserved".to_owned(),
        base: Some(0),
        r#final: Some(i64::MAX),
        residual: None,
        exact: 1,
    });
    batches.push(finish("replay_checks", |names| checks.finish(names)));
    batches.push(modules());
    batches
}

fn modules() -> (&'static Table, RecordBatch) {
    let mut modules = ModuleMemoryBuilder::default();
    modules.push(ModuleMemory {
        device_id: 1,
        component: "HCCL".to_owned(),
        bytes: Some(1 << 30),
        peak_bytes: None,
        time_us: None,
        sample_count: 1,
        source_name: "device_0_memUsageInfo_20250102030405.csv".to_owned(),
    });
    finish("module_memory", |names| modules.finish(names))
}

fn traces(events: i64) -> Batches {
    let mut batches = Batches::new();
    let mut traces = TracesBuilder::default();
    for device_id in 1..=2 {
        for trace_index in 0..events {
            let device = i64::from(device_id == 2);
            traces.push(TraceEvent {
                id: device * events + trace_index + 1,
                device_id,
                trace_index,
                action: Symbol(u32::try_from(trace_index % 4).unwrap()),
                addr: (trace_index % 7 != 0).then_some(i64::MIN + trace_index % 50 * 512),
                device_free: (trace_index % 100 == 99).then_some(1 << 40),
                size: Some(trace_index % 13 * 512),
                stream: Some(0x7fff_0000_0000),
                stack_id: (trace_index % 5 != 0).then_some(trace_index % 4 + 1),
                time_us: (device_id == 1).then_some(1_700_000_000_000_000 + trace_index * 3),
                pool_id_0: Some(0),
                pool_id_1: Some(trace_index % 2),
                compile_context: Some(Symbol(6)),
                user_metadata: (trace_index % 2 == 0).then_some(Symbol(7)),
                is_workspace: 0,
            });
            if traces.len() == 1000 {
                batches.push(finish("traces", |names| traces.finish(names)));
            }
        }
    }
    batches.push(finish("traces", |names| traces.finish(names)));
    batches
}
