//! Functions whose result is as large as an argument says: `repeat('x', 2000000000)` has two gigabytes before anybody could
//! stop it. Here the size is worked out from the arguments first, and refused where it is out of proportion.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    simplify::{ExprSimplifyResult, SimplifyContext},
};
use datafusion::prelude::SessionContext;

use crate::quantity;

/// How the size of a result follows from the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument, as often as the second one says.
    Times,
    /// As many characters or values as the second argument says.
    UpTo,
    /// A value for each step from the first argument to the second one.
    Steps,
    /// The second argument may be found between any two characters of the first one, and the third one put there.
    Replaced,
}

/// The functions, by the names the engine knows them by.
const FUNCTIONS: &[(&str, Growth)] = &[
    ("repeat", Growth::Times),
    ("array_repeat", Growth::Times),
    ("lpad", Growth::UpTo),
    ("rpad", Growth::UpTo),
    ("array_resize", Growth::UpTo),
    ("range", Growth::Steps),
    ("generate_series", Growth::Steps),
    ("replace", Growth::Replaced),
    ("regexp_replace", Growth::Replaced),
];

/// Part of a query's memory that the values of one function may take in one batch.
const SHARE: usize = 8;

/// Bytes of a number in a list.
const NUMBER_BYTES: u128 = 8;

/// Puts the checked functions in the place of the engine's.
pub(super) fn register(context: &SessionContext, memory_limit: usize) {
    for (name, growth) in FUNCTIONS {
        let known = context.state().scalar_functions().get(*name).map(Arc::clone);
        if let Some(inner) = known {
            context.register_udf(ScalarUDF::new_from_impl(Bounded {
                inner,
                growth: *growth,
                limit: memory_limit / SHARE,
            }));
        }
    }
}

/// A function of the engine's that is asked only for what has room.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    limit: usize,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = self.growth.bytes(&args)?;
        if bytes > u128::try_from(self.limit).unwrap_or(u128::MAX) {
            let shown = quantity::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
            let reason = format!("the values of `{}` could take {shown}", self.name());
            return Err(DataFusionError::ResourcesExhausted(reason));
        }
        self.inner.invoke_with_args(args)
    }
}

impl Growth {
    /// At most so many bytes does the result have; 0 where the arguments are of no use, which the function itself says.
    fn bytes(self, args: &ScalarFunctionArgs) -> Result<u128> {
        // Arguments that are all constant give one value, however many rows there are.
        let is_constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let [first, second, ..] = arrays.as_slice() else {
            // `range(stop)` begins at 0.
            return Ok(arrays.first().map_or(0, |stop| integers(stop).map(|stop| stop * NUMBER_BYTES).sum()));
        };
        let third = arrays.get(2);
        Ok(match self {
            Self::Times => sizes(first).zip(integers(second)).map(|(size, times)| size * times).sum(),
            Self::UpTo => integers(second).map(|count| count * NUMBER_BYTES).sum(),
            Self::Steps => steps(first, second, third).unwrap_or_default() * NUMBER_BYTES,
            Self::Replaced => {
                let put = third.map(sizes).into_iter().flatten();
                sizes(first).zip(put).map(|(size, put)| size.saturating_add((size + 1) * put)).sum()
            }
        })
    }
}

/// Bytes of every value; texts have as many as they are long, others their share of the whole.
fn sizes(array: &ArrayRef) -> Box<dyn Iterator<Item = u128> + '_> {
    if array.data_type().is_string()
        && let Ok(lengths) = length(array.as_ref()).and_then(|lengths| cast(&lengths, &DataType::Int64))
    {
        return Box::new(integers(&lengths).collect::<Vec<_>>().into_iter());
    }
    let share = array.data_type().primitive_width();
    let share = share.unwrap_or_else(|| array.get_array_memory_size() / array.len().max(1));
    let share = u128::try_from(share).unwrap_or(u128::MAX).max(NUMBER_BYTES);
    Box::new(std::iter::repeat_n(share, array.len()))
}

/// Every value as a count; what is none, or negative, counts nothing.
fn integers(array: &ArrayRef) -> impl Iterator<Item = u128> + '_ {
    let whole = cast(array, &DataType::Int64).ok();
    let values: Vec<u128> = whole.iter().flat_map(AsArray::as_primitive::<Int64Type>).map(count).collect();
    values.into_iter()
}

fn count(value: Option<i64>) -> u128 {
    value.and_then(|value| u128::try_from(value).ok()).unwrap_or_default()
}

/// Steps in all rows together: of numbers by 1 or the third argument, of times by an interval.
fn steps(start: &ArrayRef, stop: &ArrayRef, step: Option<&ArrayRef>) -> Option<u128> {
    let is_time = start.data_type().is_temporal();
    let whole = |array: &ArrayRef| -> Option<Vec<Option<i64>>> {
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let array = if is_time { cast(array, &nanoseconds).ok()? } else { Arc::clone(array) };
        Some(cast(&array, &DataType::Int64).ok()?.as_primitive::<Int64Type>().iter().collect())
    };
    let steps: Vec<Option<i128>> = match step {
        Some(step) if is_time => {
            let interval =
                cast(step, &DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano)).ok()?;
            interval
                .as_primitive::<IntervalMonthDayNanoType>()
                .iter()
                .map(|step| Some(shortest(step?)))
                .collect()
        }
        Some(step) => whole(step)?.into_iter().map(|step| step.map(i128::from)).collect(),
        None => vec![Some(1); start.len()],
    };
    let ranges = whole(start)?.into_iter().zip(whole(stop)?).zip(steps);
    let counts = ranges.map(|((start, stop), step)| {
        let (Some(start), Some(stop), Some(step)) = (start, stop, step) else { return 0 };
        let between = i128::from(stop) - i128::from(start);
        // A range that goes the other way is empty.
        let Some(count) = between.checked_div(step).filter(|count| *count >= 0) else { return 0 };
        u128::try_from(count).unwrap_or_default() + 1
    });
    Some(counts.sum())
}

/// Nanoseconds of an interval, with months as short as they can be.
fn shortest(step: arrow::datatypes::IntervalMonthDayNano) -> i128 {
    const DAY: i128 = 86_400_000_000_000;
    i128::from(step.nanoseconds) + DAY * (i128::from(step.days) + 28 * i128::from(step.months))
}
