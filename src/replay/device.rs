//! One device: the final state and the events of it put together.

use std::ops::ControlFlow;

use super::checks::Checks;
use super::columns::NO_TIME;
use super::event::{Action, Places};
use super::events::{Events, Seen};
use super::open::{NO_SIZE, Open};
use super::ranges::Kind;
use super::row::{Fate, NO_INDEX, Proof, Reading};
use super::rows::Rows;
use super::rules::Rules;
use super::sizes::Cutting;
use super::state::{Block, Share};
use super::tally::{Gap, Part, Sums};
use super::walk::{Walk, Walked};
use crate::error::Result;

/// Device index of pinned host memory.
pub(super) const HOST: i64 = -1;

/// Counters of the final state; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Final {
    pub(super) reserved: i128,
    pub(super) allocated: i128,
    pub(super) active: i128,
    pub(super) allocated_requested: Option<i128>,
    pub(super) active_requested: Option<i128>,
}

/// Why the trace and the final state of a device do not belong to the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detached {
    /// The file is damaged and its end is lost.
    Salvaged,
    /// `--events` left out the last events.
    EndLeftOut,
    /// `--min-size` left out events in between.
    SizesLeftOut,
}

/// A device to be replayed.
pub(super) struct Device<'a> {
    pub(super) id: i64,
    pub(super) index: i64,
    /// Segments and blocks of the caching allocator: those of workspaces are none.
    pub(super) share: Share<'a>,
    pub(super) seen: Seen,
    pub(super) detached: Option<Detached>,
    /// The one memory pool that the final state shows, although events are of others too.
    pub(super) only_pool: Option<(i64, i64)>,
    /// Whether the final state shows one memory pool that the program made, and events do not say theirs: the dump may be of
    /// that pool alone, and then only addresses can tell of the others.
    pub(super) looks_outside: bool,
}

impl Device<'_> {
    /// Whether there is anything to check.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.kept == 0 && self.share.segments.is_empty()
    }

    /// Counters of the final state, with what it hides.
    fn last(&self, hidden: &Sums) -> Final {
        let mut sums = Final {
            active: hidden.active,
            allocated_requested: Some(0),
            active_requested: Some(hidden.active_requested),
            reserved: self.share.segments.iter().map(|segment| i128::from(segment.size)).sum(),
            ..Final::default()
        };
        for (block, _) in &self.share.blocks {
            let (size, requested) = (i128::from(block.size), block.requested.map(i128::from));
            let plus = |sum: Option<i128>| Some(sum? + requested?);
            sums.active += size;
            sums.active_requested = plus(sums.active_requested);
            if !block.is_pending {
                sums.allocated += size;
                sums.allocated_requested = plus(sums.allocated_requested);
            }
        }
        sums
    }

    fn cutting(&self, rules: &Rules) -> Cutting {
        let happened = |actions: [Action; 2]| actions.iter().any(|action| self.seen.count(*action) > 0);
        let mapped = happened([Action::SegmentMap, Action::SegmentUnmap])
            || self.share.segments.iter().any(|segment| segment.is_expandable);
        let plain = happened([Action::SegmentAlloc, Action::SegmentFree])
            || self.share.segments.iter().any(|segment| !segment.is_expandable && !segment.is_small);
        match (mapped || rules.expandable, plain) {
            _ if self.index == HOST => Cutting::Host,
            (true, false) => Cutting::Exact,
            _ if self.detached.is_some() => Cutting::Unknown,
            (false, _) => Cutting::Rests,
            (true, true) => Cutting::Mixed,
        }
    }

    /// Reads the events backward; finished rows go to `rows`.
    pub(super) fn replay(
        &self,
        rules: &Rules,
        events: &Events,
        places: &mut Places,
        rows: &mut Rows,
    ) -> Result<Checks> {
        let mut walk = Walk::new(rules, self.cutting(rules), rows);
        walk.looks_outside = self.looks_outside;
        let mut without_address = 0;
        if self.detached.is_none() {
            for segment in &self.share.segments {
                let kind = if segment.is_expandable { Kind::Mapped } else { Kind::Segment };
                if let Some(address) = segment.address {
                    walk.add_segment(address, segment.size, kind);
                }
            }
            walk.add_unmerged(self.share.unmerged.clone());
            for (block, segment) in &self.share.blocks {
                match block.address {
                    Some(address) => walk.add_block(address, open(block, places.number(segment.place))),
                    None => without_address += 1,
                }
            }
        }
        let mut elsewhere = 0;
        events.backward(&self.seen, |event| {
            match self.only_pool {
                Some(pool) if places.get(event.place).is_outside(pool) => elsewhere += 1,
                _ => walk.event(event)?,
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let Walked { tally, reserved, mut ends, streams } = walk.finish()?;
        if !ends.is_empty() {
            events.backward(&self.seen, |event| {
                ends.look(event);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        // A dump of one memory pool counted that pool alone.
        let pool = self.only_pool.unwrap_or_default();
        let marks = tally.deviation(|place| !places.get(place).is_outside(pool));
        let checks = Checks {
            device_id: self.id,
            last: self.last(&tally.hidden.sums),
            reserved_before: reserved,
            doubts: (
                tally.rule_broken > 0,
                tally.rule_broken > 0 || tally.geometry_broken > 0 || tally.hides_blocks(),
            ),
            frees_are_one: self.skips(&tally),
            lost_ends: ends.lost,
            tally,
            seen: self.seen.clone(),
            detached: self.detached,
            without_address,
            elsewhere,
            other_streams: streams.count(places),
            looks_outside: self.looks_outside,
            marks,
        };
        let reading = Reading {
            doubts_rule: checks.doubts.0,
            doubts_geometry: checks.doubts.1,
            frees_are_one: checks.frees_are_one,
            frees_have_alloc_stack: checks.tally.frees_have_alloc_stack(),
            ends,
        };
        rows.end_device(self.id, reading)?;
        Ok(checks)
    }

    /// Whether the recording left out one of the two free events (`skip_actions`).
    fn skips(&self, tally: &super::tally::Tally) -> bool {
        let (requests, completions) =
            (self.seen.count(Action::FreeRequested), self.seen.count(Action::FreeCompleted));
        self.detached.is_none()
            && ((requests == 0 && tally.gaps(Gap::Request).count > 0)
                || (completions == 0 && tally.gaps(Gap::Completion).count > 0))
    }
}

fn open(block: &Block, place: u32) -> Open {
    Open {
        size: block.requested.unwrap_or(NO_SIZE),
        block: block.size,
        proof: Proof::Final,
        fate: if block.is_pending { Fate::PendingFree } else { Fate::Live },
        part: Part { allocated: !block.is_pending, active: true },
        requested: NO_INDEX,
        completed: NO_INDEX,
        free_time: NO_TIME,
        stack: block.stack,
        free_stack: 0,
        place,
    }
}
