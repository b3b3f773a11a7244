//! Device ids, handed out so that traces come out sorted by (`device_id`, `trace_index`) while the file is still being read.

use std::collections::BTreeMap;

/// Pinned host memory: a domain of its own, listed behind the devices.
pub(super) const HOST: i64 = -1;

/// Devices by index.
#[derive(Debug, Default)]
pub(super) struct Devices {
    ids: BTreeMap<(bool, i64), Option<i64>>,
    handed_out: i64,
}

fn key(index: i64) -> (bool, i64) {
    (index == HOST, index)
}

impl Devices {
    /// Notes a device that has a segment.
    pub(super) fn see(&mut self, index: i64) {
        self.ids.entry(key(index)).or_default();
    }

    /// The id of a device whose first event has come. Known devices before it get theirs first.
    pub(super) fn id_for_events(&mut self, index: i64) -> i64 {
        self.see(index);
        self.hand_out(|other| other <= key(index));
        self.id(index).unwrap_or_default()
    }

    fn hand_out(&mut self, wanted: impl Fn((bool, i64)) -> bool) {
        for (_, id) in self.ids.iter_mut().filter(|(other, id)| id.is_none() && wanted(**other)) {
            self.handed_out += 1;
            *id = Some(self.handed_out);
        }
    }

    /// Gives the devices without events their ids.
    pub(super) fn complete(&mut self) {
        self.hand_out(|_| true);
    }

    /// The id of a device that has one.
    pub(super) fn id(&self, index: i64) -> Option<i64> {
        self.ids.get(&key(index)).copied().flatten()
    }

    /// Id and index of every device, in the order of ids.
    pub(super) fn rows(&self) -> Vec<(i64, i64)> {
        let mut rows: Vec<(i64, i64)> =
            self.ids.iter().filter_map(|((_, index), id)| id.map(|id| (id, *index))).collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_order_of_events_and_then_the_index() {
        let mut devices = Devices::default();
        devices.see(5);
        devices.see(0);
        devices.see(HOST);
        assert_eq!(devices.id_for_events(2), 2, "device 0 comes before it, device 5 does not");
        assert_eq!(devices.id_for_events(7), 4, "device 5 is known by now");
        assert_eq!(devices.id_for_events(HOST), 5);
        devices.see(1);
        devices.complete();
        assert_eq!(devices.rows(), [(1, 0), (2, 2), (3, 5), (4, 7), (5, -1), (6, 1)]);
    }
}
