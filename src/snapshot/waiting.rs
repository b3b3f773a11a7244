//! Events on their way into the columns of `traces`: as they were read, because a row of the table is twice as large, and
//! nearly all rows are made here.

use super::event::{Event, has};
use crate::schema::{ByColumn as _, Collect, TracesBuilder, WAITING_ROWS};

/// An event, and what its row has beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbered {
    pub(super) id: i64,
    pub(super) device_id: i64,
    pub(super) trace_index: i64,
    pub(super) stack_id: Option<i64>,
    pub(super) event: Event,
}

/// Events that wait in the nearest cache, to go into their columns together.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    events: Vec<Numbered>,
}

impl Waiting {
    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, event: Numbered, traces: &mut TracesBuilder) {
        self.events.push(event);
        if self.events.len() >= WAITING_ROWS {
            self.settle(traces);
        }
    }

    /// Events that wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Puts all that wait into their columns.
    #[inline(never)]
    pub(super) fn settle(&mut self, traces: &mut TracesBuilder) {
        let events = self.events.as_slice();
        let rows = traces.by_column(events.len());
        rows.id.extend(events.iter().map(|event| Some(event.id)));
        rows.device_id.extend(events.iter().map(|event| Some(event.device_id)));
        rows.trace_index.extend(events.iter().map(|event| Some(event.trace_index)));
        rows.stack_id.extend(events.iter().map(|event| event.stack_id));
        rows.action.extend(events.iter().map(|event| Some(event.event.action)));
        rows.is_workspace.extend_same(Some(0), events.len());
        let valued = events.iter().fold(0, |valued, event| valued | event.event.valued());
        let put = Put { events, valued };
        put.append(&mut rows.addr, has::ADDR, Event::addr);
        put.append(&mut rows.device_free, has::DEVICE_FREE, Event::device_free);
        put.append(&mut rows.size, has::SIZE, Event::size);
        put.append(&mut rows.stream, has::STREAM, Event::stream);
        put.append(&mut rows.time_us, has::TIME_US, Event::time_us);
        put.append(&mut rows.pool_id_0, has::POOL_ID, |event| event.pool().map(|pool| pool.0));
        put.append(&mut rows.pool_id_1, has::POOL_ID, |event| event.pool().map(|pool| pool.1));
        put.append(&mut rows.compile_context, has::COMPILE_CONTEXT, Event::compile_context);
        put.append(&mut rows.user_metadata, has::USER_METADATA, Event::user_metadata);
        self.events.clear();
    }
}

/// Events, and the fields that any of them has.
#[derive(Clone, Copy)]
struct Put<'a> {
    events: &'a [Numbered],
    valued: u16,
}

impl Put<'_> {
    /// Appends a field of all events to its column. What no producer writes is only counted.
    #[inline]
    fn append<T: Default + Copy + PartialEq>(
        self,
        column: &mut Collect<T>,
        bit: u16,
        value: impl Fn(&Event) -> Option<T> + Copy,
    ) {
        if self.valued & bit == 0 {
            column.extend_same(None, self.events.len());
        } else {
            column.extend(self.events.iter().map(move |event| value(&event.event)));
        }
    }
}
