//! What to do about a failed request, with the setting's name for the device at hand.

use super::cause::{Cause, State};
use crate::analysis::language::Text;
use crate::quantity;

/// The environment variable that sets the allocator up.
fn variable(is_npu: bool) -> &'static str {
    if is_npu { "PYTORCH_NPU_ALLOC_CONF" } else { "PYTORCH_CUDA_ALLOC_CONF" }
}

/// Advice for a cause, what helps most first. `is_expandable` is whether expandable segments are in use already.
pub(super) fn of(cause: Cause, state: &State, is_npu: bool, is_expandable: Option<bool>) -> Vec<Text> {
    let variable = variable(is_npu);
    let mut advice = match cause {
        Cause::Fragmentation if is_expandable == Some(true) => vec![collect(variable, state), batch()],
        Cause::Fragmentation => vec![expand(variable, state), split(variable), batch()],
        Cause::PendingFree => pending(is_npu, state),
        Cause::OtherStream if is_expandable == Some(true) => vec![streams(state), collect(variable, state)],
        Cause::OtherStream => vec![streams(state), expand(variable, state)],
        Cause::PrivatePools => vec![private(state)],
        Cause::OutsidePool => vec![outside(is_npu, state)],
        Cause::MemoryLimit => vec![limit(is_npu, state)],
        Cause::RequestTooLarge => vec![request(state), batch()],
        Cause::Capacity if is_expandable == Some(true) => vec![batch(), checkpoint()],
        Cause::Capacity => vec![batch(), checkpoint(), not_enough(variable, state)],
        Cause::Unknown => vec![record(is_npu)],
    };
    // A pool that fills the device is the cause; what would have been enough beside it is worth a look all the same.
    if cause == Cause::Capacity
        && state.counted_outside_bytes.zip(state.requested).is_some_and(|(a, b)| a >= b)
    {
        advice.push(outside(is_npu, state));
    }
    advice
}

fn known(value: Option<i64>) -> String {
    value.map_or_else(|| "?".to_owned(), quantity::bytes)
}

fn expand(variable: &str, state: &State) -> Text {
    let (free, largest) = (known(state.pool_free_bytes), known(state.largest_free_block));
    let holes = state.hole_count.unwrap_or_default();
    let blocks = quantity::counted(holes, "block", "blocks");
    Text::new(
        format!(
            "set {variable}=expandable_segments:True: {free} was free in {blocks}, the largest of {largest}. Expandable \
             segments grow page by page and give whole free pages back for any other request, so that free memory is not \
             tied to the segment it lies in"
        ),
        format!(
            "设置 {variable}=expandable_segments:True：当时空闲 {free}，分散在 {} 个块中，最大的一块仅 {largest}。可扩展段按页增长，\
             整页空闲的内存可以归还并用于其他请求，不再被所在的 segment 限制",
            quantity::count(holes)
        ),
    )
}

/// Where no setting helps, the one that everybody tries first.
fn not_enough(variable: &str, state: &State) -> Text {
    let (free, driver) = (known(state.pool_free_bytes), known(state.device_free));
    Text::new(
        format!(
            "{variable}=expandable_segments:True alone would not have been enough: all that was free in the pool ({free}) \
             and in the driver ({driver}) together is less than was asked for"
        ),
        format!(
            "仅设置 {variable}=expandable_segments:True 不足以解决：池内空闲（{free}）与驱动空闲（{driver}）之和仍小于请求"
        ),
    )
}

fn split(variable: &str) -> Text {
    Text::new(
        format!(
            "where expandable segments are not supported, {variable}=max_split_size_mb:128 keeps large blocks from being \
             cut up by small requests"
        ),
        format!("若环境不支持可扩展段，可设置 {variable}=max_split_size_mb:128，避免大块被小请求切碎"),
    )
}

fn collect(variable: &str, state: &State) -> Text {
    let (free, largest) = (known(state.pool_free_bytes), known(state.largest_free_block));
    Text::new(
        format!(
            "expandable segments are on already, and still {free} was free with {largest} in one piece: pages that hold a \
             small live tensor cannot go back. {variable}=garbage_collection_threshold:0.8 gives cached memory back \
             earlier; allocate long-lived tensors before short-lived ones"
        ),
        format!(
            "已启用可扩展段，但仍有 {free} 空闲而最大单块仅 {largest}：页内只要有小张量存活就无法归还。可设置 \
             {variable}=garbage_collection_threshold:0.8 更早回收缓存，并让长生命周期张量先于短生命周期张量分配"
        ),
    )
}

fn pending(is_npu: bool, state: &State) -> Vec<Text> {
    let size = known(state.pending_free_bytes);
    let reuse = if is_npu {
        Text::new(
            "set MULTI_STREAM_MEMORY_REUSE=1: memory of communication streams is then reused without waiting for \
             `record_stream` events",
            "设置 MULTI_STREAM_MEMORY_REUSE=1：通信 stream 的内存无需等待 `record_stream` 事件即可复用",
        )
    } else {
        Text::new(
            "set TORCH_NCCL_AVOID_RECORD_STREAMS=1: communication then keeps references instead of marking blocks with \
             `record_stream`",
            "设置 TORCH_NCCL_AVOID_RECORD_STREAMS=1：通信改为持有引用，而不是用 `record_stream` 标记内存块",
        )
    };
    vec![
        Text::new(
            format!(
                "{size} was freed already but waited for another stream: call `record_stream` only where it is needed, and \
                 synchronize before the step that fails (limit prefetching)"
            ),
            format!(
                "有 {size} 已请求释放但在等待其他 stream：仅在必要处调用 `record_stream`，并在出错步骤之前同步（限制预取深度）"
            ),
        ),
        reuse,
    ]
}

fn streams(state: &State) -> Text {
    let size = known(state.other_stream_bytes);
    Text::new(
        format!(
            "{size} was free for other streams, whose segments this stream cannot use: allocate on one stream, or call \
             `empty_cache()` after the phase that uses the other"
        ),
        format!(
            "有 {size} 空闲在其他 stream 的 segment 中，本 stream 无法使用：尽量在同一 stream 上分配，或在另一阶段结束后调用 `empty_cache()`"
        ),
    )
}

fn private(state: &State) -> Text {
    let (held, free) = (known(state.private_reserved), known(state.private_free_bytes));
    Text::new(
        format!(
            "private pools held {held}, of which {free} was free: let captured graphs share one pool \
             (`graph_pool_handle()`), or release graphs and MemPools that are no longer used"
        ),
        format!(
            "私有内存池占用 {held}，其中 {free} 空闲：让各捕获图共用一个池（`graph_pool_handle()`），或释放不再使用的图与 MemPool"
        ),
    )
}

fn outside(is_npu: bool, state: &State) -> Text {
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

fn limit(is_npu: bool, state: &State) -> Text {
    let module = if is_npu { "torch_npu.npu" } else { "torch.cuda" };
    let free = known(state.device_free);
    Text::new(
        format!(
            "the driver still had {free}: raise the limit set by `{module}.set_per_process_memory_fraction`, or look for \
             another process that took the memory for a moment"
        ),
        format!(
            "驱动仍有 {free} 空闲：提高 `{module}.set_per_process_memory_fraction` 设定的上限，或检查是否有其他进程瞬时占用"
        ),
    )
}

fn request(state: &State) -> Text {
    let size = known(state.requested);
    Text::new(
        format!(
            "a single request of {size} is more than the device has for this program: look at the shapes at the place it came from"
        ),
        format!("单次请求 {size} 已超过设备可供本程序使用的全部内存：请检查请求处的张量形状"),
    )
}

fn batch() -> Text {
    Text::new(
        "hold less at once: a smaller micro-batch or sequence, more gradient accumulation",
        "降低同时占用：减小 micro-batch 或序列长度，增加梯度累积",
    )
}

fn checkpoint() -> Text {
    Text::new(
        "recompute or shard what the stacks with the most live bytes hold: activation checkpointing, sharded optimizer state, offloading",
        "对占用最多的调用栈做重计算或切分：激活重计算、优化器状态切分、卸载到主机",
    )
}

fn record(is_npu: bool) -> Text {
    let module = if is_npu { "torch_npu.npu" } else { "torch.cuda" };
    Text::new(
        format!(
            "record the history that leads there: `{module}.memory._record_memory_history(max_entries=100000)` before the run"
        ),
        format!("请先记录历史：运行前调用 `{module}.memory._record_memory_history(max_entries=100000)`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Lang;

    #[test]
    fn fragmentation_is_answered_with_the_setting_of_the_device() {
        for (is_npu, variable) in [(true, "PYTORCH_NPU_ALLOC_CONF"), (false, "PYTORCH_CUDA_ALLOC_CONF")] {
            let advice = of(Cause::Fragmentation, &State::default(), is_npu, Some(false));
            for lang in [Lang::En, Lang::Zh] {
                let first = advice.first().map(|text| text.get(lang).to_owned()).unwrap_or_default();
                assert!(first.contains(&format!("{variable}=expandable_segments:True")), "{first}");
            }
        }
    }

    #[test]
    fn nobody_is_told_to_switch_on_what_is_on() {
        for cause in [Cause::Fragmentation, Cause::OtherStream, Cause::Capacity] {
            let advice = of(cause, &State::default(), true, Some(true));
            assert!(advice.iter().all(|text| !text.get(Lang::En).contains("expandable_segments:True")));
        }
    }
}
