//! All: every analysis once, in one result.

use serde_json::{Map, Value};

use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{ANALYSES, Scope};
use crate::engine::Engine;
use crate::error::Result;

/// The outcomes of every analysis.
#[expect(missing_debug_implementations, reason = "outcomes have no useful text")]
pub struct All {
    outcomes: Vec<(&'static str, Box<dyn Outcome>)>,
}

impl All {
    /// The value of `--mode`.
    pub const NAME: &'static str = "all";

    /// Runs every analysis; those that compare only where there is another snapshot.
    ///
    /// # Errors
    /// One of them failed.
    pub fn run(
        engine: &Engine,
        thresholds: &Thresholds,
        scope: Scope<'_>,
        has_base: bool,
    ) -> Result<Box<dyn Outcome>> {
        let mut outcomes = Vec::new();
        for analysis in ANALYSES.iter().filter(|analysis| has_base || !analysis.needs_base()) {
            outcomes.push((analysis.name(), analysis.run(engine, thresholds, scope)?));
        }
        Ok(Box::new(Self { outcomes }))
    }
}

impl Outcome for All {
    fn json(&self, lang: Lang) -> Value {
        let results: Map<String, Value> =
            self.outcomes.iter().map(|(name, outcome)| ((*name).to_owned(), outcome.json(lang))).collect();
        Value::Object(results)
    }

    fn findings(&self) -> Vec<Finding> {
        let analyses = self.outcomes.iter().map(|(name, outcome)| (*name, outcome.findings()));
        Finding::merge(analyses).into_iter().map(|(_, finding)| finding).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (name, outcome) in &self.outcomes {
            let own = outcome.figures();
            if !own.is_empty() {
                figures.push(Figure::Heading(Text::same(*name)));
                figures.extend(own);
            }
        }
        figures
    }
}
