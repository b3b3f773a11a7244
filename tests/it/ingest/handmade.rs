//! A small snapshot, written by serde-pickle.

use serde::Serialize;

#[derive(Serialize)]
struct Frame {
    filename: &'static str,
    line: i64,
    name: String,
}

#[derive(Serialize)]
struct Block {
    address: i64,
    size: i64,
    requested_size: i64,
    state: &'static str,
    frames: Vec<Frame>,
}

#[expect(clippy::struct_field_names, reason = "the names of the format")]
#[derive(Serialize)]
struct Segment {
    device: i64,
    address: i64,
    total_size: i64,
    allocated_size: i64,
    active_size: i64,
    requested_size: i64,
    stream: i64,
    segment_type: &'static str,
    segment_pool_id: (i64, i64),
    is_expandable: bool,
    frames: Vec<Frame>,
    blocks: Vec<Block>,
}

#[derive(Serialize)]
struct Event {
    action: &'static str,
    addr: i64,
    size: i64,
    stream: i64,
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Snapshot {
    segments: Vec<Segment>,
    device_traces: Vec<Vec<Event>>,
}

fn frames(line: i64) -> Vec<Frame> {
    vec![Frame { filename: "train.py", line, name: format!("step{line}") }]
}

/// A snapshot with one segment per device and `events` events on the first of two devices.
pub(super) fn snapshot(events: i64) -> Vec<u8> {
    let segment = |device| Segment {
        device,
        address: 1 << 40,
        total_size: 2 << 20,
        allocated_size: 512,
        active_size: 512,
        requested_size: 500,
        stream: 0,
        segment_type: "small",
        segment_pool_id: (0, 0),
        is_expandable: false,
        frames: frames(0),
        blocks: vec![
            Block {
                address: 1 << 40,
                size: 512,
                requested_size: 500,
                state: "active_allocated",
                frames: frames(1),
            },
            Block {
                address: (1 << 40) + 512,
                size: (2 << 20) - 512,
                requested_size: 0,
                state: "inactive",
                frames: Vec::new(),
            },
        ],
    };
    let event = |index: i64| Event {
        action: if index % 2 == 0 { "alloc" } else { "free_requested" },
        addr: (1 << 40) + index / 2 * 512,
        size: 512,
        stream: 0,
        frames: frames(index % 10),
    };
    let snapshot = Snapshot {
        segments: vec![segment(0), segment(1)],
        device_traces: vec![(0..events).map(event).collect(), Vec::new()],
    };
    serde_pickle::to_vec(&snapshot, serde_pickle::SerOptions::new()).unwrap()
}
