//! What the failures mean, in a sentence each.

use std::fmt::Write as _;

use super::cause::Cause;
use super::state::State;
use super::{Failure, OomOutcome};
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, Subject};
use crate::quantity;

/// Every judgement.
pub(super) fn all(outcome: &OomOutcome) -> Vec<Finding> {
    if outcome.events.is_empty() {
        return vec![none(outcome)];
    }
    let mut findings: Vec<Finding> = outcome.shown().map(|failure| of_failure(failure, outcome)).collect();
    findings.extend(earlier(outcome));
    findings
}

/// Failures before the newest ones of each device, in one sentence.
fn earlier(outcome: &OomOutcome) -> Option<Finding> {
    let count = outcome.events.len().saturating_sub(outcome.shown().count());
    let count = i64::try_from(count).ok().filter(|count| *count > 0)?;
    let requests = quantity::counted(count, "request", "requests");
    let (mut en, mut zh) = (
        format!("{requests} failed before these; JSON has them all"),
        format!("在这些之前还有 {} 次请求失败；JSON 中有全部记录", quantity::count(count)),
    );
    let most = outcome.events.iter().map(|failure| failure.event.newest).max().unwrap_or_default();
    let beyond = |among: Option<i64>| among.filter(|among| *among < most);
    if let Some(laid_out) = beyond(outcome.setup.laid_out) {
        let _infallible = write!(
            en,
            ". Where free memory lay is worked out for the newest {laid_out} of each device; the others are judged by what was \
             reserved and allocated (`SELECT * FROM segments_at(newest => {most})` lays the pool out at all of them)"
        );
        let _infallible = write!(
            zh,
            "。只对每个设备最近的 {laid_out} 次失败还原了空闲内存的位置，其余依据预留与已分配量判断\
             （`SELECT * FROM segments_at(newest => {most})` 可还原全部失败时的内存池布局）"
        );
    }
    if let Some(grown) = beyond(outcome.setup.grown) {
        let before = beyond(outcome.setup.preceded()).map(quantity::count);
        let before = before.map_or_else(
            || (String::new(), String::new()),
            |count| {
                (
                    format!(", what happened before of the newest {count}"),
                    format!("，最近 {count} 次列出了此前的事件"),
                )
            },
        );
        // Of thousands, JSON has tens of megabytes: fifty events and ten stacks for each.
        let fewer = if before.0.is_empty() {
            ("", "")
        } else {
            (
                " (some 15 KB of JSON for each; `--param count=5` lists fewer events before it)",
                "（每次约 15 KB JSON；`--param count=5` 可减少所列的此前事件）",
            )
        };
        let _infallible = write!(
            en,
            ". Who had grown is told of the newest {grown}{}; with `--param newest={most}` of all{}",
            before.0, fewer.0
        );
        let _infallible = write!(
            zh,
            "。最近 {grown} 次失败列出了增长者{}；`--param newest={most}` 可列出全部{}",
            before.1, fewer.1
        );
    }
    Some(Finding {
        rule: "oom/earlier",
        severity: Severity::Info,
        subject: Subject::Snapshot,
        message: Text::new(en, zh),
        evidence: vec![("earlier_count", Quantity::Count(count))],
    })
}

fn rule(cause: Cause) -> &'static str {
    match cause {
        Cause::MemoryLimit => "oom/memory_limit",
        Cause::PendingFree => "oom/pending_free",
        Cause::Fragmentation => "oom/fragmentation",
        Cause::OtherStream => "oom/other_stream",
        Cause::PrivatePools => "oom/private_pools",
        Cause::OtherKind => "oom/other_kind",
        Cause::OutsidePool => "oom/outside_pool",
        Cause::RequestTooLarge => "oom/request_too_large",
        Cause::Capacity => "oom/capacity",
        Cause::Unknown => "oom/unknown",
    }
}

/// The cause in a few words.
pub(super) fn words(cause: Cause) -> Text {
    match cause {
        Cause::MemoryLimit => {
            Text::new("the driver had enough: a limit refused it", "驱动内存足够：被上限拒绝")
        }
        Cause::PendingFree => Text::new(
            "enough was freed, but waited for another stream",
            "已释放的内存足够，但在等待其他 stream",
        ),
        Cause::Fragmentation => Text::new(
            "enough was free, but not in one piece: fragmentation",
            "空闲总量足够，但没有足够大的连续块：碎片",
        ),
        Cause::OtherStream => {
            Text::new("enough was free, but for other streams", "空闲总量足够，但属于其他 stream")
        }
        Cause::PrivatePools => Text::new(
            "enough was free, but in memory pools that the request could not take from",
            "空闲总量足够，但位于该请求无法使用的内存池",
        ),
        Cause::OtherKind => Text::new(
            "enough was free, but in segments or blocks that are kept for requests of another size",
            "空闲总量足够，但位于供其他大小的请求使用的 segment 或块",
        ),
        Cause::OutsidePool => Text::new("memory beside the pool took the room", "内存池之外的占用挤占了空间"),
        Cause::RequestTooLarge => {
            Text::new("the request is larger than the device has", "请求大于设备可用的全部内存")
        }
        Cause::Capacity => Text::new("the device is full of allocated memory", "设备已被有效分配占满"),
        Cause::Unknown => Text::new("the snapshot does not tell why", "快照信息不足以判断原因"),
    }
}

fn of_failure(failure: &Failure, outcome: &OomOutcome) -> Finding {
    let (event, state) = (&failure.event, &failure.event.state);
    let cause = words(failure.cause);
    let (subject, en, zh) = match event.trace_index {
        Some(trace_index) => {
            let (requested, free) = (known(state.requested), known(state.device_free));
            (
                Subject::Event { device_index: event.device_index, trace_index },
                format!(
                    "a request of {} failed with {} left in the driver: ",
                    requested.get(Lang::En),
                    free.get(Lang::En)
                ),
                format!("请求 {} 失败，驱动剩余 {}：", requested.get(Lang::Zh), free.get(Lang::Zh)),
            )
        }
        None => (
            Subject::Device(event.device_index),
            "the file's name says out of memory, but no such event was recorded; its final state: "
                .to_owned(),
            "文件名表明发生了内存不足（OOM），但没有记录到该事件；最终状态：".to_owned(),
        ),
    };
    let (level, outside) = (level(state), outside(failure));
    let message = Text::new(
        format!("{en}{}{}{}", cause.get(Lang::En), level.get(Lang::En), outside.get(Lang::En)),
        format!("{zh}{}{}{}", cause.get(Lang::Zh), level.get(Lang::Zh), outside.get(Lang::Zh)),
    );
    let mut evidence = vec![
        ("requested", Quantity::Bytes(state.requested)),
        ("device_free", Quantity::Bytes(state.device_free)),
        ("reserved", Quantity::Bytes(state.reserved)),
        ("allocated", Quantity::Bytes(state.allocated)),
        ("pool_free_bytes", Quantity::Bytes(state.pool_free_bytes)),
        ("largest_free_block", Quantity::Bytes(state.largest_free_block)),
        ("largest_usable_block", Quantity::Bytes(state.largest_usable_block)),
        ("pending_free_bytes", Quantity::Bytes(state.pending_free_bytes)),
    ];
    if state.is_of_private_pool() {
        evidence.push(("own_free_bytes", Quantity::Bytes(state.own_free_bytes)));
    }
    if state.kind_free_bytes.is_some() {
        evidence.push(("kind_free_bytes", Quantity::Bytes(state.kind_free_bytes)));
    }
    if state.counted_outside_bytes.is_some() {
        evidence.push(("counted_outside_bytes", Quantity::Bytes(state.counted_outside_bytes)));
    }
    if failure.cause == Cause::Fragmentation {
        evidence.extend(outcome.setup.expandable_count(event.device_index));
    }
    Finding { rule: rule(failure.cause), severity: Severity::Critical, subject, message, evidence }
}

fn known(value: Option<i64>) -> Text {
    value.map_or_else(|| Text::new("unknown size", "未知大小"), |value| Text::same(quantity::bytes(value)))
}

/// What the device held, in brackets; nothing where that is not known.
fn level(state: &State) -> Text {
    let Some((reserved, allocated)) = state.reserved.zip(state.allocated) else { return Text::same("") };
    let (reserved, allocated) = (quantity::bytes(reserved), quantity::bytes(allocated));
    let Some((free, largest)) = state.free_in_pool().zip(state.largest_free_block) else {
        return Text::new(
            format!(" ({allocated} of {reserved} reserved was allocated)"),
            format!("（已预留 {reserved}，其中已分配 {allocated}）"),
        );
    };
    let free = quantity::bytes(free);
    let (en, zh) = if state.is_of_private_pool() {
        ("the request's private pool", "该请求所属的私有内存池内")
    } else {
        ("the pool", "池内")
    };
    let block = largest_block(state, largest);
    Text::new(
        format!(
            " ({allocated} of {reserved} reserved was allocated; {free} was free in {en}, {})",
            block.get(Lang::En)
        ),
        format!("（已预留 {reserved}，其中已分配 {allocated}；{zh}空闲 {free}，{}）", block.get(Lang::Zh)),
    )
}

/// The largest block that the request could take, and that of the default pool where it is another one. Where nobody knows
/// what the request could take, nothing is said of it.
fn largest_block(state: &State, largest: i64) -> Text {
    let of_pool = quantity::bytes(largest);
    match state.largest_usable_block {
        Some(usable) if usable != largest => {
            let usable = quantity::bytes(usable);
            Text::new(
                format!(
                    "the largest block that it could take {usable}, the largest of the default pool {of_pool}"
                ),
                format!("请求可用的最大空闲块 {usable}，默认池的最大空闲块 {of_pool}"),
            )
        }
        None if state.is_of_private_pool() => Text::new(
            format!("the largest block of the default pool {of_pool}"),
            format!("默认池的最大空闲块 {of_pool}"),
        ),
        _ => Text::new(format!("the largest block {of_pool}"), format!("最大空闲块 {of_pool}")),
    }
}

/// What the driver counts outside the pool; nothing where no file tells.
fn outside(failure: &Failure) -> Text {
    let Some(held) = failure.outside.bytes().filter(|held| *held > 0) else { return Text::same("") };
    let (size, named) = (quantity::bytes(held), failure.outside.named());
    Text::new(
        format!("; outside the pool the driver counts {size}: {}", named.get(Lang::En)),
        format!("；驱动统计的池外占用为 {size}：{}", named.get(Lang::Zh)),
    )
}

fn none(outcome: &OomOutcome) -> Finding {
    let (rule, severity, message) = if outcome.setup.event_count > 0 && outcome.setup.is_cut {
        (
            "oom/none",
            Severity::Info,
            Text::new(
                "no request failed among the events that were read; others were left out or lost",
                "已读取的事件中没有请求失败；另有事件被筛除或丢失",
            ),
        )
    } else if outcome.setup.event_count > 0 {
        (
            "oom/none",
            Severity::Ok,
            Text::new("no request failed among the recorded events", "记录的事件中没有请求失败"),
        )
    } else {
        (
            "oom/no_history",
            Severity::Info,
            Text::new(
                "no events were recorded, so a failed request would not be seen",
                "没有记录事件，无法得知是否有请求失败",
            ),
        )
    };
    Finding::on_snapshot(rule, severity, message)
}
