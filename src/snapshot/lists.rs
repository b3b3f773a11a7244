//! The lists of events, one per device and one for the host: numbering, workspace triplets, clocks and counts.

use std::collections::BTreeMap;

use super::Filter;
use super::clock::Clock;
use super::devices::{Devices, HOST};
use super::event::Event;
use super::field::Frames;
use super::output::Output;
use super::stacks::Stacks;
use super::stats::{IMPLAUSIBLE, Severity, Stats, is_implausible};
use super::words;
use crate::error::Result;
use crate::pickle::State;
use crate::schema::{Symbol, TraceEvent};

/// How far the beginning of a list has been looked at for `torch_npu`'s workspace entries.
///
/// `torch_npu` describes each workspace block by three entries before the first real event: `workspace_snapshot`,
/// `segment_alloc` and `alloc` with the same address and size. The first alone does not make the others workspace.
#[derive(Debug, Default)]
enum Head {
    /// Another triplet may begin here.
    #[default]
    Open,
    /// A marker; two entries may follow.
    Marker(TraceEvent),
    /// A marker and a matching `segment_alloc`; the alloc may follow.
    Segment(TraceEvent, TraceEvent),
    /// The first real event has come.
    Closed,
}

/// What is known of one list.
#[derive(Debug, Default)]
struct List {
    device_id: i64,
    count: i64,
    head: Head,
    clock: Clock,
    without_frames: i64,
    empty_frames: i64,
    incomplete_markers: i64,
    implausible_sizes: i64,
    /// Events that the filter leaves out.
    left_out: i64,
    /// Address and size of each complete workspace triplet.
    workspaces: Vec<(i64, i64)>,
}

/// All lists of events of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Lists {
    open: Option<(i64, List)>,
    done: BTreeMap<i64, List>,
    /// Fields seen in any event, as bits of [`has`].
    pub(super) fields: u16,
    /// Actions seen, one bit per known action, from `alloc` on.
    pub(super) actions: u32,
    /// Addresses of 2^63 and more.
    high_addresses: i64,
    /// Which events become rows; `None` for all.
    filter: Option<Filter>,
}

fn row(event: &Event, device_id: i64, trace_index: i64, stack_id: Option<i64>) -> TraceEvent {
    TraceEvent {
        id: 0,
        device_id,
        trace_index,
        action: Symbol(event.action),
        addr: event.addr(),
        device_free: event.device_free(),
        size: event.size(),
        stream: event.stream(),
        stack_id,
        time_us: event.time_us(),
        pool_id_0: event.pool().map(|pool| pool.0),
        pool_id_1: event.pool().map(|pool| pool.1),
        compile_context: event.compile_context().map(Symbol),
        user_metadata: event.user_metadata().map(Symbol),
        is_workspace: 0,
    }
}

fn is_same_block(marker: &TraceEvent, row: &TraceEvent) -> bool {
    marker.addr == row.addr && marker.size == row.size
}

impl List {
    /// Sorts an event into the head of the list, or past it.
    #[cold]
    fn push(&mut self, state: &State, output: &mut Output<'_>, mut row: TraceEvent) -> Result<()> {
        row.is_workspace = i64::from(row.action == Symbol(words::WORKSPACE_SNAPSHOT));
        match (std::mem::take(&mut self.head), row.action) {
            (Head::Open, Symbol(words::WORKSPACE_SNAPSHOT)) => {
                self.head = Head::Marker(row);
                Ok(())
            }
            (Head::Marker(marker), Symbol(words::SEGMENT_ALLOC)) if is_same_block(&marker, &row) => {
                self.head = Head::Segment(marker, row);
                Ok(())
            }
            (Head::Segment(marker, mut segment), Symbol(words::ALLOC)) if is_same_block(&marker, &row) => {
                self.workspaces.extend(marker.addr.zip(marker.size));
                (segment.is_workspace, row.is_workspace) = (1, 1);
                output.trace(state, &marker)?;
                output.trace(state, &segment)?;
                output.trace(state, &row)
            }
            (head, action) => {
                self.release(state, output, head)?;
                if action == Symbol(words::WORKSPACE_SNAPSHOT) {
                    self.incomplete_markers += 1;
                }
                self.head = Head::Closed;
                output.trace(state, &row)
            }
        }
    }

    /// Counts an event that becomes no row. The head of a kept device's list is told from all events.
    fn leave_out(
        &mut self,
        device: i64,
        filter: &Filter,
        event: &Event,
        state: &State,
        output: &mut Output<'_>,
    ) -> Result<()> {
        let row = row(event, self.device_id, self.count, None);
        self.count += 1;
        self.left_out += 1;
        self.clock.push(event.time_us());
        // The output drops the row again, when it comes out of the head.
        if filter.keeps_device(device) { self.push(state, output, row) } else { Ok(()) }
    }

    /// Lets out what waited for the rest of a triplet that did not come.
    fn release(&mut self, state: &State, output: &mut Output<'_>, head: Head) -> Result<()> {
        match head {
            Head::Open | Head::Closed => return Ok(()),
            Head::Marker(marker) => output.trace(state, &marker)?,
            Head::Segment(marker, segment) => {
                output.trace(state, &marker)?;
                output.trace(state, &segment)?;
            }
        }
        self.incomplete_markers += 1;
        Ok(())
    }
}

impl Lists {
    /// No lists yet; what `filter` leaves out is counted and becomes no row.
    pub(super) fn new(filter: &Filter) -> Self {
        Self { filter: (!filter.is_all()).then(|| filter.clone()), ..Self::default() }
    }

    /// Whether rows of a device are kept.
    pub(super) fn keeps_device(&self, device: i64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.keeps_device(device))
    }

    /// Whether there was any event.
    pub(super) fn has_events(&self) -> bool {
        self.open.is_some() || !self.done.is_empty()
    }

    /// Lists of devices there must be, by the last that has an event.
    pub(super) fn device_count(&self) -> i64 {
        let open = self.open.as_ref().map(|(device, _)| *device);
        self.done.keys().copied().chain(open).max().map_or(0, |device| device.saturating_add(1))
    }

    /// The number the next event of a list gets, for messages.
    pub(super) fn next_index(&self, device: i64) -> i64 {
        match &self.open {
            Some((open, list)) if *open == device => list.count,
            _ => 0,
        }
    }

    /// Whether the list of a device has come and gone.
    pub(super) fn is_done(&self, device: i64) -> bool {
        self.open.as_ref().is_none_or(|(open, _)| *open != device) && self.done.contains_key(&device)
    }

    /// Adds an event to the list of a device.
    #[inline]
    pub(super) fn event(
        &mut self,
        device: i64,
        event: &Event,
        state: &State,
        devices: &mut Devices,
        stacks: &mut Stacks,
        output: &mut Output<'_>,
    ) -> Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != device) {
            self.begin(device, state, devices, output)?;
        }
        let Some((_, list)) = &mut self.open else { return Ok(()) };
        self.fields |= event.present;
        if event.is_known() {
            self.actions |= 1 << (event.action - words::ALLOC);
        }
        self.high_addresses += i64::from(event.addr().is_some_and(|addr| addr < 0));
        if let Some(filter) = &self.filter
            && !(filter.keeps_device(device) && filter.keeps_event(list.count, event.size()))
        {
            return list.leave_out(device, filter, event, state, output);
        }
        let stack_id = match event.frames {
            Frames::Stack(id) => Some(stacks.row(id)),
            Frames::Empty => {
                list.empty_frames += 1;
                None
            }
            Frames::Absent => {
                list.without_frames += 1;
                None
            }
        };
        list.implausible_sizes += i64::from(event.size().is_some_and(is_implausible));
        list.clock.push(event.time_us());
        let is_in_its_place = matches!(list.head, Head::Closed) && event.action != words::WORKSPACE_SNAPSHOT;
        if is_in_its_place && !output.is_wanted() {
            list.count += 1;
            output.count();
            return Ok(());
        }
        let index = list.count;
        list.count += 1;
        if is_in_its_place {
            return output.event(state, event, list.device_id, index, stack_id);
        }
        list.push(state, output, row(event, list.device_id, index, stack_id))
    }

    fn begin(
        &mut self,
        device: i64,
        state: &State,
        devices: &mut Devices,
        output: &mut Output<'_>,
    ) -> Result<()> {
        self.close(state, output)?;
        let device_id = if self.keeps_device(device) { devices.id_for_events(device) } else { 0 };
        self.open = Some((device, List { device_id, ..List::default() }));
        Ok(())
    }

    /// Ends the list that is being read.
    pub(super) fn close(&mut self, state: &State, output: &mut Output<'_>) -> Result<()> {
        if let Some((device, mut list)) = self.open.take() {
            let head = std::mem::take(&mut list.head);
            list.release(state, output, head)?;
            self.done.insert(device, list);
        }
        Ok(())
    }

    /// Events of a device.
    pub(super) fn count(&self, device: i64) -> i64 {
        self.done.get(&device).map_or(0, |list| list.count)
    }

    /// Events of all devices, the host's not included.
    pub(super) fn device_total(&self) -> i64 {
        self.done.iter().filter(|(device, _)| **device != HOST).map(|(_, list)| list.count).sum()
    }

    /// The last event of a device at or before a time.
    pub(super) fn event_at(&mut self, device: i64, time: i64) -> Option<i64> {
        self.done.get_mut(&device)?.clock.last_at(time)
    }

    /// Address and size of the workspace blocks that a device's list announces.
    pub(super) fn workspaces(&self, device: i64) -> &[(i64, i64)] {
        self.done.get(&device).map(|list| list.workspaces.as_slice()).unwrap_or_default()
    }

    /// Whether any list announces a workspace block.
    pub(super) fn has_workspaces(&self) -> bool {
        self.done.values().any(|list| !list.workspaces.is_empty())
    }

    /// Turns the counts into statistics.
    pub(super) fn report(&self, stats: &mut Stats) {
        for (device, list) in &self.done {
            let device = self.keeps_device(*device).then_some(*device);
            let backward = i64::try_from(list.clock.backward_steps()).unwrap_or(i64::MAX);
            let timed = i64::try_from(list.clock.known()).unwrap_or(i64::MAX);
            let untimed = if timed > 0 { list.count - timed } else { 0 };
            let mut add = |severity, name, value, doc| stats.add(severity, name, device, value, doc);
            add(
                Severity::Info,
                "events_left_out",
                list.left_out,
                "events left out by --device, --events or --min-size; the others keep their numbers",
            );
            add(
                Severity::Info,
                "events_without_frames_key",
                list.without_frames,
                "events recorded without a context; their stack is unknown",
            );
            add(
                Severity::Info,
                "events_with_empty_frames",
                list.empty_frames,
                "events with a context that has no frames, such as those of an autograd thread",
            );
            let (name, doc) = IMPLAUSIBLE;
            add(Severity::Error, name, list.implausible_sizes, doc);
            add(
                Severity::DataLoss,
                "time_goes_back",
                backward,
                "events earlier than the one before: the ring buffer was resized, or threads interleave; the order \
                 of the list is kept",
            );
            add(
                Severity::DataLoss,
                "events_without_time",
                untimed,
                "events without time_us in a list that has it; no annotation is put to them",
            );
            add(
                Severity::DataLoss,
                "workspace_incomplete",
                list.incomplete_markers,
                "workspace_snapshot entries without the segment_alloc and alloc that belong to them, or behind real \
                 events; only they themselves are marked is_workspace",
            );
        }
        stats.add(
            Severity::Info,
            "high_addresses",
            None,
            self.high_addresses,
            "event addresses of 2^63 and more; they show negative",
        );
    }
}
