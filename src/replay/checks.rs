//! The self-check of a device: base, final and residual of each counter, and in words what did not add up.

use super::device::{Detached, Final};
use super::event::Action;
use super::events::Seen;
use super::notes::{Notes, Severity, narrow};
use super::tally::{GAPS, Gap, Sums, Tally};
use crate::schema::{ReplayCheck, note};

/// What the replay of a device came to.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) device_id: i64,
    pub(super) last: Final,
    /// Bytes of the segments at the beginning, as their ranges have it.
    pub(super) reserved_before: i128,
    pub(super) tally: Tally,
    /// Whether sizes by rule, and sizes by geometry, prove nothing.
    pub(super) doubts: (bool, bool),
    /// Whether one of the two free events was never recorded.
    pub(super) frees_are_one: bool,
    /// Allocations among those without end whose address was used again, and their bytes.
    pub(super) lost_ends: (i64, i128),
    pub(super) seen: Seen,
    pub(super) detached: Option<Detached>,
    /// Active blocks of the final state that no event can be paired with.
    pub(super) without_address: i64,
    /// Events of other memory pools than the one the segments are of.
    pub(super) elsewhere: i64,
    /// Frees that say another stream than their alloc.
    pub(super) other_streams: i64,
    /// Whether events of other memory pools would not say so.
    pub(super) looks_outside: bool,
    /// How many earlier dumps left a mark, and the largest difference between what they counted and what is found here.
    pub(super) marks: (usize, i128),
}

/// One counter.
struct Counter {
    name: &'static str,
    last: Option<i128>,
    change: i128,
    /// What was there before the window, by the allocations or segments.
    before: i128,
    is_exact: bool,
}

impl Counter {
    fn base(&self) -> Option<i128> {
        Some(self.last? - self.change)
    }
}

impl Checks {
    fn counters(&self) -> [Counter; 5] {
        let Self { last, tally, .. } = self;
        let (change, before) = self.joined_frees();
        let requested = self.are_events_whole();
        let rounded = requested && self.unproven().count == 0 && self.marks.1 == 0;
        let counter = |name, last, change, before, is_exact| Counter { name, last, change, before, is_exact };
        [
            counter(
                "reserved",
                Some(last.reserved),
                tally.reserved_change,
                self.reserved_before,
                self.is_anchored() && tally.range_twice == 0 && tally.range_missing == 0,
            ),
            counter("allocated", Some(last.allocated), change.allocated, before.allocated, rounded),
            counter("active", Some(last.active), change.active, before.active, rounded),
            counter(
                "allocated_requested",
                last.allocated_requested,
                change.allocated_requested,
                before.allocated_requested,
                requested,
            ),
            counter(
                "active_requested",
                last.active_requested,
                change.active_requested,
                before.active_requested,
                requested,
            ),
        ]
    }

    /// Where one of the two free events was never recorded, the other changes both pairs of counters.
    fn joined_frees(&self) -> (Sums, Sums) {
        let (mut change, mut before) = (self.tally.changes, self.tally.before);
        if !self.frees_are_one {
            return (change, before);
        }
        if self.seen.count(Action::FreeRequested) == 0 {
            change.allocated = change.active;
            change.allocated_requested = change.active_requested;
            before.allocated = before.active;
            before.allocated_requested = before.active_requested;
        } else {
            change.active = change.allocated;
            change.active_requested = change.allocated_requested;
        }
        (change, before)
    }

    /// Whether the events that were read are all of the device's, in order, and lead up to the final state.
    fn is_anchored(&self) -> bool {
        let is_whole = self.elsewhere == 0 && self.outside_pool() == 0;
        self.detached.is_none() && self.seen.jumps.is_empty() && is_whole
    }

    /// Allocations that show a dump of one memory pool whose events do not say their pools: they lie in no segment. Ranges
    /// without a segment count as one more, however many: they are bytes.
    fn outside_pool(&self) -> i128 {
        let is_missing = self.looks_outside && self.tally.range_missing > 0;
        i128::from(self.tally.outside_pool) + i128::from(is_missing)
    }

    /// Whether `alloc` was never recorded although there were some.
    fn lacks_allocs(&self) -> bool {
        let without = self.tally.gaps(Gap::Alloc).count + self.tally.gaps(Gap::AllocOfBlock).count;
        self.seen.count(Action::Alloc) == 0 && without > 0
    }

    fn are_events_whole(&self) -> bool {
        self.is_anchored()
            && self.without_address == 0
            && GAPS.iter().all(|gap| self.tally.gaps(*gap).count == 0)
    }

    fn unproven(&self) -> super::tally::Blocks {
        self.tally.unproven(self.doubts.0, self.doubts.1)
    }

    /// The rows of `replay_checks`.
    pub(super) fn rows(&self) -> Vec<ReplayCheck> {
        let has_base = |name: &str| self.detached.is_none() && (name == "reserved" || !self.lacks_allocs());
        self.counters()
            .into_iter()
            .map(|counter| {
                let base = if has_base(counter.name) { counter.base() } else { None };
                ReplayCheck {
                    device_id: self.device_id,
                    counter: counter.name.to_owned(),
                    base: base.and_then(narrow),
                    r#final: counter.last.and_then(narrow),
                    residual: base.map(|base| base - counter.before).and_then(narrow),
                    exact: i64::from(counter.is_exact && base.is_some_and(|base| base >= 0)),
                }
            })
            .collect()
    }

    /// Says what did not add up.
    pub(super) fn report(&self, notes: &mut Notes) {
        let device = Some(self.device_id);
        if let Some(detached) = self.detached {
            let doc = match detached {
                Detached::Salvaged => {
                    "the file is damaged, so its events do not lead up to its final state: no base is known"
                }
                Detached::EndLeftOut => {
                    "--events left out the last events, so the others do not lead up to the final state: no base is \
                     known"
                }
                Detached::SizesLeftOut => {
                    "--min-size left out events, so the others do not lead up to the final state: no base is known"
                }
            };
            notes.add(Severity::Info, "replay_not_anchored", device, 1, doc);
            return;
        }
        self.report_gaps(notes);
        self.report_sizes(notes);
        let doc = "events of other memory pools than the one that all segments are in: the dump was of that pool alone; \
                   lifetimes, base and final are those of the pool, and no counter is exact";
        notes.add(Severity::DataLoss, "events_of_other_pools", device, i128::from(self.elsewhere), doc);
        let doc = "allocations and ranges in no segment, where all segments are in one memory pool and no event says its \
                   pool: the dump was of that pool alone, or events are missing; no counter is exact";
        notes.add(Severity::DataLoss, "events_outside_the_pool", device, self.outside_pool(), doc);
        let jumps = i128::from(self.seen.jump_count);
        let doc = if self.seen.is_in_pieces() {
            "places where the list of events goes back in time: a ring buffer was resized; allocations are paired in the \
             order of time, and as curves follow the list, no counter is exact"
        } else {
            "places where the list of events goes back in time: a ring buffer was resized; the pieces cannot be put in \
             order, allocations are paired as they stand, and no counter is exact"
        };
        notes.add(Severity::DataLoss, "events_out_of_order", device, jumps, doc);
        for counter in self.counters() {
            let Some(base) = counter.base() else { continue };
            let doc = format!(
                "bytes of `{}` before the first event that no segment or allocation accounts for",
                counter.name
            );
            let name = format!("residual_{}", counter.name);
            notes.add(Severity::Error, &name, device, base - counter.before, doc);
        }
    }

    fn report_gaps(&self, notes: &mut Notes) {
        let device = Some(self.device_id);
        for gap in GAPS {
            let (name, doc) = match gap {
                Gap::End => ("allocations_without_end", note::ALLOCATIONS_WITHOUT_END),
                Gap::Completion => ("frees_without_completion", note::FREES_WITHOUT_COMPLETION),
                Gap::Request => ("completions_without_request", note::COMPLETIONS_WITHOUT_REQUEST),
                Gap::Alloc => ("frees_without_alloc", note::FREES_WITHOUT_ALLOC),
                Gap::AllocOfBlock => ("blocks_without_alloc", note::BLOCKS_WITHOUT_ALLOC),
            };
            let found = self.tally.gaps(gap);
            let doc = doc.filled(&[&found.sums.allocated_requested, &found.sums.active_requested]);
            notes.add(Severity::DataLoss, name, device, i128::from(found.count), doc);
        }
        let (count, bytes) = self.lost_ends;
        let doc = note::ALLOCS_ON_LIVE_ADDRESSES.filled(&[&bytes]);
        notes.add(Severity::DataLoss, "allocs_on_live_addresses", device, i128::from(count), doc);
        let doc =
            "free_requested or free_completed was never recorded here; the one that was stands for both";
        notes.add(Severity::DataLoss, "frees_are_one", device, i128::from(self.frees_are_one), doc);
        let doc = "alloc was never recorded here, so there is no curve of allocated and active";
        notes.add(Severity::DataLoss, "allocs_not_recorded", device, i128::from(self.lacks_allocs()), doc);
        let hidden = &self.tally.hidden;
        let doc = note::PENDING_SHOWN_INACTIVE.filled(&[&hidden.sums.active]);
        notes.add(Severity::Info, "pending_shown_inactive", device, i128::from(hidden.count), doc);
        let doc = "active blocks without an address, which no event can be paired with";
        notes.add(
            Severity::DataLoss,
            "blocks_without_address",
            device,
            i128::from(self.without_address),
            doc,
        );
        let doc = "bytes that were reserved where something was reserved already";
        notes.add(Severity::DataLoss, "ranges_reserved_twice", device, self.tally.range_twice, doc);
        let doc =
            "bytes that were reserved in the trace and, without having been given back, not in the segments";
        notes.add(Severity::DataLoss, "ranges_without_end", device, self.tally.range_missing, doc);
    }

    fn report_sizes(&self, notes: &mut Notes) {
        let device = Some(self.device_id);
        let (tally, unproven) = (&self.tally, self.unproven());
        let doc = note::BLOCK_SIZES_UNPROVEN.filled(&[&tally.all.count, &unproven.bytes, &tally.all.bytes]);
        notes.add(Severity::Info, "block_sizes_unproven", device, i128::from(unproven.count), doc);
        let doc = "large allocations outside every known segment: segment events are missing";
        notes.add(
            Severity::DataLoss,
            "allocations_outside_segments",
            device,
            i128::from(tally.outside_ranges),
            doc,
        );
        let doc = "blocks that are not of the size the allocator's rounding gives: settings that are not in the file, or \
                   pools with their own rules; no size is proven by rounding";
        notes.add(Severity::Info, "rounding_rule_broken", device, i128::from(tally.rule_broken), doc);
        let doc = "large blocks that are not as the allocator would have cut them from free memory: settings that are not \
                   in the file, or pools that never split; no size is proven by it";
        notes.add(Severity::Info, "splitting_rule_broken", device, i128::from(tally.geometry_broken), doc);
        let marks = i128::try_from(self.marks.0).unwrap_or_default();
        let doc = "marks of earlier dumps, which say how many bytes were active; compared with the replay";
        notes.add(Severity::Info, "calibration_points", device, marks, doc);
        let doc = "largest difference between active bytes as replayed and as an earlier dump counted them; such a dump \
                   may have been of one memory pool only";
        let severity = if unproven.count > 0 { Severity::Info } else { Severity::DataLoss };
        notes.add(severity, "calibration_deviation", device, self.marks.1, doc);
    }
}
