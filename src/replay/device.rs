//! One device: the final state and the events of it put together.

use super::checks::Checks;
use super::columns::NO_TIME;
use super::events::{Action, Events, Places, Seen};
use super::ranges::Kind;
use super::rows::{Fate, NO_INDEX, Proof, Reading, Rows};
use super::rules::Rules;
use super::state::{Block, FinalState, Segment};
use super::tally::{Gap, Part};
use super::walk::{Cutting, NO_SIZE, Open, Walk};
use crate::error::Result;

/// Device index of pinned host memory.
const HOST: i64 = -1;

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
    pub(super) state: &'a FinalState,
    pub(super) rules: &'a Rules,
    pub(super) seen: Seen,
    pub(super) detached: Option<Detached>,
}

impl Device<'_> {
    /// Segments of the caching allocator: those of workspaces are none.
    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.state.segments.iter().filter(|segment| self.owns(segment))
    }

    fn owns(&self, segment: &Segment) -> bool {
        let is_workspace = segment.address.is_some_and(|address| self.seen.workspaces.contains(&address));
        segment.device_id == self.id && !is_workspace
    }

    /// Active blocks with their segments.
    fn blocks(&self) -> impl Iterator<Item = (&Block, &Segment)> {
        self.state.blocks.iter().filter_map(|block| {
            let segment = self.state.segment(block.segment_id)?;
            self.owns(segment).then_some((block, segment))
        })
    }

    /// Whether there is anything to check.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.kept == 0 && self.segments().next().is_none()
    }

    fn last(&self) -> Final {
        let mut sums = Final {
            allocated_requested: Some(0),
            active_requested: Some(0),
            reserved: self.segments().map(|segment| i128::from(segment.size)).sum(),
            ..Final::default()
        };
        for (block, _) in self.blocks() {
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

    fn cutting(&self) -> Cutting {
        let happened = |actions: [Action; 2]| actions.iter().any(|action| self.seen.count(*action) > 0);
        let mapped = happened([Action::SegmentMap, Action::SegmentUnmap])
            || self.segments().any(|segment| segment.is_expandable);
        let plain = happened([Action::SegmentAlloc, Action::SegmentFree])
            || self.segments().any(|segment| !segment.is_expandable && !segment.is_small);
        match (mapped || self.rules.expandable, plain) {
            _ if self.index == HOST => Cutting::Host,
            (true, false) => Cutting::Exact,
            (false, _) => Cutting::Rests,
            (true, true) => Cutting::Mixed,
        }
    }

    /// Reads the events backward; finished rows go to `rows`.
    pub(super) fn replay(&self, events: &Events, places: &mut Places, rows: &mut Rows) -> Result<Checks> {
        let cutting = self.cutting();
        let mut walk = Walk::new(self.rules, cutting, rows);
        let mut without_address = 0;
        if self.detached.is_none() {
            for segment in self.segments() {
                let kind = if segment.is_expandable { Kind::Mapped } else { Kind::Segment };
                if let Some(address) = segment.address {
                    walk.add_segment(address, segment.size, kind);
                }
            }
            for (block, segment) in self.blocks() {
                match block.address {
                    Some(address) => walk.add_block(address, open(block, places.number(segment.place))),
                    None => without_address += 1,
                }
            }
        }
        events.backward(self.id, |event| walk.event(event))?;
        let (mut tally, ranges) = walk.finish()?;
        // A dump of one memory pool counted that pool alone.
        tally.marks.retain(|mark| places.get(mark.place).pool.is_none_or(|pool| pool == (0, 0)));
        let reading = Reading {
            doubts_rule: tally.rule_broken > 0,
            doubts_geometry: tally.rule_broken > 0 || tally.geometry_broken > 0,
            frees_are_one: self.skips(&tally),
        };
        rows.end_device(self.id, reading)?;
        Ok(Checks {
            device_id: self.id,
            last: self.last(),
            reserved_before: ranges.total(),
            tally,
            reading,
            seen: self.seen.clone(),
            detached: self.detached,
            without_address,
        })
    }

    /// Whether the recording left out one of the two free events (`skip_actions`).
    fn skips(&self, tally: &super::tally::Tally) -> bool {
        let (requests, completions) =
            (self.seen.count(Action::FreeRequested), self.seen.count(Action::FreeCompleted));
        self.detached.is_none()
            && ((requests == 0 && tally.gaps(Gap::NoRequest).count > 0)
                || (completions == 0 && tally.gaps(Gap::NoCompletion).count > 0))
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
