//! Small snapshots with every field, as the documents of the format show them.

use super::pickler::{Py, dict, int, list, text, tuple};

pub(crate) const GIB: i128 = 1 << 30;
/// An address as CUDA hands it out: 47 bits.
pub(crate) const BASE: i128 = 0x7f8a_0000_0000;
/// A time as PyTorch writes it: microseconds since the Unix epoch.
pub(crate) const TIME: i128 = 1_713_558_427_168_556;

pub(crate) fn frame(name: &str, line: i128) -> Py {
    dict([("name", text(name)), ("filename", text(&format!("/app/{name}.py"))), ("line", int(line))])
}

/// A stack of distinct frames.
pub(crate) fn stack(name: &str, depth: usize) -> Py {
    list((0..depth).map(|level| frame(&format!("{name}{level}"), i128::try_from(level).unwrap() + 1)))
}

pub(crate) fn pool(first: i128, second: i128) -> Py {
    tuple([int(first), int(second)])
}

pub(crate) fn block(address: i128, size: i128, state: &str, frames: Py) -> Py {
    dict([
        ("address", int(address)),
        ("size", int(size)),
        ("requested_size", int(size - 12)),
        ("state", text(state)),
        ("frames", frames),
    ])
}

pub(crate) fn segment(device: i128, address: i128, blocks: &[(i128, &str)], frames: &Py) -> Py {
    let total: i128 = blocks.iter().map(|(size, _)| size).sum();
    let mut at = address;
    let mut rows = Vec::new();
    for (size, state) in blocks {
        rows.push(block(at, *size, state, frames.clone()));
        at += size;
    }
    dict([
        ("device", int(device)),
        ("address", int(address)),
        ("total_size", int(total)),
        ("allocated_size", int(total)),
        ("active_size", int(total)),
        ("requested_size", int(total - 12)),
        ("stream", int(0)),
        ("segment_type", text("large")),
        ("segment_pool_id", pool(0, 0)),
        ("is_expandable", Py::Bool(false)),
        ("frames", frames.clone()),
        ("blocks", list(rows)),
    ])
}

/// An event as torch 2.12 writes it.
pub(crate) fn event(action: &str, addr: i128, size: i128, frames: &Py) -> Py {
    dict([
        ("action", text(action)),
        ("addr", int(addr)),
        ("size", int(size)),
        ("stream", int(0)),
        ("time_us", int(TIME)),
        ("compile_context", text("N/A")),
        ("user_metadata", text("")),
        ("pool_id", pool(0, 0)),
        ("frames", frames.clone()),
    ])
}

/// An event as `torch_npu` writes it.
pub(crate) fn npu_event(action: &str, addr: i128, size: i128) -> Py {
    dict([("action", text(action)), ("addr", int(addr)), ("size", int(size)), ("stream", int(BASE))])
}

pub(crate) fn snapshot(
    segments: impl IntoIterator<Item = Py>,
    traces: impl IntoIterator<Item = Vec<Py>>,
) -> Py {
    dict([("segments", list(segments)), ("device_traces", list(traces.into_iter().map(list)))])
}

/// Two devices with history, one without, shared stacks, every key of torch 2.14.
pub(crate) fn everything() -> Py {
    let shared = stack("shared", 3);
    let other = stack("other", 2);
    let empty = list([]);
    let events = |base: i128| {
        vec![
            event("segment_alloc", base, 2 << 20, &shared),
            event("alloc", base, 500, &shared),
            event("free_requested", base, 500, &other),
            event("free_completed", base, 500, &other).without("frames"),
            event("snapshot", 0, 4096, &empty),
            event("oom", base, 20 * GIB, &other).without("addr").with("device_free", int(123_456_789)),
        ]
    };
    let annotation = |stage: &str| {
        dict([
            ("stage", text(stage)),
            ("name", text("Optimizer.step")),
            ("device", int(0)),
            ("time_us", int(TIME + 5)),
        ])
    };
    snapshot(
        [
            segment(0, BASE, &[(512, "active_allocated"), (1 << 20, "inactive")], &shared),
            segment(2, BASE + GIB, &[(512, "active_pending_free")], &empty),
        ],
        [events(BASE), vec![], events(BASE + GIB)],
    )
    .with(
        "allocator_settings",
        dict([
            ("PYTORCH_CUDA_ALLOC_CONF", text("expandable_segments:False")),
            ("max_split_size", int(-1)),
            ("garbage_collection_threshold", Py::Float(0.8)),
            ("expandable_segments", Py::Bool(false)),
            ("roundup_power2_divisions", dict([("1", int(0)), ("64", int(4))])),
        ]),
    )
    .with("external_annotations", list([annotation("START"), annotation("END").reversed()]))
    .with("host_segments", list([segment(-1, 2 * BASE, &[(4096, "active_allocated")], &empty)]))
    .with("host_traces", list([event("alloc", 2 * BASE, 4096, &shared)]))
}
