//! Why curves are in doubt: what the import found of the events they rest on, in words.

use super::{COUNTERS, DevicePeak};
use crate::analysis::facts::ImportNote;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity};
use crate::quantity;

/// Counters whose inexactness the rounding alone may explain.
const ROUNDED: [&str; 2] = ["allocated", "active"];

/// Reasons that a person gets to read; `import_stats` has them all.
const SHOWN: usize = 3;

/// What a note of the import says against the curves; `None` where it says nothing against them.
pub(super) fn reason(note: &ImportNote) -> Option<Text> {
    let n = note.value;
    if n <= 0 {
        return None;
    }
    let zh = quantity::count(n);
    let text = |one: &str, many: &str, zh: String| Some(Text::new(quantity::counted(n, one, many), zh));
    match note.name.as_str() {
        "events_out_of_order" => text(
            "place where the list of events goes back in time, and the curves follow the list",
            "places where the list of events goes back in time, and the curves follow the list",
            format!("事件列表有 {zh} 处时间倒退，而曲线按列表顺序计算"),
        ),
        "events_of_other_pools" => text(
            "event of another memory pool than the dumped one",
            "events of other memory pools than the dumped one",
            format!("{zh} 个事件属于转储之外的内存池"),
        ),
        "events_outside_the_pool" => text(
            "allocation or range in no segment, as in the dump of one memory pool",
            "allocations and ranges in no segment, as in the dump of one memory pool",
            format!("{zh} 个分配或区间不在任何 segment 中，像是只转储了一个内存池"),
        ),
        "allocations_without_end" => text(
            "allocation that is never freed and is not in the segments",
            "allocations that are never freed and are not in the segments",
            format!("{zh} 个分配从未释放，却不在 segment 中"),
        ),
        "frees_without_completion" => text(
            "free that was requested and never completed",
            "frees that were requested and never completed",
            format!("{zh} 次释放已请求而未完成"),
        ),
        "completions_without_request" => text(
            "free that was completed without a request",
            "frees that were completed without a request",
            format!("{zh} 次释放没有请求而直接完成"),
        ),
        "frees_without_alloc" => text(
            "free of an address that was free already",
            "frees of addresses that were free already",
            format!("{zh} 次释放的地址已经空闲"),
        ),
        "blocks_without_alloc" => text(
            "live block that the events freed last",
            "live blocks that the events freed last",
            format!("{zh} 个存活内存块的最后一个事件是释放"),
        ),
        "blocks_without_address" => text(
            "live block without an address",
            "live blocks without an address",
            format!("{zh} 个存活内存块没有地址"),
        ),
        "ranges_reserved_twice" => {
            let size = quantity::bytes(n);
            Some(Text::new(format!("{size} reserved twice"), format!("{size} 被重复预留")))
        }
        "ranges_without_end" => {
            let size = quantity::bytes(n);
            Some(Text::new(
                format!("{size} reserved, never given back and not in the segments"),
                format!("{size} 已预留、未归还，却不在 segment 中"),
            ))
        }
        _ => None,
    }
}

impl DevicePeak {
    /// A peak that is known, of a counter whose course is not certain.
    pub(super) fn is_inexact(&self, counter: &str) -> bool {
        self.peak(counter).is_some_and(|peak| peak.peak.is_some() && peak.exact == 0)
    }

    /// Where more than the rounding of sizes is in question.
    pub(super) fn in_doubt(&self) -> Option<Finding> {
        let mut inexact: Vec<&str> =
            COUNTERS.into_iter().filter(|counter| self.is_inexact(counter)).collect();
        let highest = |counter: &str| self.peak(counter)?.peak;
        // No block lies outside of all segments.
        let beyond =
            highest("active").zip(highest("reserved")).filter(|(active, reserved)| active > reserved);
        if inexact.iter().all(|counter| ROUNDED.contains(counter)) {
            beyond?;
            inexact = vec!["reserved"];
        }
        let beyond = beyond.map(|(active, reserved)| {
            let (active, reserved) = (quantity::bytes(active), quantity::bytes(reserved));
            Text::new(
                format!("{active} was active where {reserved} was reserved at most, so events of segments are missing"),
                format!("活跃内存达 {active}，而预留最多 {reserved}：缺少 segment 事件"),
            )
        });
        let below_zero = inexact.iter().filter_map(|counter| {
            let base = self.peak(counter)?.base.filter(|base| *base < 0)?;
            let size = quantity::bytes(base);
            Some(Text::new(
                format!("{counter} would have begun with {size}"),
                format!("{counter} 的起点会是 {size}"),
            ))
        });
        let reasons: Vec<Text> =
            beyond.into_iter().chain(self.doubts.iter().cloned()).chain(below_zero).collect();
        let words = |lang: Lang, separator: &str, otherwise: &str| {
            let shown: Vec<&str> = reasons.iter().take(SHOWN).map(|reason| reason.get(lang)).collect();
            if shown.is_empty() { otherwise.to_owned() } else { shown.join(separator) }
        };
        let en = words(Lang::En, "; ", "the events and the final state do not fit");
        let zh = words(Lang::Zh, "；", "事件与最终状态不符");
        Some(Finding::on_device(
            self.device_index,
            "peak/in_doubt",
            Severity::Warning,
            Text::new(
                format!("the curves and peaks of {} are in doubt: {en}", inexact.join(", ")),
                format!("{} 的曲线与峰值存疑：{zh}", inexact.join("、")),
            ),
            vec![
                ("inexact_counters", Quantity::Count(count(inexact.len()))),
                ("reasons", Quantity::Count(count(reasons.len()))),
            ],
        ))
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
