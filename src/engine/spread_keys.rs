//! Keeps the conditions of joins that need more than two relations.
//!
//! DataFusion takes inner joins apart and puts them together again by keys between two relations. A key of which one side is
//! made of two, as in `FROM a CROSS JOIN b JOIN c ON c.x = a.x AND c.n = a.n + b.n`, it forgets. As a filter of the join it
//! comes back on top of what was put together.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

/// The rule that forgets.
const FORGETFUL: &str = "eliminate_cross_join";

/// The engine's rules, with this one where it is needed.
pub(super) fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let place = rules.iter().position(|rule| rule.name() == FORGETFUL).unwrap_or_default();
    rules.insert(place, Arc::new(SpreadKeys));
    rules
}

/// Makes filters of keys that no two relations make up.
#[derive(Debug)]
struct SpreadKeys;

impl OptimizerRule for SpreadKeys {
    fn name(&self) -> &'static str {
        "filters_of_spread_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        if join.join_type != JoinType::Inner || join.on.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let (left, right) = (relations(&join.left), relations(&join.right));
        let spread: Vec<(Expr, Expr)> = join
            .on
            .extract_if(.., |(one, other)| !(is_of_one(one, &left) && is_of_one(other, &right)))
            .collect();
        if spread.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let operator = match join.null_equality {
            NullEquality::NullEqualsNothing => Operator::Eq,
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
        };
        let spread = spread.into_iter().map(|(one, other)| binary_expr(one, operator, other));
        join.filter = conjunction(join.filter.take().into_iter().chain(spread));
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}

/// What is left when inner joins are taken apart.
fn relations(plan: &LogicalPlan) -> Vec<&LogicalPlan> {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            [relations(&join.left), relations(&join.right)].concat()
        }
        _ => vec![plan],
    }
}

/// Whether one of the relations has all columns that the value is made of.
fn is_of_one(value: &Expr, relations: &[&LogicalPlan]) -> bool {
    let columns = value.column_refs();
    relations.iter().any(|relation| columns.iter().all(|column| relation.schema().has_column(column)))
}
