//! A statement of the user's before it is planned: only what reads, values in the place of `$name`, and calls of macros by
//! one name with their arguments in order.
//!
//! Values go into the syntax tree and not into the text, so that no value can ever be read as SQL.

mod arguments;
mod values;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement as SqlStatement, Value as Literal, VisitMut as _};

use super::value::Value;
use super::{explain, sql_text};
use crate::error::{Error, Result};
use crate::quantity;
use values::Values;

/// Operators, brackets and joining words of a statement: planning walks the tree of it recursively.
const MOST_JOINTS: usize = 4000;

/// Bytes of a statement, at most. A long list of numbers is no deep tree, and fine.
const MOST_BYTES: usize = 1 << 20;

/// Refuses a text that would be too deep to be planned, before anything is made of it.
pub(super) fn bounded(sql: &str) -> Result<()> {
    let too = |what: &str, count: usize, most: usize| {
        let shown = |number: usize| quantity::count(i64::try_from(number).unwrap_or(i64::MAX));
        Err(Error::Sql {
            reason: format!("the query has {} {what}; {} is the most", shown(count), shown(most)),
            place: None,
            hint: Some("put long lists of values behind IN, and what repeats in a WITH clause".to_owned()),
        })
    };
    if sql.len() > MOST_BYTES {
        return too("bytes", sql.len(), MOST_BYTES);
    }
    match sql_text::joints(sql) {
        joints if joints > MOST_JOINTS => {
            too("operators, brackets and words such as AND", joints, MOST_JOINTS)
        }
        _ => Ok(()),
    }
}

/// A statement that can be planned.
pub(super) struct Prepared {
    pub(super) statement: Statement,
    /// Devices and events that its macros are asked for.
    pub(super) asked: BTreeSet<Asked>,
}

/// What a macro is asked for, in one of the snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// What it is.
    pub thing: Thing,
    /// Whether the macro is one of the second snapshot.
    pub of_base: bool,
}

/// A thing that a snapshot may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A device, by its number in the snapshot.
    Device(i64),
    /// An event, by its position in its device's history; of this device, or of any.
    Event(i64, Option<i64>),
}

/// Reads `sql`, which is one statement, and puts the values of `params` in it.
pub(super) fn prepare(context: &SessionContext, sql: &str, params: &[(String, Value)]) -> Result<Prepared> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let mut statement =
        state.sql_to_statement(sql, &dialect).map_err(|source| explain::syntax_error(sql, &source))?;
    if let Some(kind) = writing(&statement) {
        return Err(only_reads(&kind));
    }
    let (used, asked) = (BTreeSet::new(), BTreeSet::new());
    let mut values = Values { sql, params, used, relations: 0, asked };
    if let ControlFlow::Break(error) = visit(&mut statement, &mut values) {
        return Err(error);
    }
    match params.iter().find(|(name, _)| !values.used.contains(name.as_str())) {
        Some((name, _)) => Err(wrong(format!("the query has no `${name}` for the parameter `{name}`"), None)),
        None => Ok(Prepared { statement, asked: values.asked }),
    }
}

/// The error of a statement of this kind, which would write.
pub(super) fn only_reads(kind: &str) -> Error {
    wrong(
        format!("npusnap only reads: {kind} is not allowed"),
        Some("a query begins with SELECT, WITH, EXPLAIN, SHOW or DESCRIBE".to_owned()),
    )
}

fn wrong(reason: String, hint: Option<String>) -> Error {
    Error::Sql { reason, place: None, hint }
}

/// What a statement does, if it does anything but read.
fn writing(statement: &Statement) -> Option<String> {
    let text = match statement {
        Statement::Statement(statement) => match statement.as_ref() {
            // `WITH … INSERT` is a query, too.
            SqlStatement::Query(query) => match query.body.as_ref() {
                body @ (SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)) => {
                    body.to_string()
                }
                _ => return None,
            },
            SqlStatement::ExplainTable { .. }
            | SqlStatement::ShowTables { .. }
            | SqlStatement::ShowColumns { .. }
            | SqlStatement::ShowFunctions { .. }
            | SqlStatement::ShowVariable { .. } => return None,
            SqlStatement::Explain { statement, .. } => {
                return writing(&Statement::Statement(statement.clone()));
            }
            other => other.to_string(),
        },
        Statement::Explain(explain) => return writing(&explain.statement),
        Statement::CreateExternalTable(_) => "CREATE".to_owned(),
        Statement::CopyTo(_) => "COPY".to_owned(),
        Statement::Reset(_) => "RESET".to_owned(),
    };
    text.split_whitespace().next().map(str::to_ascii_uppercase)
}

/// Whether the statement has an SQL tree inside; what has none is refused when it is planned.
fn visit(statement: &mut Statement, values: &mut Values<'_>) -> ControlFlow<Error> {
    match statement {
        Statement::Statement(statement) => statement.visit(values),
        Statement::Explain(explain) => visit(&mut explain.statement, values),
        _ => ControlFlow::Continue(()),
    }
}

fn literal(value: &Value) -> Literal {
    match value {
        Value::Null => Literal::Null,
        Value::Text(text) => Literal::SingleQuotedString(text.clone()),
        // A sign in front of the digits is understood too, and keeps the smallest integer one.
        Value::Integer(_) | Value::Real(_) => Literal::Number(value.literal(), false),
    }
}
