//! What the rows of `import_stats` mean, in Chinese. The table itself is in English, as every name in it.

use std::fmt::Display;

use crate::schema::note::{self, Template};

/// Events that are missing, with what that does to the counters.
macro_rules! gap {
    ($meaning:literal) => {
        Template(concat!(
            $meaning,
            "；使 allocated_requested 的 residual 增加 {} 字节、active_requested 的增加 {} 字节"
        ))
    };
}

/// By the name of the statistic, or by what stands before its `:`; those of [`FILLED`] are not among them.
const MEANINGS: &[(&str, &str)] = &[
    ("trace_alloc_overflowed", "环形缓冲区已满：该设备最早的事件已丢失"),
    ("allocator_settings_lost", "allocator_settings 过大，未保留"),
    ("salvage_blocks_lost", "所在段不完整的内存块，已随该段丢失"),
    ("unknown_action", "当前版本不认识的事件类型；已保留，按无变化计"),
    ("unknown_state", "当前版本不认识的内存块状态；已保留"),
    ("duplicate_keys", "同一字典中重复出现的键；与 Python 一致，以最后一个为准"),
    ("memo_overwritten", "被写入两次的 memo 条目；PyTorch 不会这样写"),
    ("time_goes_back", "时间早于前一条的事件：缓冲区被调整过大小，或多线程交错；保持列表中的顺序"),
    ("events_without_time", "所在列表有 time_us 而自身没有的事件；不与任何标注关联"),
    (
        "workspace_incomplete",
        "缺少对应 segment_alloc 与 alloc，或位于真实事件之后的 workspace_snapshot 条目；只有它们自身标记为 is_workspace",
    ),
    ("segment_size_mismatch", "内存块大小之和与 total_size 不符的段：文件被截断或修改过"),
    ("module_memory_lines_unreadable", "快照旁的 CSV 中无法识别为组件的行；未进入 module_memory"),
    ("module_memory_files_unreadable", "快照旁无法读取、或列名不是组件内存的 CSV 文件；未进入 module_memory"),
    ("module_memory_files_cut", "快照旁过大的 CSV 文件；只读取了前 64 MiB"),
    (
        "replay_not_anchored",
        "事件与最终状态不衔接（文件损坏，或用 --events、--min-size 筛除了事件）：起点未知",
    ),
    (
        "events_of_other_pools",
        "转储只针对一个内存池，而事件还包括其他池；生命周期、起点与终点仅指该池，所有计数器都不精确",
    ),
    (
        "events_outside_the_pool",
        "不在任何 segment 内的分配与区间，而所有 segment 同属一个内存池、事件又不说明所属的池：转储只针对该池，或缺少事件；所有计数器都不精确",
    ),
    ("events_out_of_order", "事件列表中时间倒退之处：环形缓冲区被调整过大小；所有计数器都不精确"),
    ("residual_reserved", "起点处无法由任何 segment 或分配解释的 reserved 字节数"),
    ("residual_allocated", "起点处无法由任何 segment 或分配解释的 allocated 字节数"),
    ("residual_active", "起点处无法由任何 segment 或分配解释的 active 字节数"),
    ("residual_allocated_requested", "起点处无法由任何 segment 或分配解释的 allocated_requested 字节数"),
    ("residual_active_requested", "起点处无法由任何 segment 或分配解释的 active_requested 字节数"),
    ("frees_on_other_streams", "释放事件的 stream 与其分配不同；仍按地址配对，按 stream 的曲线无法加总"),
    ("frees_are_one", "free_requested 与 free_completed 只记录了其一；已记录的一个代表两者"),
    ("allocs_not_recorded", "没有记录 alloc 事件，因此没有 allocated 与 active 的曲线"),
    ("blocks_without_address", "没有地址的活跃内存块，无法与任何事件配对"),
    ("ranges_reserved_twice", "在已预留的位置再次预留的字节数"),
    ("ranges_without_end", "事件中预留、未归还、而最终 segment 中又没有的字节数"),
    ("allocations_outside_segments", "落在所有已知 segment 之外的大块分配：缺少 segment 事件"),
    ("rounding_rule_broken", "大小不符合分配器取整规则的内存块：文件中没有的设置，或有自己规则的内存池"),
    ("splitting_rule_broken", "不符合分配器切分规则的大块：文件中没有的设置，或从不切分的内存池"),
    ("calibration_points", "更早转储留下的标记，记有当时的活跃字节数；已与回放对照"),
    ("calibration_deviation", "回放的活跃字节数与更早转储所记之间的最大差值；该转储可能只针对一个内存池"),
    ("block_padding_unknown", "无法判断该 NPU 的分配器是否为每个请求增加 32 字节；取整大小按增加计算"),
    ("no_column", "格式中存在、而表中没有对应列的键；其值未保留"),
    ("unknown_key", "当前版本不认识的键；其值未保留"),
    ("unknown_names", "其余不认识的键、事件类型与状态"),
    ("events_left_out", "被 --device、--events 或 --min-size 筛除的事件；其余事件保持原有序号"),
    ("events_without_frames_key", "记录时没有上下文的事件；调用栈未知"),
    ("events_with_empty_frames", "上下文中没有帧的事件，例如来自 autograd 线程"),
    ("high_addresses", "2^63 及以上的事件地址；显示为负数"),
    ("segments_left_out", "被 --device 筛除的其他设备的段"),
    ("blocks_left_out", "被 --device 筛除的其他设备的内存块"),
    ("block_addresses_added_up", "没有地址的内存块；地址由段地址加上之前各块大小得出"),
    ("blocks_with_history", "PyTorch 1.13 与 2.0 写法的内存块；帧与请求大小取自第一条记录"),
    ("blocks_without_frames_key", "产生者未记录帧的内存块"),
    ("state_renamed", "状态为 active_awaiting_free 的内存块：文档对 active_pending_free 的叫法"),
    ("high_segment_addresses", "2^63 及以上的段与内存块地址；显示为负数"),
    ("trace_alloc_max_entries", "该设备的环形缓冲区可容纳的事件数"),
    ("annotations_without_device", "所属设备既无段也无事件的标注"),
    ("trailing_bytes", "pickle 结尾之后的非零字节；未读取"),
    ("escaped_strings", "不是有效 UTF-8 的字符串，例如含孤立代理项的文件名；以转义形式显示"),
    ("values_not_kept", "未知键下过大而未查看的容器"),
    ("device_type_guessed", "快照中没有任何内容能区分 NPU 与 CUDA；device_type 为推测"),
    ("producer_is_xpu", "设置来自 Intel XPU；device_type 显示为 CUDA-GPU，两者字段相同"),
    ("workspace_bytes", "workspace 段的字节数；不属于缓存分配器的 reserved"),
    ("module_memory_rows", "快照旁的文件中由驱动统计的组件数，即 module_memory 的行数"),
    ("module_memory_of_other_devices", "快照中没有的设备的组件；未计入"),
    ("module_memory_of_other_times", "快照旁名称所示时间与快照不同的 memUsageInfo 文件；未计入"),
    (
        "source_is_five_tables",
        "来源是旧工具的五表数据库；其中没有的内容，如时间、事件所属的池、标注与分配器设置，这里也没有",
    ),
    ("implausible_sizes", "2^48 字节及以上的大小，任何设备都没有这么大；由它们算出的数字没有意义"),
];

/// Texts of which there are several under one name, or that have values in them: each with what it means.
const FILLED: &[(&str, Template, Template)] = &[
    ("salvaged_to_byte", note::SALVAGED, Template("文件从该字节起损坏（{}）；其后的内容已丢失")),
    (
        "salvaged_to_byte",
        note::SALVAGED_WITHIN,
        Template("从该字节（按 {} 解开后的内容计）起损坏（{}）；其后的内容已丢失"),
    ),
    (
        "no_device_traces",
        note::NO_DEVICE_TRACES,
        Template("快照中没有 device_traces：只有最终状态，没有历史"),
    ),
    (
        "no_device_traces",
        note::DEVICE_TRACES_LOST,
        Template("损坏处之前没有 device_traces：只有已读到的最终状态，是否记录过历史不得而知"),
    ),
    (
        "workspace_guess_bytes",
        note::WORKSPACE_GUESS,
        Template(
            "看来是 workspace 的段（位于末尾、地址乱序、只有一个 inactive 块）的字节数；没有历史可以证实，计入 reserved",
        ),
    ),
    (
        "workspace_guess_bytes",
        note::WORKSPACE_GUESS_OF_REST,
        Template(
            "看来是 workspace 的段（地址乱序、只有一个 inactive 块）的字节数；能够证实的历史不在损坏处之前，计入 reserved",
        ),
    ),
    (
        "allocations_without_end",
        note::ALLOCATIONS_WITHOUT_END,
        gap!("事件中从未释放、而最终 segment 中又不存在的分配"),
    ),
    (
        "frees_without_completion",
        note::FREES_WITHOUT_COMPLETION,
        gap!("已请求但未完成的释放，其内存块在最终状态中并不活跃"),
    ),
    ("completions_without_request", note::COMPLETIONS_WITHOUT_REQUEST, gap!("没有释放请求而直接完成的释放")),
    (
        "frees_without_alloc",
        note::FREES_WITHOUT_ALLOC,
        gap!("对已空闲地址的释放：其间的 alloc 缺失，alloc_index 取前一次释放的位置"),
    ),
    (
        "blocks_without_alloc",
        note::BLOCKS_WITHOUT_ALLOC,
        gap!("最后一个事件是释放、但在 segment 中仍活跃的内存块：alloc_index 取该释放的位置"),
    ),
    (
        "allocs_on_live_addresses",
        note::ALLOCS_ON_LIVE_ADDRESSES,
        Template(
            "allocations_without_end 中地址被再次使用的分配，共 {} 字节：其释放事件缺失，释放位置取该地址的下一个事件",
        ),
    ),
    (
        "pending_shown_inactive",
        note::PENDING_SHOWN_INACTIVE,
        Template(
            "等待释放却显示为 inactive 的内存块（torch_npu 在图捕获期间如此）；终点把其 {} 字节计为 active",
        ),
    ),
    (
        "block_sizes_unproven",
        note::BLOCK_SIZES_UNPROVEN,
        Template("{} 次分配中块大小无法证明者（共 {} 字节，全部为 {} 字节）；取整后的计数器不精确"),
    ),
];

/// The meaning of a statistic that is told as `doc`, where it is known.
pub(super) fn meaning(name: &str, doc: &str) -> Option<String> {
    let filled = FILLED.iter().filter(|(known, ..)| *known == name);
    let mut filled = filled.filter_map(|(_, told, meaning)| Some((told.values(doc)?, meaning)));
    if let Some((values, meaning)) = filled.next_back() {
        let values: Vec<&dyn Display> = values.iter().map(|value| value as &dyn Display).collect();
        return Some(meaning.filled(&values));
    }
    let kind = name.split(':').next().unwrap_or(name);
    MEANINGS.iter().find(|(known, _)| *known == kind).map(|(_, meaning)| (*meaning).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_the_same_values_in_both_languages() {
        for (name, told, meaning) in FILLED {
            assert_eq!(told.0.matches("{}").count(), meaning.0.matches("{}").count(), "{name}");
            assert!(MEANINGS.iter().all(|(known, _)| known != name), "{name} has two meanings");
        }
    }

    #[test]
    fn the_values_of_a_text_are_told_in_its_meaning() {
        let doc = note::BLOCK_SIZES_UNPROVEN.filled(&[&12, &3456, &7890]);
        assert_eq!(
            meaning("block_sizes_unproven", &doc).unwrap(),
            "12 次分配中块大小无法证明者（共 3456 字节，全部为 7890 字节）；取整后的计数器不精确"
        );
        let doc = note::SALVAGED_WITHIN.filled(&[&"gzip", &"the file ends"]);
        let expected = "从该字节（按 gzip 解开后的内容计）起损坏（the file ends）；其后的内容已丢失";
        assert_eq!(meaning("salvaged_to_byte", &doc).unwrap(), expected);
        // What another version told so has values that nobody here knows.
        assert_eq!(meaning("salvaged_to_byte", "damaged"), None);
        assert_eq!(meaning("unknown_key:traces.x", "").unwrap(), "当前版本不认识的键；其值未保留");
    }
}
