//! A run of events of one device, as it is spooled and read again.

use std::ops::Range;

use arrow::buffer::ScalarBuffer;

use super::columns::NO_TIME;
use super::event::{ACTIONS, Action, Event};
use super::narrow::{self, Narrow};

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
    pub(super) actions: Vec<u8>,
    pub(super) places: ScalarBuffer<u32>,
    pub(super) addr: ScalarBuffer<i64>,
    pub(super) size: ScalarBuffer<i64>,
    pub(super) stack: ScalarBuffer<i64>,
    /// [`NO_TIME`] where there is none; empty before it is stored if no event has a time.
    pub(super) time: ScalarBuffer<i64>,
    /// Whether any event has a time.
    pub(super) timed: bool,
    pub(super) index: ScalarBuffer<i64>,
}

impl Columns {
    /// What is spooled.
    pub(super) fn into_parts(self) -> (Chunk, Vec<Narrow>) {
        let (first, last) = (self.index.first().copied(), self.index.last().copied());
        let span = first.zip(last).and_then(|(first, last)| usize::try_from(last.wrapping_sub(first)).ok());
        let is_dense = span.is_some_and(|span| span + 1 == self.index.len());
        let chunk = Chunk { first_index: first.filter(|_| is_dense), timed: self.timed };
        let mut parts =
            vec![Narrow::bytes(self.actions), Narrow::of(self.places.iter().map(|place| i64::from(*place)))];
        let integers = [&self.addr, &self.size, &self.stack];
        parts.extend(integers.map(|column| Narrow::of(column.iter().copied())));
        parts.push(if self.timed {
            Narrow::of(self.time.iter().copied())
        } else {
            Narrow::same(NO_TIME, self.index.len())
        });
        parts.extend((!is_dense).then(|| Narrow::of(self.index.iter().copied())));
        (chunk, parts)
    }

    /// A part of what was spooled.
    pub(super) fn from_parts(chunk: Chunk, parts: &[Narrow], at: &Range<usize>) -> Self {
        let mut parts = parts.iter().map(|part| part.slice(at));
        let actions = parts.next().map_or_else(Vec::new, |part| part.values(narrow::low));
        let places = parts.next().map_or_else(Vec::new, |part| part.values(narrow::low));
        let mut next = || parts.next().map_or_else(|| Vec::new().into(), |part| part.integers());
        let (addr, size, stack, time) = (next(), next(), next(), next());
        let index = match chunk.first_index {
            Some(first) => {
                let start = i64::try_from(at.start).unwrap_or(i64::MAX);
                (first.saturating_add(start)..).take(actions.len()).collect()
            }
            None => next(),
        };
        let places = places.into();
        Self { actions, places, addr, size, stack, time, timed: chunk.timed, index }
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
