//! A device at the moment a request failed, and what could have served the request.

use super::OomContext;
use crate::analysis::fragment::DeviceFragmentation;
use crate::analysis::outcome::share;

/// A device at the moment a request failed; `None` is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Bytes asked for, rounded.
    pub(super) requested: Option<i64>,
    /// Bytes the driver had left.
    pub(super) device_free: Option<i64>,
    /// Bytes in segments.
    pub(super) reserved: Option<i64>,
    /// Bytes in allocated blocks.
    pub(super) allocated: Option<i64>,
    /// Bytes that waited for another stream.
    pub(super) pending_free_bytes: Option<i64>,
    /// Bytes free in the default pool.
    pub(super) pool_free_bytes: Option<i64>,
    /// Bytes of the largest free block of it.
    pub(super) largest_free_block: Option<i64>,
    /// Free blocks of it.
    pub(super) hole_count: Option<i64>,
    /// Bytes in segments of private pools.
    pub(super) private_reserved: Option<i64>,
    /// Bytes free in them.
    pub(super) private_free_bytes: Option<i64>,
    /// Bytes free in the default pool for other streams.
    pub(super) other_stream_bytes: Option<i64>,
    /// Bytes of whole free segments.
    pub(super) unused_segment_bytes: Option<i64>,
    /// Bytes free in the request's pool in segments of its kind, which alone serve it.
    pub(super) kind_free_bytes: Option<i64>,
    /// Bytes of the largest free block there.
    pub(super) kind_largest_free: Option<i64>,
    /// Free blocks there.
    pub(super) kind_hole_count: Option<i64>,
    /// Bytes free there for other streams.
    pub(super) kind_other_bytes: Option<i64>,
    /// Bytes free in segments of the request's kind in pools that it could not take from.
    pub(super) kind_private_bytes: Option<i64>,
    /// Bytes free around blocks in segments that were large enough for the request and not expandable.
    pub(super) kind_cut_bytes: Option<i64>,
    /// Bytes that waited for another stream in segments that the request could take from.
    pub(super) kind_pending_bytes: Option<i64>,
    /// The request's memory pool, as the two words of its id; (0, 0) is the default one.
    pub(super) pool: Option<(i64, i64)>,
    /// Bytes free in it, whatever their kind and stream.
    pub(super) own_free_bytes: Option<i64>,
    /// Bytes free in segments of the request's kind and stream in it that the setting `max_split_size` kept from the request.
    pub(super) kind_oversize_bytes: Option<i64>,
    /// Bytes of the largest free block that the request could have taken.
    pub(super) largest_usable_block: Option<i64>,
    /// Bytes of NPU workspaces.
    pub(super) workspace_bytes: i64,
    /// Whether segments are expandable: they grow by pages.
    pub(super) is_expandable: bool,
    /// Bytes that neither the pool nor the driver's free memory accounts for, as far as the device is known.
    pub(super) outside_pool_bytes: Option<i64>,
    /// Bytes outside the pool that the driver counts by component when the snapshot is dumped; without workspaces.
    pub(super) counted_outside_bytes: Option<i64>,
    /// The largest of those components, and its bytes.
    pub(super) largest_outside: Option<(String, i64)>,
}

impl From<&OomContext> for State {
    fn from(context: &OomContext) -> Self {
        let seen = context.reserved.zip(context.device_free).map(|(reserved, free)| reserved + free);
        Self {
            requested: context.requested,
            device_free: context.device_free,
            reserved: context.reserved,
            allocated: context.allocated,
            pending_free_bytes: context.pending_free_bytes,
            pool_free_bytes: context.pool_free_bytes,
            largest_free_block: context.largest_free_block,
            hole_count: context.hole_count,
            private_reserved: context.private_reserved,
            private_free_bytes: context.private_free_bytes,
            other_stream_bytes: context.other_stream_bytes,
            unused_segment_bytes: context.unused_segment_bytes,
            kind_free_bytes: context.kind_free_bytes,
            kind_largest_free: context.kind_largest_free,
            kind_hole_count: context.kind_hole_count,
            kind_other_bytes: context.kind_other_bytes,
            kind_private_bytes: context.kind_private_bytes,
            kind_cut_bytes: context.kind_cut_bytes,
            kind_pending_bytes: context.kind_pending_bytes,
            pool: context.pool_id_0.zip(context.pool_id_1),
            own_free_bytes: context.own_free_bytes,
            kind_oversize_bytes: context.kind_oversize_bytes,
            largest_usable_block: context.largest_usable_block,
            workspace_bytes: context.workspace_bytes,
            is_expandable: false,
            outside_pool_bytes: context.capacity_seen.zip(seen).map(|(most, seen)| most - seen),
            ..Self::default()
        }
    }
}

impl From<&DeviceFragmentation> for State {
    fn from(device: &DeviceFragmentation) -> Self {
        Self {
            reserved: Some(device.reserved),
            allocated: Some(device.allocated),
            pending_free_bytes: Some(device.pending_free_bytes),
            pool_free_bytes: Some(device.hole_bytes + device.unused_segment_bytes),
            largest_free_block: Some(device.largest_hole.max(device.largest_unused_segment)),
            hole_count: Some(device.hole_count + device.unused_segment_count),
            private_reserved: Some(device.private_reserved),
            private_free_bytes: Some(device.private_free_bytes),
            unused_segment_bytes: Some(device.unused_segment_bytes),
            workspace_bytes: device.workspace_bytes,
            ..Self::default()
        }
    }
}

pub(super) const MIB: i64 = 1 << 20;

fn up_to(size: i64, unit: i64) -> i64 {
    size.saturating_add(unit - 1) / unit * unit
}

/// Bytes of the pages that an expandable segment has to get so that it holds so many bytes more for a request.
fn pages(bytes: i64, requested: i64) -> i64 {
    up_to(bytes, if requested <= MIB { 2 * MIB } else { 20 * MIB })
}

impl State {
    /// Bytes held beside the pool, by whichever account knows of most.
    pub(super) fn outside(&self) -> i64 {
        let counted = self.counted_outside_bytes.unwrap_or_default();
        counted.saturating_add(self.workspace_bytes).max(self.outside_pool_bytes.unwrap_or_default())
    }

    /// Whether more is held outside the pool than in it.
    pub(super) fn is_mostly_outside(&self) -> bool {
        self.reserved.is_some_and(|reserved| self.outside() > reserved)
    }

    /// Whether the request is known to have been of a private pool.
    pub(super) fn is_of_private_pool(&self) -> bool {
        self.pool.is_some_and(|pool| pool != (0, 0))
    }

    /// Bytes free in the request's pool; where that is not known, in the default one.
    pub(super) fn free_in_pool(&self) -> Option<i64> {
        self.own_free_bytes.or(self.pool_free_bytes)
    }

    /// Bytes that were in no block, in whatever pool: more than that cannot have been free. `None` where more was in blocks than
    /// in segments: events of segments are missing, and nothing is known of what was free.
    pub(super) fn unallocated(&self) -> Option<i64> {
        let blocks = self.allocated?.saturating_add(self.pending_free_bytes?);
        self.reserved.map(|reserved| reserved.saturating_sub(blocks)).filter(|bytes| *bytes >= 0)
    }

    /// Bytes that the device has at least, as far as anybody accounts for them; `None` without the driver's word.
    pub(super) fn device_bytes(&self) -> Option<i64> {
        let held = self.reserved?.saturating_add(self.device_free?);
        Some(held.saturating_add(self.outside()))
    }

    /// Whether what is allocated leaves no more than a threshold's rest of what the pool could have; of the pool alone
    /// where nothing is known of the driver.
    pub(super) fn is_full(&self, threshold: f64) -> bool {
        let whole =
            self.reserved.map(|reserved| reserved.saturating_add(self.device_free.unwrap_or_default()));
        let part = self.allocated.zip(whole).and_then(|(allocated, whole)| share(allocated, whole));
        part.is_some_and(|part| part >= threshold)
    }

    /// Bytes that the allocator asks the driver for where nothing that it holds serves a request.
    ///
    /// Of an expandable segment a free end could be grown, so that fewer pages would do; but which end that is, and
    /// that it is free, is no more than a guess.
    pub(super) fn needed(&self, requested: i64) -> i64 {
        if self.is_expandable {
            pages(requested.max(1), requested)
        } else if requested <= MIB {
            2 * MIB
        } else if requested < 10 * MIB {
            20 * MIB
        } else {
            up_to(requested, 2 * MIB)
        }
    }

    /// Whether so many free bytes would have served a request if they had been one piece, the driver's memory added.
    ///
    /// A driver of which nothing is known has nothing to add: what is claimed then, the pool alone has to bear out.
    pub(super) fn would_do(&self, free: i64, requested: i64) -> bool {
        if self.is_expandable {
            return self.would_do_in_pages(free, requested);
        }
        let driver = self.device_free.unwrap_or_default();
        free >= requested || free > 0 && free.saturating_add(driver) >= self.needed(requested)
    }

    /// The same, of segments that grow by pages: the free bytes are the end that is grown, which takes fewest of them.
    pub(super) fn would_do_in_pages(&self, free: i64, requested: i64) -> bool {
        let lacking = pages(requested.saturating_sub(free), requested);
        free >= requested || free > 0 && self.device_free.is_some_and(|driver| driver >= lacking)
    }

    /// Bytes, largest piece and number of the free blocks that could be of use; those of the whole default pool where
    /// the request is not known.
    pub(super) fn free_blocks(&self) -> (Option<i64>, Option<i64>, Option<i64>) {
        if self.kind_free_bytes.is_some() {
            (self.kind_free_bytes, self.kind_largest_free, self.kind_hole_count)
        } else {
            (self.pool_free_bytes, self.largest_free_block, self.hole_count)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_the_sizes_that_the_allocator_asks_for() {
        let plain = State::default();
        assert_eq!(plain.needed(512), 2 * MIB);
        assert_eq!(plain.needed(MIB + 512), 20 * MIB);
        assert_eq!(plain.needed(10 * MIB), 10 * MIB);
        assert_eq!(plain.needed(11 * MIB), 12 * MIB);
        // Whatever is free somewhere: only a free end of the same stream and kind could be grown.
        let expandable = State { is_expandable: true, largest_free_block: Some(MIB), ..State::default() };
        assert_eq!(expandable.needed(512), 2 * MIB);
        assert_eq!(expandable.needed(60 * MIB), 60 * MIB);
        assert_eq!(expandable.needed(61 * MIB), 80 * MIB);
    }

    #[test]
    fn free_memory_and_the_drivers_make_up_a_segment_or_the_pages_that_lack() {
        let plain = State { device_free: Some(9 * MIB), ..State::default() };
        assert!(plain.would_do(3 * MIB, 12 * MIB));
        assert!(!plain.would_do(3 * MIB, 12 * MIB + 512), "a segment has 14 MiB then");
        assert!(!plain.would_do(0, 9 * MIB), "nothing of it was free in the pool");
        // 61 MiB of which 1 is there: three pages of 20 MiB.
        let paged =
            |driver: i64| State { is_expandable: true, device_free: Some(driver), ..State::default() };
        assert!(paged(60 * MIB).would_do(MIB, 61 * MIB));
        assert!(!paged(60 * MIB - 1).would_do(MIB, 61 * MIB));
        let unknown = State { is_expandable: true, ..State::default() };
        assert!(unknown.would_do(61 * MIB, 61 * MIB));
        assert!(!unknown.would_do(60 * MIB, 61 * MIB));
    }
}
