//! What only CUDA's snapshots have at the top level: the allocator's settings, and ranges that the program named.

use std::io::{self, Write};

use super::emit::{Emitter, length};
use super::training::Annotation;

impl<W: Write> Emitter<'_, W> {
    /// `allocator_settings` of CUDA.
    pub(super) fn allocator_settings(&mut self) -> io::Result<()> {
        let expandable = self.settings.expandable;
        self.word("allocator_settings")?;
        self.pickle.open_dict(8)?;
        self.word("PYTORCH_CUDA_ALLOC_CONF")?;
        self.word(if expandable { "expandable_segments:True" } else { "" })?;
        self.word("max_split_size")?;
        self.pickle.signed(-1)?;
        self.word("garbage_collection_threshold")?;
        self.pickle.float(0.0)?;
        self.word("expandable_segments")?;
        self.pickle.boolean(expandable)?;
        self.word("pinned_num_register_threads")?;
        self.pickle.unsigned(1)?;
        self.word("release_lock_on_cudamalloc")?;
        self.pickle.boolean(false)?;
        self.word("pinned_use_cuda_host_register")?;
        self.pickle.boolean(false)?;
        self.word("roundup_power2_divisions")?;
        self.pickle.open_dict(16)?;
        for power in 0..16 {
            self.pickle.text(&(1_u32 << power).to_string())?;
            self.pickle.unsigned(0)?;
        }
        self.close_held()?;
        self.close_held()
    }

    /// `external_annotations` of CUDA: one START and one END per range, in the order of time within a device.
    pub(super) fn annotations(&mut self, devices: &[Vec<Annotation>]) -> io::Result<()> {
        let mut entries: Vec<(u64, &str, usize)> = Vec::new();
        for (device, annotations) in devices.iter().enumerate() {
            for annotation in annotations {
                entries.push((annotation.begin_us, "START", device));
                entries.push((annotation.end_us, "END", device));
            }
        }
        // One ring buffer for all devices.
        entries.sort_by_key(|(time_us, _, device)| (*time_us, *device));
        let kept = self
            .settings
            .max_entries
            .map_or(entries.len(), |most| usize::try_from(most).unwrap_or(usize::MAX));
        let entries = entries.split_off(entries.len().saturating_sub(kept));
        self.word("external_annotations")?;
        self.pickle.open_list(length(&entries)?)?;
        for (time_us, stage, device) in entries {
            self.pickle.open_dict(4)?;
            // These two come from a map of C++ strings: new texts each time.
            self.pickle.text("stage")?;
            self.word(stage)?;
            self.pickle.text("name")?;
            self.word("Optimizer.step#ShardedAdamW.step")?;
            self.word("device")?;
            self.pickle.unsigned(u64::try_from(device).map_err(io::Error::other)?)?;
            self.word("time_us")?;
            self.pickle.unsigned(time_us)?;
            self.pickle.close()?;
        }
        self.close_held()
    }
}
