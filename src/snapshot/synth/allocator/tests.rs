//! The allocator's rules, one by one. Sizes and events are worked out by hand.

use super::*;
use crate::snapshot::synth::tests::settings;

const COMPUTE: Stream = Stream(0);
const SIDE: Stream = Stream(1);
const HERE: StackId = StackId(1);
const THERE: StackId = StackId(2);

/// Keeps the action, size and stack of each event, and checks what holds after every one.
#[derive(Debug, Default)]
pub(super) struct Log(Vec<(Action, u64, Option<usize>)>);

impl Recorder for Log {
    fn record(&mut self, _: u64, event: &Event, counters: Counters) -> io::Result<()> {
        assert!(counters.allocated <= counters.active && counters.active <= counters.reserved);
        assert!(counters.allocated_requested <= counters.allocated);
        assert!(counters.active_requested <= counters.active);
        self.0.push((event.action, event.size, event.context.as_ref().map(|walk| walk.stack.0)));
        Ok(())
    }
}

struct Device {
    allocator: Allocator,
    log: Log,
}

impl Device {
    fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings { padding: 0, ..settings() };
        change(&mut settings);
        Self { allocator: Allocator::new(&settings, 0), log: Log::default() }
    }

    fn malloc(&mut self, size: u64) -> u64 {
        self.allocator.malloc(&mut self.log, size, COMPUTE, HERE).unwrap()
    }

    fn free(&mut self, address: u64, release: Release) {
        self.allocator.free(&mut self.log, address, THERE, release).unwrap();
    }

    fn block_size(&self, address: u64) -> u64 {
        self.allocator.heap.block(address).unwrap().size
    }

    /// Actions and sizes since the last call.
    fn events(&mut self) -> Vec<(Action, u64)> {
        self.log.0.drain(..).map(|(action, size, _)| (action, size)).collect()
    }

    /// Sizes and states of the blocks of each segment.
    fn layout(&self) -> Vec<Vec<(u64, State)>> {
        let segments = self.allocator.heap.segments();
        segments
            .iter()
            .map(|segment| segment.blocks.iter().map(|(_, block)| (block.size, block.state)).collect())
            .collect()
    }
}

#[test]
fn requests_are_rounded_to_512_and_npu_pads_them_first() {
    for (padding, request, size) in
        [(0, 1, 512), (0, 512, 512), (0, 513, 1024), (32, 480, 512), (32, 512, 1024)]
    {
        let mut device = Device::new(|settings| settings.padding = padding);
        let address = device.malloc(request);
        assert_eq!(device.block_size(address), size, "{request} + {padding}");
        assert_eq!(device.allocator.counters.allocated, size);
        assert_eq!(device.allocator.counters.allocated_requested, request);
    }
}

#[test]
fn the_size_of_a_block_chooses_its_segment() {
    for (request, segment) in [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ] {
        let mut device = Device::new(|_| ());
        device.malloc(request);
        assert_eq!(device.events(), [(Action::SegmentAlloc, segment), (Action::Alloc, request)]);
        assert_eq!(device.allocator.counters.reserved, segment);
    }
}

#[test]
fn a_large_block_is_not_split_for_a_rest_of_one_mebibyte() {
    let mut device = Device::new(|_| ());
    let whole = device.malloc(11 * MIB);
    assert_eq!(device.block_size(whole), 12 * MIB);
    let split = device.malloc(11 * MIB - 512);
    assert_eq!(device.block_size(split), 11 * MIB - 512);
}

#[test]
fn the_smallest_free_block_that_fits_is_taken() {
    let mut device = Device::new(|_| ());
    let blocks: Vec<u64> = [8, 1, 4, 1, 6, 1].into_iter().map(|kib| device.malloc(kib * 1024)).collect();
    for freed in [0, 2, 4] {
        device.free(blocks[freed], Release::AtOnce);
    }
    assert_eq!(device.malloc(5 * 1024), blocks[4]);
    assert_eq!(device.malloc(4 * 1024), blocks[2]);
}

#[test]
fn free_neighbours_become_one_block() {
    let mut device = Device::new(|_| ());
    let blocks: Vec<u64> = (0..3).map(|_| device.malloc(1024)).collect();
    for freed in [0, 2, 1] {
        device.free(blocks[freed], Release::AtOnce);
    }
    assert_eq!(device.layout(), [[(2 * MIB, State::Free)]]);
}

#[test]
fn a_segment_shows_who_made_it_until_it_is_split() {
    let mut device = Device::new(|_| ());
    let whole = device.malloc(12 * MIB);
    device.malloc(1024);
    let segments = device.allocator.heap.segments();
    let shown: Vec<bool> =
        segments.iter().map(|segment| segment.blocks[0].1.segment_context.is_some()).collect();
    assert_eq!(shown, [true, false]);
    assert_eq!(segments[0].address, whole);
}

#[test]
fn a_free_that_waits_for_a_stream_is_completed_by_a_later_malloc() {
    let mut device = Device::new(|_| ());
    let address = device.allocator.malloc(&mut device.log, 2048, SIDE, HERE).unwrap();
    device.free(address, Release::Later);
    assert_eq!(device.allocator.counters.allocated, 0);
    assert_eq!(device.allocator.counters.active, 2048);
    assert_eq!(device.layout()[0][0], (2048, State::PendingFree));
    for _ in 0..41 {
        device.malloc(512);
    }
    let completed = device.log.0.iter().find(|(action, ..)| *action == Action::FreeCompleted).unwrap();
    // It shows the walk of the malloc that looked, not that of the free.
    assert_eq!(*completed, (Action::FreeCompleted, 2048, Some(HERE.0)));
    assert_eq!(device.allocator.counters.active, 41 * 512);
}

#[test]
fn frees_show_the_walk_of_the_allocation_where_they_gather_none() {
    let mut device = Device::new(|settings| settings.context = Context::Alloc);
    let address = device.malloc(512);
    device.free(address, Release::AtOnce);
    assert!(device.log.0.iter().all(|(_, _, stack)| *stack == Some(HERE.0)));
    assert_eq!(device.allocator.gathers, 1);
}

#[test]
fn cached_segments_are_given_back_before_memory_runs_out() {
    let mut device = Device::new(|settings| settings.capacity = 40 * MIB);
    let first = device.malloc(30 * MIB);
    device.free(first, Release::AtOnce);
    device.events();
    device.malloc(40 * MIB);
    let expected =
        [(Action::SegmentFree, 30 * MIB), (Action::SegmentAlloc, 40 * MIB), (Action::Alloc, 40 * MIB)];
    assert_eq!(device.events(), expected);
}

#[test]
fn out_of_memory_says_what_the_driver_has_left_and_the_rounded_request() {
    let mut device = Device::new(|settings| settings.capacity = 40 * MIB);
    device.malloc(30 * MIB);
    device.events();
    let failed = device.allocator.malloc(&mut device.log, 20 * MIB + 1, COMPUTE, HERE);
    assert!(matches!(failed, Err(Stop::OutOfMemory)));
    assert_eq!(device.events(), [(Action::Oom, 20 * MIB + 512)]);
    assert_eq!(device.allocator.counters.reserved, 30 * MIB);
}

#[test]
fn expandable_segments_map_whole_pages_and_reuse_the_free_end() {
    let mut device = Device::new(|settings| settings.expandable = true);
    let first = device.malloc(30 * MIB);
    assert_eq!(device.events(), [(Action::SegmentMap, 40 * MIB), (Action::Alloc, 30 * MIB)]);
    // 10 MiB are free behind it: 5 more are missing, a page is mapped.
    let second = device.malloc(15 * MIB);
    assert_eq!(second, first + 30 * MIB);
    assert_eq!(device.events(), [(Action::SegmentMap, 20 * MIB), (Action::Alloc, 15 * MIB)]);
    let expected =
        [[(30 * MIB, State::Allocated), (15 * MIB, State::Allocated), (15 * MIB, State::Free)].to_vec()];
    assert_eq!(device.layout(), expected);
}

#[test]
fn unmapping_spares_the_pages_that_are_in_use() {
    let mut device = Device::new(|settings| settings.expandable = true);
    let first = device.malloc(30 * MIB);
    device.malloc(15 * MIB);
    device.free(first, Release::AtOnce);
    device.events();
    device.allocator.empty_cache(&mut device.log, THERE).unwrap();
    // Of three pages the first is free as a whole, the others are in part.
    assert_eq!(device.events(), [(Action::SegmentUnmap, 20 * MIB)]);
    assert_eq!(device.allocator.counters.reserved, 40 * MIB);
    let expected =
        [[(10 * MIB, State::Free), (15 * MIB, State::Allocated), (15 * MIB, State::Free)].to_vec()];
    assert_eq!(device.layout(), expected);
    assert_eq!(device.allocator.heap.segments()[0].address, first + 20 * MIB);
}

#[test]
fn a_reservation_that_is_unmapped_as_a_whole_is_gone() {
    let mut device = Device::new(|settings| settings.expandable = true);
    let first = device.malloc(30 * MIB);
    device.free(first, Release::AtOnce);
    device.allocator.empty_cache(&mut device.log, THERE).unwrap();
    assert_eq!(device.layout(), Vec::<Vec<(u64, State)>>::new());
    assert_eq!(device.allocator.counters.reserved, 0);
    assert_ne!(device.malloc(30 * MIB), first);
}

#[test]
fn a_history_holds_what_lay_in_the_block_by_address() {
    let mut device = Device::new(|settings| settings.dialect = Dialect::Legacy);
    let first = device.malloc(1024);
    let second = device.malloc(2048);
    device.free(first, Release::AtOnce);
    device.free(second, Release::AtOnce);
    let history = |device: &Device, address| -> Vec<(u64, u64)> {
        let block = device.allocator.heap.block(address).unwrap();
        block.history.iter().map(|past| (past.address, past.requested)).collect()
    };
    assert_eq!(history(&device, first), [(first, 1024), (second, 2048)]);
    // A new allocation over the first one covers its entry; the second one's begins behind it.
    assert_eq!(device.malloc(1000), first);
    assert_eq!(history(&device, first), [(first, 1000)]);
    assert_eq!(history(&device, second), [(second, 2048)]);
}
