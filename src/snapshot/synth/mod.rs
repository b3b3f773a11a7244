//! Simulated snapshots of any size: a caching allocator under a training loop, written as the real producers write.
//!
//! A snapshot describes the end first and the events after it, and a ring buffer forgets where it began. So nothing is
//! kept: the simulation runs twice. The first run finds the end; the second writes each event as it happens.

mod allocator;
mod cuda;
mod dice;
mod emit;
mod event;
mod expandable;
mod heap;
mod ledger;
mod legacy;
mod schedule;
mod settings;
mod stacks;
#[cfg(test)]
mod tests;
mod traces;
mod training;
mod truth;
mod workspace;

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};

pub use settings::{Context, Dialect, Frames, Length, Order, Settings};

use emit::{Emitter, length};
use event::Nobody;
use ledger::Ledger;
use traces::{TraceWriter, Untraced};
use training::{Program, Run, run};
use truth::{DeviceTruth, leak_json, share, stacks_json};
use workspace::Workspace;

/// Whether the truth about a snapshot is wanted, which costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// Only the snapshot.
    Unwanted,
    /// The snapshot, and what is true of it.
    Wanted,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// Bytes of the pickle.
    pub bytes: u64,
    /// Events in it, workspace entries included.
    pub events: u64,
    /// What is true of it, if it was asked for.
    pub truth: Option<Value>,
}

/// Simulates what the settings say and writes the snapshot to `out`.
///
/// # Errors
/// `out` cannot be written.
pub fn write<W: Write>(settings: &Settings, out: W, truth: Truth) -> io::Result<Written> {
    let program = Program::new(settings);
    let ends = (0..settings.devices)
        .map(|device| Ok(End::new(settings, run(settings, &program, device, &mut Nobody)?)))
        .collect::<io::Result<Vec<End>>>()?;
    let emitter = Emitter::new(out, settings, &program.stacks)?;
    Snapshot { emitter, settings, program: &program, truth, ends, ledgers: Vec::new() }.write()
}

/// A device after its last event.
#[derive(Debug)]
struct End {
    run: Run,
    /// Index of the oldest event that the ring buffer still holds.
    window_start: u64,
    workspaces: Vec<Workspace>,
}

impl End {
    fn new(settings: &Settings, run: Run) -> Self {
        let window_start = settings.max_entries.map_or(0, |most| run.allocator.events.saturating_sub(most));
        let workspaces = Workspace::of_device(settings, run.allocator.next_address);
        Self { run, window_start, workspaces }
    }

    /// Entries of the device's list in the file.
    fn entries(&self) -> u64 {
        let workspace: u64 = self.workspaces.iter().map(|_| Workspace::ENTRIES).sum();
        self.run.allocator.events - self.window_start + workspace
    }
}

/// A snapshot in the making.
struct Snapshot<'a, W> {
    emitter: Emitter<'a, W>,
    settings: &'a Settings,
    program: &'a Program,
    truth: Truth,
    ends: Vec<End>,
    ledgers: Vec<Ledger>,
}

impl<W: Write> Snapshot<'_, W> {
    fn write(mut self) -> io::Result<Written> {
        match self.settings.dialect {
            Dialect::Legacy => {
                self.segments()?;
                self.follow_untraced()?;
            }
            Dialect::Npu | Dialect::Cuda => self.dict()?,
        }
        let events = match self.settings.dialect {
            Dialect::Legacy => 0,
            _ => self.ends.iter().map(End::entries).sum(),
        };
        let (_, bytes) = self.emitter.pickle.finish()?;
        let truth = (self.truth == Truth::Wanted)
            .then(|| truth_json(self.settings, self.program, &self.ends, &self.ledgers, (bytes, events)));
        Ok(Written { bytes, events, truth })
    }

    fn dict(&mut self) -> io::Result<()> {
        let cuda = self.settings.dialect == Dialect::Cuda;
        self.emitter.pickle.open_dict(if cuda { 4 } else { 2 })?;
        match self.settings.order {
            Order::SegmentsFirst => {
                self.named_segments()?;
                self.traces()?;
            }
            Order::TracesFirst => {
                self.traces()?;
                self.named_segments()?;
            }
        }
        if cuda {
            self.emitter.allocator_settings()?;
            let annotations: Vec<_> =
                self.ends.iter_mut().map(|end| std::mem::take(&mut end.run.annotations)).collect();
            self.emitter.annotations(&annotations)?;
        }
        self.emitter.pickle.close()
    }

    fn named_segments(&mut self) -> io::Result<()> {
        self.emitter.word("segments")?;
        self.segments()
    }

    /// Segments of all devices, and behind them the workspaces of all devices.
    fn segments(&mut self) -> io::Result<()> {
        let legacy = self.settings.dialect == Dialect::Legacy;
        let heaps: Vec<_> = self.ends.iter().map(|end| end.run.allocator.heap.segments()).collect();
        let workspaces: usize = self.ends.iter().map(|end| end.workspaces.len()).sum();
        let count = heaps.iter().map(Vec::len).sum::<usize>() + workspaces;
        self.emitter.pickle.open_list(u64::try_from(count).map_err(io::Error::other)?)?;
        for (device, segments) in heaps.iter().enumerate() {
            for segment in segments {
                if legacy {
                    self.emitter.legacy_segment(device, segment)?;
                } else {
                    self.emitter.segment(device, segment)?;
                }
            }
        }
        for (device, end) in self.ends.iter().enumerate() {
            for workspace in &end.workspaces {
                self.emitter.workspace_segment(device, workspace)?;
            }
        }
        self.emitter.close_held()
    }

    fn traces(&mut self) -> io::Result<()> {
        self.emitter.word("device_traces")?;
        self.emitter.pickle.open_list(length(&self.ends)? + self.settings.idle_devices)?;
        for (device, number) in (0..self.ends.len()).zip(0..) {
            self.trace(device, number)?;
        }
        for _ in 0..self.settings.idle_devices {
            self.emitter.pickle.open_list(0)?;
            self.emitter.pickle.close()?;
        }
        self.emitter.close_held()
    }

    /// Runs a device again, writing its events. What comes later shares the walks of this run.
    fn trace(&mut self, device: usize, number: u64) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(device) else { return Ok(()) };
        self.emitter.pickle.open_list(end.entries())?;
        let ledger =
            (self.truth == Truth::Wanted).then(|| Ledger::new(end.window_start, self.program.stacks.len()));
        let mut writer = TraceWriter::new(&mut self.emitter, device, end.window_start, ledger);
        writer.workspaces(&end.workspaces)?;
        end.run = run(self.settings, self.program, number, &mut writer)?;
        self.ledgers.extend(writer.ledger);
        self.emitter.pickle.close()
    }

    /// The second run of a dialect without traces is for the truth alone.
    fn follow_untraced(&mut self) -> io::Result<()> {
        if self.truth == Truth::Wanted {
            for (end, number) in self.ends.iter().zip(0..) {
                let mut follower = Untraced(Ledger::new(end.window_start, self.program.stacks.len()));
                run(self.settings, self.program, number, &mut follower)?;
                self.ledgers.push(follower.0);
            }
        }
        Ok(())
    }
}

/// The truth file.
fn truth_json(
    settings: &Settings,
    program: &Program,
    ends: &[End],
    ledgers: &[Ledger],
    (bytes, events): (u64, u64),
) -> Value {
    let stacks = &program.stacks;
    let mut named = BTreeSet::new();
    let devices: Vec<Value> = ends
        .iter()
        .zip(ledgers)
        .zip(0..)
        .map(|((end, ledger), device)| {
            let (allocator, window_start) = (&end.run.allocator, end.window_start);
            let workspaces = &end.workspaces;
            DeviceTruth { device, allocator, ledger, window_start, workspaces }.json(&mut named)
        })
        .collect();
    let leak = settings.leak.then(|| {
        named.insert(stacks.leak);
        let devices = ledgers.iter().zip(0..).map(|(ledger, device)| leak_json(device, ledger, stacks.leak));
        json!({ "stack": stacks.leak.0, "per_device": devices.collect::<Vec<_>>() })
    });
    json!({
        "generator": settings.json(),
        "info": {
            "bytes": bytes,
            "events_simulated": ends.iter().map(|end| end.run.allocator.events).sum::<u64>(),
            "events_in_file": events,
            "bytes_per_event": share(bytes, events),
            "contexts": ends.iter().map(|end| end.run.allocator.gathers).sum::<u64>(),
            "stacks": stacks.len(),
            "unique_frames": stacks.frame_count(),
            "mean_stack_depth": stacks.mean_depth(),
        },
        "devices": devices,
        "stacks": stacks_json(stacks, &named),
        "leak": leak,
    })
}
