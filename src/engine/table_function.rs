//! Macros as table functions: the statement is planned once, a call puts its arguments into that plan.

use std::sync::{Arc, Weak};

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err, plan_err};
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{Expr, LogicalPlan};
use futures::FutureExt as _;

use super::relation::Relation;
use super::sql_macro::SqlMacro;
use super::value::{SqlType, Value};

/// A macro that can be called.
#[derive(Debug)]
pub(super) struct TableFunction(Weak<Relation>);

impl TableFunction {
    pub(super) fn new(relation: &Arc<Relation>) -> Self {
        Self(Arc::downgrade(relation))
    }
}

impl TableFunctionImpl for TableFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let Some(relation) = self.0.upgrade() else {
            return internal_err!("a macro is called in an engine that is gone");
        };
        let arguments = args.exprs().iter().map(argument).collect::<Result<Vec<Value>>>()?;
        let definition = &relation.definition;
        let values =
            definition.positional(&arguments).map_err(|error| DataFusionError::Plan(error.to_string()))?;
        // Planning waits for nothing: all that a statement can name is in memory.
        let Some(planned) = relation.planned().now_or_never() else {
            return internal_err!("planning `{}` waits for something", definition.name);
        };
        Ok(Arc::new(ViewTable::new(bind(&planned?.plan, definition, &values)?, None)))
    }
}

/// Puts values in the place of the placeholders; each with its declared type, also a NULL.
pub(super) fn bind(
    plan: &LogicalPlan,
    definition: &SqlMacro,
    values: &[(&'static str, Value)],
) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan.clone());
    }
    let mut scalars = Vec::with_capacity(values.len());
    for (param, (name, value)) in definition.params.iter().zip(values) {
        scalars.push((*name, scalar(param.sql_type, value)));
    }
    plan.clone().with_param_values(scalars)
}

fn scalar(sql_type: SqlType, value: &Value) -> ScalarValue {
    match (sql_type, value) {
        (SqlType::Bigint, Value::Integer(integer)) => ScalarValue::Int64(Some(*integer)),
        (SqlType::Bigint, _) => ScalarValue::Int64(None),
        (SqlType::Double, Value::Real(real)) => ScalarValue::Float64(Some(*real)),
        #[expect(
            clippy::cast_precision_loss,
            clippy::as_conversions,
            reason = "SQL converts integers like this"
        )]
        (SqlType::Double, Value::Integer(integer)) => ScalarValue::Float64(Some(*integer as f64)),
        (SqlType::Double, _) => ScalarValue::Float64(None),
        (SqlType::Varchar, Value::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        (SqlType::Varchar, _) => ScalarValue::Utf8(None),
    }
}

/// The constant that an argument is.
fn argument(expression: &Expr) -> Result<Value> {
    match expression {
        Expr::Literal(scalar, _) => literal(scalar),
        Expr::Negative(inner) => match argument(inner)? {
            Value::Integer(integer) if integer != i64::MIN => Ok(Value::Integer(-integer)),
            Value::Real(real) => Ok(Value::Real(-real)),
            _ => plan_err!("a macro's argument must be a number, a text or NULL, found `{expression}`"),
        },
        _ => plan_err!("a macro's argument must be a number, a text or NULL, found `{expression}`"),
    }
}

fn literal(scalar: &ScalarValue) -> Result<Value> {
    match scalar {
        scalar if scalar.is_null() => Ok(Value::Null),
        ScalarValue::Int64(Some(integer)) => Ok(Value::Integer(*integer)),
        ScalarValue::Float64(Some(real)) => Ok(Value::Real(*real)),
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => Ok(Value::Text(text.clone())),
        other => plan_err!("a macro's argument must be a number, a text or NULL, found `{other}`"),
    }
}
