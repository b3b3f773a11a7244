//! Arguments of a macro that have names.

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr};

use super::{literal, wrong};
use crate::engine::sql_macro::{SqlMacro, catalog};
use crate::engine::value::Value;
use crate::error::{Error, Result};

/// Puts the arguments of a macro that have names, as in `limit => 3`, in their places, and defaults between them.
pub(super) fn in_order(called: &str, arguments: &mut Vec<FunctionArg>) -> Result<()> {
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
