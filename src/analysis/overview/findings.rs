//! What the final state of a device says about its health.

use super::DeviceOverview;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, bytes, share};
use crate::analysis::outside::Components;
use crate::analysis::thresholds::{Thresholds, judge};
use crate::quantity;

impl DeviceOverview {
    pub(super) fn findings(
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

    pub(super) fn segments_severity(&self, thresholds: &Thresholds) -> Option<Severity> {
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
pub(super) fn cut_short(read_to: i64) -> Finding {
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

pub(super) fn nothing_here() -> Finding {
    Finding::on_snapshot(
        "overview/no_devices",
        Severity::Info,
        Text::new(
            "no segments and no events: the caching allocator held nothing when this was dumped",
            "没有 segment，也没有事件：转储时缓存分配器不持有任何内存",
        ),
    )
}
