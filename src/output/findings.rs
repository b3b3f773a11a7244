//! Findings as rows, for csv and arrow: one row each, what they rest on as JSON.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use serde_json::{Map, Value};

use crate::analysis::{Finding, Lang};
use crate::engine::Rows;

const COLUMNS: [&str; 5] = ["rule", "severity", "subject", "message", "evidence"];

/// The findings as rows; `message` is in `lang`, `evidence` a JSON object.
#[must_use]
pub fn findings_batch(findings: &[Finding], lang: Lang) -> Rows {
    let fields: Vec<Field> = COLUMNS.iter().map(|name| Field::new(*name, DataType::Utf8, false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let column = |text: &dyn Fn(&Finding) -> String| -> ArrayRef {
        Arc::new(findings.iter().map(|finding| Some(text(finding))).collect::<StringArray>())
    };
    let columns = vec![
        column(&|finding| finding.rule.to_owned()),
        column(&|finding| finding.severity.name().to_owned()),
        column(&|finding| finding.subject.name()),
        column(&|finding| finding.message.get(lang).to_owned()),
        column(&evidence),
    ];
    let batches = RecordBatch::try_new(Arc::clone(&schema), columns).into_iter().collect();
    Rows { schema, batches }
}

fn evidence(finding: &Finding) -> String {
    let map: Map<String, Value> =
        finding.evidence.iter().map(|(name, value)| ((*name).to_owned(), value.json())).collect();
    Value::Object(map).to_string()
}
