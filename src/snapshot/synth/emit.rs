//! Writes the simulated objects as a pickle, with the identities they have in the process that dumps them.
//!
//! Who shares what decides how a snapshot looks: keys and enumerated texts are one object each, a frame is one dict
//! for all lists it is in, a walk of the call stack is one list, blocks without a walk share one empty list.

use std::collections::HashMap;
use std::io::{self, Write};

use super::event::{Gather, Stream};
use super::heap::{Block, Segment};
use super::settings::{Dialect, Settings};
use super::stacks::Stacks;
use super::workspace::Workspace;
use crate::pickle::writer::{Ref, Symbol, Writer};

/// The keys of all dicts but the trace's.
struct Keys {
    device: Symbol,
    address: Symbol,
    total_size: Symbol,
    allocated_size: Symbol,
    active_size: Symbol,
    requested_size: Symbol,
    stream: Symbol,
    segment_type: Symbol,
    segment_pool_id: Symbol,
    is_expandable: Symbol,
    blocks: Symbol,
    size: Symbol,
    state: Symbol,
    frames: Symbol,
    name: Symbol,
    filename: Symbol,
    line: Symbol,
}

/// A pickle of a snapshot in the making.
pub(super) struct Emitter<'a, W> {
    pub(super) pickle: Writer<W>,
    pub(super) settings: &'a Settings,
    stacks: &'a Stacks,
    keys: Keys,
    /// Dicts of frames that are written.
    frames: Vec<Option<Ref>>,
    /// Lists that the final state wrote before a second run of the simulation meets the same walks in the trace.
    early: Vec<HashMap<u64, Ref, foldhash::fast::FixedState>>,
    no_frames: Option<Ref>,
}

impl<'a, W: Write> Emitter<'a, W> {
    /// Begins a pickle.
    pub(super) fn new(out: W, settings: &'a Settings, stacks: &'a Stacks) -> io::Result<Self> {
        let mut pickle = Writer::new(out, settings.layout)?;
        let keys = Keys {
            device: pickle.intern("device"),
            address: pickle.intern("address"),
            total_size: pickle.intern("total_size"),
            allocated_size: pickle.intern("allocated_size"),
            active_size: pickle.intern("active_size"),
            requested_size: pickle.intern("requested_size"),
            stream: pickle.intern("stream"),
            segment_type: pickle.intern("segment_type"),
            segment_pool_id: pickle.intern("segment_pool_id"),
            is_expandable: pickle.intern("is_expandable"),
            blocks: pickle.intern("blocks"),
            size: pickle.intern("size"),
            state: pickle.intern("state"),
            frames: pickle.intern("frames"),
            name: pickle.intern("name"),
            filename: pickle.intern("filename"),
            line: pickle.intern("line"),
        };
        let devices = usize::try_from(settings.devices).map_err(io::Error::other)?;
        Ok(Self {
            pickle,
            settings,
            stacks,
            keys,
            frames: vec![None; stacks.frame_count()],
            early: vec![HashMap::default(); devices],
            no_frames: None,
        })
    }

    /// Writes a text that is one object wherever it stands.
    pub(super) fn word(&mut self, text: &str) -> io::Result<()> {
        let symbol = self.pickle.intern(text);
        self.pickle.symbol(symbol)
    }

    /// The list of frames of a walk.
    pub(super) fn walk(&mut self, device: usize, gather: &Gather) -> io::Result<()> {
        let early = self.early.get(device).and_then(|early| early.get(&gather.number)).copied();
        if let Some(list) = gather.list.get().or(early) {
            return self.pickle.reference(list);
        }
        let stacks = self.stacks;
        let stack = stacks.stack(gather.stack);
        self.pickle.open_list(length(stack)?)?;
        for &number in stack {
            self.frame(number)?;
        }
        gather.list.set(Some(self.pickle.close_shared()?));
        Ok(())
    }

    /// Writes the walk, or the empty list that all things without one share.
    fn walk_or_none(&mut self, device: usize, gather: Option<&Gather>) -> io::Result<()> {
        let Some(gather) = gather else { return self.no_frames() };
        self.walk(device, gather)?;
        if let (Some(early), Some(list)) = (self.early.get_mut(device), gather.list.get()) {
            early.insert(gather.number, list);
        }
        Ok(())
    }

    fn frame(&mut self, number: usize) -> io::Result<()> {
        if let Some(written) = self.frames.get(number).copied().flatten() {
            return self.pickle.reference(written);
        }
        let stacks = self.stacks;
        let Some(frame) = stacks.frame(number) else {
            return Err(io::Error::other("a call stack names a frame that is not there"));
        };
        self.pickle.open_dict(3)?;
        self.pickle.symbol(self.keys.name)?;
        self.pickle.text(&frame.name)?;
        self.pickle.symbol(self.keys.filename)?;
        self.pickle.text(&frame.filename)?;
        self.pickle.symbol(self.keys.line)?;
        self.pickle.unsigned(frame.line)?;
        let written = self.pickle.close_shared()?;
        if let Some(place) = self.frames.get_mut(number) {
            *place = Some(written);
        }
        Ok(())
    }

    fn no_frames(&mut self) -> io::Result<()> {
        if let Some(list) = self.no_frames {
            return self.pickle.reference(list);
        }
        self.pickle.open_list(0)?;
        self.no_frames = Some(self.pickle.close_shared()?);
        Ok(())
    }

    /// A caching segment of a device.
    pub(super) fn segment(&mut self, device: usize, segment: &Segment<'_>) -> io::Result<()> {
        let Some((_, head)) = segment.blocks.first() else { return Ok(()) };
        self.pickle.open_dict(12)?;
        self.segment_sizes(device, segment)?;
        let pool = if head.pool.small { "small" } else { "large" };
        self.segment_kind(device, head.pool.stream, pool, self.settings.expandable)?;
        // Frames are put in when the walks are symbolised, which is after all else; only their absence is known before.
        let walk = head.segment_context.as_deref();
        if walk.is_none() {
            self.pickle.symbol(self.keys.frames)?;
            self.no_frames()?;
        }
        self.pickle.symbol(self.keys.blocks)?;
        self.pickle.open_list(length(&segment.blocks)?)?;
        for (address, block) in &segment.blocks {
            self.block(device, *address, block)?;
        }
        self.pickle.close()?;
        if walk.is_some() {
            self.pickle.symbol(self.keys.frames)?;
            self.walk_or_none(device, walk)?;
        }
        self.close_row(walk.is_some())
    }

    fn segment_sizes(&mut self, device: usize, segment: &Segment<'_>) -> io::Result<()> {
        let device = u64::try_from(device).map_err(io::Error::other)?;
        for (key, value) in [
            (self.keys.device, device),
            (self.keys.address, segment.address),
            (self.keys.total_size, segment.total_size()),
            (self.keys.allocated_size, segment.allocated_size()),
            (self.keys.active_size, segment.active_size()),
            (self.keys.requested_size, segment.requested_size()),
        ] {
            self.number(key, value)?;
        }
        Ok(())
    }

    fn segment_kind(
        &mut self,
        device: usize,
        stream: Stream,
        pool: &str,
        expandable: bool,
    ) -> io::Result<()> {
        let stream = stream_pointer(self.settings.dialect, device, stream);
        self.number(self.keys.stream, stream)?;
        // The two producers agree on all but this order.
        if self.settings.dialect == Dialect::Npu {
            self.segment_pool_id()?;
        }
        self.pickle.symbol(self.keys.segment_type)?;
        self.word(pool)?;
        if self.settings.dialect != Dialect::Npu {
            self.segment_pool_id()?;
        }
        self.pickle.symbol(self.keys.is_expandable)?;
        self.pickle.boolean(expandable)
    }

    fn segment_pool_id(&mut self) -> io::Result<()> {
        self.pickle.symbol(self.keys.segment_pool_id)?;
        self.pickle.pair(0, 0)
    }

    fn block(&mut self, device: usize, address: u64, block: &Block) -> io::Result<()> {
        self.pickle.open_dict(5)?;
        self.number(self.keys.address, address)?;
        self.number(self.keys.size, block.size)?;
        self.number(self.keys.requested_size, block.requested)?;
        self.pickle.symbol(self.keys.state)?;
        self.word(block.state.name())?;
        self.pickle.symbol(self.keys.frames)?;
        self.walk_or_none(device, block.context.as_deref())?;
        self.close_row(block.context.is_some())
    }

    /// A workspace block as the segment that `torch_npu` lists it as.
    pub(super) fn workspace_segment(&mut self, device: usize, workspace: &Workspace) -> io::Result<()> {
        let index = u64::try_from(device).map_err(io::Error::other)?;
        self.pickle.open_dict(12)?;
        for (key, value) in [
            (self.keys.device, index),
            (self.keys.address, workspace.address),
            (self.keys.total_size, workspace.size),
            (self.keys.allocated_size, 0),
            (self.keys.active_size, 0),
            (self.keys.requested_size, 0),
        ] {
            self.number(key, value)?;
        }
        self.segment_kind(device, workspace.stream, "large", false)?;
        self.pickle.symbol(self.keys.frames)?;
        self.no_frames()?;
        self.pickle.symbol(self.keys.blocks)?;
        self.pickle.open_list(1)?;
        self.pickle.open_dict(5)?;
        self.number(self.keys.address, workspace.address)?;
        self.number(self.keys.size, workspace.size)?;
        self.number(self.keys.requested_size, workspace.requested)?;
        self.pickle.symbol(self.keys.state)?;
        self.word("inactive")?;
        self.pickle.symbol(self.keys.frames)?;
        self.no_frames()?;
        self.pickle.close()?;
        self.pickle.close()?;
        self.pickle.close()
    }

    /// Closes a dict that a list of the symboliser points at, too, if it shows a walk.
    pub(super) fn close_row(&mut self, shows_walk: bool) -> io::Result<()> {
        if shows_walk {
            self.pickle.close_shared()?;
            Ok(())
        } else {
            self.pickle.close()
        }
    }

    pub(super) fn number(&mut self, key: Symbol, value: u64) -> io::Result<()> {
        self.pickle.symbol(key)?;
        self.pickle.unsigned(value)
    }

    /// Closes a container that the C++ pickler keeps a second reference to.
    pub(super) fn close_held(&mut self) -> io::Result<()> {
        self.pickle.close_shared().map(|_| ())
    }
}

impl<W> std::fmt::Debug for Emitter<'_, W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Emitter").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Number of items.
pub(super) fn length<T>(items: &[T]) -> io::Result<u64> {
    u64::try_from(items.len()).map_err(io::Error::other)
}

/// The pointer that a stream is known by. Only CUDA's default stream is the null pointer.
pub(super) fn stream_pointer(dialect: Dialect, device: usize, stream: Stream) -> u64 {
    let device = u64::try_from(device).unwrap_or(0);
    let number = u64::try_from(stream.0).unwrap_or(0);
    match dialect {
        Dialect::Npu => 0xaaac_1b2e_5d40 + device * 0x2_0000 + number * 0x70c0,
        _ if number == 0 => 0,
        _ => 0x55e1_7f0c_a2b0 + device * 0x2_0000 + number * 0x60,
    }
}
