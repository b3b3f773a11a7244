//! A statement of the user's before it is planned: values in the place of `$name`, and calls of macros by one name.
//!
//! Values go into the syntax tree and not into the text, so that no value can ever be read as SQL.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, TableFactor, Value as Literal, ValueWithSpan};
use datafusion::sql::sqlparser::ast::{VisitMut as _, VisitorMut};

use super::explain;
use super::value::Value;
use crate::error::{Error, Place, Result};

/// Reads `sql`, which is one statement, and puts the values of `params` in it.
pub(super) fn prepare(context: &SessionContext, sql: &str, params: &[(String, Value)]) -> Result<Statement> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let mut statement =
        state.sql_to_statement(sql, &dialect).map_err(|source| explain::syntax_error(sql, &source))?;
    let mut values = Values { sql, params, used: BTreeSet::new() };
    if let ControlFlow::Break(error) = visit(&mut statement, &mut values) {
        return Err(error);
    }
    match params.iter().find(|(name, _)| !values.used.contains(name.as_str())) {
        Some((name, _)) => Err(Error::Sql {
            reason: format!("the query has no `${name}` for the parameter `{name}`"),
            place: None,
            hint: None,
        }),
        None => Ok(statement),
    }
}

/// Whether the statement has an SQL tree inside; what has none is refused when it is planned.
fn visit(statement: &mut Statement, values: &mut Values<'_>) -> ControlFlow<Error> {
    match statement {
        Statement::Statement(statement) => statement.visit(values),
        Statement::Explain(explain) => visit(&mut explain.statement, values),
        _ => ControlFlow::Continue(()),
    }
}

struct Values<'a> {
    sql: &'a str,
    params: &'a [(String, Value)],
    used: BTreeSet<&'a str>,
}

impl VisitorMut for Values<'_> {
    type Break = Error;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        let Literal::Placeholder(placeholder) = &value.value else { return ControlFlow::Continue(()) };
        let name = placeholder.trim_start_matches('$');
        match self.params.iter().find(|(known, _)| known == name) {
            Some((name, given)) => {
                self.used.insert(name);
                value.value = literal(given);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(Error::Sql {
                reason: format!("the parameter `{name}` has no value"),
                place: Place::find(self.sql, value.span.start.line, value.span.start.column),
                hint: Some(if name == "?" {
                    "give it a name, as in `$name`, and a value with `--param name=VALUE`".to_owned()
                } else {
                    format!("give it one with `--param {name}=VALUE`")
                }),
            }),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        // The planner looks a table function up by the first part of its name only, and by its case.
        if let TableFactor::Table { name, args: Some(_), .. } = factor
            && let Some(called) = explain::folded(name)
            && let Some(first) = name.0.first().and_then(|part| part.as_ident())
        {
            let span = first.span;
            *name = ObjectName::from(vec![Ident { value: called.join("."), quote_style: None, span }]);
        }
        ControlFlow::Continue(())
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
