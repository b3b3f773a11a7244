//! What to do about memory that waited for another stream.

use super::super::state::State;
use super::{Background, known};
use crate::analysis::language::Text;

pub(super) fn synchronize(state: &State) -> Text {
    let size = known(state.pending_free_bytes);
    let (en, zh) = match state.requested {
        Some(_) => {
            let asked = known(state.requested);
            (format!(" when {asked} was asked for"), format!("（当时请求 {asked}）"))
        }
        None => (String::new(), String::new()),
    };
    Text::new(
        format!(
            "{size} was freed already but waited for another stream{en}: call `record_stream` only where it is needed, and \
             synchronize before the step that fails (limit prefetching)"
        ),
        format!(
            "有 {size} 已请求释放但在等待其他 stream{zh}：仅在必要处调用 `record_stream`，并在出错步骤之前同步（限制预取深度）"
        ),
    )
}

/// What keeps communication from marking blocks. Each default is named: nobody has to set what is set already.
pub(super) fn reuse(about: &Background<'_>) -> Text {
    if about.is_npu {
        return Text::new(
            "make sure that MULTI_STREAM_MEMORY_REUSE is not 0: by default (1) the marks of a collective's tensors are taken \
             off at `wait()`. Where torch_npu knows 3, it takes them off too if a tensor is freed before; 2 sets no marks at \
             all, but keeps the tensors alive until `wait()`",
            "确认 MULTI_STREAM_MEMORY_REUSE 未设为 0：默认值 1 会在 `wait()` 时擦除集合通信张量的标记。若 torch_npu 版本支持取值 3，\
             张量提前释放时也会擦除标记；取值 2 完全不做标记，但会持有张量直到 `wait()`",
        );
    }
    // A setting of PyTorch 2.9: the variable is not looked at any more.
    if about.setting("graph_capture_record_stream_reuse").is_some() {
        return Text::new(
            "communication of this PyTorch (2.9 or newer) keeps references and marks no blocks, so setting \
             TORCH_NCCL_AVOID_RECORD_STREAMS changes nothing: the marks come from `record_stream` in the program or a library",
            "该版本 PyTorch（2.9 或更新）的通信默认持有引用、不标记内存块，设置 TORCH_NCCL_AVOID_RECORD_STREAMS 不起作用：\
             标记来自程序或第三方库中的 `record_stream`",
        );
    }
    Text::new(
        "before PyTorch 2.8 set TORCH_NCCL_AVOID_RECORD_STREAMS=1: communication then keeps references instead of marking \
         blocks with `record_stream`. From 2.8 on it always does, and the variable is ignored",
        "PyTorch 2.8 之前可设置 TORCH_NCCL_AVOID_RECORD_STREAMS=1：通信改为持有引用，而不是用 `record_stream` 标记内存块。\
         自 2.8 起默认如此，该变量被忽略",
    )
}
