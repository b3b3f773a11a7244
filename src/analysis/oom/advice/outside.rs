//! What to do about memory that is held beside the pool.

use super::super::state::State;
use crate::analysis::language::Text;
use crate::quantity;

/// What to do about memory beside the pool.
pub(super) fn of(is_npu: bool, state: &State) -> Text {
    let tool = if is_npu { "npu-smi info" } else { "nvidia-smi" };
    let size = quantity::bytes(state.outside());
    if let Some((component, held)) = &state.largest_outside {
        return component_advice(&size, component, &quantity::bytes(*held));
    }
    Text::new(
        format!(
            "{size} is held beside the caching allocator (operator workspaces, communication buffers, other processes): \
             `{tool}` shows who; fewer streams need fewer workspaces"
        ),
        format!(
            "缓存分配器之外占用了 {size}（算子 workspace、通信缓冲、其他进程）：用 `{tool}` 查看归属；减少 stream 可减少 workspace"
        ),
    )
}

/// What to do about memory of which the driver says who holds most.
fn component_advice(size: &str, component: &str, held: &str) -> Text {
    let (en, zh) = match component {
        "HCCL" => (
            "communication buffers; a smaller HCCL_BUFFSIZE and fewer communicators need less",
            "即通信缓冲；减小 HCCL_BUFFSIZE、减少通信域可以降低占用",
        ),
        "APP" => (
            "memory that the program took without the allocator; look for libraries that allocate by themselves",
            "即程序绕过分配器申请的内存；请检查自行申请设备内存的库",
        ),
        "RUNTIME" => (
            "streams, events and kernels that the runtime keeps; fewer streams need less",
            "即运行时保存的 stream、event 与算子；减少 stream 可以降低占用",
        ),
        _ => (
            "which neither `empty_cache()` nor the allocator's settings give back",
            "`empty_cache()` 与分配器设置都无法归还这部分内存",
        ),
    };
    Text::new(
        format!("{size} is held beside the caching allocator, most of it by {component} ({held}): {en}"),
        format!("缓存分配器之外占用了 {size}，其中最多的是 {component}（{held}）：{zh}"),
    )
}
