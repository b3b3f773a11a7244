//! The lists of events, one for every device number.

use std::collections::HashMap;

use super::object::Field;
use super::{Export, Form, address, pool, push};
use crate::error::{Error, Result};
use crate::export::output;
use crate::export::rows::{Event, EventKind, Whole};

/// Lists of events at most: a file with more devices than any machine has is made to fill a disk.
const MOST_LISTS: i64 = 4096;

/// What is in the lists of a pickle, for the sizes that go before them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Events of each device, by `devices.id`.
    pub(super) events: HashMap<i64, u64>,
    pub(super) left_out: u64,
}

impl Export<'_> {
    pub(super) fn count_events(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        for device in self.devices {
            let mut events = 0;
            for event in self.engine.scan::<EventKind>(&self.within(device.id))? {
                let event = event?;
                if self.form.takes(&event.action, event.addr, event.size, event.is_workspace) {
                    events += 1;
                } else {
                    counts.left_out += 1;
                }
            }
            counts.events.insert(device.id, events);
        }
        Ok(counts)
    }

    fn within(&self, device_id: i64) -> [(&'static str, std::ops::RangeInclusive<i64>); 2] {
        let events = self.request.events;
        let last = events.end().saturating_sub(1);
        [("device_id", device_id..=device_id), ("trace_index", events.first()..=last)]
    }

    pub(super) fn traces(&mut self, whole: Option<&Whole>, counts: &Counts) -> Result<()> {
        let known = whole.and_then(|whole| whole.trace_lists).unwrap_or(0);
        let by_index: HashMap<i64, i64> =
            self.devices.iter().map(|device| (device.device_index, device.id)).collect();
        // The viewer looks up the list of every device that has a segment.
        let needed = self.devices.iter().filter_map(|device| {
            let events = counts.events.get(&device.id).copied().unwrap_or(0);
            (self.form == Form::Viewer || events > 0).then_some(device.device_index.saturating_add(1))
        });
        let lists = needed.max().unwrap_or(0).max(known);
        if lists > MOST_LISTS {
            return Err(Error::Usage {
                what: format!("device {}", lists - 1),
                reason: format!(
                    "a pickle has a list for every device number up to it, and {MOST_LISTS} at most"
                ),
            });
        }
        self.objects.open_list(u64::try_from(lists).unwrap_or(0)).map_err(output)?;
        for index in 0..lists {
            if let Some(id) = by_index.get(&index) {
                self.events_of(*id, counts.events.get(id).copied().unwrap_or(0))?;
            } else {
                self.objects.open_list(0).map_err(output)?;
                self.objects.close().map_err(output)?;
            }
        }
        self.objects.close().map_err(output)
    }

    pub(super) fn events_of(&mut self, device_id: i64, events: u64) -> Result<()> {
        self.objects.open_list(events).map_err(output)?;
        if events > 0 {
            for event in self.engine.scan::<Event>(&self.within(device_id))? {
                let event = event?;
                if self.form.takes(&event.action, event.addr, event.size, event.is_workspace) {
                    self.event(&event).map_err(output)?;
                }
            }
        }
        self.objects.close().map_err(output)
    }

    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        let viewer = self.form == Form::Viewer;
        let is_oom = event.action == "oom";
        let mut device_free = event.device_free;
        if viewer && is_oom && device_free.is_none() {
            device_free = Some(0);
            self.zero_free += 1;
        }
        let mut time = event.time_us;
        if viewer && time.is_none() {
            time = Some(event.trace_index);
            self.no_clock += 1;
        }
        let or_zero = |value: Option<i64>| value.or(viewer.then_some(0));
        let redaction = &self.request.redaction;
        let compile_context = event.compile_context.as_deref().map(|text| redaction.apply(text));
        let user_metadata = event.user_metadata.as_deref().map(|text| redaction.apply(text));
        let mut fields = Vec::with_capacity(10);
        fields.push(("action", Field::Shared(&event.action)));
        push(&mut fields, "addr", event.addr, address);
        push(&mut fields, "device_free", device_free, Field::Signed);
        push(&mut fields, "size", event.size, Field::Signed);
        push(&mut fields, "stream", or_zero(event.stream), Field::Signed);
        push(&mut fields, "time_us", time, Field::Signed);
        push(&mut fields, "compile_context", compile_context.as_deref(), Field::Shared);
        push(&mut fields, "user_metadata", user_metadata.as_deref(), Field::Shared);
        push(&mut fields, "pool_id", event.pool_id_0.zip(event.pool_id_1), pool);
        // A list that is not there, and an empty one, mean the same; the first is what most writers do.
        if event.stack_id.is_some() || viewer {
            fields.push(("frames", Field::Stack(event.stack_id)));
        }
        self.objects.dict(&fields)
    }
}
