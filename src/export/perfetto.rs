//! Trace events in JSON, as Perfetto and Chrome read them: a process per device, with its counters, its allocations as
//! asynchronous slices, marks for `oom` and `snapshot`, and the ranges that the program named.
//!
//! Times are microseconds since the first exported event of all devices; without a clock an event's number stands for
//! them, and devices cannot be compared then.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::rows::{Allocation, AnnotationRow, EventTime, Moment};
use super::stacks::Stacks;
use super::{Request, Summary, device_name, label, output};
use crate::analysis::Device;
use crate::engine::{Engine, Value as Param};
use crate::error::Result;
use crate::quantity;

/// Frames of a stack that an allocation shows.
const FRAMES: usize = 16;

/// Writes the trace.
pub(super) fn write(
    engine: &Engine,
    devices: &[Device],
    request: &Request,
    out: &mut dyn Write,
) -> Result<Summary> {
    let mut trace = Trace {
        engine,
        request,
        stacks: Stacks::read(engine, &request.redaction)?,
        labels: HashMap::default(),
        out,
        begun: false,
        origin: None,
        counters: 0,
        slices: 0,
        numbered: 0,
    };
    let spans: Vec<Span> = devices.iter().map(|device| trace.span(device)).collect::<Result<_>>()?;
    trace.origin = spans.iter().filter_map(|span| span.first_us).min();
    trace.out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[").map_err(output)?;
    for (device, span) in devices.iter().zip(&spans) {
        trace.device(device, span)?;
    }
    trace.annotations(devices)?;
    let about =
        json!({ "exporter": concat!("npusnap ", env!("CARGO_PKG_VERSION")), "origin_us": trace.origin });
    writeln!(trace.out, "\n],\"otherData\":{about}}}").map_err(output)?;
    let mut summary = Summary::default();
    summary.count(trace.counters, "counter samples");
    summary.count(trace.slices, "allocations");
    summary.note(trace.numbered, "events have no time; their number stands for microseconds");
    Ok(summary)
}

/// Where the exported events of a device begin and end, as numbers and as times.
#[derive(Debug, Default)]
struct Span {
    first: Option<i64>,
    last: i64,
    first_us: Option<i64>,
    last_us: Option<i64>,
}

struct Trace<'a> {
    engine: &'a Engine,
    request: &'a Request,
    stacks: Stacks,
    /// Name and frames by `call_stacks.id`.
    labels: HashMap<Option<i64>, (String, Value), foldhash::fast::FixedState>,
    out: &'a mut dyn Write,
    begun: bool,
    /// Microseconds that are 0 in the trace.
    origin: Option<i64>,
    counters: u64,
    slices: u64,
    numbered: u64,
}

impl Trace<'_> {
    fn span(&self, device: &Device) -> Result<Span> {
        let events = self.request.events;
        let last = events.end().saturating_sub(1);
        let within = [("device_id", device.id..=device.id), ("trace_index", events.first()..=last)];
        let mut span = Span::default();
        for event in self.engine.scan::<EventTime>(&within)? {
            let event = event?;
            if event.is_workspace != 0 {
                continue;
            }
            span.first.get_or_insert(event.trace_index);
            span.last = event.trace_index;
            if let Some(time) = event.time_us {
                span.first_us = Some(span.first_us.map_or(time, |first| first.min(time)));
                span.last_us = Some(span.last_us.map_or(time, |last| last.max(time)));
            }
        }
        Ok(span)
    }

    fn time(&self, time_us: Option<i64>, trace_index: i64) -> i64 {
        match (time_us, self.origin) {
            (Some(time), Some(origin)) => time.saturating_sub(origin),
            _ => trace_index,
        }
    }

    fn device(&mut self, device: &Device, span: &Span) -> Result<()> {
        let pid = device.id;
        let name = device_name(device.device_index);
        self.put(&json!({ "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name } }))?;
        self.put(&json!({
            "name": "process_sort_index", "ph": "M", "pid": pid, "args": { "sort_index": device.device_index },
        }))?;
        let Some(first) = span.first else { return Ok(()) };
        let params = [
            ("device", Param::Integer(device.device_index)),
            ("first", Param::Integer(first)),
            ("last", Param::Integer(span.last)),
        ];
        for moment in self.engine.stream::<Moment>(&params)? {
            self.moment(pid, &moment?)?;
        }
        let begin = self.time(span.first_us, first);
        let end = self.time(span.last_us, span.last);
        for allocation in self.engine.scan::<Allocation>(&[("device_id", device.id..=device.id)])? {
            let allocation = allocation?;
            let ended = allocation.free_completed_index.is_some_and(|index| index < first);
            let to_come = allocation.alloc_index.is_some_and(|index| index > span.last);
            if !ended && !to_come {
                self.allocation(pid, &allocation, span, (begin, end))?;
            }
        }
        Ok(())
    }

    fn moment(&mut self, pid: i64, moment: &Moment) -> Result<()> {
        self.numbered += u64::from(moment.time_us.is_none());
        let ts = self.time(moment.time_us, moment.trace_index);
        let counters = [
            ("reserved", moment.reserved),
            ("allocated", moment.allocated),
            ("active", moment.active),
            ("allocated_requested", moment.allocated_requested),
            ("active_requested", moment.active_requested),
        ];
        let known = counters.into_iter().filter_map(|(name, bytes)| Some((name.to_owned(), bytes?.into())));
        let known: Map<String, Value> = known.collect();
        if !known.is_empty() {
            self.counters += 1;
            self.put(&json!({ "name": "memory", "ph": "C", "pid": pid, "ts": ts, "args": known }))?;
        }
        if matches!(moment.action.as_str(), "oom" | "snapshot") {
            let args = json!({ "event": moment.trace_index, "size": moment.size });
            let name = &moment.action;
            self.put(
                &json!({ "name": name, "ph": "i", "s": "p", "pid": pid, "tid": 0, "ts": ts, "args": args }),
            )?;
        }
        Ok(())
    }

    /// Two events: where it begins and where it ends, both within the exported window.
    fn allocation(
        &mut self,
        pid: i64,
        allocation: &Allocation,
        span: &Span,
        (begin, end): (i64, i64),
    ) -> Result<()> {
        let alloc = allocation.alloc_index.filter(|index| Some(*index) >= span.first);
        let from = alloc.map_or(begin, |index| self.time(allocation.alloc_time_us, index));
        let freed = allocation.free_completed_index.filter(|index| *index <= span.last);
        let to = freed.map_or(end, |index| self.time(allocation.free_time_us, index)).max(from);
        let (name, frames) = self.label(allocation.stack_id);
        let id = format!("0x{:x}", allocation.id);
        let args = json!({
            "bytes": allocation.bytes(),
            "requested": allocation.size,
            "address": quantity::address(allocation.addr),
            "stream": allocation.stream,
            "alloc_index": allocation.alloc_index,
            "free_requested_index": allocation.free_requested_index,
            "free_completed_index": allocation.free_completed_index,
            "stack_id": allocation.stack_id,
            "frames": frames,
        });
        self.slices += 1;
        self.put(&json!({
            "name": name, "cat": "allocation", "ph": "b", "id": id, "pid": pid, "tid": 0, "ts": from, "args": args,
        }))?;
        self.put(&json!({
            "name": name, "cat": "allocation", "ph": "e", "id": id, "pid": pid, "tid": 0, "ts": to,
        }))
    }

    /// What a person knows the stack by, and its innermost frames.
    fn label(&mut self, stack_id: Option<i64>) -> (String, Value) {
        let stacks = &self.stacks;
        let make = || {
            let frames = stacks.of(stack_id).iter().filter_map(|number| stacks.frame(*number));
            let place = stacks.place(stack_id);
            let name = place.map_or_else(|| "no call stack recorded".to_owned(), label::short);
            let shown: Vec<String> = frames.take(FRAMES).map(label::short).collect();
            (name, json!(shown))
        };
        self.labels.entry(stack_id).or_insert_with(make).clone()
    }

    /// Ranges: a START with the next END of its name that no other START has. One without the other ends with the trace.
    fn annotations(&mut self, devices: &[Device]) -> Result<()> {
        let mut rows: Vec<AnnotationRow> = self.engine.table_rows()?;
        rows.sort_by_key(|row| (row.device_id, row.time_us, row.trace_index));
        let mut open: HashMap<(i64, String), Vec<u64>> = HashMap::new();
        let mut next = 0_u64;
        for row in rows {
            let (Some(device_id), Some(name)) = (row.device_id, row.name) else { continue };
            let Some(at) = row.time_us.or(row.trace_index) else { continue };
            let known = devices.iter().any(|device| device.id == device_id);
            let inside = row.trace_index.is_some_and(|index| self.request.events.contains(index));
            if !known || !inside {
                continue;
            }
            let ts = self.time(row.time_us, at);
            let place = open.entry((device_id, name.clone())).or_default();
            let (phase, id) = if row.stage.as_deref() == Some("END") {
                let Some(id) = place.pop() else { continue };
                ("e", id)
            } else {
                next += 1;
                place.push(next);
                ("b", next)
            };
            let id = format!("a{id:x}");
            let name = self.request.redaction.apply(&name);
            self.put(&json!({
                "name": name, "cat": "annotation", "ph": phase, "id": id, "pid": device_id, "tid": 0, "ts": ts,
            }))?;
        }
        Ok(())
    }

    fn put(&mut self, event: &Value) -> Result<()> {
        let mut write = || -> io::Result<()> {
            self.out.write_all(if self.begun { b",\n" } else { b"\n" })?;
            self.begun = true;
            serde_json::to_writer(&mut *self.out, event)?;
            Ok(())
        };
        write().map_err(output)
    }
}
