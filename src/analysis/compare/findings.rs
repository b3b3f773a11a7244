//! What the differences between two snapshots mean.

use super::{CompareOutcome, CounterChange};
use crate::analysis::frames::place;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, Subject, bytes, share};
use crate::analysis::thresholds::judge;
use crate::quantity;

/// Every judgement, worst first.
pub(super) fn all(outcome: &CompareOutcome) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for device_index in outcome.device_indexes().into_iter().filter(|index| *index >= 0) {
        let allocated = outcome.counter(device_index, "allocated");
        findings.extend(allocated.and_then(|row| at_the_end(outcome, row)));
        findings.extend(allocated.and_then(|row| at_the_peak(outcome, row)));
        findings.extend(allocated.and_then(|row| no_peak(outcome, row)));
        findings.extend(stack(outcome, device_index));
    }
    findings.extend(settings(outcome));
    let compared = |index: &i64| {
        outcome
            .counter(*index, "allocated")
            .is_some_and(|row| row.value.is_some() && row.base_value.is_some())
    };
    let all_known = outcome.device_indexes().iter().filter(|index| **index >= 0).all(compared);
    if all_known && findings.iter().all(|finding| finding.severity <= Severity::Info) {
        let has_peaks = outcome
            .counters
            .iter()
            .filter(|row| row.device_index >= 0 && row.counter == "allocated")
            .all(|row| row.peak_change.is_some());
        findings.push(same(has_peaks));
    }
    Finding::sort_worst_first(&mut findings);
    findings
}

fn at_the_end(outcome: &CompareOutcome, allocated: &CounterChange) -> Option<Finding> {
    let (now, before) = (allocated.value?, allocated.base_value?);
    let what = Text::new("allocated memory", "已分配内存");
    growth(outcome, allocated.device_index, "compare/allocated", &what, now, before)
}

fn at_the_peak(outcome: &CompareOutcome, allocated: &CounterChange) -> Option<Finding> {
    let (now, before) = (allocated.peak?, allocated.base_peak?);
    let what = Text::new("the peak of allocated memory", "已分配内存的峰值");
    growth(outcome, allocated.device_index, "compare/peak", &what, now, before)
}

/// Where a peak is not known, what can be compared is the end alone.
fn no_peak(outcome: &CompareOutcome, allocated: &CounterChange) -> Option<Finding> {
    // A device that one of them does not have is no matter of peaks.
    if allocated.change.is_none() || allocated.peak_change.is_some() {
        return None;
    }
    let (own, base) = outcome.recorded(allocated.device_index);
    let (rule, why) = if own && base {
        let side = side(allocated.peak.is_none(), allocated.base_peak.is_none());
        let why = Text::new(
            format!("the events do not lead to the final state of {}", side.get(Lang::En)),
            format!("{}的事件与最终状态不衔接", side.get(Lang::Zh)),
        );
        ("compare/not_anchored", why)
    } else {
        let side = side(!own, !base);
        let why = Text::new(
            format!("no events were recorded in {}", side.get(Lang::En)),
            format!("{}没有记录事件", side.get(Lang::Zh)),
        );
        ("compare/no_history", why)
    };
    Some(Finding::on_device(
        allocated.device_index,
        rule,
        Severity::Info,
        Text::new(
            format!("{}: only what is held at the end is compared, not the peaks", why.get(Lang::En)),
            format!("{}：只比较了最终状态，无法比较峰值", why.get(Lang::Zh)),
        ),
        vec![("peak", Quantity::Bytes(allocated.peak)), ("base_peak", Quantity::Bytes(allocated.base_peak))],
    ))
}

/// The snapshots that something is true of: this one, the other, or both.
fn side(own: bool, base: bool) -> Text {
    match (own, base) {
        (true, true) => Text::new("either snapshot", "两份快照"),
        (true, false) => Text::new("this snapshot (A)", "本快照（A）"),
        _ => Text::new("the other snapshot (B)", "参照快照（B）"),
    }
}

fn growth(
    outcome: &CompareOutcome,
    device_index: i64,
    rule: &'static str,
    what: &Text,
    now: i64,
    before: i64,
) -> Option<Finding> {
    let ratio = share(now - before, before);
    let thresholds = &outcome.thresholds;
    let from_nothing = (before == 0 && now > 0).then_some(Severity::Critical);
    let severity =
        from_nothing.or_else(|| judge(ratio, thresholds.compare_warning, thresholds.compare_critical))?;
    let (size, new) = (quantity::bytes(now - before), quantity::bytes(now));
    let old = quantity::bytes(before);
    let part =
        |open, close| ratio.map_or_else(String::new, |_| format!("{open}{}{close}", quantity::ratio(ratio)));
    Some(Finding::on_device(
        device_index,
        rule,
        severity,
        Text::new(
            format!("{} grew by {size}{}, from {old} to {new}", what.get(Lang::En), part(" (", ")")),
            format!("{}增长 {size}{}，从 {old} 到 {new}", what.get(Lang::Zh), part("（", "）")),
        ),
        vec![("bytes", bytes(now)), ("base_bytes", bytes(before)), ("growth_ratio", Quantity::Ratio(ratio))],
    ))
}

/// The call stack that grew most, where it matters to the device.
fn stack(outcome: &CompareOutcome, device_index: i64) -> Option<Finding> {
    let own = outcome.stacks.iter().filter(|stack| stack.device_index == device_index);
    let most = own.max_by_key(|stack| stack.live_change).filter(|stack| stack.live_change > 0)?;
    let allocated = outcome.counter(device_index, "allocated")?.value?;
    let ratio = share(most.live_change, allocated)?;
    if ratio < outcome.thresholds.compare_warning {
        return None;
    }
    let from = place(most.frames_json.as_deref());
    let (size, now) = (quantity::bytes(most.live_change), quantity::bytes(most.live_bytes));
    Some(Finding::on_device(
        device_index,
        "compare/stack",
        Severity::Info,
        Text::new(
            format!("the call stack that grew most holds {size} more, {now} in all: {}", from.get(Lang::En)),
            format!("增长最多的调用栈多占用 {size}，现共 {now}：{}", from.get(Lang::Zh)),
        ),
        vec![
            ("live_bytes", bytes(most.live_bytes)),
            ("base_bytes", bytes(most.base_bytes)),
            ("live_count", Quantity::Count(most.live_count)),
            ("base_count", Quantity::Count(most.base_count)),
        ],
    ))
}

fn settings(outcome: &CompareOutcome) -> Option<Finding> {
    let names: Vec<&str> =
        outcome.settings.iter().filter(|it| it.is_setting()).map(|it| it.name.as_str()).collect();
    let count = i64::try_from(names.len()).ok().filter(|count| *count > 0)?;
    let names = names.join(", ");
    Some(Finding {
        rule: "compare/settings",
        severity: Severity::Info,
        subject: Subject::Snapshot,
        message: Text::new(
            format!("the allocator was set up differently: {names}"),
            format!("分配器设置不同：{names}"),
        ),
        evidence: vec![("differing_settings", Quantity::Count(count))],
    })
}

/// `has_peaks`: the peaks of every device were compared too.
fn same(has_peaks: bool) -> Finding {
    let message = if has_peaks {
        Text::new(
            "no device holds notably more memory than in the other snapshot",
            "与参照快照相比，没有设备的内存占用明显增长",
        )
    } else {
        Text::new(
            "no device holds notably more memory at the end than in the other snapshot",
            "与参照快照相比，没有设备的最终内存占用明显增长",
        )
    };
    Finding::on_snapshot("compare/no_growth", Severity::Ok, message)
}
