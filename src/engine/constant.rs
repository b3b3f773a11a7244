//! Integers that a query works out before it runs: limits, and arguments of macros. The engine's own arithmetic wraps round
//! there, so that a limit of far too much becomes one of two rows.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Literal};

/// What an expression of integers comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Constant {
    /// This.
    Integer(i64),
    /// More, or less, than 64 bits hold; on the way too.
    TooLarge,
    /// Something else, for the engine to judge.
    Other,
}

/// Works an expression out, as far as it is made of integers.
pub(super) fn constant(expression: &Expr) -> Constant {
    match expression {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => number(digits),
            _ => Constant::Other,
        },
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => constant(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            // The smallest integer has no positive counterpart.
            Expr::Value(value) => match &value.value {
                Literal::Number(digits, _) => number(&format!("-{digits}")),
                _ => Constant::Other,
            },
            _ => combined(Constant::Integer(0), constant(expr), i64::checked_sub),
        },
        Expr::BinaryOp { left, op, right } => {
            let operation: fn(i64, i64) -> Option<i64> = match op {
                BinaryOperator::Plus => i64::checked_add,
                BinaryOperator::Minus => i64::checked_sub,
                BinaryOperator::Multiply => i64::checked_mul,
                // What divides by zero is an error of the engine's.
                BinaryOperator::Divide => {
                    |left, right| if right == 0 { Some(0) } else { left.checked_div(right) }
                }
                BinaryOperator::Modulo => {
                    |left, right| if right == 0 { Some(0) } else { left.checked_rem(right) }
                }
                _ => return Constant::Other,
            };
            combined(constant(left), constant(right), operation)
        }
        _ => Constant::Other,
    }
}

fn number(digits: &str) -> Constant {
    let is_integer = digits.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(integer) => Constant::Integer(integer),
        Err(_) if is_integer => Constant::TooLarge,
        Err(_) => Constant::Other,
    }
}

fn combined(left: Constant, right: Constant, operation: fn(i64, i64) -> Option<i64>) -> Constant {
    match (left, right) {
        (Constant::Integer(left), Constant::Integer(right)) => {
            operation(left, right).map_or(Constant::TooLarge, Constant::Integer)
        }
        (Constant::TooLarge, _) | (_, Constant::TooLarge) => Constant::TooLarge,
        _ => Constant::Other,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn an_integer_beyond_64_bits_is_too_large_and_not_another_one() {
        for (text, expected) in [
            ("10", Constant::Integer(10)),
            ("-(3 - 5) * 4 % 5", Constant::Integer(3)),
            ("-9223372036854775808", Constant::Integer(i64::MIN)),
            ("9223372036854775808", Constant::TooLarge),
            ("9223372036854775807 + 1", Constant::TooLarge),
            ("9223372036854775807 * 2 + 4", Constant::TooLarge),
            ("-9223372036854775808 / -1", Constant::TooLarge),
            ("x + 9223372036854775808", Constant::TooLarge),
            ("1 / 0", Constant::Integer(0)),
            ("1.5", Constant::Other),
            ("1e3", Constant::Other),
            ("'10'", Constant::Other),
            ("NULL", Constant::Other),
            ("length('a')", Constant::Other),
        ] {
            let expression =
                Parser::new(&GenericDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap();
            assert_eq!(constant(&expression), expected, "{text}");
        }
    }
}
