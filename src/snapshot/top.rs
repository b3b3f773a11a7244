//! The top level of a snapshot, once it has been read to its end: is everything where it belongs, and what else is there?

use super::dialect::TopKeys;
use super::fault::{Fault, found};
use super::import::Import;
use super::python_json::Json;
use super::stats::Severity;
use super::{ANNOTATION, EVENT, HOST_EVENT, HOST_SEGMENT, SEGMENT, words};
use crate::pickle::{NodeKind, State, Value};

/// Bytes of JSON the settings may have.
const SETTINGS_BYTES: usize = 1 << 20;

/// What the top level says beyond the rows.
#[derive(Debug, Default)]
pub(super) struct Top {
    pub(super) keys: TopKeys,
    /// Lists under `device_traces`; `None` without the key.
    pub(super) trace_lists: Option<i64>,
    /// `allocator_settings` as JSON.
    pub(super) settings: Option<String>,
}

fn shape(at: &str, expected: &str, found: String) -> Fault {
    Fault::Shape { at: at.to_owned(), expected: expected.to_owned(), found }
}

/// Rows in a list of one kind of rows.
fn rows_in(state: &State, value: Value, kind: u8, at: &str, expected: &str) -> Result<u64, Fault> {
    match value {
        Value::EmptyList | Value::None => Ok(0),
        Value::TakenList { kind: other, count } if other == kind => Ok(count),
        other => Err(shape(at, expected, found(state, other))),
    }
}

/// Items of a list or tuple that is kept.
fn items_of(state: &State, value: Value) -> Option<&[Value]> {
    match value {
        Value::EmptyList => Some(&[]),
        Value::Node(node) => match state.tree().get(node)? {
            (NodeKind::Dict, _) => None,
            (_, items) => Some(items),
        },
        _ => None,
    }
}

/// Keys whose lists become rows while they are read.
const ROW_LISTS: [u32; 5] = [
    words::SEGMENTS,
    words::DEVICE_TRACES,
    words::HOST_SEGMENTS,
    words::HOST_TRACES,
    words::EXTERNAL_ANNOTATIONS,
];

impl Import<'_> {
    /// Checks the value the pickle is against the rows that were read from it.
    pub(super) fn check_top(&mut self, state: &State, root: Value) -> Result<Top, Fault> {
        const EXPECTED: &str =
            "a snapshot (a dict with `segments` and `device_traces`, or a list of segments)";
        let mut top = Top::default();
        match root {
            Value::EmptyList | Value::TakenList { kind: SEGMENT, .. } => {
                top.keys.is_list = true;
                let count = rows_in(state, root, SEGMENT, "the top level", EXPECTED)?;
                self.check_rows(count, 0, 0)?;
                Ok(top)
            }
            Value::Node(node) => match state.tree().get(node) {
                Some((NodeKind::Dict, items)) => {
                    self.check_keys(state, items, &mut top)?
                        .ok_or_else(|| shape("the top level", EXPECTED, found(state, root)))?;
                    Ok(top)
                }
                _ => Err(shape("the top level", EXPECTED, found(state, root))),
            },
            other => Err(shape("the top level", EXPECTED, found(state, other))),
        }
    }

    /// `None` without `segments`.
    fn check_keys(&mut self, state: &State, items: &[Value], top: &mut Top) -> Result<Option<()>, Fault> {
        let mut segments = None;
        let (mut host_segments, mut events, mut host_events, mut annotations) = (0, 0, 0, 0);
        for pair in items.chunks_exact(2) {
            let [key, value] = *pair else { continue };
            let Value::Text(word) = key else { continue };
            if ROW_LISTS.contains(&word) && items.iter().step_by(2).filter(|other| **other == key).count() > 1
            {
                // The rows of both lists have been taken, and a dict has room for one.
                let found = format!("`{}` more than once", state.text(word));
                return Err(shape("the top level", "a dict with each key once", found));
            }
            match word {
                words::SEGMENTS => {
                    let count = rows_in(state, value, SEGMENT, "segments", "a list of segments")?;
                    segments = Some(segments.unwrap_or(0) + count);
                }
                words::DEVICE_TRACES => events += self.check_traces(state, value, top)?,
                words::HOST_SEGMENTS => {
                    top.keys.host = true;
                    host_segments +=
                        rows_in(state, value, HOST_SEGMENT, "host_segments", "a list of segments")?;
                }
                words::HOST_TRACES => {
                    top.keys.host = true;
                    host_events += rows_in(state, value, HOST_EVENT, "host_traces", "a list of events")?;
                }
                words::EXTERNAL_ANNOTATIONS => {
                    top.keys.annotations = true;
                    annotations +=
                        rows_in(state, value, ANNOTATION, "external_annotations", "a list of annotations")?;
                }
                words::ALLOCATOR_SETTINGS => self.read_settings(state, value, top)?,
                words::TRACE_ALLOC_MAX_ENTRIES | words::TRACE_ALLOC_OVERFLOWED => {
                    self.read_overflow(state, word, value);
                }
                other => self.stats.unknown_key("snapshot", other),
            }
        }
        let Some(segments) = segments else { return Ok(None) };
        let host_traces = u64::try_from(self.lists.count(super::devices::HOST)).unwrap_or(0);
        if host_segments != self.segments.host_count
            || host_events != host_traces
            || annotations != u64::try_from(self.annotations.len()).unwrap_or(0)
        {
            return Err(misplaced());
        }
        self.check_rows(segments, host_segments, events)?;
        Ok(Some(()))
    }

    /// Every row that was read must stand in the list it was taken for a part of.
    fn check_rows(&self, segments: u64, host_segments: u64, events: u64) -> Result<(), Fault> {
        let read_events = u64::try_from(self.lists.device_total()).unwrap_or(0);
        if segments + host_segments != self.segments.read || events != read_events {
            return Err(misplaced());
        }
        Ok(())
    }

    fn check_traces(&mut self, state: &State, value: Value, top: &mut Top) -> Result<u64, Fault> {
        let expected = "a list with one list of events per device";
        if value == Value::None {
            return Ok(0);
        }
        let lists =
            items_of(state, value).ok_or_else(|| shape("device_traces", expected, found(state, value)))?;
        top.trace_lists = i64::try_from(lists.len()).ok();
        let mut total = 0;
        for (device, list) in (0_i64..).zip(lists) {
            let at = format!("device_traces[{device}]");
            let count = rows_in(state, *list, EVENT, &at, "a list of events (dicts with `action`)")?;
            if i64::try_from(count) != Ok(self.lists.count(device)) {
                return Err(misplaced());
            }
            total += count;
        }
        Ok(total)
    }

    pub(super) fn read_settings(&mut self, state: &State, value: Value, top: &mut Top) -> Result<(), Fault> {
        let mut json = Json::new(SETTINGS_BYTES);
        match value {
            Value::None => return Ok(()),
            Value::EmptyDict { .. } => json.dict(state, &self.stacks, &[]),
            Value::Node(node) => match state.tree().get(node) {
                Some((NodeKind::Dict, items)) => {
                    json.dict(state, &self.stacks, items);
                    self.read_setting_keys(state, items, top);
                }
                _ => return Err(shape("allocator_settings", "a dict", found(state, value))),
            },
            Value::Opaque => json = Json::new(0),
            other => return Err(shape("allocator_settings", "a dict", found(state, other))),
        }
        top.keys.settings = true;
        let (json, complete) = json.into_parts();
        if complete && !json.is_empty() {
            top.settings = Some(json);
        } else {
            let doc = "allocator_settings was larger than any allocator's and is not kept";
            self.stats.add(Severity::DataLoss, "allocator_settings_lost", None, 1, doc);
        }
        Ok(())
    }

    fn read_setting_keys(&mut self, state: &State, items: &[Value], top: &mut Top) {
        let mut names_cuda = false;
        let mut names_any = false;
        for pair in items.chunks_exact(2) {
            let [Value::Text(word), value] = *pair else { continue };
            if matches!(word, words::TRACE_ALLOC_MAX_ENTRIES | words::TRACE_ALLOC_OVERFLOWED) {
                self.read_overflow(state, word, value);
            }
            match state.text(word) {
                "PYTORCH_CUDA_ALLOC_CONF" => names_cuda = true,
                "PYTORCH_ALLOC_CONF" => names_any = true,
                "graph_capture_record_stream_reuse" => top.keys.settings_of_2_9 = true,
                _ => {}
            }
        }
        top.keys.settings_of_xpu = names_any && !names_cuda;
    }

    /// The ring buffer's size and whether it overflowed, as one value or one per device.
    pub(super) fn read_overflow(&mut self, state: &State, word: u32, value: Value) {
        let per_device = items_of(state, value).map(<[Value]>::to_vec);
        let values: Vec<(Option<i64>, Value)> = match per_device {
            Some(values) => (0_i64..).map(Some).zip(values).collect(),
            None => vec![(None, value)],
        };
        for (device, value) in values {
            let number = match value {
                Value::Bool(flag) => i64::from(flag),
                Value::Int(number) => number,
                Value::Wide(_) => i64::MAX,
                _ => continue,
            };
            if word == words::TRACE_ALLOC_OVERFLOWED {
                let doc = "the ring buffer was full: the oldest events of this device are lost";
                self.stats.add(Severity::DataLoss, "trace_alloc_overflowed", device, number, doc);
            } else {
                let doc = "events the ring buffer of this device can hold";
                self.stats.add(Severity::Info, "trace_alloc_max_entries", device, number, doc);
            }
        }
    }
}

fn misplaced() -> Fault {
    shape(
        "the top level",
        "segments, blocks and events in the lists of one snapshot",
        "some of them elsewhere, or in two places".to_owned(),
    )
}
