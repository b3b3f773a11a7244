//! Small relations become judged, typed results. SQL measures, this layer judges, the renderers show.

mod facts;
mod info;
mod info_words;
mod language;
mod note_words;
mod outcome;
mod overview;
mod thresholds;

pub use facts::{ImportNote, SnapshotFacts};
pub use info::{FieldPresence, History, Info, Recording, TableCount};
pub use language::{Lang, Text};
pub use outcome::{Cell, Figure, Finding, Outcome, Quantity, Severity, Subject, TableFigure};
pub use overview::{DeviceOverview, Overview};
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
pub const ANALYSES: &[&dyn Analysis] = &[&Overview];
