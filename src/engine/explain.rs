//! What a failed query of the user's meant: the nearest name for one there is not.

use datafusion::common::{DataFusionError, TableReference};

use crate::error::Error;

use super::Engine;

/// Characters of a query that stand for it in a message.
const SHOWN: usize = 80;

impl Engine {
    /// The error of a user's query, with the nearest name where there is no such table or macro.
    pub(super) fn user_error(&self, sql: &str, source: &DataFusionError) -> Error {
        if let Some(name) = self.unknown_relation(sql) {
            let known = self.relation_names();
            let nearest = nearest(&name, known.iter().map(String::as_str));
            return Error::Unknown { kind: "table or macro", name, nearest };
        }
        query_error(&shortened(sql), source)
    }

    /// The first relation the query names that does not exist.
    fn unknown_relation(&self, sql: &str) -> Option<String> {
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        let statement = state.sql_to_statement(sql, &dialect).ok()?;
        let named = state.resolve_table_references(&statement).ok()?;
        named.into_iter().find_map(|reference| {
            let TableReference::Bare { table } = &reference else { return None };
            let name = table.to_string();
            let exists = self.context.table_exist(reference).unwrap_or(true)
                || self.context.table_function(&name).is_ok();
            (!exists).then_some(name)
        })
    }

    fn relation_names(&self) -> Vec<String> {
        let schema = self.context.catalog("datafusion").and_then(|catalog| catalog.schema("public"));
        let mut names = schema.map(|schema| schema.table_names()).unwrap_or_default();
        names.sort_unstable();
        names
    }
}

/// The error of a query, with the reason at the bottom of it: what is above says the same again, in more words.
pub(super) fn query_error(relation: &str, source: &DataFusionError) -> Error {
    let reason = match source.find_root() {
        DataFusionError::Plan(reason) | DataFusionError::NotImplemented(reason) => reason.clone(),
        DataFusionError::SQL(reason, _) => reason.to_string(),
        root => root.strip_backtrace(),
    };
    Error::Query { relation: relation.to_owned(), source: reason.into() }
}

/// The query on one line, and not all of it if it is long.
fn shortened(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The name most like `name`, if one is like it at all.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| other.cmp(one)))
        .map(|(_, candidate)| candidate.to_owned())
}
