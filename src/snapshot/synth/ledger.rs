//! The truth about a window of the trace, kept while the allocator works: never read back from what was written.

use std::collections::BTreeMap;

use super::event::{Action, Counters, Event, Peaks, StackId};

/// What the live allocations of one call stack add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Sizes of the blocks.
    pub(super) bytes: u64,
    /// Sizes asked for.
    pub(super) requested: u64,
    pub(super) blocks: u64,
    /// Sizes of the blocks whose alloc event is in the window.
    pub(super) bytes_in_window: u64,
}

/// A call stack's share now, and at the highest point so far if it has changed since.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    now: Share,
    /// The peak that `then` belongs to; 0 for none.
    peak: u64,
    then: Share,
}

/// An event that says the device is full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Oom {
    pub(super) index: u64,
    pub(super) requested: u64,
    pub(super) device_free: u64,
    pub(super) counters: Counters,
}

/// Follows one device from its first event, and says what is true of the window that the trace still shows.
#[derive(Debug)]
pub(super) struct Ledger {
    window_start: u64,
    accounts: Vec<Account>,
    /// Number of the latest peak of `allocated`; accounts that were changed since know what they held then.
    peak: u64,
    /// Counters before the window's first event.
    pub(super) start: Counters,
    pub(super) peaks: Peaks,
    pub(super) actions: BTreeMap<Action, u64>,
    pub(super) ooms: Vec<Oom>,
    highest: u64,
}

impl Ledger {
    /// A ledger for a window that begins with the event `window_start`.
    pub(super) fn new(window_start: u64, stack_count: usize) -> Self {
        Self {
            window_start,
            accounts: vec![Account::default(); stack_count],
            peak: 1,
            start: Counters::default(),
            peaks: Peaks::default(),
            actions: BTreeMap::new(),
            ooms: Vec::new(),
            highest: 0,
        }
    }

    /// Takes an event and the counters after it.
    pub(super) fn record(&mut self, index: u64, event: &Event, counters: Counters) {
        if let Some(allocation) = event.allocation {
            let in_window = if allocation.born >= self.window_start { allocation.block_size } else { 0 };
            match event.action {
                Action::Alloc => self.change(allocation.stack, |share| {
                    share.bytes += allocation.block_size;
                    share.requested += allocation.requested;
                    share.blocks += 1;
                    share.bytes_in_window += in_window;
                }),
                Action::FreeRequested => self.change(allocation.stack, |share| {
                    share.bytes -= allocation.block_size;
                    share.requested -= allocation.requested;
                    share.blocks -= 1;
                    share.bytes_in_window -= in_window;
                }),
                _ => {}
            }
        }
        if index < self.window_start {
            self.start = counters;
            self.peaks = Peaks::starting_from(counters);
            self.highest = counters.allocated;
            self.peak += 1;
            return;
        }
        *self.actions.entry(event.action).or_default() += 1;
        self.peaks.update(index, counters);
        if counters.allocated > self.highest {
            self.highest = counters.allocated;
            self.peak += 1;
        }
        if event.action == Action::Oom {
            let (requested, device_free) = (event.size, event.address);
            self.ooms.push(Oom { index, requested, device_free, counters });
        }
    }

    /// What a call stack holds now.
    pub(super) fn now(&self, stack: StackId) -> Share {
        self.accounts.get(stack.0).map(|account| account.now).unwrap_or_default()
    }

    /// Call stacks that held something at the first highest point of `allocated` in the window, largest first.
    pub(super) fn at_allocated_peak(&self) -> Vec<(StackId, Share)> {
        let shares = self.accounts.iter().enumerate().map(|(stack, account)| {
            (StackId(stack), if account.peak == self.peak { account.then } else { account.now })
        });
        let mut shares: Vec<_> = shares.filter(|(_, share)| share.blocks > 0).collect();
        shares.sort_by_key(|(stack, share)| (std::cmp::Reverse(share.bytes), *stack));
        shares
    }

    /// Changes a share, after keeping what it was at the latest peak.
    fn change(&mut self, stack: StackId, change: impl FnOnce(&mut Share)) {
        let peak = self.peak;
        if let Some(account) = self.accounts.get_mut(stack.0) {
            if account.peak != peak {
                account.peak = peak;
                account.then = account.now;
            }
            change(&mut account.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::synth::event::Allocation;

    /// An alloc or a free of `stack`, with what `allocated` is afterwards.
    fn event(ledger: &mut Ledger, index: u64, action: Action, of: (usize, u64, u64), allocated: u64) {
        let (stack, block_size, born) = of;
        let allocation = Allocation { stack: StackId(stack), block_size, requested: block_size - 1, born };
        let event = Event {
            action,
            address: 0,
            size: block_size - 1,
            stream: None,
            context: None,
            time_us: 0,
            allocation: Some(allocation),
        };
        ledger.record(index, &event, Counters { allocated, ..Counters::default() });
    }

    fn holders(ledger: &Ledger) -> Vec<(usize, u64, u64)> {
        let peak = ledger.at_allocated_peak();
        peak.into_iter().map(|(stack, share)| (stack.0, share.bytes, share.bytes_in_window)).collect()
    }

    #[test]
    fn holders_are_those_of_the_first_highest_point() {
        let mut ledger = Ledger::new(0, 3);
        event(&mut ledger, 0, Action::Alloc, (0, 10, 0), 10);
        event(&mut ledger, 1, Action::Alloc, (1, 20, 1), 30);
        event(&mut ledger, 2, Action::FreeRequested, (0, 10, 0), 20);
        event(&mut ledger, 3, Action::Alloc, (2, 10, 3), 30);
        event(&mut ledger, 4, Action::FreeRequested, (1, 20, 1), 10);
        assert_eq!(holders(&ledger), [(1, 20, 20), (0, 10, 10)]);
        assert_eq!(ledger.peaks.named().nth(1), Some(("allocated", 30, Some(1))));
        assert_eq!(ledger.now(StackId(2)), Share { bytes: 10, requested: 9, blocks: 1, bytes_in_window: 10 });
    }

    #[test]
    fn a_window_can_begin_at_its_highest_point() {
        let mut ledger = Ledger::new(2, 2);
        event(&mut ledger, 0, Action::Alloc, (0, 10, 0), 10);
        event(&mut ledger, 1, Action::Alloc, (1, 20, 1), 30);
        event(&mut ledger, 2, Action::FreeRequested, (1, 20, 1), 10);
        event(&mut ledger, 3, Action::Alloc, (1, 20, 3), 30);
        assert_eq!(ledger.start.allocated, 30);
        assert_eq!(ledger.peaks.named().nth(1), Some(("allocated", 30, None)));
        // Nothing of it was allocated in the window.
        assert_eq!(holders(&ledger), [(1, 20, 0), (0, 10, 0)]);
        event(&mut ledger, 4, Action::Alloc, (1, 5, 4), 35);
        assert_eq!(holders(&ledger), [(1, 25, 25), (0, 10, 0)]);
        assert_eq!(ledger.actions.values().sum::<u64>(), 3);
    }
}
