//! The JSON of `analyze --format json`: a versioned envelope that programs rely on.

use serde_json::{Value, json};

use crate::analysis::{Finding, ImportNote, Info, Lang, SnapshotFacts, Thresholds};

/// Version of the envelope; a change of its keys needs a new one.
const ENVELOPE: i64 = 1;

/// Puts a result into its envelope.
#[must_use]
pub fn envelope(
    mode: &str,
    snapshot: Option<&SnapshotFacts>,
    notes: &[ImportNote],
    thresholds: &Thresholds,
    findings: &[Finding],
    result: &Value,
    lang: Lang,
) -> Value {
    json!({
        "npusnap": ENVELOPE,
        "version": env!("CARGO_PKG_VERSION"),
        "snapshot": snapshot.map(SnapshotFacts::json),
        "mode": mode,
        "thresholds": thresholds.json(),
        "import_stats": notes.iter().map(ImportNote::json).collect::<Vec<_>>(),
        "findings": findings.iter().map(|finding| finding.json(lang)).collect::<Vec<_>>(),
        "result": result,
    })
}

/// Puts the answer of `info` into its envelope.
#[must_use]
pub fn info_envelope(info: &Info, notes: &[ImportNote], lang: Lang) -> Value {
    json!({
        "npusnap": ENVELOPE,
        "version": env!("CARGO_PKG_VERSION"),
        "snapshot": info.snapshot().map(SnapshotFacts::json),
        "import_stats": notes.iter().map(ImportNote::json).collect::<Vec<_>>(),
        "info": info.json(lang),
    })
}
