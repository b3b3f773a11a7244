//! A snapshot as a pickle again: as it is, or so that PyTorch's viewer opens it whoever wrote it.
//!
//! The viewer starts from the final state and takes one event back after the other. So a slice of the history carries the
//! state at its end, and an event that the viewer cannot take back would stop it.

use std::io::Write;

use super::end_state::{EndState, Segment};
use super::rows::{AnnotationRow, Whole};
use super::stacks::Stacks;
use super::{Request, Summary, output};
use crate::analysis::Device;
use crate::engine::Engine;
use crate::error::Result;
use crate::pickle::writer::Layout;

mod object;
mod traces;

use object::{Field, Objects};

/// Protocol of the result: the newest that the viewer reads.
const PROTOCOL: u8 = 4;

/// Actions that the viewer takes back, or shows as marks.
const VIEWER_ACTIONS: [&str; 9] = [
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
];

/// What the pickle is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// What the snapshot has, and no more.
    Plain,
    /// What the viewer needs: a clock, memory pools and sizes also where there are none; only events that it knows.
    Viewer,
}

impl Form {
    fn takes(self, action: &str, addr: Option<i64>, size: Option<i64>, is_workspace: i64) -> bool {
        match self {
            Self::Plain => true,
            Self::Viewer => {
                is_workspace == 0
                    && VIEWER_ACTIONS.contains(&action)
                    && size.is_some()
                    && (addr.is_some() || action == "oom")
            }
        }
    }

    fn takes_segment(self, segment: &Segment, state: &EndState) -> bool {
        self == Self::Plain || (segment.row.address.is_some() && !state.workspace.contains(&segment.row.id))
    }
}

/// Writes the pickle.
pub(super) fn write(
    engine: &Engine,
    devices: &[Device],
    request: &Request,
    form: Form,
    out: &mut dyn Write,
) -> Result<Summary> {
    let whole: Vec<Whole> = engine.table_rows()?;
    let whole = whole.into_iter().next();
    let stacks = Stacks::read(engine, &request.redaction)?;
    let state = EndState::read(engine, devices, request.events.end())?;
    let mut export = Export {
        engine,
        devices,
        request,
        form,
        objects: Objects::new(out, Layout::CPython(PROTOCOL), &stacks).map_err(output)?,
        summary: Summary::default(),
        zero_free: 0,
        no_clock: 0,
    };
    export
        .summary
        .note(state.contradictions, "of the later events could not be taken back: the end state lacks them");
    export.write(whole.as_ref(), &state)?;
    export.objects.finish().map_err(output)?;
    export.summary.note(export.no_clock, "events have no time; their number stands for microseconds");
    export.summary.note(export.zero_free, "out-of-memory events do not say what was free; 0 stands there");
    Ok(export.summary)
}

struct Export<'a> {
    engine: &'a Engine,
    devices: &'a [Device],
    request: &'a Request,
    form: Form,
    objects: Objects<'a>,
    summary: Summary,
    zero_free: u64,
    no_clock: u64,
}

impl Export<'_> {
    fn write(&mut self, whole: Option<&Whole>, state: &EndState) -> Result<()> {
        let as_list = self.form == Form::Plain && whole.is_some_and(|whole| whole.form == "list");
        let (host, own): (Vec<&Segment>, Vec<&Segment>) = state
            .segments
            .iter()
            .filter(|segment| self.form.takes_segment(segment, state))
            .partition(|segment| self.device_index(segment.row.device_id) < 0);
        self.summary.count(count(own.len() + host.len()), "segments");
        let dropped = state.segments.len() - own.len() - host.len();
        self.summary.note(count(dropped), "segments left out: of the NPU's workspace, or without an address");
        if as_list {
            return self.segments(&own);
        }
        let counts = self.count_events()?;
        self.summary.count(counts.events.values().sum(), "events");
        self.summary.note(counts.left_out, "events left out: the viewer cannot take them back");
        let settings = whole.and_then(|whole| whole.allocator_settings.as_deref());
        let settings = settings.and_then(|text| serde_json::from_str(text).ok());
        let settings: Option<serde_json::Value> =
            settings.or_else(|| (self.form == Form::Viewer).then(|| serde_json::json!({})));
        let settings = settings.map(|settings| self.request.redaction.value(&settings));
        let annotations = self.annotations()?;
        let with_annotations = self.form == Form::Viewer || !annotations.is_empty();
        let host_device = self.devices.iter().find(|device| device.device_index < 0).map(|device| device.id);
        let keys = 2
            + u64::from(settings.is_some())
            + u64::from(with_annotations)
            + 2 * u64::from(host_device.is_some());
        self.objects.open_dict(keys).map_err(output)?;
        self.objects.key("segments").map_err(output)?;
        self.segments(&own)?;
        self.objects.key("device_traces").map_err(output)?;
        self.traces(whole, &counts)?;
        if let Some(settings) = &settings {
            self.objects.key("allocator_settings").map_err(output)?;
            self.objects.json(settings).map_err(output)?;
        }
        if with_annotations {
            self.objects.key("external_annotations").map_err(output)?;
            self.write_annotations(&annotations)?;
        }
        if let Some(host_device) = host_device {
            self.objects.key("host_segments").map_err(output)?;
            self.segments(&host)?;
            self.objects.key("host_traces").map_err(output)?;
            self.events_of(host_device, counts.events.get(&host_device).copied().unwrap_or(0))?;
        }
        self.objects.close().map_err(output)
    }

    fn device_index(&self, id: i64) -> i64 {
        self.devices.iter().find(|device| device.id == id).map_or(0, |device| device.device_index)
    }

    fn segments(&mut self, segments: &[&Segment]) -> Result<()> {
        self.objects.open_list(count(segments.len())).map_err(output)?;
        for segment in segments {
            let device_index = self.device_index(segment.row.device_id);
            self.segment(segment, device_index).map_err(output)?;
        }
        self.objects.close().map_err(output)
    }

    fn segment(&mut self, segment: &Segment, device_index: i64) -> std::io::Result<()> {
        let row = &segment.row;
        let viewer = self.form == Form::Viewer;
        let or_zero = |value: Option<i64>| value.or(viewer.then_some(0));
        let mut fields = vec![("device", Field::Signed(device_index))];
        push(&mut fields, "address", row.address, address);
        fields.push(("total_size", Field::Signed(row.total_size)));
        push(&mut fields, "allocated_size", row.allocated_size, Field::Signed);
        push(&mut fields, "active_size", row.active_size, Field::Signed);
        push(&mut fields, "requested_size", or_zero(row.requested_size), Field::Signed);
        push(&mut fields, "stream", or_zero(row.stream), Field::Signed);
        push(&mut fields, "segment_type", row.segment_type.as_deref(), Field::Shared);
        push(&mut fields, "segment_pool_id", or_zero(row.pool_id_0).zip(or_zero(row.pool_id_1)), pool);
        push(&mut fields, "is_expandable", or_zero(row.is_expandable), |is| Field::Bool(is != 0));
        fields.push(("frames", Field::Stack(row.stack_id)));
        self.objects.open_dict(count(fields.len()) + 1)?;
        self.objects.fields(&fields)?;
        self.objects.key("blocks")?;
        self.objects.open_list(count(segment.blocks.len()))?;
        for block in &segment.blocks {
            let mut fields = Vec::with_capacity(5);
            push(&mut fields, "address", block.address, address);
            fields.push(("size", Field::Signed(block.size)));
            let requested = block.requested_size.or(viewer.then_some(block.size));
            push(&mut fields, "requested_size", requested, Field::Signed);
            fields.push(("state", Field::Shared(&block.state)));
            fields.push(("frames", Field::Stack(block.stack_id)));
            self.objects.dict(&fields)?;
        }
        self.objects.close()?;
        self.objects.close()
    }

    fn annotations(&self) -> Result<Vec<AnnotationRow>> {
        let events = self.request.events;
        let whole = events == crate::snapshot::EventRange::default();
        let mut kept: Vec<AnnotationRow> = self.engine.table_rows()?;
        kept.retain(|row| {
            let ours = row.device_id.is_none_or(|id| self.devices.iter().any(|device| device.id == id));
            ours && (whole || row.trace_index.is_some_and(|index| events.contains(index)))
                && (self.form == Form::Plain || row.time_us.or(row.trace_index).is_some())
        });
        Ok(kept)
    }

    fn write_annotations(&mut self, annotations: &[AnnotationRow]) -> Result<()> {
        let viewer = self.form == Form::Viewer;
        self.objects.open_list(count(annotations.len())).map_err(output)?;
        for row in annotations {
            let name = row.name.as_deref().map(|name| self.request.redaction.apply(name));
            let mut fields = Vec::with_capacity(4);
            push(&mut fields, "name", name.as_deref(), Field::Shared);
            push(&mut fields, "stage", row.stage.as_deref(), Field::Shared);
            let device = row.device_id.map(|id| self.device_index(id));
            push(&mut fields, "device", device, Field::Signed);
            let time = row.time_us.or(row.trace_index.filter(|_| viewer));
            push(&mut fields, "time_us", time, Field::Signed);
            self.objects.dict(&fields).map_err(output)?;
        }
        self.objects.close().map_err(output)
    }
}

fn push<'a, T>(
    fields: &mut Vec<(&'static str, Field<'a>)>,
    key: &'static str,
    value: Option<T>,
    field: impl FnOnce(T) -> Field<'a>,
) {
    if let Some(value) = value {
        fields.push((key, field(value)));
    }
}

fn address<'a>(address: i64) -> Field<'a> {
    Field::Unsigned(address.cast_unsigned())
}

fn pool<'a>((first, second): (i64, i64)) -> Field<'a> {
    Field::Pair(first.cast_unsigned(), second.cast_unsigned())
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
