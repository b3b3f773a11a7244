//! Lists whose pieces stand in the wrong order, read in the order of time.
//!
//! A ring buffer that was resized while it held events gives the oldest piece, then the newest, then what lay between. The
//! pieces themselves are in order, and so is what a merge by time makes of them.

use std::ops::{ControlFlow, Range};

use super::event::Event;
use super::events::{Events, Seen};
use crate::error::Result;

/// Pieces that are merged at most: each holds a chunk of events in memory.
pub(super) const MOST_RUNS: usize = 8;

/// A piece of a list, taken from its end.
struct Run {
    /// Chunk and position where it begins, and behind its last event.
    start: (usize, usize),
    end: (usize, usize),
    /// Chunks that are still to be read.
    chunks: Range<usize>,
    /// Events that were read, the last one at the end.
    events: Vec<Event>,
}

impl Run {
    fn new(start: (usize, usize), end: (usize, usize)) -> Self {
        Self { start, end, chunks: start.0..end.0 + 1, events: Vec::new() }
    }

    fn fill(&mut self, source: &Events) -> Result<()> {
        while self.events.is_empty() {
            let Some(number) = self.chunks.next_back() else { return Ok(()) };
            let Some(columns) = source.chunk(number)? else { continue };
            let from = if number == self.start.0 { self.start.1 } else { 0 };
            let to = if number == self.end.0 { self.end.1 } else { columns.len() };
            self.events.extend(columns.events(from..to.min(columns.len())));
        }
        Ok(())
    }
}

/// Hands the events of a device to `take`, the last one by time first; of two at the same time, that which stands last.
pub(super) fn backward(
    source: &Events,
    seen: &Seen,
    mut take: impl FnMut(&Event) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let starts = [(seen.chunks.start, 0)].into_iter().chain(seen.jumps.iter().copied());
    let ends = seen.jumps.iter().copied().chain([(seen.chunks.end, 0)]);
    let mut runs: Vec<Run> = starts.zip(ends).map(|(start, end)| Run::new(start, end)).collect();
    loop {
        for run in &mut runs {
            run.fill(source)?;
        }
        // Of equal ones the last is taken.
        let latest = runs.iter_mut().max_by_key(|run| run.events.last().map(|event| event.time));
        let Some(event) = latest.and_then(|run| run.events.pop()) else { return Ok(()) };
        if take(&event)?.is_break() {
            return Ok(());
        }
    }
}
