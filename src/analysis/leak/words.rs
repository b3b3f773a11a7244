//! What is said about leaks.

use super::judge::{Suspect, Verdict};
use super::{DeviceLeak, Named, SegmentGrowth, StackGrowth};
use crate::analysis::frames::place;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, share};
use crate::analysis::thresholds::Thresholds;
use crate::quantity;

/// Suspects that a person gets to see in findings.
const FINDINGS: usize = 3;

pub(super) fn findings(devices: &[DeviceLeak], thresholds: &Thresholds) -> Vec<Finding> {
    if devices.is_empty() {
        return vec![Finding::on_snapshot(
            "leak/no_devices",
            Severity::Info,
            Text::new(
                "no segments and no events: nothing can leak, nothing can be told",
                "没有 segment，也没有事件：无从判断是否泄漏",
            ),
        )];
    }
    let mut findings: Vec<Finding> = devices.iter().flat_map(|device| device.findings(thresholds)).collect();
    Finding::sort_worst_first(&mut findings);
    findings
}

impl DeviceLeak {
    fn findings(&self, thresholds: &Thresholds) -> Vec<Finding> {
        if self.live_count == 0 {
            return vec![if self.allocated == 0 { self.all_freed() } else { self.not_known() }];
        }
        if self.event_count() == 0 {
            return vec![self.no_history()];
        }
        let mut findings: Vec<Finding> =
            self.suspects.iter().take(FINDINGS).map(|suspect| self.grows(suspect)).collect();
        if self.verdict == Verdict::None && self.interval_count() > 0 {
            findings.push(self.nothing_grows());
        }
        findings.extend(self.retained(thresholds));
        findings.extend(self.short(thresholds));
        findings.extend(self.monotone());
        findings
    }

    fn all_freed(&self) -> Finding {
        Finding::on_device(
            self.device_index,
            "leak/all_freed",
            Severity::Ok,
            Text::new("nothing is allocated at the end: nothing leaked", "最终没有任何分配：没有泄漏"),
            vec![("live_count", Quantity::Count(0))],
        )
    }

    /// What is allocated at the end is there, but none of it has a lifetime: the events do not lead to the final state.
    fn not_known(&self) -> Finding {
        let held = quantity::bytes(self.allocated);
        Finding::on_device(
            self.device_index,
            "leak/not_known",
            Severity::Info,
            Text::new(
                format!(
                    "{held} are allocated at the end, but the events do not lead there: what grew is not known"
                ),
                format!("最终仍分配 {held}，但事件记录与最终状态不衔接：无法判断哪些内存在增长"),
            ),
            vec![("allocated", Quantity::Bytes(Some(self.allocated)))],
        )
    }

    fn grows(&self, suspect: &Named<Suspect>) -> Finding {
        let growth = &suspect.what.growth;
        let severity = match suspect.what.verdict {
            Verdict::Likely => Severity::Critical,
            _ => Severity::Warning,
        };
        let (en, zh) = interval_words(growth);
        let at = stack_words(growth.stack_id, suspect.frames_json.as_deref());
        let size = quantity::bytes(growth.growth_size);
        let live = quantity::bytes(growth.live_size);
        let blocks = quantity::count(growth.live_count);
        let (grew, all) = (quantity::count(growth.grew_count), quantity::count(growth.interval_count));
        Finding::on_device(
            self.device_index,
            "leak/growth",
            severity,
            Text::new(
                format!(
                    "{} held more memory in {grew} of {all} {en}: {size} more in all; it holds {live} in {blocks} blocks \
                     at the end",
                    at.get(Lang::En)
                ),
                format!(
                    "{} 在 {all} {zh}中有 {grew} 次占用增加，共增加 {size}；最终占用 {live}，{blocks} 个内存块",
                    at.get(Lang::Zh)
                ),
            ),
            vec![
                ("grew_count", Quantity::Count(growth.grew_count)),
                ("interval_count", Quantity::Count(growth.interval_count)),
                ("growth_bytes", Quantity::Bytes(Some(growth.growth_size))),
                ("live_bytes", Quantity::Bytes(Some(growth.live_size))),
                ("live_count", Quantity::Count(growth.live_count)),
                ("score", Quantity::Ratio(Some(suspect.what.score))),
            ]
            .into_iter()
            .chain(growth.stack_id.map(|stack_id| ("stack_id", Quantity::Count(stack_id))))
            .collect(),
        )
    }

    /// Where growth is everywhere at once, there is another explanation.
    fn retained(&self, thresholds: &Thresholds) -> Option<Finding> {
        let allocated = self.steps.as_ref()?.allocated_size;
        let share = share(self.retained_size, allocated).filter(|share| *share > thresholds.leak_retained)?;
        let percent = quantity::ratio(Some(share));
        let count = i64::try_from(self.suspect_count).unwrap_or(i64::MAX);
        let stacks = quantity::count(count);
        Some(Finding::on_device(
            self.device_index,
            "leak/retained",
            Severity::Info,
            Text::new(
                format!(
                    "{stacks} call stacks kept {percent} of all that was allocated meanwhile: this is also what a pass \
                     looks like that is not over when the recording ends, or results that keep their graph alive"
                ),
                format!(
                    "{stacks} 个调用栈保留了同期全部分配量的 {percent}：录制结束时尚未完成的一轮计算（前向或反向），或仍持有计算图的结果，也是这种表现"
                ),
            ),
            vec![("suspect_count", Quantity::Count(count)), ("retained_ratio", Quantity::Ratio(Some(share)))],
        ))
    }

    fn nothing_grows(&self) -> Finding {
        let steps = self.step_count();
        let message = if self.is_by_steps() {
            let steps = quantity::count(steps);
            Text::new(
                format!("no call stack keeps growing across {steps} steps"),
                format!("{steps} 个步骤中没有持续增长的调用栈"),
            )
        } else {
            Text::new(
                "no call stack keeps growing over the recorded window",
                "记录窗口内没有持续增长的调用栈",
            )
        };
        Finding::on_device(
            self.device_index,
            "leak/none",
            Severity::Ok,
            message,
            vec![
                ("step_count", Quantity::Count(steps)),
                ("interval_count", Quantity::Count(self.interval_count())),
                ("live_bytes", Quantity::Bytes(Some(self.live_size))),
            ],
        )
    }

    /// Growth of reserved memory in the second half of the window, where it only ever grew.
    pub(super) fn late_growth(&self) -> Option<(&SegmentGrowth, i64)> {
        let segments = self.segments.as_ref().filter(|segments| segments.only_grew())?;
        Some((segments, segments.late_grown_size)).filter(|(_, late)| *late > 0)
    }

    /// The classic sign, which healthy programs show too: never more than a remark.
    fn monotone(&self) -> Option<Finding> {
        let (segments, late) = self.late_growth()?;
        let size = quantity::bytes(late);
        let most = self.attribution.late().first()?;
        let by = asked_words(most.what.stack_id, most.frames_json.as_deref());
        let own = quantity::bytes(most.what.late_grown_size);
        Some(Finding::on_device(
            self.device_index,
            "leak/reserved_only_grew",
            Severity::Info,
            Text::new(
                format!(
                    "reserved memory only ever grew, by {size} in the second half of the window; {own} of that {}",
                    by.get(Lang::En)
                ),
                format!("预留内存只增不减，窗口后半段增加 {size}；其中 {own} {}", by.get(Lang::Zh)),
            ),
            vec![
                ("grow_count", Quantity::Count(segments.grow_count)),
                ("late_grown_bytes", Quantity::Bytes(Some(late))),
                ("stack_late_grown_bytes", Quantity::Bytes(Some(most.what.late_grown_size))),
            ]
            .into_iter()
            .chain(most.what.stack_id.map(|stack_id| ("stack_id", Quantity::Count(stack_id))))
            .collect(),
        ))
    }
}

/// What an interval is.
fn interval_words(growth: &StackGrowth) -> (&'static str, &'static str) {
    match growth.origin.as_deref() {
        Some("annotation") => ("intervals between annotated steps", "个标注步骤间隔"),
        Some("inferred") => ("intervals between inferred steps", "个推断步骤间隔"),
        _ => ("stretches of the window", "个时间段"),
    }
}

/// For whom memory was reserved.
fn asked_words(stack_id: Option<i64>, frames_json: Option<&str>) -> Text {
    let Some(stack) = stack_id else {
        return Text::new("came with events that have no call stack", "来自没有调用栈的事件");
    };
    let place = place(frames_json);
    Text::new(
        format!("was asked for by {}, stack {stack}", place.get(Lang::En)),
        format!("来自 {}（调用栈 {stack}）的请求", place.get(Lang::Zh)),
    )
}

fn stack_words(stack_id: Option<i64>, frames_json: Option<&str>) -> Text {
    let Some(stack) = stack_id else {
        return Text::new("memory without a call stack", "无调用栈的内存");
    };
    let place = place(frames_json);
    Text::new(
        format!("{}, stack {stack},", place.get(Lang::En)),
        format!("{}（调用栈 {stack}）", place.get(Lang::Zh)),
    )
}
