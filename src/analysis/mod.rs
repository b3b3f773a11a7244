//! Small relations become judged, typed results. SQL measures, this layer judges, the renderers show.

mod devices;
mod downsample;
mod facts;
mod frames;
mod info;
mod info_words;
mod language;
mod outcome;
mod overview;
mod peak;
mod thresholds;

pub use devices::Device;
pub use downsample::extremes;
pub use facts::{ImportNote, SnapshotFacts};
pub use frames::{frames, place};
pub use info::{FieldPresence, History, Info, Recording, TableCount};
pub use language::{Lang, Text};
pub use outcome::{Cell, Figure, Finding, Outcome, Quantity, Severity, Subject, TableFigure};
pub use overview::{DeviceOverview, Overview};
pub use peak::{COUNTERS, Contributor, Mark, Peak, PeakAnalysis, Point};
pub use thresholds::{Thresholds, judge};

use crate::engine::Engine;
use crate::error::Result;

/// What part of a snapshot to look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope {
    /// Only this device number; all where there is none.
    pub device: Option<i64>,
}

/// One way of looking at a snapshot: a value of `--mode`, a tag in JSON.
pub trait Analysis: Sync {
    /// The value of `--mode`.
    fn name(&self) -> &'static str;
    /// Measures and judges.
    ///
    /// # Errors
    /// A relation failed or lacks a column.
    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope) -> Result<Box<dyn Outcome>>;
}

/// Every analysis, in the order `--mode all` would run them.
pub const ANALYSES: &[&dyn Analysis] = &[&Overview, &PeakAnalysis];
