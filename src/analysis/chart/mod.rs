//! What can be drawn, as plain data: sizes in bytes, positions by `trace_index`, words in both languages.
//!
//! A chart says nothing of colours, pixels or libraries. The report draws each one twice, for a browser and for paper.

mod curve;
mod held;
mod holder;
mod moments;
mod place;
mod pool;
mod sequence;
mod stacks;

pub use curve::{Counter, Course, Level, Mark, MarkedEvent, Moment, Overlay, Peak, StackBytes, Timeline};
pub use held::{HeldRow, attribution, bars, devices, flame, held};
pub use holder::{DeviceBar, Flame, FlameNode, StackBar, Stacks};
pub use moments::{MomentRow, moments};
pub use place::{BlockState, Expansion, Growth, Layout, OtherSegments, PoolEvent, SegmentRow, Span};
pub use pool::{GrowthRow, LayoutRow, expansion, layout};
pub use sequence::{EventKind, Sequence, SequenceEvent};
pub use stacks::{Frame, StackRow, StackWords, frames, frames_by_stack, own_frame, words};

use super::language::Text;

/// A chart with what identifies it on a page.
#[derive(Debug, Clone)]
pub struct ChartFigure {
    /// Which of the charts it is; explanations are looked up by it.
    pub name: &'static str,
    /// Device it speaks of; none where it shows several.
    pub device: Option<i64>,
    /// What it shows.
    pub title: Text,
    /// The data.
    pub chart: Chart,
}

impl ChartFigure {
    /// The name that links, scripts and files use, in the section of a mode.
    #[must_use]
    pub fn anchor(&self, mode: &str) -> String {
        let device = self.device.map_or_else(String::new, |device| format!("-{device}"));
        format!("{mode}-{}{device}", self.name)
    }
}

/// The kinds of chart there are.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Counters over time.
    Timeline(Timeline),
    /// Devices side by side.
    Devices(Vec<DeviceBar>),
    /// Blocks at their place in segments.
    Layout(Layout),
    /// How the pool grew and shrank.
    Expansion(Expansion),
    /// Bytes by call stack.
    Stacks(Stacks),
    /// Bytes by call path.
    Flame(Flame),
    /// Events before a moment, newest first.
    Sequence(Sequence),
    /// A counter of two snapshots.
    Overlay(Overlay),
}
