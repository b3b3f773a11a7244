//! Frees that say another stream than their alloc. A block keeps the stream that it was allocated on, and every event of it
//! repeats that; where one does not, the file is not what an allocator wrote.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::event::Places;
use super::notes::{Notes, Severity};

/// Places of an event and of the one behind it, of the same allocation, and how often they were not the same.
#[derive(Debug, Default)]
pub(super) struct Streams(HashMap<(u32, u32), i64, FixedState>);

impl Streams {
    /// Notes two events of an allocation that are not in one place.
    #[cold]
    pub(super) fn note(&mut self, event: u32, later: u32) {
        *self.0.entry((event, later)).or_insert(0) += 1;
    }

    /// How many of them are of different streams, as far as both say theirs.
    pub(super) fn count(&self, places: &Places) -> i64 {
        let differ = |(event, later): &(u32, u32)| {
            let streams = places.get(*event).stream.zip(places.get(*later).stream);
            streams.is_some_and(|(stream, other)| stream != other)
        };
        self.0.iter().filter(|(pair, _)| differ(pair)).map(|(_, count)| count).sum()
    }
}

/// Says how many events of a device contradict each other so.
pub(super) fn report(notes: &mut Notes, device_id: i64, count: i64) {
    let doc = "frees on another stream than their allocation, which keeps its own; paired by address all the same, and the \
               curves by stream do not add up";
    notes.add(Severity::DataLoss, "frees_on_other_streams", Some(device_id), i128::from(count), doc);
}
