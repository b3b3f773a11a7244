//! What `--mode` asks for: one analysis, or all.

use clap::builder::PossibleValuesParser;

use crate::analysis::{self, ANALYSES, All, Analysis, Scope, Thresholds};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The values of `--mode`.
pub(super) fn modes() -> PossibleValuesParser {
    let names = ANALYSES.iter().map(|analysis| analysis.name());
    names.chain([All::NAME]).collect::<Vec<_>>().into()
}

/// What `--mode` asks for.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    One(&'static dyn Analysis),
    All,
}

impl Mode {
    pub(super) fn of_name(name: &str) -> Result<Self> {
        if name == All::NAME {
            return Ok(Self::All);
        }
        let found = ANALYSES.iter().copied().find(|analysis| analysis.name() == name);
        found.map(Self::One).ok_or_else(|| Error::Unknown {
            kind: "mode",
            name: name.to_owned(),
            nearest: None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One(analysis) => analysis.name(),
            Self::All => All::NAME,
        }
    }

    /// The relations that are read; those of another snapshot only where there is one.
    pub(super) fn relations(self, has_base: bool) -> Vec<&'static str> {
        let chosen = ANALYSES.iter().copied().filter(|analysis| match self {
            Self::One(one) => one.name() == analysis.name(),
            Self::All => has_base || !analysis.needs_base(),
        });
        chosen.flat_map(Analysis::relations).copied().collect()
    }

    pub(super) fn run(
        self,
        engine: &Engine,
        thresholds: &Thresholds,
        scope: Scope<'_>,
        has_base: bool,
    ) -> Result<Box<dyn analysis::Outcome>> {
        match self {
            Self::One(analysis) => analysis.run(engine, thresholds, scope),
            Self::All => All::run(engine, thresholds, scope, has_base),
        }
    }
}
