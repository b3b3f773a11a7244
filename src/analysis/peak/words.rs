//! What is said about the peaks.

use super::{COUNTERS, Contributor, DevicePeak};
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, share};
use crate::analysis::thresholds::Thresholds;
use crate::quantity;

pub(super) fn findings(devices: &[DevicePeak], thresholds: &Thresholds) -> Vec<Finding> {
    if devices.is_empty() {
        return vec![Finding::on_snapshot(
            "peak/no_devices",
            Severity::Info,
            Text::new(
                "no segments and no events: there is no peak to tell",
                "没有 segment，也没有事件：无法给出峰值",
            ),
        )];
    }
    let mut findings: Vec<Finding> = devices.iter().flat_map(|device| device.findings(thresholds)).collect();
    Finding::sort_worst_first(&mut findings);
    findings
}

impl DevicePeak {
    fn findings(&self, thresholds: &Thresholds) -> Vec<Finding> {
        if !self.has_history {
            return vec![self.no_history()];
        }
        [
            self.no_base(),
            self.unexplained(),
            self.in_doubt(),
            self.summary(),
            self.window(),
            self.estimated(),
            self.no_stack(thresholds),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn no_history(&self) -> Finding {
        Finding::on_device(
            self.device_index,
            "peak/no_history",
            Severity::Info,
            Text::new(
                "no events were recorded here: only the final state is known, and it says nothing about the peak",
                "此设备没有记录事件：只知道最终状态，无法说明峰值",
            ),
            vec![("allocated", Quantity::Bytes(self.peak("allocated").and_then(|peak| peak.at_end)))],
        )
    }

    /// Without a base the curves have no height.
    fn no_base(&self) -> Option<Finding> {
        let is_known =
            COUNTERS.iter().any(|counter| self.peak(counter).is_some_and(|peak| peak.base.is_some()));
        (!is_known).then(|| {
            Finding::on_device(
                self.device_index,
                "peak/no_base",
                Severity::Warning,
                Text::new(
                    "the events do not lead to the final state (left out, or lost with the end of the file): what was \
                     held when they begin is not known, so no peak can be told",
                    "事件与最终状态不衔接（被筛除，或随文件末尾丢失）：起点的占用未知，无法给出峰值",
                ),
                Vec::new(),
            )
        })
    }

    fn summary(&self) -> Option<Finding> {
        let allocated = self.peak("allocated")?;
        let reserved = self.peak("reserved")?;
        let (peak, index) = (allocated.peak?, allocated.trace_index?);
        let most = reserved.peak.map_or_else(|| "-".to_owned(), quantity::bytes);
        let when = moment(index);
        Some(Finding::on_device(
            self.device_index,
            "peak/allocated",
            // A figure that another finding warns of is not all right.
            if self.in_doubt().is_some() { Severity::Info } else { Severity::Ok },
            Text::new(
                format!(
                    "allocated was highest {}, with {}; reserved reached {most}",
                    when.get(Lang::En),
                    quantity::bytes(peak)
                ),
                format!(
                    "已分配内存在{}达到最高 {}；预留内存最高 {most}",
                    when.get(Lang::Zh),
                    quantity::bytes(peak)
                ),
            ),
            vec![
                ("allocated", Quantity::Bytes(Some(peak))),
                ("trace_index", Quantity::Count(index)),
                ("reserved", Quantity::Bytes(reserved.peak)),
            ],
        ))
    }

    /// Where the window does not begin with an empty allocator, what was before it may have been higher.
    fn window(&self) -> Option<Finding> {
        let base = |counter| self.peak(counter).and_then(|peak| peak.base);
        let (reserved, allocated) = (base("reserved")?, base("allocated"));
        if reserved == 0 && !self.overflowed {
            return None;
        }
        let size = quantity::bytes(reserved);
        let why = if self.overflowed {
            Text::new("the ring buffer has forgotten older events", "环形缓冲区已丢弃更早的事件")
        } else {
            Text::new(
                "the recording began late, or older events were forgotten",
                "记录开始较晚，或更早的事件已被丢弃",
            )
        };
        Some(Finding::on_device(
            self.device_index,
            "peak/window",
            Severity::Info,
            Text::new(
                format!(
                    "peaks are those within the recorded window: it begins with {size} reserved ({}), and what was \
                     before it is not known",
                    why.get(Lang::En)
                ),
                format!(
                    "峰值仅限记录窗口之内：窗口开始时已预留 {size}（{}），更早的情况无从得知",
                    why.get(Lang::Zh)
                ),
            ),
            vec![
                ("base_reserved", Quantity::Bytes(Some(reserved))),
                ("base_allocated", Quantity::Bytes(allocated)),
            ],
        ))
    }

    fn estimated(&self) -> Option<Finding> {
        // What is wrong with more than the rounding is said as `peak/in_doubt`.
        let rounded_only = ["allocated", "active"].iter().any(|counter| self.is_inexact(counter))
            && self.in_doubt().is_none();
        rounded_only.then(|| {
            Finding::on_device(
self.device_index,
                "peak/estimated",
                Severity::Info,
                Text::new(
                    "allocated and active are computed from the allocator's rounding rules where a block's real size is \
                     not known; the requested counters and reserved are exact",
                    "部分内存块的实际大小未知，已分配与活跃曲线按分配器的取整规则计算；请求量与预留量是精确值",
                ),
                Vec::new(),
            )
        })
    }

    fn part(&self, part: &str) -> Option<&Contributor> {
        self.contributors.iter().find(|contributor| contributor.part == part)
    }

    pub(super) fn share(&self, bytes: i64) -> Option<f64> {
        // Where the blocks do not add up to the peak, they are no shares of it.
        if self.part("unexplained").is_some() {
            return None;
        }
        let peak = self.peak("allocated").and_then(|peak| peak.peak)?;
        share(bytes, peak)
    }

    fn no_stack(&self, thresholds: &Thresholds) -> Option<Finding> {
        let bytes = self.part("no_stack")?.allocated_size;
        let share = self.share(bytes).filter(|share| *share >= thresholds.peak_no_stack)?;
        let (size, percent) = (quantity::bytes(bytes), quantity::ratio(Some(share)));
        Some(Finding::on_device(
            self.device_index,
            "peak/no_stack",
            Severity::Info,
            Text::new(
                format!(
                    "{size} ({percent}) of the peak has no call stack: it was allocated before the recorded window, or \
                         stacks were not recorded"
                ),
                format!("峰值中有 {size}（{percent}）没有调用栈：分配早于记录窗口，或未记录调用栈"),
            ),
            vec![
                ("no_stack", Quantity::Bytes(Some(bytes))),
                ("no_stack_ratio", Quantity::Ratio(Some(share))),
            ],
        ))
    }

    fn unexplained(&self) -> Option<Finding> {
        let bytes = self.part("unexplained").map(|part| part.allocated_size).filter(|bytes| *bytes != 0)?;
        let size = quantity::bytes(bytes);
        Some(Finding::on_device(
            self.device_index,
            "peak/unexplained",
            Severity::Warning,
            Text::new(
                format!(
                    "the events and the final state disagree by {size}: no block accounts for it, and the curves are \
                         off by up to that much"
                ),
                format!("事件记录与最终状态相差 {size}：没有内存块可以解释，曲线最多可能偏差这么多"),
            ),
            vec![("residual", Quantity::Bytes(Some(bytes)))],
        ))
    }
}

/// When an event was, in a sentence.
fn moment(index: i64) -> Text {
    if index < 0 {
        return Text::new("at the start of the window", "窗口起点");
    }
    let count = quantity::count(index);
    Text::new(format!("after event {count}"), format!("事件 {count} 之后"))
}
