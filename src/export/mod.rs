//! A snapshot in the forms that neighbours' tools read: PyTorch's viewer, Perfetto, speedscope, flame graphs.
//!
//! Rows are written while they come; what is kept in memory is the distinct call stacks, the final state and, for a slice
//! of the history, the state at its end. Devices are never added together: each has its own list, process or profile.

mod end_state;
mod folded;
mod label;
mod perfetto;
mod pickle;
mod rewind;
pub mod rows;
mod speedscope;
mod stacks;
mod weights;

use std::io::{self, Write};

use crate::analysis::{Device, Scope};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::output::Redaction;
use crate::snapshot::EventRange;
use rows::EventNumbers;

pub use weights::Weight;

/// Which tool the result is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A pickle of protocol 4 with all that PyTorch's MemoryViz wants, and nothing that it cannot take.
    MemoryViz,
    /// A pickle of protocol 4 with what the snapshot has.
    Pickle,
    /// Trace events in JSON.
    Perfetto,
    /// A speedscope file: stacks by bytes, one profile per device.
    Speedscope,
    /// A line per call stack: frames from the outermost, and bytes.
    Folded,
}

/// What is exported.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Events of each device, by number; the end state is that after the last of them.
    pub events: EventRange,
    /// Only this device number; all where it is `None`.
    pub device: Option<i64>,
    /// Which bytes stacks are weighed by; for speedscope and folded stacks.
    pub weight: Weight,
    /// What is left out of names, of paths and of what the program said.
    pub redaction: Redaction,
}

/// What was written, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// What there is in the result: a number and of what.
    pub parts: Vec<(u64, &'static str)>,
    /// What the reader of the result should know.
    pub notes: Vec<String>,
}

impl Request {
    /// Whether some event is in the range that was asked for.
    ///
    /// # Errors
    /// None is, or the events cannot be read.
    pub fn check(&self, engine: &Engine) -> Result<()> {
        // A range without events is a wish for the state before an event.
        if self.events == EventRange::default() || self.events.first() == self.events.end() {
            return Ok(());
        }
        let mut devices: Vec<EventNumbers> = engine.rows(&[])?;
        devices.retain(|device| self.device.is_none_or(|wanted| wanted == device.device_index));
        let is_in = |device: &EventNumbers| {
            device.first_index < self.events.end() && device.last_index >= self.events.first()
        };
        if devices.iter().any(is_in) {
            return Ok(());
        }
        let known: Vec<String> = devices
            .iter()
            .map(|device| {
                let name = device_name(device.device_index);
                format!("{}..{} of {name}", device.first_index, device.last_index.saturating_add(1))
            })
            .collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Error::Usage {
            what: "--events".to_owned(),
            reason: format!("no event has a number in that range; there are: {known}"),
        })
    }
}

impl Summary {
    fn count(&mut self, count: u64, what: &'static str) {
        self.parts.push((count, what));
    }

    fn note(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.notes.push(format!("{count} {what}"));
        }
    }
}

/// Writes the snapshot behind `engine` to `out`.
///
/// # Errors
/// The snapshot cannot be read, or has no such device. [`Error::Output`] where `out` takes no more.
pub fn write(engine: &Engine, target: Target, request: &Request, out: &mut dyn Write) -> Result<Summary> {
    let devices = Device::in_scope(engine, Scope { device: request.device, ..Scope::default() })?;
    match target {
        Target::MemoryViz => pickle::write(engine, &devices, request, pickle::Form::Viewer, out),
        Target::Pickle => pickle::write(engine, &devices, request, pickle::Form::Plain, out),
        Target::Perfetto => perfetto::write(engine, &devices, request, out),
        Target::Speedscope => speedscope::write(engine, &devices, request, out),
        Target::Folded => folded::write(engine, &devices, request, out),
    }
}

/// How a failed write is told apart from a failed read.
fn output(source: io::Error) -> Error {
    Error::Output { source }
}

/// How a device is called.
fn device_name(device_index: i64) -> String {
    if device_index < 0 { "pinned host memory".to_owned() } else { format!("device {device_index}") }
}
