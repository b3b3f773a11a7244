//! A trace entry as it stands in the file, and what has to be in it.

use super::fault::BadField;
use super::field::{self, Frames};
use super::stats::Stats;
use super::words;
use crate::pickle::{State, Value};

/// Fields of an entry, as bits, to note which of them were there.
pub(super) mod has {
    pub(in crate::snapshot) const ACTION: u16 = 1;
    pub(in crate::snapshot) const ADDR: u16 = 1 << 1;
    pub(in crate::snapshot) const SIZE: u16 = 1 << 2;
    pub(in crate::snapshot) const STREAM: u16 = 1 << 3;
    pub(in crate::snapshot) const TIME_US: u16 = 1 << 4;
    pub(in crate::snapshot) const FRAMES: u16 = 1 << 5;
    pub(in crate::snapshot) const POOL_ID: u16 = 1 << 6;
    pub(in crate::snapshot) const COMPILE_CONTEXT: u16 = 1 << 7;
    pub(in crate::snapshot) const USER_METADATA: u16 = 1 << 8;
    pub(in crate::snapshot) const DEVICE_FREE: u16 = 1 << 9;
    pub(in crate::snapshot) const OTHER: u16 = 1 << 10;
}

/// A trace entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) action: u32,
    pub(super) addr: Option<i64>,
    pub(super) device_free: Option<i64>,
    pub(super) size: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) time_us: Option<i64>,
    pub(super) pool: Option<(i64, i64)>,
    pub(super) compile_context: Option<u32>,
    pub(super) user_metadata: Option<u32>,
    pub(super) frames: Frames,
    /// Which fields there were, as bits of [`has`].
    pub(super) present: u16,
}

impl Default for Event {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Event {
    /// An entry without any field.
    pub(super) const EMPTY: Self = Self {
        action: u32::MAX,
        addr: None,
        device_free: None,
        size: None,
        stream: None,
        time_us: None,
        pool: None,
        compile_context: None,
        user_metadata: None,
        frames: Frames::Absent,
        present: 0,
    };

    /// Reads the fields of an entry.
    pub(super) fn parse(state: &State, items: &[Value], stats: &mut Stats) -> Result<Self, BadField> {
        let mut event = Self::EMPTY;
        for pair in items.chunks_exact(2) {
            let [key, value] = *pair else { continue };
            let bit = match key {
                Value::Text(words::ACTION) => {
                    event.action = field::text(state, "action", value)?.unwrap_or(u32::MAX);
                    has::ACTION
                }
                Value::Text(words::ADDR) => {
                    event.addr = field::bits(state, "addr", value)?;
                    has::ADDR
                }
                Value::Text(words::SIZE) => {
                    event.size = field::size(state, "size", value)?;
                    has::SIZE
                }
                Value::Text(words::STREAM) => {
                    event.stream = field::bits(state, "stream", value)?;
                    has::STREAM
                }
                Value::Text(words::TIME_US) => {
                    event.time_us = field::integer(state, "time_us", value)?;
                    has::TIME_US
                }
                Value::Text(words::FRAMES) => {
                    event.frames = field::frames(state, "frames", value)?;
                    has::FRAMES
                }
                Value::Text(words::POOL_ID) => {
                    event.pool = field::pool(state, "pool_id", value)?;
                    has::POOL_ID
                }
                Value::Text(words::COMPILE_CONTEXT) => {
                    event.compile_context = field::text(state, "compile_context", value)?;
                    has::COMPILE_CONTEXT
                }
                Value::Text(words::USER_METADATA) => {
                    event.user_metadata = field::text(state, "user_metadata", value)?;
                    has::USER_METADATA
                }
                Value::Text(words::DEVICE_FREE) => {
                    event.device_free = field::size(state, "device_free", value)?;
                    has::DEVICE_FREE
                }
                Value::Text(other) => {
                    stats.unknown_key("traces", other);
                    has::OTHER
                }
                _ => has::OTHER,
            };
            if bit != has::OTHER && event.present & bit != 0 {
                stats.duplicate_keys += 1;
            }
            event.present |= bit;
        }
        Ok(event)
    }

    /// Whether the action is one of the format's.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        (words::ALLOC..=words::WORKSPACE_SNAPSHOT).contains(&self.action)
    }

    /// Refuses an entry that lacks what its action needs: a curve would silently be wrong without it.
    #[inline]
    pub(super) fn check(&self) -> Result<(), BadField> {
        if self.action == u32::MAX {
            return Err(BadField::missing("action", "a string such as `alloc`"));
        }
        if (words::ALLOC..=words::SEGMENT_UNMAP).contains(&self.action) {
            if self.addr.is_none() {
                return Err(BadField::missing("addr", "an address"));
            }
            if self.size.is_none() {
                return Err(BadField::missing("size", "a number of bytes"));
            }
        }
        Ok(())
    }
}
