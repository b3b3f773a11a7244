//! SUM of integers that fails where 64 bits are not enough. DataFusion's own wraps round, so that a snapshot with a few
//! absurd sizes had small or negative totals. Other types are left to it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray as _, BooleanArray, Int64Array};
use arrow::compute::sum_checked;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

/// The function; what it is not about is the engine's.
#[derive(Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct CheckedSum(Sum);

/// Whether it is the sum that is checked here. A distinct one adds each value once, and is none of ours as long as it is
/// exact: [`Distinct`] sees to that.
fn is_ours(args: &AccumulatorArgs<'_>) -> bool {
    args.return_field.data_type() == &DataType::Int64
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match (is_ours(&args), args.is_distinct) {
            (true, false) => Ok(Box::new(Total::default())),
            (true, true) => Ok(Box::new(Distinct(self.0.accumulator(args)?))),
            _ => self.0.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_ours(&args) && !args.is_distinct {
            return Ok(Box::new(Total::default()));
        }
        self.0.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if is_ours(&args) { Ok(Box::new(Totals::default())) } else { self.0.create_groups_accumulator(args) }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }
}

fn too_large() -> DataFusionError {
    exec_datafusion_err!(
        "a sum does not fit in 64 bits; if the sizes are real, `SUM(CAST(x AS DOUBLE))` has it to 15 digits, and if not, \
         `import_stats` counts them as `implausible_sizes`"
    )
}

fn integers(arrays: &[ArrayRef]) -> Result<&Int64Array> {
    let array = arrays.first().and_then(|array| array.as_primitive_opt::<Int64Type>());
    array.ok_or_else(|| exec_datafusion_err!("SUM got no integers"))
}

/// The sum of an array; none where it has no value.
fn sum(values: &Int64Array) -> Result<Option<i64>> {
    sum_checked(values).map_err(|_| too_large())
}

/// The sum of one group, or of a window that moves.
#[derive(Debug, Default)]
struct Total {
    sum: i64,
    count: usize,
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = integers(values)?;
        let added = sum(values)?.unwrap_or_default();
        self.sum = self.sum.checked_add(added).ok_or_else(too_large)?;
        self.count += values.len() - values.null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = integers(values)?;
        let removed = sum(values)?.unwrap_or_default();
        self.sum = self.sum.checked_sub(removed).ok_or_else(too_large)?;
        self.count = self.count.saturating_sub(values.len() - values.null_count());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64((self.count > 0).then_some(self.sum)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The engine's collection of distinct values, added up here.
#[derive(Debug)]
struct Distinct(Box<dyn Accumulator>);

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.0.state()?;
        let Some(ScalarValue::List(list)) = state.first() else { return self.0.evaluate() };
        Ok(ScalarValue::Int64(sum(integers(&[Arc::clone(list.values())])?)?))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

/// The sums of many groups; none for a group without a value.
#[derive(Debug, Default)]
struct Totals(Vec<Option<i64>>);

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = integers(values)?;
        self.0.resize(total_num_groups, None);
        let mut add = |group: usize, value: i64| {
            let Some(total) = self.0.get_mut(group) else { return Ok(()) };
            *total = Some(total.unwrap_or_default().checked_add(value).ok_or_else(too_large)?);
            Ok(())
        };
        let rows = values.iter().zip(group_indices);
        match filter {
            None if values.null_count() == 0 => {
                let mut rows = values.values().iter().zip(group_indices);
                rows.try_for_each(|(value, group)| add(*group, *value))
            }
            None => rows.filter_map(|(value, group)| Some((value?, *group))).try_for_each(|(v, g)| add(g, v)),
            Some(filter) => {
                let kept = rows.zip(filter).filter(|(_, keep)| *keep == Some(true)).map(|(row, _)| row);
                kept.filter_map(|(value, group)| Some((value?, *group))).try_for_each(|(v, g)| add(g, v))
            }
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(emit_to.take_needed(&mut self.0))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = integers(values)?;
        let kept = match filter {
            None => values.clone(),
            Some(filter) => {
                values.iter().zip(filter).map(|(value, keep)| value.filter(|_| keep == Some(true))).collect()
            }
        };
        Ok(vec![Arc::new(kept)])
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<Option<i64>>()
    }
}
