//! What `info` says: the cost of a field that is absent, the state of a history, and how to record a better snapshot.

use super::{History, Info, Recording};
use crate::analysis::capture;
use crate::analysis::language::Text;
use crate::quantity;

/// A field whose absence costs something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    part: &'static str,
    name: &'static str,
    en: &'static str,
    zh: &'static str,
}

const fn field(part: &'static str, name: &'static str, en: &'static str, zh: &'static str) -> Field {
    Field { part, name, en, zh }
}

const FIELDS: &[Field] = &[
    field(
        "events",
        "stack_id",
        "no frames: peaks and leaks cannot be put down to code",
        "无调用栈：峰值与泄漏无法归因到代码",
    ),
    field(
        "events",
        "time_us",
        "no time_us: the axis is the event number, and devices cannot be aligned",
        "无 time_us：横轴只能是事件序号，各设备之间无法对齐",
    ),
    field(
        "events",
        "pool_id_0",
        "no pool_id: private pools (graphs) cannot be told apart over time",
        "无 pool_id：无法随时间区分私有内存池（图模式）",
    ),
    field(
        "events",
        "compile_context",
        "no compile_context: torch.compile's regions cannot be told",
        "无 compile_context：无法识别 torch.compile 的区域",
    ),
    field(
        "events",
        "user_metadata",
        "no user_metadata: the program's own marks are missing",
        "无 user_metadata：缺少程序自己的标记",
    ),
    field(
        "segments",
        "requested_size",
        "no requested_size: rounding per segment is unknown",
        "无 requested_size：无法得知各段的取整浪费",
    ),
    field(
        "segments",
        "pool_id_0",
        "no segment_pool_id: private pools count as the default one",
        "无 segment_pool_id：私有内存池计入默认池",
    ),
    field(
        "segments",
        "is_expandable",
        "no is_expandable: expandable segments look like fixed ones",
        "无 is_expandable：可扩展段与固定段无法区分",
    ),
    field(
        "blocks",
        "requested_size",
        "no requested_size: waste inside blocks is unknown",
        "无 requested_size：无法得知块内浪费",
    ),
    field(
        "blocks",
        "stack_id",
        "no frames: memory in use cannot be put down to code",
        "无调用栈：在用内存无法归因到代码",
    ),
    field(
        "snapshot",
        "allocator_settings",
        "no allocator_settings: the allocator's configuration is unknown",
        "无 allocator_settings：分配器配置未知",
    ),
];

impl Field {
    /// The words for a field of `field_presence`.
    pub(super) fn find(part: &str, name: &str) -> Option<Self> {
        FIELDS.iter().copied().find(|field| field.part == part && field.name == name)
    }

    /// What it costs that only `present` of `rows` have it; `None` where nothing is missing.
    pub(super) fn cost(self, rows: i64, present: i64) -> Option<Text> {
        match rows - present {
            0 => None,
            _ if present == 0 => Some(Text::new(self.en, self.zh)),
            missing => {
                let (missing, rows) = (quantity::count(missing), quantity::count(rows));
                // What it costs holds for those rows only.
                Some(Text::new(
                    format!(
                        "{missing} of {rows} rows have {}",
                        self.en.replacen(": ", ": for these rows, ", 1)
                    ),
                    format!("{rows} 行中有 {missing} 行{}", self.zh.replacen('：', "：对这些行，", 1)),
                ))
            }
        }
    }
}

/// What the history of a device means.
pub(super) fn history(recording: &Recording) -> Text {
    match recording.history() {
        History::Never => {
            Text::new("never recorded: final state only, no curves", "未开启记录：只有最终状态，没有曲线")
        }
        History::OneEntry => Text::new(
            "one entry only (enabled='state'): final state with stacks, no curves",
            "只有一条记录（enabled='state'）：最终状态带调用栈，没有曲线",
        ),
        History::Overflowed => Text::new(
            "ring buffer overflowed: the oldest events are lost",
            "环形缓冲区溢出：最早的事件已丢失",
        ),
        History::Incomplete if recording.first_free_count > 0 => {
            let count = quantity::count(recording.first_free_count);
            Text::new(
                format!(
                    "{count} addresses are freed before they are allocated: overflowed, or recorded late"
                ),
                format!("{count} 个地址先释放后分配：缓冲区溢出，或记录开始较晚"),
            )
        }
        History::Incomplete => {
            let count = quantity::counted(recording.earlier_count, "allocation is", "allocations are");
            Text::new(
                format!("{count} from before the first event: overflowed, or recorded late"),
                format!(
                    "{} 个分配早于第一个事件：缓冲区溢出，或记录开始较晚",
                    quantity::count(recording.earlier_count)
                ),
            )
        }
        History::Cut => {
            let count = quantity::counted(recording.left_out_count, "event", "events");
            Text::new(
                format!("{count} left out when the file was read: a part of its history"),
                format!(
                    "读取时筛除了 {} 个事件：只是历史的一部分",
                    quantity::count(recording.left_out_count)
                ),
            )
        }
        History::Whole => {
            Text::new("ring buffer not full: nothing was overwritten", "环形缓冲区未满：没有事件被覆盖")
        }
        History::Unknown => Text::new(
            "no sign of a ring buffer overflow; the snapshot does not say",
            "没有环形缓冲区溢出的迹象；快照中未注明",
        ),
    }
}

/// How to record what is missing, in one line.
pub(super) fn advice(info: &Info, is_npu: bool) -> Text {
    let (record, dump) = (capture::record(is_npu), capture::dump(is_npu));
    match info.worst() {
        History::Never | History::OneEntry => Text::new(
            format!("Capture: call `{record}` before the model is built, then `{dump}`"),
            format!("采集建议：在构建模型之前调用 `{record}`，之后调用 `{dump}`"),
        ),
        History::Cut => Text::new(
            "Capture: this is a part of a recording; read the whole file before recording again",
            "采集建议：这只是记录的一部分；重新采集之前请先读取完整文件",
        ),
        History::Overflowed | History::Incomplete => {
            let most = info.devices().filter_map(|recording| recording.max_entries).max();
            let record = capture::record_more(is_npu, most.unwrap_or_default());
            Text::new(
                format!("Capture: call `{record}` earlier, or record fewer steps, then `{dump}`"),
                format!("采集建议：更早调用 `{record}`，或减少录制的步数，之后调用 `{dump}`"),
            )
        }
        History::Whole | History::Unknown if info.lost_rows => Text::new(
            format!("Capture: a dump that is whole has what is lost here (see the notes): `{dump}`"),
            format!("采集建议：完整的转储包含此处缺失的内容（见说明）：`{dump}`"),
        ),
        History::Whole | History::Unknown if info.has_unexplained() => Text::new(
            format!(
                "Capture: call `{record}` before the first allocation, so that all memory in use has a stack"
            ),
            format!("采集建议：在第一次分配之前调用 `{record}`，使全部在用内存都有调用栈"),
        ),
        History::Whole | History::Unknown => Text::new(
            "Capture: nothing is missing that another recording would add",
            "采集建议：再次采集不会得到更多信息",
        ),
    }
}
