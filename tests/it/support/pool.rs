//! Segments and events of an allocator's pool whose sums are right, for snapshots made by hand.

use super::pickler::{Py, cpython, dict, int, list, text, tuple};

pub(crate) const MIB: i128 = 1 << 20;

/// A segment of device `device` whose blocks (size, state) tile it, each asked for in full; its sums follow from them.
pub(crate) fn segment(device: i128, address: i128, kind: &str, blocks: &[(i128, &str)]) -> Py {
    let sum = |wanted: &[&str]| -> i128 {
        blocks.iter().filter(|(_, state)| wanted.contains(state)).map(|(size, _)| size).sum()
    };
    let active = sum(&["active_allocated", "active_pending_free"]);
    let mut at = address;
    let mut rows = Vec::new();
    for (size, state) in blocks {
        rows.push(dict([
            ("address", int(at)),
            ("size", int(*size)),
            ("requested_size", int(*size)),
            ("state", text(state)),
            ("frames", list([])),
        ]));
        at += size;
    }
    dict([
        ("device", int(device)),
        ("address", int(address)),
        ("total_size", int(at - address)),
        ("allocated_size", int(sum(&["active_allocated"]))),
        ("active_size", int(active)),
        ("requested_size", int(active)),
        ("stream", int(0)),
        ("segment_type", text(kind)),
        ("segment_pool_id", tuple([int(0), int(0)])),
        ("is_expandable", Py::Bool(false)),
        ("frames", list([])),
        ("blocks", list(rows)),
    ])
}

/// An event without a call stack.
pub(crate) fn event(action: &str, addr: i128, size: i128) -> Py {
    dict([("action", text(action)), ("addr", int(addr)), ("size", int(size)), ("stream", int(0))])
}

/// A failed request.
pub(crate) fn oom(size: i128, device_free: i128) -> Py {
    dict([
        ("action", text("oom")),
        ("device_free", int(device_free)),
        ("size", int(size)),
        ("stream", int(0)),
    ])
}

/// The pickle of a snapshot.
pub(crate) fn snapshot(segments: Vec<Py>, traces: Vec<Vec<Py>>) -> Py {
    dict([("segments", list(segments)), ("device_traces", list(traces.into_iter().map(list)))])
}

/// Writes the pickle of a snapshot under a name of its own.
pub(crate) fn written(name: &str, snapshot: &Py) -> (tempfile::TempDir, std::path::PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(name);
    std::fs::write(&path, cpython(snapshot, 4)).unwrap();
    (place, path)
}
