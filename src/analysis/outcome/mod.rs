//! What an analysis hands on: findings, and figures that any renderer can show without knowing the analysis.

mod figure;
mod finding;
mod measure;

pub use figure::{Cell, Figure, TableFigure, Target};
pub use finding::{Finding, Severity, Subject};
pub(super) use measure::bytes;
pub use measure::{Quantity, share};

use serde_json::Value;

use super::chart::ChartFigure;
use super::language::Lang;
use crate::engine::Engine;
use crate::error::Result;

/// What an analysis found out.
pub trait Outcome {
    /// The `result` object of contract section 4; sentences in it are in `lang`.
    fn json(&self, lang: Lang) -> Value;
    /// Judgements, worst first.
    fn findings(&self) -> Vec<Finding>;
    /// What to show.
    fn figures(&self) -> Vec<Figure>;
    /// What only a report draws, of the devices it has room for; it may take more queries.
    ///
    /// # Errors
    /// A relation failed or lacks a column.
    fn charts(&self, _engine: &Engine, _wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        Ok(Vec::new())
    }
}
