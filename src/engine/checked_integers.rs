//! `+`, `-` and `*` of integers that fail where their type is too small. DataFusion's own wrap round, also where it works
//! out constants while it plans: the largest integer plus one was the smallest.
//!
//! An analyzer rule puts a function in the place of each such operator. The function has the operator's name for columns,
//! so that nothing else of a query changes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable as _, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

/// Puts the checked functions in the place of the operators. It comes behind the rules that give both sides one type.
#[derive(Debug)]
pub(super) struct CheckedIntegers;

impl AnalyzerRule for CheckedIntegers {
    fn name(&self) -> &'static str {
        "checked_integers"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(checked_plan)?.data)
    }
}

fn checked_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    // A limit has to be a number when the plan is made; one that has wrapped round is negative, and refused.
    if matches!(plan, LogicalPlan::Limit(_)) {
        return Ok(Transformed::no(plan));
    }
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    // The name of a window shows in what order its rows are, and not by the names of columns.
    let names = NamePreserver::new(&plan);
    let checked = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let checked = expr.transform_up(|expr| checked_expr(expr, &schema))?;
        Ok(if checked.transformed { checked.update_data(|expr| name.restore(expr)) } else { checked })
    })?;
    if checked.transformed { checked.map_data(LogicalPlan::recompute_schema) } else { Ok(checked) }
}

fn checked_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operation, operands) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let operation = match op {
                Operator::Plus => Operation::Add,
                Operator::Minus => Operation::Subtract,
                Operator::Multiply => Operation::Multiply,
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            (operation, vec![*left, *right])
        }
        Expr::Negative(operand) => (Operation::Negate, vec![*operand]),
        other => return Ok(Transformed::no(other)),
    };
    let types = operands.iter().map(|operand| type_of(operand, schema)).collect::<Result<Vec<_>>>()?;
    let is_checked = match types.as_slice() {
        [one] => one.is_signed_integer(),
        [one, other] => one.is_integer() && one == other,
        _ => false,
    };
    match types.into_iter().next().filter(|_| is_checked) {
        Some(of) => {
            let function = ScalarUDF::new_from_impl(Checked::new(operation, of));
            Ok(Transformed::yes(function.call(operands)))
        }
        None => Ok(Transformed::no(operation.plain(operands)?)),
    }
}

/// The type of an operand. One that was checked before says it itself: the way down a long sum would be walked for each of
/// its operands.
fn type_of(operand: &Expr, schema: &DFSchema) -> Result<DataType> {
    if let Expr::ScalarFunction(function) = operand
        && let Some(checked) = function.func.inner().as_ref().downcast_ref::<Checked>()
    {
        return Ok(checked.of.clone());
    }
    operand.get_type(schema)
}

/// What is done with integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Negate,
}

impl Operation {
    /// The operator with its operands, as it was.
    fn plain(self, operands: Vec<Expr>) -> Result<Expr> {
        let op = match self {
            Self::Add => Operator::Plus,
            Self::Subtract => Operator::Minus,
            Self::Multiply => Operator::Multiply,
            Self::Negate => {
                let [operand] = <[Expr; 1]>::try_from(operands).or_else(|_| internal_err!("one operand"))?;
                return Ok(Expr::Negative(Box::new(operand)));
            }
        };
        let [left, right] = <[Expr; 2]>::try_from(operands).or_else(|_| internal_err!("two operands"))?;
        Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
    }
}

/// An operation on integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    of: DataType,
    signature: Signature,
}

impl Checked {
    fn new(operation: Operation, of: DataType) -> Self {
        let count = if operation == Operation::Negate { 1 } else { 2 };
        let signature = Signature::exact(vec![of.clone(); count], Volatility::Immutable);
        Self { operation, of, signature }
    }

    fn explained(&self, error: DataFusionError) -> DataFusionError {
        let DataFusionError::ArrowError(cause, _) = &error else { return error };
        let ArrowError::ArithmeticOverflow(text) = cause.as_ref() else { return error };
        let operation = text.trim_start_matches("Overflow happened on: ");
        let bits = self.of.primitive_width().unwrap_or_default() * 8;
        exec_datafusion_err!(
            "{operation} does not fit in {bits} bits; with one side as `CAST(x AS DOUBLE)` it has 15 digits"
        )
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
            Operation::Negate => "checked_negate",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.operation.plain(args.to_vec())?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.of.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.of.clone(), is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = match (self.operation, args.args.as_slice()) {
            (Operation::Add, [left, right]) => apply(left, right, add),
            (Operation::Subtract, [left, right]) => apply(left, right, subtract),
            (Operation::Multiply, [left, right]) => apply(left, right, multiply),
            (Operation::Negate, [operand]) => {
                apply(&ColumnarValue::Scalar(ScalarValue::new_zero(&self.of)?), operand, subtract)
            }
            (_, operands) => internal_err!("{} got {} operands", self.name(), operands.len()),
        };
        result.map_err(|error| self.explained(error))
    }
}

/// Bits of a number without its sign that no sum or difference of two exceeds, nor a product of two with so many together.
const FITTING: u32 = 62;

fn add(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let fits = bits(left) <= FITTING && bits(right) <= FITTING;
    if fits { numeric::add_wrapping(left, right) } else { numeric::add(left, right) }
}

fn subtract(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let fits = bits(left) <= FITTING && bits(right) <= FITTING;
    if fits { numeric::sub_wrapping(left, right) } else { numeric::sub(left, right) }
}

fn multiply(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let fits = bits(left) + bits(right) <= FITTING;
    if fits { numeric::mul_wrapping(left, right) } else { numeric::mul(left, right) }
}

/// Bits that the largest number needs beside its sign, those that a NULL hides included: a look without a branch for each
/// row, which costs next to nothing. Types that are not looked at may have them all.
fn bits(datum: &dyn Datum) -> u32 {
    let Some(numbers) = datum.get().0.as_primitive_opt::<Int64Type>() else { return i64::BITS };
    let seen = numbers.values().iter().fold(0, |seen, number| seen | (number ^ (number >> 63)));
    i64::BITS - seen.leading_zeros()
}
