//! What is wrong with a query of the user's, in the user's words: where it is, and the nearest name for one there is not.

use std::error::Error as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, TableReference};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, Visit as _, Visitor};
use futures::StreamExt as _;
use tokio::task::JoinError;

use super::attach::{BASE, OWN};
use super::runtime::{Panicked, with_room};
use super::sql_macro::{SqlMacro, catalog};
use super::{Engine, correlated, sql_text};
use crate::error::{Error, Place, UNREADABLE};
use crate::quantity;
use crate::schema::TABLES;
use crate::store::{Store, damaged};

/// Characters of a query that stand for it in a message.
const SHOWN: usize = 80;

impl Engine {
    /// The error of a user's query.
    pub(super) fn user_error(&self, sql: &str, source: &DataFusionError) -> Error {
        // The statement is read again to find the place, and it may be deep.
        with_room(|| self.explained(sql, source))
    }

    /// The error of a relation of our own.
    pub(super) fn relation_failed(&self, relation: &str, source: &DataFusionError) -> Error {
        self.damage(source).unwrap_or_else(|| query_error(relation, source))
    }

    /// The file that cannot be read, where that is the reason. The engine does not say which one it is.
    fn damage(&self, source: &DataFusionError) -> Option<Error> {
        let is_possible = causes(source).any(|cause| match cause {
            // The readers panic over some files.
            DataFusionError::ParquetError(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ExecutionJoin(_) => true,
            DataFusionError::External(cause) => cause.is::<JoinError>() || cause.is::<Panicked>(),
            DataFusionError::ArrowError(error, _) => {
                matches!(**error, ArrowError::ParquetError(_) | ArrowError::ExternalError(_))
            }
            _ => false,
        });
        if !is_possible {
            return None;
        }
        let damaged = self.stores.iter().find_map(|store| store.check().err());
        damaged.or_else(|| {
            self.stores.iter().zip([OWN, BASE]).find_map(|(store, schema)| self.unread(store, schema))
        })
    }

    /// The first file of a store that the engine cannot read, which looks at more of it than [`Store::check`] does.
    fn unread(&self, store: &Store, schema: &'static str) -> Option<Error> {
        TABLES.iter().find_map(|table| {
            let context = self.context.clone();
            let reading = self.runtime.spawn(async move {
                let frame = context.table(TableReference::partial(schema, table.name)).await?;
                let mut rows = frame.execute_stream().await?;
                while let Some(batch) = rows.next().await {
                    batch?;
                }
                Ok::<_, DataFusionError>(())
            });
            let path = store.table_path(table.name);
            match self.runtime.block_on(reading) {
                Ok(Ok(())) => None,
                Ok(Err(source)) => Some(Error::store(path, UNREADABLE)(reason(&source))),
                Err(_panic) => Some(damaged(&path)),
            }
        })
    }

    fn explained(&self, sql: &str, source: &DataFusionError) -> Error {
        if let Some(damage) = self.damage(source) {
            return damage;
        }
        if let Some(name) = self.unknown_relation(sql) {
            return self.relation_error(sql, &name);
        }
        let place = diagnosed(sql, source);
        for cause in causes(source) {
            if let Some(refusal) = correlated::refusal(cause) {
                return refusal;
            }
            match cause {
                DataFusionError::SchemaError(error, _) => match error.as_ref() {
                    SchemaError::FieldNotFound { field, valid_fields } => {
                        return column_error(sql, place, field, valid_fields);
                    }
                    SchemaError::AmbiguousReference { field } => {
                        let name = &field.name;
                        return wrong(
                            format!("column `{name}` is in more than one of the tables"),
                            place,
                            Some(format!("say of which table, as in `t.{name}`")),
                        );
                    }
                    _ => {}
                },
                DataFusionError::Plan(reason) => {
                    if let Some(name) = reason.strip_prefix("Invalid function '").and_then(until_quote) {
                        return self.function_error(name, place);
                    }
                }
                DataFusionError::ResourcesExhausted(reason) => {
                    return memory_error(self.memory_limit, reason);
                }
                _ => {}
            }
        }
        match place {
            Some(place) => wrong(reason(source), Some(place), None),
            None => query_error(&shortened(sql), source),
        }
    }

    fn relation_error(&self, sql: &str, name: &str) -> Error {
        let place = place_of_relation(sql, name);
        if name.split_once('.').is_some_and(|(schema, _)| schema == BASE) && !self.is_attached(BASE) {
            let hint = format!("schema `{BASE}` is a second snapshot: attach it with `--ref SOURCE`");
            return wrong(format!("no table or macro called `{name}`"), place, Some(hint));
        }
        if let Some(error) = self.comparison_error(name, place.clone()) {
            return error;
        }
        let known = self.relation_names();
        unknown("table or macro", name, place, nearest(name, known.iter().map(String::as_str)))
    }

    /// The error of a macro that compares with a second snapshot, where there is none, or where it is named as one of that
    /// snapshot's own.
    fn comparison_error(&self, name: &str, place: Option<Place>) -> Option<Error> {
        let bare = name.rsplit('.').next().unwrap_or(name);
        let is_comparison = |definition: &SqlMacro| definition.name == bare && definition.needs_base;
        let definition = catalog().ok()?.into_iter().find(is_comparison)?;
        let name = definition.name;
        Some(if self.is_attached(BASE) {
            let hint = format!("it sees both snapshots, and has nothing in front of its name: `{name}`");
            wrong(format!("`{name}` is not a macro of one snapshot"), place, Some(hint))
        } else {
            let hint = "add the snapshot to compare with: `--ref OTHER`".to_owned();
            wrong(format!("`{name}` compares with a second snapshot, and there is none"), place, Some(hint))
        })
    }

    fn function_error(&self, name: &str, place: Option<Place>) -> Error {
        if self.macros.contains_key(name) {
            let hint = format!("it gives rows, so it stands behind FROM: `SELECT * FROM {name}()`");
            return wrong(format!("`{name}` is no function but a macro"), place, Some(hint));
        }
        let known = self.function_names();
        unknown("function", name, place, nearest(name, known.iter().map(String::as_str)))
    }

    /// The first relation the query names that does not exist.
    fn unknown_relation(&self, sql: &str) -> Option<String> {
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        let statement = state.sql_to_statement(sql, &dialect).ok()?;
        let named = state.resolve_table_references(&statement).ok()?;
        named.into_iter().find_map(|reference| {
            let name = match &reference {
                TableReference::Bare { table } => table.to_string(),
                TableReference::Partial { schema, table } => format!("{schema}.{table}"),
                TableReference::Full { .. } => return None,
            };
            let exists = self.context.table_exist(reference).unwrap_or(false)
                || self.context.table_function(&name).is_ok();
            (!exists).then_some(name)
        })
    }
}

/// The error of a query that wants more than `limit` bytes.
pub(super) fn memory_error(limit: usize, reason: &str) -> Error {
    let limit = quantity::bytes(i64::try_from(limit).unwrap_or(i64::MAX));
    wrong(
        format!("the query needs more memory than {limit}: {reason}"),
        None,
        Some("allow it more with `--memory-limit BYTES`, or ask for less at once".to_owned()),
    )
}

fn wrong(reason: String, place: Option<Place>, hint: Option<String>) -> Error {
    Error::Sql { reason, place, hint }
}

fn unknown(kind: &str, name: &str, place: Option<Place>, nearest: Option<String>) -> Error {
    let hint = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
    wrong(format!("no {kind} called `{name}`"), place, hint)
}

/// Columns by what people call them who know another one: `--device` takes a device's number, not that of its row.
const MEANT: [(&str, &str); 2] = [("device", "device_index"), ("event", "trace_index")];

fn column_error(sql: &str, place: Option<Place>, field: &Column, valid: &[Column]) -> Error {
    let qualified = |column: &Column| match &column.relation {
        Some(relation) if field.relation.is_some() => format!("{}.{}", relation.table(), column.name),
        _ => column.name.clone(),
    };
    let name = qualified(field);
    let known: Vec<String> = valid.iter().map(qualified).collect();
    let meant = MEANT.iter().find(|(called, _)| *called == name).map(|(_, meant)| (*meant).to_owned());
    let meant = meant.filter(|meant| known.contains(meant));
    let nearest = meant.or_else(|| nearest(&name, known.iter().map(String::as_str)));
    if nearest.is_none() && sql.contains(&format!("\"{name}\"")) {
        let hint = format!("a text stands in single quotes: '{name}'");
        return wrong(format!("no column called `{name}`"), place, Some(hint));
    }
    unknown("column", &name, place, nearest)
}

/// The error of a text that is no statement.
pub(super) fn syntax_error(sql: &str, source: &DataFusionError) -> Error {
    match source.find_root() {
        DataFusionError::SQL(error, _) => {
            let text = error.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            let (reason, place) = match text.rsplit_once(" at Line: ") {
                Some((reason, at)) => (reason, parsed_place(sql, at)),
                None => (text, end_of(sql)),
            };
            wrong(format!("the query cannot be read: {reason}"), place, None)
        }
        _ if sql_text::statements(sql).len() > 1 => {
            wrong("a query is one statement, here are more".to_owned(), None, None)
        }
        _ => wrong("the query is empty".to_owned(), None, None),
    }
}

/// Behind the last word: where something is missing. The parser gives the end of the text no place.
fn end_of(sql: &str) -> Option<Place> {
    let sql = sql.trim_end();
    let line = sql.lines().count();
    let column = sql.lines().last()?.chars().count() + 1;
    Place::find(sql, u64::try_from(line).ok()?, u64::try_from(column).ok()?)
}

/// What the parser writes behind `Line: `: `1, Column: 8`.
fn parsed_place(sql: &str, text: &str) -> Option<Place> {
    let (line, column) = text.split_once(", Column: ")?;
    Place::find(sql, line.parse().ok()?, column.trim().parse().ok()?)
}

/// The error and what is below it.
fn causes(error: &DataFusionError) -> impl Iterator<Item = &DataFusionError> {
    std::iter::successors(Some(error), |error| below(error))
}

fn below(error: &DataFusionError) -> Option<&DataFusionError> {
    let source = error.source()?;
    let shared = || source.downcast_ref::<Arc<DataFusionError>>().map(AsRef::as_ref);
    source.downcast_ref().or_else(shared)
}

/// Where the planner says that the error is.
fn diagnosed(sql: &str, error: &DataFusionError) -> Option<Place> {
    causes(error).find_map(|cause| match cause {
        DataFusionError::Diagnostic(diagnostic, _) => {
            let start = diagnostic.span?.start;
            Place::find(sql, start.line, start.column)
        }
        _ => None,
    })
}

fn until_quote(text: &str) -> Option<&str> {
    text.split_once('\'').map(|(name, _)| name)
}

/// The parts of a name as the planner sees them: lower case, unless they are quoted.
pub(super) fn folded(name: &ObjectName) -> Option<Vec<String>> {
    let parts = name.0.iter().map(|part| {
        let part = part.as_ident()?;
        Some(if part.quote_style.is_some() { part.value.clone() } else { part.value.to_ascii_lowercase() })
    });
    parts.collect()
}

/// Where the query names the relation for the first time.
fn place_of_relation(sql: &str, name: &str) -> Option<Place> {
    struct Search<'a>(&'a str);
    impl Visitor for Search<'_> {
        type Break = (u64, u64);

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<(u64, u64)> {
            let first = relation.0.first().and_then(|part| part.as_ident());
            match (folded(relation), first) {
                (Some(parts), Some(first)) if parts.join(".") == self.0 => {
                    ControlFlow::Break((first.span.start.line, first.span.start.column))
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let mut statements = datafusion::sql::parser::DFParser::parse_sql(sql).ok()?;
    let Some(Statement::Statement(statement)) = statements.pop_front() else { return None };
    match statement.visit(&mut Search(name)) {
        ControlFlow::Break((line, column)) => Place::find(sql, line, column),
        ControlFlow::Continue(()) => None,
    }
}

/// The error of a query, with the reason at the bottom of it: what is above says the same again, in more words.
pub(super) fn query_error(relation: &str, source: &DataFusionError) -> Error {
    Error::Query { relation: relation.to_owned(), source: reason(source).into() }
}

fn reason(source: &DataFusionError) -> String {
    without_plea(match source.find_root() {
        DataFusionError::Plan(reason)
        | DataFusionError::NotImplemented(reason)
        | DataFusionError::Execution(reason) => reason.clone(),
        DataFusionError::SQL(reason, _) => reason.to_string(),
        root => root.strip_backtrace(),
    })
}

/// The engine asks for a bug report even where an argument has the wrong type; that is not for the user to do.
fn without_plea(reason: String) -> String {
    let Some((before, plea)) = reason.split_once("\nThis issue was likely caused by a bug") else {
        return reason;
    };
    let after = plea.split_once("/issues.").map(|(_, after)| after).unwrap_or_default();
    format!("{}{after}", before.trim_start_matches("Internal error: "))
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
