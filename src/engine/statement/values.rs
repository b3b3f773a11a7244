//! The way through a statement's tree: values into the place of `$name`, integers and relations within their bounds, and
//! a note of what macros are asked for.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, LimitClause, ObjectName, Query, Spanned as _, TableFactor,
    Value as Literal, ValueWithSpan, VisitorMut,
};

use super::arguments::in_order;
use super::{Asked, Thing, literal, wrong};
use crate::engine::attach::BASE;
use crate::engine::constant::{Constant, constant};
use crate::engine::sql_macro::catalog;
use crate::engine::value::Value;
use crate::engine::{distinct, explain};
use crate::error::{Error, Place, Result};

/// Tables and macros of a statement: those behind commas make a deep plan, too.
const MOST_RELATIONS: usize = 256;

/// Puts values in their places, and notes on the way what macros are asked for.
pub(super) struct Values<'a> {
    pub(super) sql: &'a str,
    pub(super) params: &'a [(String, Value)],
    pub(super) used: BTreeSet<&'a str>,
    pub(super) relations: usize,
    pub(super) asked: BTreeSet<Asked>,
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
