//! What a snapshot lacks where it does not tell why a request failed, and how to get it. What was recorded is not asked
//! for again.

use super::super::Event;
use crate::analysis::capture;
use crate::analysis::language::Text;

/// What would have to be known for a cause to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Lack {
    /// No history was recorded.
    History,
    /// There is a history, but the failure is not in it.
    Event,
    /// The recorded events do not lead up to the final state: some are missing.
    Replay,
    /// The event does not say what was asked for.
    Request,
    /// Neither the event nor anything around it says which memory pool the request was of.
    Pool,
    /// The pool was not laid out at this failure, which so many of the device's newest include.
    Layout(i64),
    /// The event does not say what the driver had left.
    Driver,
}

impl Lack {
    /// What is lacking for an event, in a snapshot with so many events.
    pub(in super::super) fn of(event: &Event, event_count: i64) -> Self {
        let state = &event.state;
        match event.trace_index {
            None if event_count == 0 => Self::History,
            None => Self::Event,
            Some(_) if state.unallocated().is_none() => Self::Replay,
            Some(_) if state.requested.is_none() => Self::Request,
            Some(_) if state.kind_free_bytes.is_some() => Self::Driver,
            Some(_) if state.pool_free_bytes.is_some() => Self::Pool,
            Some(_) => Self::Layout(event.newest),
        }
    }

    pub(super) fn advice(self, is_npu: bool) -> Text {
        match self {
            Self::History => record(is_npu),
            Self::Event => Text::new(
                "the allocator refused without an event of its own: the error message in the log says how much was asked for, \
                 and what the driver had left",
                "分配器拒绝请求时没有记录事件：请查看日志中的报错信息，其中有请求大小与驱动剩余内存",
            ),
            Self::Replay => Text::new(
                "the recorded events do not lead up to the final state, so what was free at this failure is not known: read \
                 all events (`--events` and `--min-size` leave some out), or dump the snapshot right where the request fails",
                "记录的事件与最终状态无法对应，因此不知道失败时的空闲情况：请读取全部事件（`--events`、`--min-size` 会略去一部分），\
                 或在请求失败处立即转储快照",
            ),
            Self::Request => Text::new(
                "the event does not say how much was asked for (it has no size, or one of 0 bytes): the error message in the \
                 log does",
                "该事件没有记录请求大小（没有 size，或为 0 字节）：请查看日志中的报错信息",
            ),
            Self::Pool => {
                let newer = if is_npu { "torch_npu 26.2" } else { "PyTorch 2.12" };
                Text::new(
                    format!(
                        "enough may have been free, but memory was held for private pools too, and nothing tells whether the \
                         request was of one of them: {newer} and newer record the pool of each event"
                    ),
                    format!(
                        "当时空闲总量可能足够，但部分内存属于私有内存池，无法得知该请求属于哪个池：{newer} 及以上版本会在事件中记录所属的池"
                    ),
                )
            }
            Self::Layout(newest) => Text::new(
                format!(
                    "enough may have been free, but where it lay is worked out for the newest failures only: \
                     `SELECT * FROM segments_at(newest => {newest})` lays the pool out at this one too"
                ),
                format!(
                    "当时空闲总量可能足够，但只对最近的失败还原了内存池布局：`SELECT * FROM segments_at(newest => {newest})` \
                     可还原到此次失败"
                ),
            ),
            Self::Driver => Text::new(
                "the event does not say what the driver had left, and what was free in the pool would not have been enough: the \
                 error message in the log names it",
                "该事件没有记录驱动剩余内存，而池内空闲不足以满足请求：请查看日志中的报错信息",
            ),
        }
    }
}

fn record(is_npu: bool) -> Text {
    let record = capture::record(is_npu);
    Text::new(
        format!("record the history that leads there: `{record}` before the run"),
        format!("请先记录历史：运行前调用 `{record}`"),
    )
}
