//! A run of events of one device, as it is spooled and read again.

use std::ops::Range;

use arrow::buffer::{Buffer, ScalarBuffer};

use super::columns::NO_TIME;
use super::event::{ACTIONS, Action, Event};

/// What the spooled buffers of a run of events do not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// `trace_index` of the first, where the others follow without a gap.
    first_index: Option<i64>,
    timed: bool,
}

/// Events by column.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) actions: Buffer,
    pub(super) places: ScalarBuffer<u32>,
    pub(super) addr: ScalarBuffer<i64>,
    pub(super) size: ScalarBuffer<i64>,
    pub(super) stack: ScalarBuffer<i64>,
    /// [`NO_TIME`] where there is none.
    pub(super) time: ScalarBuffer<i64>,
    /// Whether any event has a time.
    pub(super) timed: bool,
    pub(super) index: ScalarBuffer<i64>,
}

impl Columns {
    /// What is spooled.
    pub(super) fn into_parts(self) -> (Chunk, Vec<Buffer>) {
        let (first, last) = (self.index.first().copied(), self.index.last().copied());
        let span = first.zip(last).and_then(|(first, last)| usize::try_from(last.wrapping_sub(first)).ok());
        let is_dense = span.is_some_and(|span| span + 1 == self.index.len());
        let chunk = Chunk { first_index: first.filter(|_| is_dense), timed: self.timed };
        let mut parts = vec![
            self.actions,
            self.places.into_inner(),
            self.addr.into_inner(),
            self.size.into_inner(),
            self.stack.into_inner(),
        ];
        parts.extend(self.timed.then(|| self.time.into_inner()));
        parts.extend((!is_dense).then(|| self.index.into_inner()));
        (chunk, parts)
    }

    /// What was spooled.
    pub(super) fn from_parts(chunk: Chunk, parts: Vec<Buffer>) -> Self {
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let (actions, places) = (next(), ScalarBuffer::from(next()));
        let (addr, size, stack) = (next().into(), next().into(), next().into());
        let timed = chunk.timed;
        let time = if timed { next().into() } else { vec![NO_TIME; actions.len()].into() };
        let index = match chunk.first_index {
            Some(first) => (first..).take(actions.len()).collect(),
            None => next().into(),
        };
        Self { actions, places, addr, size, stack, time, timed, index }
    }

    /// Events in it.
    pub(super) fn len(&self) -> usize {
        self.actions.len()
    }

    /// The events at a range of positions.
    pub(super) fn events(&self, at: Range<usize>) -> impl DoubleEndedIterator<Item = Event> {
        let actions = self.actions.get(at.clone()).unwrap_or_default();
        let places = self.places.get(at.clone()).unwrap_or_default();
        let heads = actions.iter().zip(places).zip(part(&self.index, &at));
        let memory = part(&self.addr, &at).iter().zip(part(&self.size, &at));
        let rest = part(&self.stack, &at).iter().zip(part(&self.time, &at));
        heads.zip(memory.zip(rest)).map(|(((action, place), index), ((addr, size), (stack, time)))| Event {
            action: ACTIONS.get(usize::from(*action)).copied().unwrap_or(Action::Other),
            index: *index,
            addr: *addr,
            size: *size,
            time: *time,
            stack: *stack,
            place: *place,
        })
    }
}

fn part<'a>(column: &'a ScalarBuffer<i64>, at: &Range<usize>) -> &'a [i64] {
    column.get(at.clone()).unwrap_or_default()
}
