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

/// A trace entry. What is not there keeps what the entry before had, so that a new one costs nothing: ask the methods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) action: u32,
    /// Which keys there were, as bits of [`has`].
    pub(super) present: u16,
    /// Which of them had another value than None.
    valued: u16,
    pub(super) frames: Frames,
    compile_context: u32,
    user_metadata: u32,
    addr: i64,
    device_free: i64,
    size: i64,
    stream: i64,
    time_us: i64,
    pool: (i64, i64),
}

impl Default for Event {
    fn default() -> Self {
        Self {
            action: u32::MAX,
            present: 0,
            valued: 0,
            frames: Frames::Absent,
            compile_context: 0,
            user_metadata: 0,
            addr: 0,
            device_free: 0,
            size: 0,
            stream: 0,
            time_us: 0,
            pool: (0, 0),
        }
    }
}

/// Declares how fields are asked for and set: by a method that says whether the field is there, and one that notes it.
macro_rules! fields {
    ($($field:ident, $set:ident: $type:ty = $bit:ident;)+) => {
        impl Event {
            $(
                #[doc = concat!("`", stringify!($field), "`, if the entry has it.")]
                #[inline]
                pub(super) fn $field(&self) -> Option<$type> {
                    (self.valued & has::$bit != 0).then_some(self.$field)
                }

                #[doc = concat!("Gives the entry its `", stringify!($field), "`.")]
                #[inline]
                pub(super) fn $set(&mut self, value: $type) -> u16 {
                    self.$field = value;
                    self.valued |= has::$bit;
                    has::$bit
                }
            )+
        }
    };
}

fields! {
    addr, set_addr: i64 = ADDR;
    device_free, set_device_free: i64 = DEVICE_FREE;
    size, set_size: i64 = SIZE;
    stream, set_stream: i64 = STREAM;
    time_us, set_time_us: i64 = TIME_US;
    pool, set_pool: (i64, i64) = POOL_ID;
    compile_context, set_compile_context: u32 = COMPILE_CONTEXT;
    user_metadata, set_user_metadata: u32 = USER_METADATA;
}

impl Event {
    /// Which keys had another value than None, as bits of [`has`].
    #[inline]
    pub(super) fn valued(&self) -> u16 {
        self.valued
    }

    /// Forgets the entry before.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.action = u32::MAX;
        self.present = 0;
        self.valued = 0;
        self.frames = Frames::Absent;
    }

    /// Reads the fields of an entry.
    pub(super) fn parse(state: &State, items: &[Value], stats: &mut Stats) -> Result<Self, BadField> {
        let mut event = Self::default();
        for pair in items.chunks_exact(2) {
            let [key, value] = *pair else { continue };
            let bit = event.parse_field(state, key, value, stats)?;
            if bit != has::OTHER && event.present & bit != 0 {
                stats.duplicate_keys += 1;
            }
            event.present |= bit;
        }
        Ok(event)
    }

    /// Reads one field and returns its bit. Of a key that stands twice the last value counts, None too.
    fn parse_field(
        &mut self,
        state: &State,
        key: Value,
        value: Value,
        stats: &mut Stats,
    ) -> Result<u16, BadField> {
        let absent = |event: &mut Self, bit: u16| {
            event.valued &= !bit;
            bit
        };
        let Value::Text(key) = key else { return Ok(has::OTHER) };
        Ok(match key {
            words::ACTION => {
                self.action = field::text(state, "action", value)?.unwrap_or(u32::MAX);
                has::ACTION
            }
            words::FRAMES => {
                self.frames = field::frames(state, "frames", value)?;
                has::FRAMES
            }
            words::ADDR => match field::bits(state, "addr", value)? {
                Some(addr) => self.set_addr(addr),
                None => absent(self, has::ADDR),
            },
            words::SIZE => match field::size(state, "size", value)? {
                Some(size) => self.set_size(size),
                None => absent(self, has::SIZE),
            },
            words::STREAM => match field::bits(state, "stream", value)? {
                Some(stream) => self.set_stream(stream),
                None => absent(self, has::STREAM),
            },
            words::TIME_US => match field::integer(state, "time_us", value)? {
                Some(time) => self.set_time_us(time),
                None => absent(self, has::TIME_US),
            },
            words::POOL_ID => match field::pool(state, "pool_id", value)? {
                Some(pool) => self.set_pool(pool),
                None => absent(self, has::POOL_ID),
            },
            words::COMPILE_CONTEXT => match field::text(state, "compile_context", value)? {
                Some(id) => self.set_compile_context(id),
                None => absent(self, has::COMPILE_CONTEXT),
            },
            words::USER_METADATA => match field::text(state, "user_metadata", value)? {
                Some(id) => self.set_user_metadata(id),
                None => absent(self, has::USER_METADATA),
            },
            words::DEVICE_FREE => match field::size(state, "device_free", value)? {
                Some(bytes) => self.set_device_free(bytes),
                None => absent(self, has::DEVICE_FREE),
            },
            other => {
                stats.unknown_key("traces", other);
                has::OTHER
            }
        })
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
            if self.valued & has::ADDR == 0 {
                return Err(BadField::missing("addr", "an address"));
            }
            if self.valued & has::SIZE == 0 {
                return Err(BadField::missing("size", "a number of bytes"));
            }
        }
        Ok(())
    }
}
