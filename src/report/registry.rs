//! What the page keeps once although many places refer to it: charts by anchor, call stacks with their frames.
//!
//! Frames are shared by stacks, and the room for them is limited: stacks that come first have theirs in full.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::{Value, json};

use crate::analysis::chart::{Frame, StackWords};

/// Bytes of frames that a page carries.
const ROOM: usize = 500_000;
/// Characters of a name that a page carries; the database has all of it.
const LONGEST_NAME: usize = 600;
/// Frames of a stack that a page carries.
const DEEPEST: usize = 200;

/// Charts and stacks of a page.
#[derive(Debug, Default)]
pub(super) struct Registry {
    charts: Vec<Value>,
    rows: Vec<Value>,
    frames: Vec<Value>,
    places: HashMap<Frame, usize>,
    stacks: BTreeMap<i64, Vec<usize>>,
    labels: BTreeMap<i64, String>,
    used: usize,
}

impl Registry {
    /// Keeps a chart.
    pub(super) fn add_chart(&mut self, chart: Value) {
        self.charts.push(chart);
    }

    /// Keeps the rows of a long table; the number to refer to them by.
    pub(super) fn add_rows(&mut self, rows: Value) -> usize {
        self.rows.push(rows);
        self.rows.len() - 1
    }

    /// Keeps stacks, with their frames as long as there is room.
    pub(super) fn add_stacks(&mut self, stacks: &[StackWords]) {
        for words in stacks {
            self.labels.entry(words.stack_id).or_insert_with(|| words.label.clone());
            if self.stacks.contains_key(&words.stack_id) || self.used > ROOM {
                continue;
            }
            let places = words.frames.iter().take(DEEPEST).map(|frame| self.place(frame)).collect();
            self.stacks.insert(words.stack_id, places);
        }
    }

    fn place(&mut self, frame: &Frame) -> usize {
        if let Some(place) = self.places.get(frame) {
            return *place;
        }
        let name: String = frame.name.chars().take(LONGEST_NAME).collect();
        let cut = if name.len() < frame.name.len() { "…" } else { "" };
        let value = json!([format!("{name}{cut}"), frame.place(), i32::from(frame.is_own())]);
        self.used += name.len() + frame.filename.len() + 16;
        self.frames.push(value);
        let place = self.frames.len() - 1;
        self.places.insert(frame.clone(), place);
        place
    }

    /// All charts, all stacks with the frames they share, and the rows of long tables.
    pub(super) fn finish(self) -> (Value, Value, Value) {
        let stacks: Vec<Value> =
            self.labels.into_iter().map(|(id, label)| json!([id, label, self.stacks.get(&id)])).collect();
        (json!(self.charts), json!({"frames": self.frames, "list": stacks}), json!(self.rows))
    }
}
