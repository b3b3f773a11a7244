//! Overview: what each device holds at the moment of the dump, and whether that is healthy.

mod figures;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::chart::{self, ChartFigure};
use super::facts::ImportNote;
use super::fragment::DeviceFragmentation;
use super::language::{Lang, Text};
use super::outcome::{Figure, Finding, Outcome, Quantity, Severity, bytes, share};
use super::outside::{self, Components, OutsidePool};
use super::thresholds::{Thresholds, judge};
use super::{Analysis, Scope};
use crate::engine::{Engine, row};
use crate::error::Result;
use crate::quantity;

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
            return vec![nothing_here()];
        }
        let of_device = |device: &DeviceOverview| {
            let expandable = self.expandable.get(&device.device_index).copied();
            device.findings(&self.thresholds, &self.outside(device), expandable)
        };
        let mut findings: Vec<Finding> = self.read_to.map(cut_short).into_iter().collect();
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

    fn findings(
        &self,
        thresholds: &Thresholds,
        outside: &Components,
        expandable: Option<i64>,
    ) -> Vec<Finding> {
        let findings: Vec<Finding> = [
            self.oom_finding(),
            self.fragment_finding(thresholds),
            self.pending_finding(thresholds),
            self.segments_finding(thresholds, expandable),
            self.empty_finding(),
            self.workspace_finding(),
            self.outside_finding(outside),
            self.history_finding(),
        ]
        .into_iter()
        .flatten()
        .collect();
        if findings.iter().any(|finding| finding.severity > Severity::Info) || self.active == 0 {
            return findings;
        }
        let mut all = vec![Finding::on_device(
            self.device_index,
            "overview/healthy",
            Severity::Ok,
            Text::new(
                format!(
                    "{} of {} reserved is in use, no sign of trouble in the final state",
                    quantity::bytes(self.active),
                    quantity::bytes(self.reserved)
                ),
                format!(
                    "已预留 {} 中有 {} 在使用，最终状态未见异常",
                    quantity::bytes(self.reserved),
                    quantity::bytes(self.active)
                ),
            ),
            vec![("reserved", bytes(self.reserved)), ("active", bytes(self.active))],
        )];
        all.extend(findings);
        all
    }

    fn oom_finding(&self) -> Option<Finding> {
        (self.oom_count > 0).then(|| {
            let count = quantity::count(self.oom_count);
            let events = quantity::counted(self.oom_count, "out-of-memory event", "out-of-memory events");
            Finding::on_device(
                self.device_index,
                "overview/oom",
                Severity::Critical,
                Text::new(
                    format!("{events} in the trace"),
                    format!("事件记录中有 {count} 次内存不足（OOM）"),
                ),
                vec![("oom_count", Quantity::Count(self.oom_count))],
            )
        })
    }

    fn fragment_finding(&self, thresholds: &Thresholds) -> Option<Finding> {
        let ratio = self.share_of_reserved(self.hole_bytes);
        // An empty pool is all cache: nothing is split, so nothing is fragmented.
        let severity = judge(
            ratio.filter(|_| self.active > 0),
            thresholds.fragment_warning,
            thresholds.fragment_critical,
        )?;
        Some(Finding::on_device(
            self.device_index,
            "fragment/unallocated",
            severity,
            Text::new(
                format!(
                    "{} ({}) of the reserved memory is free inside segments that are in use",
                    quantity::bytes(self.hole_bytes),
                    quantity::ratio(ratio)
                ),
                format!(
                    "预留内存中有 {}（{}）空闲在仍被占用的 segment 内",
                    quantity::bytes(self.hole_bytes),
                    quantity::ratio(ratio)
                ),
            ),
            vec![
                ("free_in_used_segments", bytes(self.hole_bytes)),
                ("free_in_used_segments_ratio", Quantity::Ratio(ratio)),
                ("fragmentation_ratio", Quantity::Ratio(self.fragmentation_ratio)),
                ("unused_segment_bytes", bytes(self.unused_segment_bytes)),
            ],
        ))
    }

    fn pending_finding(&self, thresholds: &Thresholds) -> Option<Finding> {
        let pending = self.active_pending_free_bytes;
        let ratio = share(pending, self.reserved - self.allocated).filter(|_| pending > 0)?;
        (ratio > thresholds.pending_warning).then(|| {
            Finding::on_device(
self.device_index,
                "fragment/pending_free",
                Severity::Warning,
                Text::new(
                    format!(
                        "{} of the unallocated memory waits for a pending free: asynchronous release, not fragmentation",
                        quantity::ratio(Some(ratio))
                    ),
                    format!("未分配内存中有 {} 正等待释放：原因是异步释放，而非碎片", quantity::ratio(Some(ratio))),
                ),
                vec![("pending_free_bytes", bytes(pending)), ("pending_free_share", Quantity::Ratio(Some(ratio)))],
            )
        })
    }

    fn segments_severity(&self, thresholds: &Thresholds) -> Option<Severity> {
        #[expect(clippy::cast_precision_loss, reason = "a count of segments is far below 2^53")]
        let count = self.segment_count as f64;
        judge(Some(count), thresholds.segments_warning, thresholds.segments_critical)
    }

    /// Many segments; `expandable` of them grow by pages already.
    fn segments_finding(&self, thresholds: &Thresholds, expandable: Option<i64>) -> Option<Finding> {
        let severity = self.segments_severity(thresholds)?;
        let count = quantity::count(self.segment_count);
        let mut evidence = vec![("segment_count", Quantity::Count(self.segment_count))];
        evidence.extend(expandable.map(|expandable| ("expandable_count", Quantity::Count(expandable))));
        let message = match expandable.filter(|expandable| *expandable > 0).map(quantity::count) {
            Some(expandable) => Text::new(
                format!(
                    "{count} segments, though {expandable} of them are expandable: each is a stretch of mapped memory of its own"
                ),
                format!(
                    "共有 {count} 个 segment，数量偏多，其中 {expandable} 个已是可扩展段：每个都是一段独立映射的内存"
                ),
            ),
            None => Text::new(
                format!("{count} segments, none of them expandable: expandable segments would need fewer"),
                format!(
                    "共有 {count} 个 segment，数量偏多且均不可扩展；启用可扩展段（expandable_segments）可以减少"
                ),
            ),
        };
        Some(Finding::on_device(self.device_index, "overview/segments", severity, message, evidence))
    }

    fn empty_finding(&self) -> Option<Finding> {
        (self.reserved > 0 && self.active == 0).then(|| {
            let reserved = quantity::bytes(self.reserved);
            Finding::on_device(
                self.device_index,
                "overview/empty_pool",
                Severity::Info,
                Text::new(
                    format!("nothing is allocated: {reserved} is free cache that `empty_cache()` gives back"),
                    format!("没有任何分配：{reserved} 全部是空闲缓存，可用 `empty_cache()` 归还"),
                ),
                vec![("reserved", bytes(self.reserved))],
            )
        })
    }

    fn workspace_finding(&self) -> Option<Finding> {
        (self.workspace_bytes > 0).then(|| {
            let size = quantity::bytes(self.workspace_bytes);
            Finding::on_device(
                self.device_index,
                "overview/workspace",
                Severity::Info,
                Text::new(
                    format!("{size} of NPU workspaces stand beside the pool and are in none of its figures"),
                    format!("另有 {size} NPU workspace 独立于内存池，不计入池的任何数字"),
                ),
                vec![("workspace_bytes", bytes(self.workspace_bytes))],
            )
        })
    }

    fn outside_finding(&self, outside: &Components) -> Option<Finding> {
        let held = outside.bytes().filter(|held| *held > 0)?;
        let (size, named) = (quantity::bytes(held), outside.named());
        Some(Finding::on_device(
            self.device_index,
            "overview/outside_pool",
            Severity::Info,
            Text::new(
                format!("{size} outside the pool by the driver's account: {}", named.get(Lang::En)),
                format!("按驱动统计，内存池之外另占用 {size}：{}", named.get(Lang::Zh)),
            ),
            vec![("outside_pool_bytes", bytes(held))],
        ))
    }

    fn history_finding(&self) -> Option<Finding> {
        (self.trace_count == 0).then(|| {
            Finding::on_device(
                self.device_index,
                "overview/no_history",
                Severity::Info,
                Text::new(
                    "no events: history was not recorded here, so only the final state can be told",
                    "没有事件：此设备未记录历史，只能说明最终状态",
                ),
                vec![("trace_count", Quantity::Count(self.trace_count))],
            )
        })
    }
}

/// What a damaged file has lost may be what matters.
fn cut_short(read_to: i64) -> Finding {
    let place = quantity::count(read_to);
    Finding::on_snapshot(
        "overview/salvaged",
        Severity::Warning,
        Text::new(
            format!(
                "the file is damaged from byte {place} on: what follows is lost, and every figure lacks it"
            ),
            format!("文件从第 {place} 字节起损坏：其后的内容已丢失，所有数字都不包含它们"),
        ),
    )
}

fn nothing_here() -> Finding {
    Finding::on_snapshot(
        "overview/no_devices",
        Severity::Info,
        Text::new(
            "no segments and no events: the caching allocator held nothing when this was dumped",
            "没有 segment，也没有事件：转储时缓存分配器不持有任何内存",
        ),
    )
}
