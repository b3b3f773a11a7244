//! `external_annotations`: ranges the program named while it recorded.

use super::fault::{BadField, Fault};
use super::field;
use super::stats::Stats;
use super::words;
use crate::pickle::{State, Value};

/// An annotation, before its device has an id and its event is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotated {
    pub(super) device: Option<i64>,
    pub(super) stage: Option<u32>,
    pub(super) name: Option<u32>,
    pub(super) time_us: Option<i64>,
}

fn parse(state: &State, items: &[Value], stats: &mut Stats) -> Result<Annotated, BadField> {
    let mut annotated = Annotated { device: None, stage: None, name: None, time_us: None };
    for pair in items.chunks_exact(2) {
        let [key, value] = *pair else { continue };
        match key {
            Value::Text(words::DEVICE) => annotated.device = field::integer(state, "device", value)?,
            Value::Text(words::STAGE) => annotated.stage = field::text(state, "stage", value)?,
            Value::Text(words::NAME) => annotated.name = field::text(state, "name", value)?,
            Value::Text(words::TIME_US) => annotated.time_us = field::integer(state, "time_us", value)?,
            Value::Text(other) => stats.unknown_key("annotations", other),
            _ => {}
        }
    }
    Ok(annotated)
}

/// Reads the annotation with this position in the list.
pub(super) fn read(
    state: &State,
    items: &[Value],
    position: usize,
    stats: &mut Stats,
) -> Result<Annotated, Fault> {
    parse(state, items, stats)
        .map_err(|bad| bad.within(&format!("external_annotations[{position}]"), state.offset()))
}
