//! A file for speedscope: one sampled profile per device, a sample per call stack, weights in bytes.

use std::io::Write;

use serde_json::{Value, json};

use super::folded::NO_STACK;
use super::label;
use super::rows::Whole;
use super::stacks::Stacks;
use super::weights::weigh;
use super::{Request, Summary, output};
use crate::analysis::Device;
use crate::engine::Engine;
use crate::error::Result;

/// Names the format; nothing is fetched from there.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes the file.
pub(super) fn write(
    engine: &Engine,
    devices: &[Device],
    request: &Request,
    out: &mut dyn Write,
) -> Result<Summary> {
    let stacks = Stacks::read(engine, &request.redaction)?;
    let whole: Vec<Whole> = engine.table_rows()?;
    let name = whole.into_iter().next().map_or_else(String::new, |whole| whole.source_name);
    let mut frames: Vec<Value> = stacks
        .frames()
        .iter()
        .map(|frame| {
            let mut shown = json!({ "name": label::name(frame), "file": label::file(frame) });
            if let (Some(line), Some(shown)) = (label::line(frame), shown.as_object_mut()) {
                shown.insert("line".to_owned(), line.into());
            }
            shown
        })
        .collect();
    let none = frames.len();
    frames.push(json!({ "name": NO_STACK }));
    let mut summary = Summary::default();
    let mut samples_written = 0;
    let mut profiles = Vec::new();
    for weighed in weigh(engine, devices, request)? {
        let mut samples = Vec::with_capacity(weighed.stacks.len());
        let mut weights = Vec::with_capacity(weighed.stacks.len());
        for (id, bytes) in weighed.stacks {
            let sample: Vec<usize> = stacks.of(id).iter().rev().copied().collect();
            samples.push(if sample.is_empty() { vec![none] } else { sample });
            weights.push(bytes);
            samples_written += 1;
        }
        let total = weights.iter().copied().fold(0, i64::saturating_add);
        profiles.push(json!({
            "type": "sampled",
            "name": weighed.title,
            "unit": "bytes",
            "startValue": 0,
            "endValue": total,
            "samples": samples,
            "weights": weights,
        }));
    }
    summary.count(samples_written, "stacks");
    summary.count(u64::try_from(profiles.len()).unwrap_or(u64::MAX), "profiles");
    let file = json!({
        "$schema": SCHEMA,
        "name": request.redaction.apply(&name),
        "exporter": concat!("npusnap ", env!("CARGO_PKG_VERSION")),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &file).map_err(|error| output(error.into()))?;
    writeln!(out).map_err(output)?;
    Ok(summary)
}
