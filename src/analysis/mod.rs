//! Small relations become judged, typed results. SQL measures, this layer judges, the renderers show.

mod all;
mod capture;
pub mod chart;
mod compare;
mod devices;
mod downsample;
mod facts;
mod fragment;
mod frames;
mod info;
mod language;
mod leak;
mod note_words;
mod oom;
mod outcome;
mod outside;
mod overview;
mod peak;
mod scope;
mod thresholds;

pub use all::All;
pub use compare::{Compare, CounterChange, CourseRow, FactPair, SegmentChange, StackChange, TimelineStep};
pub use devices::Device;
pub use downsample::extremes;
pub use facts::{ImportNote, SnapshotFacts};
pub use fragment::{
    DeviceFragmentation, ExpansionCause, Fragment, FreeBlocks, PoolOverview, SegmentFragmentation,
};
pub use frames::is_own;
pub use info::{FieldPresence, Gap, History, Info, Recording, TableCount};
pub use language::{Lang, Text};
pub use leak::{Leak, SegmentGrowth, SegmentStack, StackGrowth, StepOverview};
pub use oom::{LastEvent, Oom, OomContext, OomEvent, OomGrowth, OomPreceding};
pub use outcome::{Cell, Figure, Finding, Outcome, Quantity, Severity, Subject, TableFigure, Target, share};
pub use outside::OutsidePool;
pub use overview::{DeviceOverview, Overview};
pub use peak::{COUNTERS, Contributor, Mark, Peak, PeakAnalysis, Point, StepRow};
pub use scope::Scope;
pub use thresholds::{Thresholds, judge};

use crate::engine::Engine;
use crate::error::Result;

/// One way of looking at a snapshot: a value of `--mode`, a tag in JSON.
pub trait Analysis: Sync {
    /// The value of `--mode`.
    fn name(&self) -> &'static str;

    /// The relations of `sql/` that it reads; the first one is what csv and arrow hold.
    fn relations(&self) -> &'static [&'static str];

    /// Whether it compares with a second snapshot, attached as `base`.
    fn needs_base(&self) -> bool {
        false
    }

    /// Measures and judges.
    ///
    /// # Errors
    /// A relation failed or lacks a column.
    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>>;
}

/// Every analysis, in the order `--mode all` runs them.
pub const ANALYSES: &[&dyn Analysis] = &[&Overview, &PeakAnalysis, &Fragment, &Leak, &Oom, &Compare];
