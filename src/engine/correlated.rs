//! Subqueries that look at the row of the query around them. The engine turns most of them into joins, and says of the others
//! only which node of its plan is left over.

use datafusion::common::DataFusionError;

use crate::error::Error;

/// What the engine's planner says before the node that it cannot run.
const LEFT_OVER: &str = "Physical plan does not support logical expression ";

/// The nodes that a subquery leaves behind when it did not become a join.
const NODES: [&str; 4] = ["OuterReferenceColumn", "ScalarSubquery", "InSubquery", "Exists"];

/// A column that the engine makes for itself on the way, and then may not find.
const OWN_COLUMN: &str = "__always_true";

/// The error of such a subquery, where `cause` is one.
pub(super) fn refusal(cause: &DataFusionError) -> Option<Error> {
    let is_one = match cause {
        DataFusionError::NotImplemented(reason) => reason
            .strip_prefix(LEFT_OVER)
            .is_some_and(|node| NODES.iter().any(|known| node.starts_with(known))),
        DataFusionError::SchemaError(error, _) => error.to_string().contains(OWN_COLUMN),
        _ => false,
    };
    is_one.then(|| Error::Sql {
        reason: "a subquery looks at the row of the query around it in a way that cannot become a join".to_owned(),
        place: None,
        hint: Some(
            "join what it reads instead, grouped by what is compared: `JOIN (SELECT device_id, COUNT(*) AS n FROM traces \
             GROUP BY device_id) AS t ON t.device_id = d.id`; the first rows of each are those with a low \
             `ROW_NUMBER() OVER (PARTITION BY device_id ORDER BY size DESC)`"
                .to_owned(),
        ),
    })
}
