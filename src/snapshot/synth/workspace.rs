//! Workspace blocks of `torch_npu`: one growing block per stream beside the caching allocator, described at the dump only.

use super::event::Stream;
use super::schedule::{COLLECTIVE, COMPUTE};
use super::settings::{Dialect, Settings};
use crate::pickle::writer::Layout;

const MIB: u64 = 1 << 20;

/// A workspace block at the moment of the dump.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workspace {
    pub(super) address: u64,
    pub(super) size: u64,
    /// What was last asked for.
    pub(super) requested: u64,
    pub(super) stream: Stream,
}

impl Workspace {
    /// Entries in front of the trace per block: `workspace_snapshot`, `segment_alloc`, `alloc`.
    pub(super) const ENTRIES: u64 = 3;

    /// The workspace blocks of a device whose segments end before `free_address`.
    pub(super) fn of_device(settings: &Settings, free_address: u64) -> Vec<Self> {
        // torch_npu's C++ pickler knows nothing of workspaces.
        if settings.dialect != Dialect::Npu || !settings.workspace || settings.layout == Layout::Jit {
            return Vec::new();
        }
        let first = free_address.wrapping_add(64 * MIB);
        let block = |address: u64, requested: u64, stream| Self {
            address,
            size: (requested + 32).next_multiple_of(2 * MIB),
            requested,
            stream,
        };
        vec![
            block(first, 33 * MIB + 4_608, COMPUTE),
            block(first.wrapping_add(128 * MIB), 5 * MIB, COLLECTIVE),
        ]
    }
}
