//! A small model of the caching allocator that knows everything: what the replay finds out can be compared with it.

use std::collections::BTreeMap;

use super::{History, MIB, history};

/// State of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Allocated,
    Pending,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    size: i128,
    requested: i128,
    state: State,
}

/// What the allocator is set to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) expandable: bool,
    pub(super) padding: i128,
    pub(super) max_split_size: Option<i128>,
}

/// What a program does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Malloc(i128),
    /// Frees one of the allocations; the other stream is still using it, or not.
    Free {
        which: usize,
        is_used: bool,
    },
    /// The other streams are done.
    Synchronize,
    EmptyCache,
    Snapshot,
}

/// An allocation and what became of it, by index of the events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime {
    pub(super) addr: i128,
    pub(super) requested: i128,
    pub(super) size: i128,
    pub(super) alloc: usize,
    pub(super) free_requested: Option<usize>,
    pub(super) free_completed: Option<usize>,
}

/// reserved, allocated, active, `allocated_requested`, `active_requested`.
pub(super) type Counters = [i128; 5];

#[derive(Debug, Default)]
pub(super) struct Model {
    settings: Settings,
    /// Ranges held from the driver, by start: the end and whether they are small.
    segments: BTreeMap<i128, (i128, bool)>,
    blocks: BTreeMap<i128, Block>,
    /// Ends of the mapped parts of the two reservations.
    pub(super) events: Vec<(&'static str, i128, i128)>,
    pub(super) lifetimes: Vec<Lifetime>,
    /// Counters before the first event and behind each.
    pub(super) counters: Vec<Counters>,
    next: i128,
}

/// Where the two reservations of expandable segments begin.
const RESERVATIONS: [(i128, bool); 2] = [(1 << 36, true), (1 << 37, false)];

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, counters: vec![[0; 5]], ..Self::default() }
    }

    fn emit(&mut self, action: &'static str, addr: i128, size: i128, change: Counters) -> usize {
        let last = *self.counters.last().unwrap();
        self.counters.push(std::array::from_fn(|counter| last[counter] + change[counter]));
        self.events.push((action, addr, size));
        self.events.len() - 1
    }

    fn is_small(&self, addr: i128) -> bool {
        self.segments.range(..=addr).next_back().unwrap().1.1
    }

    fn segment(&self, addr: i128) -> (i128, i128) {
        let (start, (end, _)) = self.segments.range(..=addr).next_back().unwrap();
        (*start, *end)
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Malloc(size) => self.malloc(size),
            Step::Free { which, is_used } => self.free(which, is_used),
            Step::Synchronize => self.synchronize(),
            Step::EmptyCache => self.empty_cache(),
            Step::Snapshot => {
                let active = self.counters.last().unwrap()[2];
                self.emit("snapshot", -super::BASE, active, [0; 5]);
            }
        }
    }

    fn malloc(&mut self, requested: i128) {
        let rounded = ((requested + self.settings.padding + 511) / 512 * 512).max(512);
        let is_small = rounded <= MIB;
        let addr = self.find(rounded, is_small).unwrap_or_else(|| self.grow(rounded, is_small));
        let room = self.blocks[&addr].size;
        let rest = room - rounded;
        let is_split = if is_small || self.settings.expandable {
            rest >= 512
        } else {
            rest > MIB && self.settings.max_split_size.is_none_or(|limit| rounded < limit)
        };
        let size = if is_split { rounded } else { room };
        if is_split {
            self.blocks.insert(addr + size, Block { size: rest, requested: 0, state: State::Free });
        }
        self.blocks.insert(addr, Block { size, requested, state: State::Allocated });
        let alloc = self.emit("alloc", addr, requested, [0, size, size, requested, requested]);
        self.lifetimes.push(Lifetime {
            addr,
            requested,
            size,
            alloc,
            free_requested: None,
            free_completed: None,
        });
    }

    /// The smallest free block that will do.
    fn find(&self, rounded: i128, is_small: bool) -> Option<i128> {
        let fits = |block: &Block| {
            block.state == State::Free
                && block.size >= rounded
                && self.settings.max_split_size.filter(|_| !is_small).is_none_or(|limit| {
                    if rounded < limit { block.size < limit } else { block.size < rounded + 20 * MIB }
                })
        };
        self.blocks
            .iter()
            .filter(|(addr, block)| fits(block) && self.is_small(**addr) == is_small)
            .min_by_key(|(addr, block)| (block.size, **addr))
            .map(|(addr, _)| *addr)
    }

    /// Gets memory from the driver, and returns where it can be used from.
    fn grow(&mut self, rounded: i128, is_small: bool) -> i128 {
        if self.settings.expandable {
            return self.map(rounded, is_small);
        }
        let size = match rounded {
            _ if is_small => 2 * MIB,
            rounded if rounded < 10 * MIB => 20 * MIB,
            rounded => (rounded + 2 * MIB - 1) / (2 * MIB) * 2 * MIB,
        };
        // Some segments are neighbours, others are not.
        let addr = self.next;
        self.next += size + if self.segments.len().is_multiple_of(3) { 0 } else { 2 * MIB };
        self.segments.insert(addr, (addr + size, is_small));
        self.blocks.insert(addr, Block { size, requested: 0, state: State::Free });
        self.emit("segment_alloc", addr, size, [size, 0, 0, 0, 0]);
        addr
    }

    /// Maps pages behind all that is mapped, one event each.
    fn map(&mut self, rounded: i128, is_small: bool) -> i128 {
        let base = RESERVATIONS.iter().find(|reservation| reservation.1 == is_small).unwrap().0;
        let page = if is_small { 2 * MIB } else { 20 * MIB };
        loop {
            let limit = base + (1 << 35);
            let end = self.segments.range(base..limit).next_back().map_or(base, |(_, (end, _))| *end);
            let start = self.segments.range(base..limit).next_back().filter(|(_, (last, _))| *last == end);
            let start = start.map_or(end, |(start, _)| *start);
            self.segments.insert(start, (end + page, is_small));
            self.blocks.insert(end, Block { size: page, requested: 0, state: State::Free });
            self.emit("segment_map", end, page, [page, 0, 0, 0, 0]);
            let addr = self.merge(end);
            if self.blocks[&addr].size >= rounded {
                return addr;
            }
        }
    }

    /// Joins a free block with its free neighbours, and returns where it begins.
    fn merge(&mut self, mut addr: i128) -> i128 {
        let (start, end) = self.segment(addr);
        let next = addr + self.blocks[&addr].size;
        if next < end && self.blocks[&next].state == State::Free {
            let size = self.blocks.remove(&next).unwrap().size;
            self.blocks.get_mut(&addr).unwrap().size += size;
        }
        if let Some((before, block)) =
            self.blocks.range(start..addr).next_back().map(|(at, block)| (*at, *block))
            && block.state == State::Free
        {
            let size = self.blocks.remove(&addr).unwrap().size;
            self.blocks.get_mut(&before).unwrap().size += size;
            addr = before;
        }
        addr
    }

    fn free(&mut self, which: usize, is_used: bool) {
        let live: Vec<usize> = (0..self.lifetimes.len())
            .filter(|index| self.lifetimes[*index].free_requested.is_none())
            .collect();
        if live.is_empty() {
            return;
        }
        let index = live[which % live.len()];
        let Lifetime { addr, requested, size, .. } = self.lifetimes[index];
        let at = self.emit("free_requested", addr, requested, [0, -size, 0, -requested, 0]);
        self.lifetimes[index].free_requested = Some(at);
        self.blocks.get_mut(&addr).unwrap().state = State::Pending;
        if !is_used {
            self.complete(index);
        }
    }

    fn complete(&mut self, index: usize) {
        let Lifetime { addr, requested, size, .. } = self.lifetimes[index];
        let at = self.emit("free_completed", addr, requested, [0, 0, -size, 0, -requested]);
        self.lifetimes[index].free_completed = Some(at);
        self.blocks.get_mut(&addr).unwrap().state = State::Free;
        self.merge(addr);
    }

    fn synchronize(&mut self) {
        let is_pending =
            |lifetime: &Lifetime| lifetime.free_requested.is_some() && lifetime.free_completed.is_none();
        for index in 0..self.lifetimes.len() {
            if is_pending(&self.lifetimes[index]) {
                self.complete(index);
            }
        }
    }

    fn empty_cache(&mut self) {
        self.synchronize();
        let free: Vec<(i128, i128)> = self
            .blocks
            .iter()
            .filter(|(_, block)| block.state == State::Free)
            .map(|(addr, block)| (*addr, block.size))
            .collect();
        for (addr, size) in free {
            let (start, end) = self.segment(addr);
            if self.settings.expandable {
                self.unmap(addr, size);
            } else if (start, end) == (addr, addr + size) {
                self.segments.remove(&start);
                self.blocks.remove(&start);
                self.emit("segment_free", start, size, [-size, 0, 0, 0, 0]);
            }
        }
    }

    /// Gives back the whole pages of a free block.
    fn unmap(&mut self, addr: i128, size: i128) {
        let (start, end) = self.segment(addr);
        let is_small = self.is_small(addr);
        let base = RESERVATIONS.iter().find(|reservation| reservation.1 == is_small).unwrap().0;
        let page = if is_small { 2 * MIB } else { 20 * MIB };
        let from = base + (addr - base + page - 1) / page * page;
        let to = base + (addr + size - base) / page * page;
        if to <= from {
            return;
        }
        self.blocks.remove(&addr);
        self.segments.remove(&start);
        for (first, last) in [(start, from), (to, end)] {
            if first < last {
                self.segments.insert(first, (last, is_small));
            }
        }
        for (first, last) in [(addr, from), (to, addr + size)] {
            if first < last {
                self.blocks.insert(first, Block { size: last - first, requested: 0, state: State::Free });
            }
        }
        self.emit("segment_unmap", from, to - from, [from - to, 0, 0, 0, 0]);
    }

    /// The snapshot of a recording that began behind so many events.
    pub(super) fn recorded_from(&self, first: usize) -> History {
        let mut story = history(&self.events[first..]);
        for (start, (end, _)) in &self.segments {
            let blocks: Vec<super::Block> = self
                .blocks
                .range(start..end)
                .map(|(_, block)| {
                    let state = match block.state {
                        State::Free => "inactive",
                        State::Allocated => "active_allocated",
                        State::Pending => "active_pending_free",
                    };
                    (block.size, block.requested, state)
                })
                .collect();
            story = story.segment_of(*start, &blocks, self.settings.expandable);
        }
        story
    }
}
