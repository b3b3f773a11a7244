//! A statement of the user's before it is planned: only what reads, values in the place of `$name`, and calls of macros by
//! one name with their arguments in order.
//!
//! Values go into the syntax tree and not into the text, so that no value can ever be read as SQL.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, LimitClause, ObjectName, Query, SetExpr, Spanned as _,
    Statement as SqlStatement, TableFactor, Value as Literal, ValueWithSpan,
};
use datafusion::sql::sqlparser::ast::{VisitMut as _, VisitorMut};

use super::attach::BASE;
use super::constant::{Constant, constant};
use super::sql_macro::{SqlMacro, catalog};
use super::value::Value;
use super::{distinct, explain, sql_text};
use crate::error::{Error, Place, Result};
use crate::quantity;

/// Operators, brackets and joining words of a statement: planning walks the tree of it recursively.
const MOST_JOINTS: usize = 4000;

/// Bytes of a statement, at most. A long list of numbers is no deep tree, and fine.
const MOST_BYTES: usize = 1 << 20;

/// Tables and macros of a statement: those behind commas make a deep plan, too.
const MOST_RELATIONS: usize = 256;

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

struct Values<'a> {
    sql: &'a str,
    params: &'a [(String, Value)],
    used: BTreeSet<&'a str>,
    relations: usize,
    asked: BTreeSet<Asked>,
}

impl Values<'_> {
    /// Refuses an integer that 64 bits do not hold.
    fn fits(&self, expression: &Expr) -> ControlFlow<Error> {
        if constant(expression) != Constant::TooLarge {
            return ControlFlow::Continue(());
        }
        let start = expression.span().start;
        ControlFlow::Break(Error::Sql {
            reason: format!("`{expression}` is beyond the integers of 64 bits"),
            place: Place::find(self.sql, start.line, start.column),
            hint: None,
        })
    }

    /// Notes the device and the event that a call asks for.
    fn note(&mut self, called: &str, arguments: &[FunctionArg]) -> Result<()> {
        let (of_base, name) = match called.split_once('.') {
            Some((schema, name)) => (schema == BASE, name),
            None => (false, called),
        };
        let definition = catalog()?.into_iter().find(|definition| definition.name == name);
        let Some(definition) = definition.filter(|definition| !definition.needs_base) else { return Ok(()) };
        let number = |wanted: &str| {
            let place = definition.params.iter().position(|param| param.name == wanted)?;
            match arguments.get(place)? {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => match constant(argument) {
                    Constant::Integer(number) => Some(number),
                    _ => None,
                },
                _ => None,
            }
        };
        let device = number("device");
        let event = number("event").map(|event| Thing::Event(event, device));
        let things = device.map(Thing::Device).into_iter().chain(event);
        self.asked.extend(things.map(|thing| Asked { thing, of_base }));
        Ok(())
    }
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
        self.relations += 1;
        if self.relations > MOST_RELATIONS {
            let reason = format!("the query reads more than {MOST_RELATIONS} tables and macros");
            return ControlFlow::Break(wrong(reason, None));
        }
        // The planner looks a table function up by the first part of its name only, and by its case.
        if let TableFactor::Table { name, args: Some(arguments), .. } = factor
            && let Some(called) = explain::folded(name)
            && let Some(first) = name.0.first().and_then(|part| part.as_ident())
        {
            let span = first.span;
            if let Err(error) = in_order(called.last().map_or("", String::as_str), &mut arguments.args) {
                return ControlFlow::Break(error);
            }
            *name = ObjectName::from(vec![Ident { value: called.join("."), quote_style: None, span }]);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        distinct::mend(expression);
        ControlFlow::Continue(())
    }

    /// Behind the values in it, when they stand in their places.
    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, args: Some(arguments), .. } = factor else {
            return ControlFlow::Continue(());
        };
        for argument in &arguments.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) = argument {
                self.fits(expression)?;
            }
        }
        let called = name.0.first().and_then(|part| part.as_ident()).map(|ident| ident.value.clone());
        match self.note(called.as_deref().unwrap_or_default(), &arguments.args) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let fetched = query.fetch.iter().filter_map(|fetch| fetch.quantity.as_ref());
        let limits = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                [limit.as_ref(), offset.as_ref().map(|offset| &offset.value)]
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
            None => [None, None],
        };
        limits.into_iter().flatten().chain(fetched).try_for_each(|limit| self.fits(limit))
    }
}

/// Puts the arguments of a macro that have names, as in `limit => 3`, in their places, and defaults between them.
fn in_order(called: &str, arguments: &mut Vec<FunctionArg>) -> Result<()> {
    let Some(begin) = arguments.iter().position(|argument| !matches!(argument, FunctionArg::Unnamed(_)))
    else {
        return Ok(());
    };
    let Some(definition) = catalog()?.into_iter().find(|definition| definition.name == called) else {
        return Err(wrong(format!("`{called}` takes its arguments in order, without names"), None));
    };
    let mut places: Vec<Option<FunctionArgExpr>> = vec![None; definition.params.len()];
    for (at, argument) in arguments.drain(..).enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(value) if at < begin => (Some(at), value),
            FunctionArg::Unnamed(_) => {
                return Err(misuse(&definition, "an argument without a name stands behind one that has one"));
            }
            FunctionArg::Named { name, arg, .. } => (Some(position(&definition, &name.value)?), arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                (Some(position(&definition, &name.value)?), arg)
            }
            FunctionArg::ExprNamed { name, .. } => {
                return Err(misuse(&definition, &format!("has no parameter `{name}`")));
            }
        };
        match place.and_then(|place| places.get_mut(place)) {
            Some(free @ None) => *free = Some(value),
            Some(Some(_)) => return Err(misuse(&definition, "a parameter has two values")),
            None => {
                return Err(misuse(
                    &definition,
                    &format!("takes at most {} arguments", definition.params.len()),
                ));
            }
        }
    }
    let last = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let default = |value: &Value| FunctionArgExpr::Expr(Expr::value(literal(value)));
    let placed = places.into_iter().zip(&definition.params).take(last);
    arguments.extend(
        placed.map(|(given, param)| FunctionArg::Unnamed(given.unwrap_or_else(|| default(&param.default)))),
    );
    Ok(())
}

fn position(definition: &SqlMacro, name: &str) -> Result<usize> {
    let place = definition.params.iter().position(|param| param.name.eq_ignore_ascii_case(name));
    place.ok_or_else(|| misuse(definition, &format!("has no parameter `{name}`")))
}

fn misuse(definition: &SqlMacro, reason: &str) -> Error {
    wrong(format!("`{}`: {reason}", definition.signature()), None)
}

fn literal(value: &Value) -> Literal {
    match value {
        Value::Null => Literal::Null,
        Value::Text(text) => Literal::SingleQuotedString(text.clone()),
        // A sign in front of the digits is understood too, and keeps the smallest integer one.
        Value::Integer(_) | Value::Real(_) => Literal::Number(value.literal(), false),
    }
}
