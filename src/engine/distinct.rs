//! `a IS NOT DISTINCT FROM b AND c` as standards have it: `(a IS NOT DISTINCT FROM b) AND c`.
//!
//! The parser takes all that follows `FROM` for the other side of the comparison, AND and OR included. Between truth values that
//! is another condition, silently. What stands in brackets is told from what does not, so the reading can be put right:
//! without brackets no AND or OR is a side of a comparison or of NOT, and no OR the right side of AND.

use std::mem;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// Puts an expression right whose parts are.
pub(super) fn mend(expression: &mut Expr) {
    let is_wrong = match expression {
        Expr::IsNotDistinctFrom(_, right) | Expr::IsDistinctFrom(_, right) => binds(right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => binds(expr),
        Expr::BinaryOp { op: BinaryOperator::And, right, .. } => is_or(right),
        _ => false,
    };
    if is_wrong {
        let only_or = matches!(expression, Expr::BinaryOp { .. });
        let Some(last) = last_mut(expression) else { return };
        // What took too much gets the first of it, and stands there.
        let mut whole = mem::replace(last, nothing());
        let mut first = &mut whole;
        while if only_or { is_or(first) } else { binds(first) } {
            let Expr::BinaryOp { left, .. } = first else { return };
            first = left;
        }
        *last = mem::replace(first, nothing());
        *first = mem::replace(expression, nothing());
        *expression = whole;
    }
}

/// The part that an expression ends with.
fn last_mut(expression: &mut Expr) -> Option<&mut Expr> {
    match expression {
        Expr::IsNotDistinctFrom(_, last)
        | Expr::IsDistinctFrom(_, last)
        | Expr::UnaryOp { expr: last, .. }
        | Expr::BinaryOp { right: last, .. } => Some(last),
        _ => None,
    }
}

fn binds(expression: &Expr) -> bool {
    matches!(expression, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

fn is_or(expression: &Expr) -> bool {
    matches!(expression, Expr::BinaryOp { op: BinaryOperator::Or, .. })
}

/// What holds a place for a moment.
fn nothing() -> Expr {
    Expr::Identifier("".into())
}
