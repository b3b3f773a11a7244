//! The sink of the machine: closed dicts become rows, frames and stacks.

use std::cell::Cell;
use std::path::Path;

use super::annotation::{self, Annotated};
use super::devices::{Devices, HOST};
use super::entry::EntryParser;
use super::event::Event;
use super::fault::{Fault, keys_of};
use super::lists::Lists;
use super::output::Output;
use super::place::{LastList, Place, place_of};
use super::segment::Segments;
use super::stacks::{Stacks, TooLarge};
use super::stats::Stats;
use super::{
    ANNOTATION, BLOCK, EVENT, FRAME, FRAME_STACK, HOST_EVENT, HOST_SEGMENT, Options, RowSink, SEGMENT, words,
};
use crate::pickle::{Ahead, Sink, State, Value};

/// An import under way.
pub(super) struct Import<'a> {
    pub(super) output: Output<'a>,
    pub(super) stacks: Stacks,
    pub(super) devices: Devices,
    pub(super) lists: Lists,
    pub(super) segments: Segments,
    pub(super) annotations: Vec<Annotated>,
    pub(super) stats: Stats,
    last_list: LastList,
    /// The fast way through entries, unless it is turned off.
    entries: Option<EntryParser>,
    pub(super) events_read_ahead: u64,
    /// Keeps everything, for [`unfold`](Self::unfold) to write the rows afterwards.
    is_whole: bool,
    events: &'a Cell<u64>,
}

impl<'a> Import<'a> {
    pub(super) fn new(
        path: &'a Path,
        options: &Options,
        sink: Option<&'a mut dyn RowSink>,
        events: &'a Cell<u64>,
    ) -> Self {
        Self {
            output: Output::new(path, &options.filter, sink),
            stacks: Stacks::default(),
            devices: Devices::default(),
            lists: Lists::new(&options.filter),
            segments: Segments::new(options),
            annotations: Vec::new(),
            stats: Stats::default(),
            last_list: LastList::default(),
            entries: (!options.plain_loop).then(EntryParser::default),
            events_read_ahead: 0,
            is_whole: false,
            events,
        }
    }

    /// The import of a small file that is kept as a whole first.
    pub(super) fn whole(self) -> Self {
        Self { is_whole: true, entries: None, ..self }
    }

    /// Reads an event of a device, or of the host.
    pub(super) fn event(&mut self, state: &State, device: i64, items: &[Value]) -> Result<(), Fault> {
        let event = Event::parse(state, items, &mut self.stats)
            .and_then(|event| event.check().map(|()| event))
            .map_err(|bad| bad.within(&self.event_path(device), state.offset()))?;
        if !event.is_known() {
            self.stats.unknown_action(event.action);
        }
        self.push_event(state, device, &event)
    }

    /// Adds an event that is as it has to be.
    pub(super) fn push_event(&mut self, state: &State, device: i64, event: &Event) -> Result<(), Fault> {
        if self.lists.is_done(device) {
            let at = format!("{} (byte {})", self.event_path(device), state.offset());
            let found = "more events after another list began".to_owned();
            return Err(Fault::Shape { at, expected: "one list of events per device".to_owned(), found });
        }
        self.events.set(self.events.get() + 1);
        let Self { lists, devices, stacks, output, .. } = self;
        Ok(lists.event(device, event, state, devices, stacks, output)?)
    }

    /// The device whose list a dict that begins now is an item of, if it is a list of events that may grow.
    fn open_list(&mut self, state: &State) -> Option<i64> {
        let device = match place_of(state, state.stack().len(), &mut self.last_list)? {
            Place::Event(device) => device,
            Place::HostEvent => HOST,
            _ => return None,
        };
        (!self.lists.is_done(device)).then_some(device)
    }

    /// Path of the next event of a device, for messages.
    fn event_path(&self, device: i64) -> String {
        let index = self.lists.next_index(device);
        if device == HOST {
            format!("host_traces[{index}]")
        } else {
            format!("device_traces[{device}][{index}]")
        }
    }

    /// Reads a segment, whose blocks have all been read.
    pub(super) fn segment(&mut self, state: &State, host: bool, items: &[Value]) -> Result<(), Fault> {
        let is_segment = |key: &Value| matches!(key, Value::Text(words::TOTAL_SIZE | words::BLOCKS));
        if !items.iter().step_by(2).any(is_segment) {
            return Err(Fault::Shape {
                at: format!(
                    "segments[{}] (dict ends at byte {})",
                    self.segments.next_number(),
                    state.offset()
                ),
                expected: "a segment (a dict with `total_size` and `blocks`)".to_owned(),
                found: keys_of(state, items),
            });
        }
        let Self { segments, stacks, stats, devices, output, .. } = self;
        segments.segment(host, state, items, (stacks, stats, devices, output))
    }
}

fn taken(kind: u8) -> Value {
    Value::Taken { kind, count: 1 }
}

impl Sink for Import<'_> {
    type Error = Fault;

    fn dict(&mut self, state: &mut State, at: usize, items: &[Value]) -> Result<Option<Value>, Fault> {
        let place = if self.is_whole { None } else { place_of(state, at, &mut self.last_list) };
        let Some(place) = place else {
            let frame = if at == 0 { Ok(None) } else { self.stacks.frame(state, items) };
            let frame = frame.map_err(|TooLarge| Fault::Shape {
                at: format!("frame that ends at byte {}", state.offset()),
                expected: "a frame of at most 1 MiB, and at most 2^28 of them".to_owned(),
                found: "more".to_owned(),
            })?;
            return Ok(frame.map(|id| Value::Kept { kind: FRAME, id }));
        };
        let kind = match place {
            Place::Event(device) => {
                self.event(state, device, items)?;
                EVENT
            }
            Place::HostEvent => {
                self.event(state, HOST, items)?;
                HOST_EVENT
            }
            Place::Block { host } => {
                let Self { segments, stacks, stats, output, .. } = self;
                segments.block(host, state, items, stacks, stats, output)?;
                BLOCK
            }
            Place::Segment => {
                self.segment(state, false, items)?;
                SEGMENT
            }
            Place::HostSegment => {
                self.segment(state, true, items)?;
                HOST_SEGMENT
            }
            Place::Annotation => {
                let position = self.annotations.len();
                self.annotations.push(annotation::read(state, items, position, &mut self.stats)?);
                ANNOTATION
            }
        };
        Ok(Some(taken(kind)))
    }

    fn list(&mut self, _state: &mut State, items: &[Value]) -> Result<Option<Value>, Fault> {
        Ok(self.stacks.stack(items).map(|id| Value::Kept { kind: FRAME_STACK, id }))
    }

    fn reopen(&self, list: Value) -> Option<Vec<Value>> {
        let Value::Kept { kind: FRAME_STACK, id } = list else { return None };
        Some(self.stacks.frames_of(id).iter().map(|id| Value::Kept { kind: FRAME, id: *id }).collect())
    }

    fn expects_more(&mut self, state: &State) -> bool {
        self.entries.is_some() && self.open_list(state).is_some()
    }

    fn read_ahead(&mut self, state: &mut State, window: &[u8]) -> Result<Option<Ahead>, Fault> {
        let Some(device) = self.open_list(state) else { return Ok(None) };
        let Some(mut entries) = self.entries.take() else { return Ok(None) };
        let kind = if device == HOST { HOST_EVENT } else { EVENT };
        let mut ahead = Ahead { consumed: 0, kind, count: 0 };
        // Without a mark above the list, its next item is all there is before APPEND.
        let has_more = state.stack().last().is_some_and(|below| !below.value.is_row_list());
        let mut next = Some(window);
        while let Some(rest) = next.and_then(|next| entries.parse(state, &mut self.stacks, next)) {
            self.push_event(state, device, &entries.event)?;
            ahead.consumed = window.len() - rest.len();
            ahead.count += 1;
            next = rest.strip_prefix(b"}").filter(|_| has_more);
        }
        self.entries = Some(entries);
        self.events_read_ahead += ahead.count;
        Ok((ahead.count > 0).then_some(ahead))
    }
}
