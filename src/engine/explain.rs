//! What a failed query of the user's meant: the nearest name for one there is not.

use datafusion::common::DataFusionError;

use crate::error::Error;

use super::Engine;

impl Engine {
    /// The error of a user's query, with the nearest name where a table or macro is not known.
    pub(super) fn user_error(&self, sql: &str, source: DataFusionError) -> Error {
        Error::Query { relation: sql.to_owned(), source: source.into() }
    }
}

/// The name most like `name`, if one is like it at all.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| other.cmp(one)))
        .map(|(_, candidate)| candidate.to_owned())
}
