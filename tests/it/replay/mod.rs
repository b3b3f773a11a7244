//! Replay: lifetimes and bases against histories worked out by hand, the simulator's truth and real recordings.

mod contradictions;
mod lifetimes;
mod lost;
mod model;
mod order;
mod recordings;
mod sizes;
mod suffix;
mod truth;

use npusnap::snapshot::Options;

use crate::support::pickler::{Py, cpython, dict, int, list, text};
use crate::support::rows::{Rows, replayed};
use crate::support::snapshots::{BASE, pool};

const MIB: i128 = 1 << 20;

/// A block of the final state: bytes, bytes asked for, state.
type Block = (i128, i128, &'static str);
/// An event: action, address behind [`BASE`], bytes.
type Event = (&'static str, i128, i128);
/// An allocation: address behind [`BASE`], bytes asked for, bytes of the block and whether they are proven, the indices of
/// alloc, `free_requested` and `free_completed`, origin and fate.
type Life = (i64, i64, (i64, bool), [Option<i64>; 3], &'static str, &'static str);

/// A snapshot of one device.
#[derive(Clone)]
struct History {
    segments: Vec<Py>,
    events: Vec<Py>,
    settings: Option<Py>,
}

/// A history with these events and no segment yet.
fn history(events: &[Event]) -> History {
    let events = events.iter().map(|(action, addr, size)| {
        dict([
            ("action", text(action)),
            ("addr", int(BASE + addr)),
            ("size", int(*size)),
            ("stream", int(7)),
            ("compile_context", text("N/A")),
        ])
    });
    History { segments: Vec::new(), events: events.collect(), settings: None }
}

impl History {
    fn segment(self, address: i128, blocks: &[Block]) -> Self {
        self.segment_of(address, blocks, false)
    }

    fn mapped(self, address: i128, blocks: &[Block]) -> Self {
        self.segment_of(address, blocks, true)
    }

    fn segment_of(mut self, address: i128, blocks: &[Block], expandable: bool) -> Self {
        let sum = |states: &[&str]| {
            int(blocks.iter().filter(|block| states.contains(&block.2)).map(|block| block.0).sum::<i128>())
        };
        let total: i128 = blocks.iter().map(|block| block.0).sum();
        let mut at = BASE + address;
        let rows: Vec<Py> = blocks
            .iter()
            .map(|(size, requested, state)| {
                at += size;
                dict([
                    ("address", int(at - size)),
                    ("size", int(*size)),
                    ("requested_size", int(*requested)),
                    ("state", text(state)),
                    ("frames", list([])),
                ])
            })
            .collect();
        self.segments.push(dict([
            ("device", int(0)),
            ("address", int(BASE + address)),
            ("total_size", int(total)),
            ("allocated_size", sum(&["active_allocated"])),
            ("active_size", sum(&["active_allocated", "active_pending_free"])),
            ("requested_size", int(0)),
            ("stream", int(7)),
            ("segment_type", text(if total == 2 * MIB { "small" } else { "large" })),
            ("segment_pool_id", pool(0, 0)),
            ("is_expandable", Py::Bool(expandable)),
            ("frames", list([])),
            ("blocks", list(rows)),
        ]));
        self
    }

    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.events.is_empty()
    }

    /// The same, as `torch_npu` writes it.
    fn npu(mut self) -> Self {
        for event in &mut self.events {
            *event = event.without("compile_context");
        }
        self
    }

    fn settings(self, settings: Py) -> Self {
        Self { settings: Some(settings), ..self }
    }

    fn graph(self) -> Py {
        let graph = dict([("segments", list(self.segments)), ("device_traces", list([list(self.events)]))]);
        match self.settings {
            Some(settings) => graph.with("allocator_settings", settings),
            None => graph,
        }
    }

    fn rows(self) -> Rows {
        self.rows_with(&Options::default())
    }

    fn rows_with(self, options: &Options) -> Rows {
        replayed(&cpython(&self.graph(), 4), options)
    }
}

/// The rows of `allocations`.
fn lives(rows: &Rows) -> Vec<Life> {
    let ints = |column: &str| rows.ints("allocations", column);
    let texts = |column: &'static str| {
        let texts = rows.texts("allocations", column);
        texts.into_iter().map(move |text| match text.as_deref() {
            Some("window") => "window",
            Some("before_window") => "before_window",
            Some("live") => "live",
            Some("pending_free") => "pending_free",
            Some("freed") => "freed",
            other => panic!("{other:?} is no word of `{column}`"),
        })
    };
    let base = i64::try_from(BASE).unwrap();
    let (addr, size, block, exact) =
        (ints("addr"), ints("size"), ints("block_size"), ints("block_size_exact"));
    let indices = ["alloc_index", "free_requested_index", "free_completed_index"].map(ints);
    texts("origin")
        .zip(texts("fate"))
        .enumerate()
        .map(|(row, (origin, fate))| {
            (
                addr[row].unwrap() - base,
                size[row].unwrap(),
                (block[row].unwrap(), exact[row] == Some(1)),
                [indices[0][row], indices[1][row], indices[2][row]],
                origin,
                fate,
            )
        })
        .collect()
}

/// A counter of `replay_checks`: base, final, residual and whether it is exact.
type Check = (Option<i64>, Option<i64>, Option<i64>, bool);

/// The rows of `replay_checks` of the first device: reserved, allocated, active, and the two requested ones.
fn checks(rows: &Rows) -> [Check; 5] {
    let [base, last, residual, exact] =
        ["base", "final", "residual", "exact"].map(|column| rows.ints("replay_checks", column));
    let names = rows.texts("replay_checks", "counter");
    let expected = ["reserved", "allocated", "active", "allocated_requested", "active_requested"];
    std::array::from_fn(|row| {
        assert_eq!(names[row].as_deref(), Some(expected[row]));
        (base[row], last[row], residual[row], exact[row] == Some(1))
    })
}

/// A counter that adds up.
fn sound(base: i64, last: i64) -> Check {
    (Some(base), Some(last), Some(0), true)
}
