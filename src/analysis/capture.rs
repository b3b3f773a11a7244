//! The calls that record and dump a snapshot, as advice names them.

/// The module that has them.
fn module(is_npu: bool) -> &'static str {
    if is_npu { "torch_npu.npu.memory" } else { "torch.cuda.memory" }
}

/// Events of a ring buffer that is not too large to be dumped in seconds.
const ENTRIES: i64 = 100_000;

/// Starts recording. Stacks of C++ frames as well, which the call takes without being told, make a dump a hundred times slower.
pub(super) fn record(is_npu: bool) -> String {
    record_more(is_npu, 0)
}

/// The same with room for more events than so many.
pub(super) fn record_more(is_npu: bool, than: i64) -> String {
    let entries = if than < ENTRIES { ENTRIES } else { than.saturating_mul(4) };
    format!("{}._record_memory_history(max_entries={entries}, stacks=\"python\")", module(is_npu))
}

/// Writes what was recorded.
pub(super) fn dump(is_npu: bool) -> String {
    format!("{}._dump_snapshot(\"snapshot.pickle\")", module(is_npu))
}
