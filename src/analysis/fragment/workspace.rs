//! Whole free segments that may be an NPU's workspace.

use super::DeviceFragmentation;
use crate::analysis::language::Text;
use crate::quantity;

/// What of the cache may be an NPU's workspace, which the allocator keeps apart; empty where nothing is.
pub(super) fn doubt(device: &DeviceFragmentation) -> Text {
    if device.workspace_guess_bytes > 0 {
        let size = quantity::bytes(device.workspace_guess_bytes);
        return Text::new(
            format!(
                "; but {size} of it looks like workspace of the NPU, which is no cache of this allocator and which `memory_reserved()` does not count"
            ),
            format!(
                "；但其中 {size} 看来是 NPU 的 workspace，不是该分配器的缓存，`memory_reserved()` 也不计入"
            ),
        );
    }
    if device.workspace_like_bytes > 0 {
        let size = quantity::bytes(device.workspace_like_bytes);
        return Text::new(
            format!(
                "; up to {size} of it may be workspace of the NPU, which is no cache: there is no history that would tell"
            ),
            format!("；其中最多 {size} 可能是 NPU 的 workspace 而非缓存：没有可用的历史，无从分辨"),
        );
    }
    Text::new("", "")
}
