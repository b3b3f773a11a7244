//! The end of an import: ids are complete, so the tables that refer to everything are written.

use super::devices::HOST;
use super::dialect::{Evidence, Producer};
use super::fault::Fault;
use super::import::Import;
use super::output::{BATCH_ROWS, BATCH_TEXT, Texts};
use super::stacks::TooLarge;
use super::stats::Severity;
use super::top::Top;
use super::{Summary, words};
use crate::pickle::{End, State};
use crate::schema::{
    Annotation, AnnotationsBuilder, CallStack, CallStacksBuilder, Device, DevicesBuilder, ImportStat,
    ImportStatsBuilder, Segment, SegmentsBuilder, Snapshot, SnapshotBuilder, Symbol, VERSION, note,
};

/// Rows of `call_stacks` in a batch, and bytes of their JSON: each holds its frames in full, twice.
const STACK_BATCH_ROWS: usize = 4096;
const STACK_BATCH_TEXT: usize = 1 << 20;

/// What is known of the file when it has been read.
pub(super) struct FileFacts {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// `None` where no row is made.
    pub(super) sha256: Option<String>,
    /// The form and what it is wrapped in, such as `pickle+gzip`.
    pub(super) container: String,
    pub(super) protocol: Option<i64>,
    pub(super) is_from_cpp: bool,
}

/// How the reading of a file ended.
pub(super) enum Ending {
    /// At the end of the snapshot.
    Whole(End),
    /// At damage, and what stands before it is to be kept.
    Damaged(Fault),
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Import<'_> {
    /// Writes what is left.
    pub(super) fn finish(
        mut self,
        state: &State,
        ending: Ending,
        file: FileFacts,
        layers: &[&'static str],
    ) -> Result<Summary, Fault> {
        self.lists.close(state, &mut self.output)?;
        let (top, trailing, salvaged) = match ending {
            Ending::Whole(end) => (self.check_top(state, end.root)?, end.trailing, None),
            Ending::Damaged(fault) => {
                let (top, salvaged) = self.salvage(state, fault, layers)?;
                (top, 0, Some(salvaged))
            }
        };
        self.output.flush(state)?;
        self.devices.complete();
        let producer =
            Evidence::new(&top.keys, &self.lists, &self.segments, &self.stacks, file.is_from_cpp).producer();
        self.write_call_stacks(state)?;
        self.write_devices(state, &producer)?;
        self.write_annotations(state)?;
        self.count_what_was_odd(state, trailing, &top, &producer, salvaged.is_some());
        let segment_count = u64::try_from(self.segments.rows.len()).unwrap_or(u64::MAX);
        self.write_segments(state)?;
        let rows = self.stats.rows(&self.devices);
        let mut stats = ImportStatsBuilder::default();
        for row in rows {
            stats.push(row);
        }
        self.output.write(&ImportStat::TABLE, stats.finish(&Texts(state)))?;
        let summary = Summary {
            bytes: file.bytes,
            devices: u64::try_from(self.devices.rows().len()).unwrap_or(u64::MAX),
            segments: segment_count,
            blocks: u64::try_from(self.output.block_count()).unwrap_or(u64::MAX),
            events: u64::try_from(self.output.trace_count()).unwrap_or(u64::MAX),
            stacks: u64::try_from(self.stacks.row_count()).unwrap_or(u64::MAX),
            events_read_ahead: self.events_read_ahead,
            warnings: self.stats.warnings(),
            salvaged,
        };
        self.write_snapshot(state, top, producer, file, summary.segments)?;
        Ok(summary)
    }

    fn write_call_stacks(&mut self, state: &State) -> Result<(), Fault> {
        self.stacks.check_sizes().map_err(|TooLarge| Fault::Shape {
            at: "frames".to_owned(),
            expected: "call stacks of at most 256 MiB, and 16 GiB in all".to_owned(),
            found: "more".to_owned(),
        })?;
        if !self.output.is_wanted() {
            return Ok(());
        }
        let mut builder = CallStacksBuilder::default();
        let mut text = 0;
        for row in 1..=self.stacks.row_count() {
            if let Some(stack) = self.stacks.call_stack(row) {
                text += stack.frames_json.len();
                builder.push(stack);
            }
            if builder.len() >= STACK_BATCH_ROWS || text >= STACK_BATCH_TEXT {
                text = 0;
                self.output.write(&CallStack::TABLE, builder.finish(&Texts(state)))?;
            }
        }
        Ok(self.output.write(&CallStack::TABLE, builder.finish(&Texts(state)))?)
    }

    fn write_devices(&mut self, state: &State, producer: &Producer) -> Result<(), Fault> {
        let mut builder = DevicesBuilder::default();
        for (id, device_index) in self.devices.rows() {
            builder.push(Device { id, device_index, device_type: producer.device_type.to_owned() });
        }
        Ok(self.output.write(&Device::TABLE, builder.finish(&Texts(state)))?)
    }

    fn write_segments(&mut self, state: &State) -> Result<(), Fault> {
        let mut builder = SegmentsBuilder::default();
        let mut text = 0;
        for facts in std::mem::take(&mut self.segments.rows) {
            let device_id = self.devices.id(facts.row.device_id).unwrap_or_default();
            text += facts.row.segment_type.map_or(0, |name| state.text_length(name.0));
            builder.push(Segment { device_id, ..facts.row });
            if builder.len() >= BATCH_ROWS || text >= BATCH_TEXT {
                text = 0;
                self.output.write(&Segment::TABLE, builder.finish(&Texts(state)))?;
            }
        }
        Ok(self.output.write(&Segment::TABLE, builder.finish(&Texts(state)))?)
    }

    fn write_annotations(&mut self, state: &State) -> Result<(), Fault> {
        let mut builder = AnnotationsBuilder::default();
        let (mut unplaced, mut text) = (0, 0);
        for annotated in std::mem::take(&mut self.annotations) {
            if annotated.device.is_some_and(|device| !self.lists.keeps_device(device)) {
                continue;
            }
            let device_id = annotated.device.and_then(|index| self.devices.id(index));
            unplaced += i64::from(device_id.is_none());
            let at = annotated.device.zip(annotated.time_us);
            let owned = |id: Option<u32>| id.map(|id| state.text(id).to_owned());
            let (stage, name) = (owned(annotated.stage), owned(annotated.name));
            text += [&stage, &name].into_iter().flatten().map(String::len).sum::<usize>();
            builder.push(Annotation {
                device_id,
                stage,
                name,
                time_us: annotated.time_us,
                trace_index: at.and_then(|(device, time)| self.lists.event_at(device, time)),
            });
            if builder.len() >= BATCH_ROWS || text >= BATCH_TEXT {
                text = 0;
                self.output.write(&Annotation::TABLE, builder.finish(&Texts(state)))?;
            }
        }
        let doc = "annotations of devices that have neither segments nor events";
        self.stats.add(Severity::Info, "annotations_without_device", None, unplaced, doc);
        Ok(self.output.write(&Annotation::TABLE, builder.finish(&Texts(state)))?)
    }

    fn count_what_was_odd(
        &mut self,
        state: &State,
        trailing: u64,
        top: &Top,
        producer: &Producer,
        is_damaged: bool,
    ) {
        self.lists.report(&mut self.stats);
        self.segments.report(&mut self.stats);
        self.stats.name_unknown(state);
        self.count_workspaces(producer, is_damaged);
        let mut add = |severity, name, value, doc| self.stats.add(severity, name, None, value, doc);
        add(
            Severity::Info,
            "trailing_bytes",
            signed(trailing),
            "bytes other than zero behind the end of the pickle; not read",
        );
        add(
            Severity::Info,
            "escaped_strings",
            signed(state.escaped_texts()),
            "strings that are no valid UTF-8, such as file names with lone surrogates; shown with escapes",
        );
        add(
            Severity::Info,
            "values_not_kept",
            signed(state.tree().lost()),
            "containers under unknown keys that were too large to look at",
        );
        add(
            Severity::DataLoss,
            "memo_overwritten",
            signed(state.overwritten_memo()),
            "memo entries stored twice; no PyTorch writes that",
        );
        let without_traces = i64::from(top.trace_lists.is_none());
        add(
            Severity::Info,
            "no_device_traces",
            without_traces,
            if is_damaged { note::DEVICE_TRACES_LOST.0 } else { note::NO_DEVICE_TRACES.0 },
        );
        add(
            Severity::Info,
            "device_type_guessed",
            i64::from(producer.is_guess),
            "nothing in the snapshot tells NPU from CUDA; device_type is a guess",
        );
        add(
            Severity::Info,
            "producer_is_xpu",
            i64::from(top.keys.settings_of_xpu),
            "the settings are those of an Intel XPU; device_type says CUDA-GPU, whose fields it shares",
        );
    }

    /// Adds up the segments that `torch_npu`'s workspace allocator owns.
    fn count_workspaces(&mut self, producer: &Producer, is_damaged: bool) {
        let doc = "bytes in workspace segments; they are no part of the caching allocator's reserved memory";
        for facts in &self.segments.rows {
            let row = &facts.row;
            let announced = self.lists.workspaces(row.device_id);
            if row.address.is_some_and(|address| announced.contains(&(address, row.total_size))) {
                let device = Some(row.device_id);
                self.stats.add(Severity::Info, "workspace_bytes", device, row.total_size, doc);
            }
        }
        if producer.device_type != "Ascend-NPU" || self.lists.has_workspaces() {
            return;
        }
        let doc = if is_damaged { note::WORKSPACE_GUESS_OF_REST.0 } else { note::WORKSPACE_GUESS.0 };
        for index in self.workspace_guesses() {
            let Some(facts) = self.segments.rows.get(index) else { continue };
            let device = Some(facts.row.device_id);
            self.stats.add(Severity::Info, "workspace_guess_bytes", device, facts.row.total_size, doc);
        }
    }

    /// `torch_npu` appends workspace segments behind the sorted ones of all devices.
    fn workspace_guesses(&self) -> std::ops::Range<usize> {
        let own: Vec<_> = self.segments.rows.iter().take_while(|facts| facts.row.device_id != HOST).collect();
        let looks_like_one = |row: &Segment| {
            row.segment_type == Some(Symbol(words::LARGE))
                && row.is_expandable != Some(1)
                && [row.pool_id_0, row.pool_id_1] == [Some(0); 2]
                && [row.allocated_size, row.active_size, row.requested_size] == [Some(0); 3]
        };
        let tail = own
            .iter()
            .rev()
            .take_while(|facts| facts.is_one_inactive_block && looks_like_one(&facts.row))
            .count();
        let key = |index: usize| own.get(index).map(|facts| (facts.row.device_id, facts.row.address));
        let is_break = |index: &usize| index.checked_sub(1).is_some_and(|before| key(*index) < key(before));
        match (own.len() - tail..own.len()).find(is_break) {
            Some(first) => first..own.len(),
            None => 0..0,
        }
    }

    fn write_snapshot(
        &mut self,
        state: &State,
        top: Top,
        producer: Producer,
        file: FileFacts,
        segment_count: u64,
    ) -> Result<(), Fault> {
        let Some(sha256) = file.sha256 else { return Ok(()) };
        let mut builder = SnapshotBuilder::default();
        builder.push(Snapshot {
            source_name: file.name,
            source_bytes: signed(file.bytes),
            sha256,
            container: file.container,
            dialect: producer.dialect.to_owned(),
            form: if top.keys.is_list { "list" } else { "dict" }.to_owned(),
            producer: producer.name,
            protocol: file.protocol,
            trace_lists: top.trace_lists,
            event_count: self.output.trace_count(),
            segment_count: signed(segment_count),
            block_count: self.output.block_count(),
            stack_count: length(self.stacks.row_count()),
            allocator_settings: top.settings,
            block_padding: None,
            schema_version: VERSION,
            npusnap_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        Ok(self.output.write(&Snapshot::TABLE, builder.finish(&Texts(state)))?)
    }
}
