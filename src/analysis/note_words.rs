//! What the losses in `import_stats` mean, in Chinese. The table itself is in English, as every name in it.

/// By the name of the statistic, or by what stands before its `:`.
const MEANINGS: &[(&str, &str)] = &[
    ("trace_alloc_overflowed", "环形缓冲区已满：该设备最早的事件已丢失"),
    ("allocator_settings_lost", "allocator_settings 过大，未保留"),
    ("salvaged_to_byte", "文件从该字节起损坏；其后的内容已丢失"),
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
    ("allocations_without_end", "事件中从未释放、而最终 segment 中又不存在的分配"),
    ("frees_without_completion", "已请求但未完成的释放，其内存块在最终状态中并不活跃"),
    ("completions_without_request", "没有释放请求而直接完成的释放"),
    ("frees_without_alloc", "对已空闲地址的释放：其间的 alloc 缺失，alloc_index 取前一次释放的位置"),
    ("blocks_without_alloc", "最后一个事件是释放、但在 segment 中仍活跃的内存块：alloc_index 取该释放的位置"),
    ("allocs_on_live_addresses", "地址被再次使用、其释放事件缺失的分配；释放位置取该地址的下一个事件"),
    ("frees_on_other_streams", "释放事件的 stream 与其分配不同；仍按地址配对，按 stream 的曲线无法加总"),
    ("frees_are_one", "free_requested 与 free_completed 只记录了其一；已记录的一个代表两者"),
    ("allocs_not_recorded", "没有记录 alloc 事件，因此没有 allocated 与 active 的曲线"),
    (
        "pending_shown_inactive",
        "等待释放却显示为 inactive 的内存块（torch_npu 在图捕获期间如此）；终点把它们计为 active",
    ),
    ("blocks_without_address", "没有地址的活跃内存块，无法与任何事件配对"),
    ("ranges_reserved_twice", "在已预留的位置再次预留的字节数"),
    ("ranges_without_end", "事件中预留、未归还、而最终 segment 中又没有的字节数"),
    ("block_sizes_unproven", "块大小无法证明的分配；取整后的计数器不精确"),
    ("allocations_outside_segments", "落在所有已知 segment 之外的大块分配：缺少 segment 事件"),
    ("rounding_rule_broken", "大小不符合分配器取整规则的内存块：文件中没有的设置，或有自己规则的内存池"),
    ("splitting_rule_broken", "不符合分配器切分规则的大块：文件中没有的设置，或从不切分的内存池"),
    ("calibration_points", "更早转储留下的标记，记有当时的活跃字节数；已与回放对照"),
    ("calibration_deviation", "回放的活跃字节数与更早转储所记之间的最大差值；该转储可能只针对一个内存池"),
    ("block_padding_unknown", "无法判断该 NPU 的分配器是否为每个请求增加 32 字节；取整大小按增加计算"),
    ("implausible_sizes", "2^48 字节及以上的大小，任何设备都没有这么大；由它们算出的数字没有意义"),
];

/// The meaning of a statistic, where it is known.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let kind = name.split(':').next().unwrap_or(name);
    MEANINGS.iter().find(|(known, _)| *known == kind).map(|(_, meaning)| *meaning)
}
