//! What to do about a failed request, with the setting's name for the device at hand and the numbers that speak for it.

mod lack;
mod outside;
mod pending;
mod pool;

use serde_json::{Map, Value};

use super::cause::Cause;
use super::state::State;
use crate::analysis::language::Text;
use crate::quantity;

pub(super) use lack::Lack;

/// What advice depends on beside the state at the failure.
#[derive(Debug)]
pub(super) struct Background<'a> {
    /// Whether the device is an NPU.
    pub(super) is_npu: bool,
    /// Whether expandable segments are in use already; `None` where nothing tells.
    pub(super) is_expandable: Option<bool>,
    /// The allocator's settings; `None` where the snapshot has none.
    pub(super) settings: Option<&'a Map<String, Value>>,
    /// What the snapshot would have to say for a cause to be told.
    pub(super) lack: Lack,
}

impl Background<'_> {
    /// The environment variable that sets the allocator up.
    fn variable(&self) -> &'static str {
        if self.is_npu { "PYTORCH_NPU_ALLOC_CONF" } else { "PYTORCH_CUDA_ALLOC_CONF" }
    }

    /// The Python module of the device.
    fn module(&self) -> &'static str {
        if self.is_npu { "torch_npu.npu" } else { "torch.cuda" }
    }

    fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.and_then(|settings| settings.get(name))
    }
}

/// Advice for a cause, what helps most first.
pub(super) fn of(cause: Cause, state: &State, about: &Background<'_>) -> Vec<Text> {
    let is_on = about.is_expandable == Some(true);
    let mut advice = match cause {
        Cause::Fragmentation if is_on => vec![pool::pinned(state), batch(state)],
        Cause::Fragmentation => {
            let mut advice: Vec<Text> = pool::expand(state, about).into_iter().collect();
            advice.extend(pool::split(state, about));
            advice.push(batch(state));
            advice
        }
        Cause::PendingFree => vec![pending::synchronize(state), pending::reuse(about)],
        Cause::OtherStream if is_on => vec![pool::streams(state), pool::pinned(state)],
        Cause::OtherStream => {
            let mut advice = vec![pool::streams(state)];
            advice.extend(pool::expand(state, about));
            advice
        }
        Cause::PrivatePools => vec![pool::private(state, about)],
        Cause::OtherKind => pool::other_kind(state, about),
        Cause::OutsidePool => vec![outside::of(about.is_npu, state)],
        Cause::MemoryLimit => vec![limit(state, about)],
        Cause::RequestTooLarge => vec![request(state), batch(state)],
        Cause::Capacity => {
            let mut advice = vec![batch(state), checkpoint(state)];
            advice.extend(if is_on { None } else { pool::expand_or_not(state, about) });
            advice
        }
        Cause::Unknown => vec![about.lack.advice(about.is_npu)],
    };
    // A pool that fills the device is the cause; what would have been enough beside it is worth a look all the same.
    if cause == Cause::Capacity
        && state.counted_outside_bytes.zip(state.requested).is_some_and(|(a, b)| a >= b)
    {
        advice.push(outside::of(about.is_npu, state));
    }
    advice
}

fn known(value: Option<i64>) -> String {
    value.map_or_else(|| "?".to_owned(), quantity::bytes)
}

fn limit(state: &State, about: &Background<'_>) -> Text {
    let module = about.module();
    let (free, needed) = (known(state.device_free), known(state.requested.map(|size| state.needed(size))));
    Text::new(
        format!(
            "the driver still had {free} and {needed} of it were needed: raise the limit set by \
             `{module}.set_per_process_memory_fraction`, or look for another process that took the memory for a moment"
        ),
        format!(
            "驱动仍有 {free} 空闲，而只需要 {needed}：提高 `{module}.set_per_process_memory_fraction` 设定的上限，\
             或检查是否有其他进程瞬时占用"
        ),
    )
}

fn request(state: &State) -> Text {
    let (size, device) = (known(state.requested), known(state.device_bytes()));
    Text::new(
        format!(
            "a single request of {size} is more than the {device} that the pool, the driver and what is known beside them \
             come to: look at the shapes at the place it came from"
        ),
        format!("单次请求 {size} 已超过内存池、驱动空闲与已知池外占用之和 {device}：请检查请求处的张量形状"),
    )
}

fn batch(state: &State) -> Text {
    let (size, allocated) = (state.requested, known(state.allocated));
    let (en, zh) = match size.map(quantity::bytes) {
        Some(size) => (
            format!(" ({allocated} was allocated when {size} more was asked for)"),
            format!("（请求 {size} 时已分配 {allocated}）"),
        ),
        None => (format!(" ({allocated} was allocated)"), format!("（已分配 {allocated}）")),
    };
    Text::new(
        format!("hold less at once{en}: a smaller micro-batch or sequence, more gradient accumulation"),
        format!("降低同时占用{zh}：减小 micro-batch 或序列长度，增加梯度累积"),
    )
}

fn checkpoint(state: &State) -> Text {
    let allocated = known(state.allocated);
    Text::new(
        format!(
            "recompute or shard what the stacks with the most live bytes hold of these {allocated}: activation checkpointing, \
             sharded optimizer state, offloading"
        ),
        format!("这 {allocated} 中占用最多的调用栈可做重计算或切分：激活重计算、优化器状态切分、卸载到主机"),
    )
}

#[cfg(test)]
mod tests;
