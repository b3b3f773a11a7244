//! The simulation as a whole: what it writes, and what its allocator promises at every event.

use super::*;
use crate::pickle::writer::Layout;

/// A short run of a small model.
pub(super) fn settings() -> Settings {
    Settings {
        dialect: Dialect::Npu,
        layout: Layout::CPython(4),
        length: Length::Steps(6),
        devices: 1,
        idle_devices: 0,
        seed: 1,
        max_entries: None,
        leak: false,
        oom: false,
        expandable: false,
        teardown: false,
        context: Context::All,
        frames: Frames::Python,
        stack_count: 40,
        depth: 2,
        layers: 2,
        empty_cache_every: 4,
        capacity: 8 << 30,
        address_base: None,
        padding: 32,
        workspace: true,
        pool_id: true,
        order: Order::SegmentsFirst,
    }
}

/// Checks the counters after every event, and what the file may hold.
#[derive(Debug, Default)]
struct Watcher {
    events: u64,
    capacity: u64,
}

impl event::Recorder for Watcher {
    fn record(&mut self, index: u64, _: &event::Event, counters: event::Counters) -> io::Result<()> {
        assert_eq!(index, self.events);
        self.events += 1;
        assert!(counters.reserved <= self.capacity);
        assert!(counters.allocated <= counters.active && counters.active <= counters.reserved);
        assert!(counters.allocated_requested <= counters.allocated);
        assert!(counters.active_requested <= counters.active);
        Ok(())
    }
}

#[test]
fn counters_are_what_the_heap_holds_at_the_end() {
    for (expandable, capacity, oom) in
        [(false, 8 << 30, false), (true, 8 << 30, true), (true, 300 << 20, false), (false, 300 << 20, true)]
    {
        for seed in 0..4 {
            let settings = Settings { expandable, capacity, oom, seed, leak: true, ..settings() };
            let mut watcher = Watcher { events: 0, capacity };
            let end = run(&settings, &Program::new(&settings), 0, &mut watcher).unwrap().allocator;
            assert_eq!(watcher.events, end.events);
            let segments = end.heap.segments();
            let held = segments.iter().fold([0; 4], |[reserved, allocated, active, requested], segment| {
                [
                    reserved + segment.total_size(),
                    allocated + segment.allocated_size(),
                    active + segment.active_size(),
                    requested + segment.requested_size(),
                ]
            });
            let event::Counters { reserved, allocated, active, active_requested, .. } = end.counters;
            assert_eq!([reserved, allocated, active, active_requested], held);
        }
    }
}

#[test]
fn events_end_at_the_operation_that_reaches_them() {
    for events in [1, 50, 1000, 4321] {
        let settings = Settings { length: Length::Events(events), devices: 3, ..settings() };
        let written = write(&settings, io::sink(), Truth::Wanted).unwrap();
        let truth = written.truth.unwrap();
        let simulated = truth["info"]["events_simulated"].as_u64().unwrap();
        // The last operation of a device may report a few events at once.
        assert!((events..events + 60).contains(&simulated), "{simulated} for {events}");
    }
}

#[test]
fn a_full_output_ends_the_simulation() {
    let mut short = vec![0_u8; 200_000];
    let settings = Settings { length: Length::Steps(60), ..settings() };
    let error = write(&settings, &mut short[..], Truth::Unwanted).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}
