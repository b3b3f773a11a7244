//! Keeps filters above an aggregate over the whole input.
//!
//! DataFusion pushes a filter that names no column below an aggregate without GROUP BY, where it empties the input but not
//! the result: `SELECT * FROM (SELECT 'a' AS t, COUNT(*) AS n FROM traces) WHERE t = 'b'` had a row with n = 0. Such an
//! aggregate has one row; saying so with a limit changes nothing and is a place that no filter passes.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// Puts a limit of one row on every aggregate that has one row anyway. Subqueries in expressions stay as they are:
/// DataFusion cannot take the limit out of a correlated one again.
#[derive(Debug)]
pub(super) struct OneRow;

impl AnalyzerRule for OneRow {
    fn name(&self) -> &'static str {
        "one_row_of_a_whole_aggregate"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let limited = plan.transform_up(|plan| match &plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build().map(Transformed::yes)
            }
            _ => Ok(Transformed::no(plan)),
        })?;
        Ok(limited.data)
    }
}
