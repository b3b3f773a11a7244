//! The calls that record and dump a snapshot, as advice names them.

/// The module that has them.
fn module(is_npu: bool) -> &'static str {
    if is_npu { "torch_npu.npu.memory" } else { "torch.cuda.memory" }
}

/// Starts recording. Stacks of C++ frames as well, which the call takes without being told, make a dump a hundred times slower.
pub(super) fn record(is_npu: bool) -> String {
    format!("{}._record_memory_history(max_entries=100000, stacks=\"python\")", module(is_npu))
}

/// Writes what was recorded.
pub(super) fn dump(is_npu: bool) -> String {
    format!("{}._dump_snapshot(\"snapshot.pickle\")", module(is_npu))
}
