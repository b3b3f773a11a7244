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
    ("implausible_sizes", "2^48 字节及以上的大小，任何设备都没有这么大；由它们算出的数字没有意义"),
];

/// The meaning of a statistic, where it is known.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let kind = name.split(':').next().unwrap_or(name);
    MEANINGS.iter().find(|(known, _)| *known == kind).map(|(_, meaning)| *meaning)
}
