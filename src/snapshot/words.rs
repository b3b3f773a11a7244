//! The words of the format. The importer makes the machine know them first, so that a word's number is its position here.

use crate::pickle::State;

/// Declares the words once: a constant with the number of each, and the list.
macro_rules! words {
    ($($name:ident = $text:literal,)+) => {
        #[repr(u32)]
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "constants in order, not a type")]
        enum Position { $($name,)+ }

        $(
            pub(super) const $name: u32 = Position::$name as u32;
        )+

        /// Every word with its number, in the order of the numbers.
        const WORDS: &[(u32, &str)] = &[$(($name, $text)),+];
    };
}

words! {
    ACTION = "action",
    ADDR = "addr",
    SIZE = "size",
    STREAM = "stream",
    TIME_US = "time_us",
    FRAMES = "frames",
    POOL_ID = "pool_id",
    COMPILE_CONTEXT = "compile_context",
    USER_METADATA = "user_metadata",
    DEVICE_FREE = "device_free",
    ALLOC = "alloc",
    FREE_REQUESTED = "free_requested",
    FREE_COMPLETED = "free_completed",
    SEGMENT_ALLOC = "segment_alloc",
    SEGMENT_FREE = "segment_free",
    SEGMENT_MAP = "segment_map",
    SEGMENT_UNMAP = "segment_unmap",
    SNAPSHOT = "snapshot",
    OOM = "oom",
    ANNOTATE = "annotate",
    USER_DEFINED = "user_defined",
    WORKSPACE_SNAPSHOT = "workspace_snapshot",
    NAME = "name",
    FILENAME = "filename",
    LINE = "line",
    ADDRESS = "address",
    REQUESTED_SIZE = "requested_size",
    STATE = "state",
    HISTORY = "history",
    REAL_SIZE = "real_size",
    INACTIVE = "inactive",
    ACTIVE_ALLOCATED = "active_allocated",
    ACTIVE_PENDING_FREE = "active_pending_free",
    ACTIVE_AWAITING_FREE = "active_awaiting_free",
    DEVICE = "device",
    TOTAL_SIZE = "total_size",
    ALLOCATED_SIZE = "allocated_size",
    ACTIVE_SIZE = "active_size",
    SEGMENT_TYPE = "segment_type",
    SEGMENT_POOL_ID = "segment_pool_id",
    IS_EXPANDABLE = "is_expandable",
    BLOCKS = "blocks",
    LARGE = "large",
    STAGE = "stage",
    SEGMENTS = "segments",
    DEVICE_TRACES = "device_traces",
    ALLOCATOR_SETTINGS = "allocator_settings",
    EXTERNAL_ANNOTATIONS = "external_annotations",
    HOST_SEGMENTS = "host_segments",
    HOST_TRACES = "host_traces",
    TRACE_ALLOC_MAX_ENTRIES = "trace_alloc_max_entries",
    TRACE_ALLOC_OVERFLOWED = "trace_alloc_overflowed",
}

/// Whether a string's number is that of a word.
#[inline]
pub(super) fn is_word(number: u32) -> bool {
    usize::try_from(number).is_ok_and(|number| number < WORDS.len())
}

/// Keys the format has and the tables do not.
pub(super) const WITHOUT_COLUMN: &[&str] = &["internal_metadata", "forward_frames", "cpp_frames", "category"];

/// Makes a fresh machine know the words, each under its number.
pub(super) fn teach(state: &mut State) {
    for (number, word) in WORDS {
        let known = state.know(word);
        debug_assert_eq!(known, Some(*number), "`{word}` has another number than its constant");
    }
}
