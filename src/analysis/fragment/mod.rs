//! Fragment: where the memory is that is reserved but not allocated, and whether that hurts.
//!
//! Four things look alike in `reserved - allocated` and are told apart here: frees that wait for another stream, holes in
//! segments in use, whole free segments (cache), and what is free in private pools.

mod figures;
mod findings;
mod pools;
mod workspace;

use serde_json::{Value, json};

pub use pools::{ExpansionCause, PoolOverview};

use super::chart::{self, ChartFigure};
use super::language::Lang;
use super::outcome::{Figure, Finding, Outcome};
use super::thresholds::Thresholds;
use super::{Analysis, DeviceOverview, Scope};
use crate::engine::{Engine, row};
use crate::error::Result;
use crate::quantity;

row! {
    /// Unallocated memory of a device, by what it is.
    pub struct DeviceFragmentation from "device_fragmentation" {
        /// Device number in the snapshot; -1 is pinned host memory.
        device_index: i64,
        /// Bytes in segments.
        reserved: i64,
        /// Bytes in allocated blocks.
        allocated: i64,
        /// Bytes in blocks that are allocated or wait for a pending free.
        active: i64,
        /// (reserved - allocated) / reserved; NULL where nothing is reserved.
        fragmentation_ratio: Option<f64>,
        /// Bytes in blocks that wait for a pending free.
        pending_free_bytes: i64,
        /// Those blocks.
        pending_free_count: i64,
        /// `pending_free_bytes` / (reserved - allocated).
        pending_free_share: Option<f64>,
        /// Bytes free inside segments of the default pool that are in use.
        hole_bytes: i64,
        /// Those blocks.
        hole_count: i64,
        /// Bytes of the largest free block, in whatever pool.
        largest_free_block: i64,
        /// Bytes of the largest free block inside segments of the default pool that are in use.
        largest_hole: i64,
        /// Bytes in whole free segments of the default pool.
        unused_segment_bytes: i64,
        /// Those segments.
        unused_segment_count: i64,
        /// Bytes of the largest of them.
        largest_unused_segment: i64,
        /// Bytes in segments of private pools.
        private_reserved: i64,
        /// Bytes free in them.
        private_free_bytes: i64,
        /// Those segments.
        private_segment_count: i64,
        /// Bytes that rounding adds to active blocks.
        internal_waste_bytes: Option<i64>,
        /// Segments.
        segment_count: i64,
        /// Of them, expandable ones.
        expandable_count: i64,
        /// Bytes of NPU workspace segments, which are in no other field.
        workspace_bytes: i64,
        /// Of the whole free segments, bytes of those that may be an NPU's workspace: there is no history that says so.
        workspace_like_bytes: i64,
        /// Of them, bytes of those that stand out of order, as only workspaces do.
        workspace_guess_bytes: i64,
    }
}

row! {
    /// A segment and how much of it is not allocated.
    pub struct SegmentFragmentation from "segment_fragmentation" {
        /// Row of table `segments`.
        segment_id: i64,
        /// Device number in the snapshot.
        device_index: i64,
        /// Start address.
        address: Option<i64>,
        /// Bytes reserved from the driver.
        total_size: i64,
        /// Bytes in allocated blocks.
        allocated_size: i64,
        /// Bytes in blocks that wait for a pending free.
        pending_free_bytes: i64,
        /// Bytes in free blocks.
        free_bytes: i64,
        /// Free blocks.
        hole_count: i64,
        /// Bytes of the largest of them.
        largest_free_block: i64,
        /// Bytes that rounding adds to active blocks.
        internal_waste_bytes: Option<i64>,
        /// (total_size - allocated_size) / total_size.
        fragmentation_ratio: Option<f64>,
        /// Bytes asked for in active blocks / total_size.
        utilisation_ratio: Option<f64>,
        /// `large` or `small`.
        segment_type: Option<String>,
        /// Stream that owns it.
        stream: Option<i64>,
        /// 1 in a private pool.
        is_private: i64,
        /// 1 for an expandable segment.
        is_expandable: i64,
        /// 1 where no block is active.
        is_unused: i64,
    }
}

row! {
    /// Free blocks of a stream and kind against what is typically asked for.
    pub struct FreeBlocks from "free_blocks" {
        /// Device number in the snapshot.
        device_index: i64,
        /// Stream.
        stream: Option<i64>,
        /// `large` or `small`.
        segment_type: Option<String>,
        /// Bytes in free blocks.
        free_bytes: i64,
        /// Free blocks.
        free_count: i64,
        /// Bytes of the largest of them.
        largest_free_block: i64,
        /// Requests they are compared with.
        request_count: i64,
        /// Half of the requests are of so many bytes or fewer.
        median_request: Option<i64>,
        /// Nine of ten are of so many bytes or fewer.
        p90_request: Option<i64>,
        /// Bytes of the largest request.
        largest_request: Option<i64>,
        /// Bytes in free blocks that a median request fits in.
        fits_median_bytes: Option<i64>,
        /// Bytes in free blocks that nine of ten requests fit in.
        fits_p90_bytes: Option<i64>,
        /// `events` or `blocks`: what the requests are taken from.
        requests_from: Option<String>,
    }
}

/// See the module.
#[derive(Debug)]
pub struct Fragment;

impl Analysis for Fragment {
    fn name(&self) -> &'static str {
        "fragment"
    }

    fn relations(&self) -> &'static [&'static str] {
        &[
            "segment_fragmentation",
            "device_fragmentation",
            "free_blocks",
            "pool_overview",
            "expansion_cause_dist",
        ]
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        Ok(Box::new(FragmentOutcome {
            devices: scope.rows(engine)?,
            segments: scope.rows(engine)?,
            requests: scope.rows(engine)?,
            pools: scope.rows(engine)?,
            expansions: scope.rows(engine)?,
            failed: DeviceOverview::read(engine, scope)?
                .iter()
                .filter(|device| device.oom_count > 0)
                .map(|device| device.device_index)
                .collect(),
            thresholds: thresholds.clone(),
        }))
    }
}

/// Everything of every device; pinned host memory is among them and shown apart.
#[derive(Debug)]
struct FragmentOutcome {
    devices: Vec<DeviceFragmentation>,
    segments: Vec<SegmentFragmentation>,
    requests: Vec<FreeBlocks>,
    pools: Vec<PoolOverview>,
    expansions: Vec<ExpansionCause>,
    /// Devices on which a request failed before the dump.
    failed: Vec<i64>,
    thresholds: Thresholds,
}

impl FragmentOutcome {
    /// Devices, without pinned host memory.
    fn devices(&self) -> impl Iterator<Item = &DeviceFragmentation> {
        self.devices.iter().filter(|device| device.device_index >= 0)
    }

    fn device_json(&self, device: &DeviceFragmentation) -> Value {
        let mut json = json!(device);
        let index = device.device_index;
        let requests: Vec<Value> =
            self.requests.iter().filter(|row| row.device_index == index).map(|row| json!(row)).collect();
        let pools: Vec<Value> =
            self.pools.iter().filter(|row| row.device_index == index).map(|row| json!(row)).collect();
        let expansions: Vec<Value> =
            self.expansions.iter().filter(|row| row.device_index == index).map(|row| json!(row)).collect();
        if let Some(json) = json.as_object_mut() {
            json.insert("requests".to_owned(), json!(requests));
            json.insert("pools".to_owned(), json!(pools));
            json.insert("expansions".to_owned(), json!(expansions));
        }
        json
    }

    fn segments_json(&self, wanted: impl Fn(&SegmentFragmentation) -> bool) -> Vec<Value> {
        self.segments.iter().filter(|segment| wanted(segment)).map(segment_json).collect()
    }
}

fn segment_json(segment: &SegmentFragmentation) -> Value {
    let mut json = json!(segment);
    if let Some(address) = json.get_mut("address") {
        *address = json!(segment.address.map(quantity::address));
    }
    json
}

impl Outcome for FragmentOutcome {
    fn json(&self, _lang: Lang) -> Value {
        let host: Vec<Value> = self
            .devices
            .iter()
            .filter(|device| device.device_index < 0)
            .map(|device| self.device_json(device))
            .collect();
        json!({
            "devices": self.devices().map(|device| self.device_json(device)).collect::<Vec<_>>(),
            "segments": self.segments_json(|segment| segment.device_index >= 0),
            "host": host,
            "host_segments": self.segments_json(|segment| segment.device_index < 0),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        findings::all(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn charts(&self, engine: &Engine, wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        let mut charts = Vec::new();
        for device in self.devices().filter(|device| wanted(device.device_index)) {
            charts.extend(chart::layout(engine, device, self.thresholds.segment_low_use)?);
        }
        Ok(charts)
    }
}
