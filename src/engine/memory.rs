//! Who may hold how much memory: operators that can go to temporary files share three quarters of it, fairly; the rest is
//! left for those that cannot, and the last eighth for those that do not just take what they get.
//!
//! The engine's own fair pool gives all of it to those that come first, and then a merge of what they sorted fails for
//! want of a few rows' memory.

use std::fmt::{self, Display, Formatter};
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

use crate::quantity;

/// Bytes of memory that the program has at the moment, where the system tells.
pub(super) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A limit on what all operators of a query hold together.
#[derive(Debug)]
pub(super) struct Pool {
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Operators that can go to temporary files.
    spillers: usize,
    by_spillers: usize,
    by_others: usize,
}

impl Pool {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // The counts are whole at any time, also where a thread broke down that had the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// What the operators of the same kind hold.
    fn kind(&mut self, reservation: &MemoryReservation) -> &mut usize {
        if reservation.consumer().can_spill() { &mut self.by_spillers } else { &mut self.by_others }
    }

    /// What an operator that has `size` may have more.
    fn room(&self, limit: usize, reservation: &MemoryReservation) -> usize {
        if reservation.consumer().can_spill() {
            let share = (limit - limit / 4).min(limit.saturating_sub(self.by_others)) / self.spillers.max(1);
            share.saturating_sub(reservation.size())
        } else {
            let end = if is_greedy(reservation.consumer()) { limit - limit / 8 } else { limit };
            end.saturating_sub(self.by_spillers.saturating_add(self.by_others))
        }
    }
}

/// Whether an operator takes all memory it can get, and does with less too: the merge of a sort's temporary files opens as
/// many of them as it has room for.
fn is_greedy(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("ExternalSorterMerge")
}

impl MemoryPool for Pool {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.held().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut held = self.held();
            held.spillers = held.spillers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut held = self.held();
        let kind = held.kind(reservation);
        *kind = kind.saturating_add(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut held = self.held();
        let kind = held.kind(reservation);
        *kind = kind.saturating_sub(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut held = self.held();
        let room = held.room(self.limit, reservation);
        if additional > room {
            let shown = |bytes: usize| quantity::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
            return Err(DataFusionError::ResourcesExhausted(format!(
                "`{}` holds {} and wants {} more, of which {} are left",
                reservation.consumer().name(),
                shown(reservation.size()),
                shown(additional),
                shown(room)
            )));
        }
        let kind = held.kind(reservation);
        *kind = kind.saturating_add(additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        let held = self.held();
        held.by_spillers.saturating_add(held.by_others)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

impl Display for Pool {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}({} bytes)", self.name(), self.limit)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_merge_has_room_where_the_sorts_have_taken_what_they_may() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1000));
        let sort = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
        let (one, other) = (sort("one"), sort("other"));
        one.try_grow(375).unwrap();
        other.try_grow(375).unwrap();
        let refused = one.try_grow(1).unwrap_err().strip_backtrace();
        let expected = "`one` holds 375 B and wants 1 B more, of which 0 B are left";
        assert!(refused.ends_with(expected), "{refused}");
        let files = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        files.try_grow(125).unwrap();
        assert!(files.try_grow(1).is_err());
        drop(files);
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(250).unwrap();
        assert!(merge.try_grow(1).is_err());
        drop(one);
        // What one of them gives back is for whoever comes first, and a sort alone has the whole share.
        merge.try_grow(375).unwrap();
        assert!(other.try_grow(1).is_err());
        merge.shrink(600);
        other.try_grow(375).unwrap();
        assert_eq!(pool.reserved(), 775);
    }
}
