//! Who wrote a snapshot, told from the fields it has. Nothing in a snapshot names its producer.

use super::event::has;
use super::lists::Lists;
use super::segment::{SeenFields, Segments};
use super::stacks::Stacks;
use super::words;

/// What was seen at the top level and in the rows.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) top: &'a TopKeys,
    pub(super) fields: u16,
    pub(super) actions: u32,
    pub(super) seen: &'a SeenFields,
    pub(super) npu_frame: bool,
    pub(super) has_segments: bool,
    pub(super) from_cpp: bool,
}

/// Keys of the top level that tell the producer.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations, not states")]
pub(super) struct TopKeys {
    pub(super) is_list: bool,
    pub(super) settings: bool,
    pub(super) annotations: bool,
    pub(super) host: bool,
    /// A key that PyTorch 2.9 added to the settings.
    pub(super) settings_of_2_9: bool,
    /// The settings name no CUDA variable.
    pub(super) settings_of_xpu: bool,
}

/// The verdict.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Producer {
    /// `npu`, `cuda` or `legacy_list`.
    pub(super) dialect: &'static str,
    /// `Ascend-NPU` or `CUDA-GPU`.
    pub(super) device_type: &'static str,
    /// In words.
    pub(super) name: String,
    /// Whether nothing in the file decides between the two.
    pub(super) is_guess: bool,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(
        top: &'a TopKeys,
        lists: &Lists,
        segments: &'a Segments,
        stacks: &Stacks,
        from_cpp: bool,
    ) -> Self {
        Self {
            top,
            fields: lists.fields,
            actions: lists.actions,
            seen: &segments.seen,
            npu_frame: stacks.saw_npu_frame(),
            has_segments: segments.read > 0,
            from_cpp,
        }
    }

    fn has(&self, field: u16) -> bool {
        self.fields & field != 0
    }

    fn did(&self, action: u32) -> bool {
        self.actions >> (action - words::ALLOC) & 1 != 0
    }

    /// The verdict. What only one producer writes comes before what both might do.
    pub(super) fn producer(&self) -> Producer {
        let workspace = self.did(words::WORKSPACE_SNAPSHOT);
        let cuda = self.top.settings
            || self.top.annotations
            || self.top.host
            || self.has(has::TIME_US | has::COMPILE_CONTEXT | has::USER_METADATA)
            || self.did(words::ANNOTATE)
            || self.did(words::USER_DEFINED)
            || self.seen.history
            || self.seen.default_stream;
        // On CUDA the default stream is 0, which torch_npu's never is. Frames in torch_npu come last: they say what is
        // installed, the fields say who wrote.
        let is_npu = workspace || !cuda;
        let is_guess = is_npu && !workspace && !self.npu_frame && !self.has_segments;
        let name = if is_npu { self.npu_release() } else { self.torch_release() };
        let writer = if self.from_cpp { "C++ pickler" } else { "CPython pickle" };
        Producer {
            dialect: match (self.top.is_list, is_npu) {
                (true, _) => "legacy_list",
                (false, true) => "npu",
                (false, false) => "cuda",
            },
            device_type: if is_npu { "Ascend-NPU" } else { "CUDA-GPU" },
            name: format!("{name}, {writer}"),
            is_guess,
        }
    }

    fn npu_release(&self) -> &'static str {
        if self.has(has::POOL_ID) {
            "torch_npu >= 26.2"
        } else if self.did(words::WORKSPACE_SNAPSHOT) {
            "torch_npu >= 7.1"
        } else {
            "torch_npu"
        }
    }

    /// The first release that writes the newest field seen.
    fn torch_release(&self) -> &'static str {
        let releases = [
            (self.top.settings_of_xpu, "torch >= 2.11 (XPU)"),
            (self.top.host || self.did(words::ANNOTATE), "torch >= 2.14"),
            (self.has(has::POOL_ID), "torch >= 2.12"),
            (self.has(has::USER_METADATA), "torch >= 2.10"),
            (self.top.settings_of_2_9, "torch >= 2.9"),
            (self.has(has::COMPILE_CONTEXT), "torch >= 2.8"),
            (self.top.annotations, "torch >= 2.5"),
            (self.did(words::USER_DEFINED), "torch 2.5 nightly"),
            (self.top.settings, "torch >= 2.3"),
            (self.has(has::TIME_US), "torch >= 2.2"),
            (self.seen.block_address, "torch >= 2.1"),
            (self.seen.requested_size, "torch 2.0"),
            (self.seen.history || self.top.is_list, "torch 1.13"),
        ];
        releases.iter().find(|(seen, _)| *seen).map_or("torch >= 2.0", |(_, name)| name)
    }
}
