//! What a snapshot of one device's make can never say, because its recorder lacks it: NPU against CUDA.
//!
//! What a certain snapshot lacks is in [`Info::gaps`](super::Info::gaps); this is what no better recording would add.

use crate::analysis::language::Text;

/// What kind of thing the other side has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A key of the snapshot.
    Key,
    /// A field of an event.
    Field,
    /// An action of an event.
    Action,
    /// An argument or function of the recorder.
    Option,
}

impl Kind {
    /// The name that JSON uses.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Field => "field",
            Self::Action => "action",
            Self::Option => "option",
        }
    }

    /// What people read.
    pub(super) fn text(self) -> Text {
        match self {
            Self::Key => Text::new("key", "顶层键"),
            Self::Field => Text::new("event field", "事件字段"),
            Self::Action => Text::new("action", "事件类型"),
            Self::Option => Text::new("recorder", "采集接口"),
        }
    }
}

/// Something that the other recorder has.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    /// What it is.
    pub(super) kind: Kind,
    /// Its name in the other's snapshot or interface.
    pub(super) name: &'static str,
    /// What the lack does to analyses.
    pub(super) effect: Text,
    /// How to do without.
    pub(super) way_around: Text,
}

fn difference(
    kind: Kind,
    name: &'static str,
    effect: (&'static str, &'static str),
    way_around: (&'static str, &'static str),
) -> Difference {
    Difference {
        kind,
        name,
        effect: Text::new(effect.0, effect.1),
        way_around: Text::new(way_around.0, way_around.1),
    }
}

/// What torch has and `torch_npu` lacks, or the other way round.
pub(super) fn dialect_gap(is_npu: bool) -> Vec<Difference> {
    if is_npu { lacking_on_npu() } else { lacking_on_cuda() }
}

fn lacking_on_npu() -> Vec<Difference> {
    vec![
        difference(
            Kind::Key,
            "allocator_settings",
            ("oom, fragment: advice cannot know what is set", "oom、fragment：无法得知分配器的当前设置"),
            ("look at PYTORCH_NPU_ALLOC_CONF of the job", "查看作业的 PYTORCH_NPU_ALLOC_CONF"),
        ),
        difference(
            Kind::Key,
            "external_annotations",
            (
                "peak, leak: no named ranges, so no steps by name",
                "peak、leak：没有命名区间，无法按名字区分步",
            ),
            (
                "npusnap_capture.py notes steps in a file beside the snapshot",
                "npusnap_capture.py 把步标记写在快照旁的文件里",
            ),
        ),
        difference(
            Kind::Field,
            "time_us",
            (
                "every curve: the axis is the event number; devices cannot be aligned",
                "所有曲线：横轴为事件序号，设备之间无法对齐",
            ),
            ("compare devices at the same step, not at the same time", "按同一步而非同一时刻比较设备"),
        ),
        difference(
            Kind::Field,
            "compile_context",
            ("attribution: graphs of torch.compile are not told apart", "归因：无法区分 torch.compile 的图"),
            ("go by the call stack", "以调用栈区分"),
        ),
        difference(
            Kind::Field,
            "user_metadata",
            ("attribution: no marks of the program on allocations", "归因：分配上没有程序自带的标记"),
            ("go by the call stack", "以调用栈区分"),
        ),
        difference(
            Kind::Action,
            "annotate",
            ("attribution: metadata cannot be added later", "归因：无法事后补充元数据"),
            ("none", "无"),
        ),
        difference(
            Kind::Option,
            "enabled=True",
            ("recording with the old signature fails", "用旧的布尔参数采集会失败"),
            (
                "enabled=\"all\"; npusnap_capture.py does that",
                "改用 enabled=\"all\"；npusnap_capture.py 已处理",
            ),
        ),
        difference(
            Kind::Option,
            "clear_history",
            ("leak: no fresh start within a process", "leak：进程内无法清空历史重新开始"),
            ("enabled=None, then record anew", "先 enabled=None，再重新开始采集"),
        ),
        difference(
            Kind::Option,
            "skip_actions",
            ("the ring buffer also holds what nobody asked for", "环形缓冲会记录不需要的事件"),
            ("a larger max_entries", "加大 max_entries"),
        ),
        difference(
            Kind::Option,
            "compile_context, global_record_annotations",
            ("as the fields and keys above", "同上述字段与键"),
            ("as above", "同上"),
        ),
        difference(
            Kind::Option,
            "record_pinned_host_memory, record_cuda",
            ("pinned host memory is not in the snapshot", "快照中没有锁页主机内存"),
            ("watch the process's own memory", "观察进程自身的内存"),
        ),
        difference(
            Kind::Option,
            "include_traces",
            ("a dump always has the whole history and is large", "转储总是包含全部历史，文件较大"),
            (
                "a smaller max_entries; `npusnap ingest --events`",
                "减小 max_entries；`npusnap ingest --events`",
            ),
        ),
        difference(
            Kind::Option,
            "memory_snapshot(mempool_id)",
            ("no snapshot of one pool, before the newest releases", "较旧版本无法只转储某个内存池"),
            ("filter by pool_id_0 and pool_id_1 in SQL", "在 SQL 中按 pool_id_0、pool_id_1 过滤"),
        ),
    ]
}

fn lacking_on_cuda() -> Vec<Difference> {
    vec![
        difference(
            Kind::Action,
            "workspace_snapshot",
            (
                "overview: workspaces of operators are in the pool's figures",
                "overview：算子 workspace 计入内存池",
            ),
            ("look for their call stacks", "查看其调用栈"),
        ),
        difference(
            Kind::Option,
            "OOM_SNAPSHOT_ENABLE, OOM_SNAPSHOT_PATH",
            ("no dump on out of memory by an environment variable", "无法仅凭环境变量在 OOM 时转储"),
            ("npusnap_capture.py attaches an out-of-memory observer", "npusnap_capture.py 会注册 OOM 观察者"),
        ),
        difference(
            Kind::Option,
            "device_<n>_memUsageInfo_<time>.csv",
            ("oom: memory outside the pool is not told by module", "oom：池外内存无法按模块列出"),
            ("what the driver reported as free stands at the oom event", "oom 事件里有驱动报告的剩余内存"),
        ),
    ]
}
