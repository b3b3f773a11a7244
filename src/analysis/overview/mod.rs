//! Overview: what each device holds at the moment of the dump, and whether that is healthy.

mod figures;
mod findings;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::chart::{self, ChartFigure};
use super::facts::ImportNote;
use super::fragment::DeviceFragmentation;
use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome, share};
use super::outside::{self, Components, OutsidePool};
use super::thresholds::Thresholds;
use super::{Analysis, Scope};
use crate::engine::{Engine, row};
use crate::error::Result;

row! {
    /// One device of the overview.
    pub struct DeviceOverview from "device_overview" {
        /// Device number in the snapshot.
        device_index: i64,
        /// `Ascend-NPU` or `CUDA-GPU`.
        device_type: String,
        /// Bytes in segments.
        reserved: i64,
        /// Rounded bytes in allocated blocks.
        allocated: i64,
        /// Rounded bytes in allocated and pending-free blocks.
        active: i64,
        /// Requested bytes as the segments carry them; NULL before PyTorch 2.0.
        requested: Option<i64>,
        /// Requested bytes in allocated blocks.
        allocated_requested: Option<i64>,
        /// Requested bytes in allocated and pending-free blocks.
        active_requested: Option<i64>,
        /// (reserved - allocated) / reserved; NULL where nothing is reserved.
        fragmentation_ratio: Option<f64>,
        /// Bytes in segments without an active block: cached, and free to go back to the driver.
        unused_segment_bytes: i64,
        /// Bytes free inside segments of the default pool that are in use: what fragmentation costs.
        hole_bytes: i64,
        /// Segments of the caching allocator.
        segment_count: i64,
        /// Blocks of the caching allocator.
        block_count: i64,
        /// Blocks in state `active_allocated`.
        active_allocated_count: i64,
        /// Bytes in them.
        active_allocated_bytes: i64,
        /// Blocks in state `active_pending_free`.
        active_pending_free_count: i64,
        /// Bytes in them.
        active_pending_free_bytes: i64,
        /// Blocks in state `inactive`.
        inactive_count: i64,
        /// Bytes in them.
        inactive_bytes: i64,
        /// Recorded events, without the entries that describe workspaces at the moment of the dump.
        trace_count: i64,
        /// Of them, out-of-memory events.
        oom_count: i64,
        /// Bytes of NPU workspaces, which are not part of the caching allocator's pool.
        workspace_bytes: i64,
    }
}

/// See the module.
#[derive(Debug)]
pub struct Overview;

impl Analysis for Overview {
    fn name(&self) -> &'static str {
        "overview"
    }

    fn relations(&self) -> &'static [&'static str] {
        &["device_overview", "memory_outside_pool"]
    }

    fn run(&self, engine: &Engine, thresholds: &Thresholds, scope: Scope<'_>) -> Result<Box<dyn Outcome>> {
        let devices: Vec<DeviceOverview> = scope.rows(engine)?;
        // Pinned host memory is a domain of its own: it stands beside the devices, never among them.
        let (host, devices): (Vec<_>, Vec<_>) =
            devices.into_iter().partition(|device| device.device_index < 0);
        let outside = scope.rows(engine)?;
        let read_to = ImportNote::damaged_from(engine)?;
        // Which segments are expandable says another relation, and matters only where there are many.
        let has_many = devices.iter().any(|device| device.segments_severity(thresholds).is_some());
        let parts: Vec<DeviceFragmentation> = if has_many { scope.rows(engine)? } else { Vec::new() };
        let expandable = parts.iter().map(|part| (part.device_index, part.expandable_count)).collect();
        let thresholds = thresholds.clone();
        Ok(Box::new(OverviewOutcome { devices, host, outside, read_to, expandable, thresholds }))
    }
}

/// Devices with the thresholds they are judged by.
#[derive(Debug)]
struct OverviewOutcome {
    devices: Vec<DeviceOverview>,
    host: Vec<DeviceOverview>,
    outside: Vec<OutsidePool>,
    /// Byte from which on the file is damaged; `None` for a whole one.
    read_to: Option<i64>,
    /// Expandable segments by device, where a device has many segments.
    expandable: HashMap<i64, i64>,
    thresholds: Thresholds,
}

impl OverviewOutcome {
    fn outside(&self, device: &DeviceOverview) -> Components {
        Components::of(device.device_index, &self.outside)
    }

    fn device_json(&self, device: &DeviceOverview) -> Value {
        let mut value = device.json();
        if let (Some(object), Some(outside)) = (value.as_object_mut(), self.outside(device).json()) {
            object.insert("outside_pool".to_owned(), outside);
        }
        value
    }
}

impl Outcome for OverviewOutcome {
    fn json(&self, _lang: Lang) -> Value {
        json!({
            "devices": self.devices.iter().map(|device| self.device_json(device)).collect::<Vec<_>>(),
            "host": self.host.iter().map(DeviceOverview::json).collect::<Vec<_>>(),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        if self.devices.is_empty() {
            return vec![findings::nothing_here()];
        }
        let of_device = |device: &DeviceOverview| {
            let expandable = self.expandable.get(&device.device_index).copied();
            device.findings(&self.thresholds, &self.outside(device), expandable)
        };
        let mut findings: Vec<Finding> = self.read_to.map(findings::cut_short).into_iter().collect();
        findings.extend(self.devices.iter().flat_map(of_device));
        Finding::sort_worst_first(&mut findings);
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let mut tables = Vec::new();
        for (title, devices) in [
            (Text::new("Devices", "设备"), &self.devices),
            (Text::new("Pinned host memory", "主机锁页内存"), &self.host),
        ] {
            if !devices.is_empty() {
                tables.push(Figure::Table(figures::counters(title, devices)));
            }
        }
        if !self.devices.is_empty() {
            tables.push(Figure::Table(figures::blocks(&self.devices)));
        }
        tables.extend(outside::table(&self.outside).map(Figure::Table));
        tables
    }

    fn charts(&self, engine: &Engine, wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        let mut charts = Vec::new();
        if self.devices.len() > 1 {
            charts.push(chart::devices(&self.devices));
        }
        for device in self.devices.iter().filter(|device| wanted(device.device_index)) {
            charts.extend(chart::expansion(engine, device.device_index)?);
            charts.extend(chart::attribution(engine, device)?);
        }
        Ok(charts)
    }
}

impl DeviceOverview {
    /// The devices in scope, without pinned host memory.
    ///
    /// # Errors
    /// The relation failed.
    pub fn read(engine: &Engine, scope: Scope<'_>) -> Result<Vec<Self>> {
        let mut devices: Vec<Self> = scope.rows(engine)?;
        devices.retain(|device| device.device_index >= 0);
        Ok(devices)
    }

    fn json(&self) -> Value {
        json!({
            "device_index": self.device_index,
            "device_type": self.device_type,
            "reserved": self.reserved,
            "allocated": self.allocated,
            "active": self.active,
            "requested": self.requested,
            "allocated_requested": self.allocated_requested,
            "active_requested": self.active_requested,
            "fragmentation_ratio": self.fragmentation_ratio,
            "unused_segment_bytes": self.unused_segment_bytes,
            "segment_count": self.segment_count,
            "block_count": self.block_count,
            "blocks": {
                "active_allocated": {"count": self.active_allocated_count, "bytes": self.active_allocated_bytes},
                "active_pending_free": {"count": self.active_pending_free_count, "bytes": self.active_pending_free_bytes},
                "inactive": {"count": self.inactive_count, "bytes": self.inactive_bytes},
            },
            "trace_count": self.trace_count,
            "oom_count": self.oom_count,
            "workspace_bytes": self.workspace_bytes,
        })
    }

    fn share_of_reserved(&self, bytes: i64) -> Option<f64> {
        share(bytes, self.reserved)
    }
}
