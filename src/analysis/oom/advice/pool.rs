//! What to do about memory that was free in the pool.

use super::super::state::{MIB, State};
use super::{Background, batch, known};
use crate::analysis::language::Text;
use crate::quantity;

/// The setting that lets segments grow page by page, where that would have been enough.
pub(super) fn expand(state: &State, about: &Background<'_>) -> Option<Text> {
    if state.kind_free_bytes.is_none() && state.is_of_private_pool() {
        // What was free in the default pool speaks for nothing there.
        return None;
    }
    let (free, largest, holes) = state.free_blocks();
    let enough = state.requested.zip(free).is_none_or(|(size, free)| state.would_do_in_pages(free, size));
    enough.then(|| {
        let variable = about.variable();
        let (free, largest, holes) = (known(free), known(largest), holes.unwrap_or_default());
        let blocks = quantity::counted(holes, "block", "blocks");
        Text::new(
            format!(
                "set {variable}=expandable_segments:True: {free} was free in {blocks}, the largest of {largest}. Expandable \
                 segments grow page by page and give whole free pages back for any other request, so that free memory is \
                 not tied to the segment it lies in"
            ),
            format!(
                "设置 {variable}=expandable_segments:True：当时空闲 {free}，分散在 {} 个块中，最大的一块仅 {largest}。可扩展段按页增长，\
                 整页空闲的内存可以归还并用于其他请求，不再被所在的 segment 限制",
                quantity::count(holes)
            ),
        )
    })
}

/// The setting that everybody tries first, or why it would not have helped; nothing where the request is not known.
pub(super) fn expand_or_not(state: &State, about: &Background<'_>) -> Option<Text> {
    let size = state.requested?;
    let free = state.free_in_pool().or_else(|| state.unallocated())?;
    if state.would_do_in_pages(free, size) {
        return expand(state, about);
    }
    let variable = about.variable();
    let (size, free) = (quantity::bytes(size), quantity::bytes(free));
    let (en, zh) = match state.device_free.map(quantity::bytes) {
        Some(driver) => (
            format!("the pages that were still missing are more than the {driver} that the driver had left"),
            format!("所缺的页仍多于驱动剩余的 {driver}"),
        ),
        None => ("that is less than was asked for".to_owned(), "仍小于请求".to_owned()),
    };
    Some(Text::new(
        format!(
            "{variable}=expandable_segments:True alone would not have been enough: {size} was asked for, and even with all \
             that was free in the pool ({free}) in one piece, {en}"
        ),
        format!(
            "仅设置 {variable}=expandable_segments:True 不足以解决：请求为 {size}，即使池内全部空闲（{free}）连成一块，{zh}"
        ),
    ))
}

/// Keeping blocks whole that are large enough for the request; nothing where none was cut up, or where the settings do
/// so already.
pub(super) fn split(state: &State, about: &Background<'_>) -> Option<Text> {
    let cut = state.kind_cut_bytes.filter(|cut| *cut > 0)?;
    // The largest limit that keeps what this request could have had; the allocator takes none of 20 MiB or less.
    let limit = state.requested.map(|size| size / MIB).filter(|limit| *limit > 20)?;
    let set = about.setting("max_split_size").and_then(serde_json::Value::as_i64).filter(|set| *set >= 0);
    if set.is_some_and(|set| set <= limit * MIB) {
        return None;
    }
    let (variable, size, cut) = (about.variable(), known(state.requested), quantity::bytes(cut));
    let (en, zh) = set.map(quantity::bytes).map_or_else(
        || (String::new(), String::new()),
        |set| (format!(" in place of {set}"), format!("（目前为 {set}）")),
    );
    Some(Text::new(
        format!(
            "where expandable segments are not supported, {variable}=max_split_size_mb:{limit}{en} keeps blocks as large as \
             this request from being cut up by smaller ones: {cut} was free around blocks in segments of {size} or more"
        ),
        format!(
            "若环境不支持可扩展段，可设置 {variable}=max_split_size_mb:{limit}{zh}，避免不小于该请求的块被更小的请求切碎：\
             当时在不小于 {size} 的 segment 中，有 {cut} 空闲夹在其他块之间"
        ),
    ))
}

/// Where segments are expandable already: settings that do nothing for them are not named as a remedy.
pub(super) fn pinned(state: &State) -> Text {
    let (free, largest, holes) = state.free_blocks();
    let (free, largest, holes) = (known(free), known(largest), holes.unwrap_or_default());
    let blocks = quantity::counted(holes, "block", "blocks");
    Text::new(
        format!(
            "expandable segments are on already, and still {free} was free in {blocks}, the largest of {largest}: a page that \
             holds a small live tensor cannot go back, and neither garbage_collection_threshold nor max_split_size_mb helps \
             there. Allocate long-lived tensors before short-lived ones, and free what lives on between the blocks"
        ),
        format!(
            "已启用可扩展段，但仍有 {free} 空闲在 {} 个块中，最大单块仅 {largest}：页内只要有小张量存活就无法归还，\
             garbage_collection_threshold 与 max_split_size_mb 对可扩展段均不起作用。请让长生命周期张量先于短生命周期张量分配，\
             并释放夹在空闲块之间的张量",
            quantity::count(holes)
        ),
    )
}

pub(super) fn streams(state: &State) -> Text {
    let (size, asked) = (known(state.kind_other_bytes.or(state.other_stream_bytes)), known(state.requested));
    Text::new(
        format!(
            "{size} was free for other streams, whose segments this stream's request of {asked} cannot use: allocate on one \
             stream, or call `empty_cache()` after the phase that uses the other"
        ),
        format!(
            "有 {size} 空闲在其他 stream 的 segment 中，本 stream 的请求（{asked}）无法使用：尽量在同一 stream 上分配，\
             或在另一阶段结束后调用 `empty_cache()`"
        ),
    )
}

pub(super) fn private(state: &State, about: &Background<'_>) -> Text {
    if state.is_of_private_pool() {
        let (free, module) = (known(state.kind_private_bytes), about.module());
        return Text::new(
            format!(
                "{free} was free in other pools, and a request of a private pool takes from its own alone: call \
                 `{module}.empty_cache()` before the capture, or before the pool is used, so that the driver has it back"
            ),
            format!(
                "有 {free} 空闲在其他内存池中，而私有内存池的请求只能使用本池：请在捕获图或使用该池之前调用 `{module}.empty_cache()`，\
                 将其归还驱动"
            ),
        );
    }
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

/// What is free in segments of the one kind serves no request of the other, as long as a block in them is in use.
pub(super) fn other_kind(state: &State, about: &Background<'_>) -> Vec<Text> {
    let asked = known(state.requested);
    let kept = state.kind_oversize_bytes.unwrap_or_default();
    let free = state.free_in_pool().zip(state.kind_free_bytes).map(|(pool, kind)| pool - kind - kept);
    if kept > 0 {
        // What is free for the other kind is no remedy where a setting alone stood in the way.
        return vec![oversize(kept, state, about)];
    }
    let free = known(free);
    let is_on = about.is_expandable == Some(true);
    if state.requested.is_some_and(|size| size <= MIB) {
        let (en, zh) = if is_on { ("page of 20 MiB", "20 MiB 的页") } else { ("segment", "segment") };
        let large = Text::new(
            format!(
                "{free} was free in segments for requests above 1 MiB, which {asked} cannot be taken from: a {en} of them goes \
                 back to the driver only when all of it is free"
            ),
            format!(
                "有 {free} 空闲在供 1 MiB 以上请求使用的 segment 中，{asked} 的请求无法使用：{zh}只有全部空闲才会归还驱动"
            ),
        );
        return std::iter::once(large).chain((!is_on).then(|| paged(about))).collect();
    }
    let (en, zh) = if is_on { ("page", "页") } else { ("segment", "segment") };
    let small = Text::new(
        format!(
            "{free} was free in segments for requests of up to 1 MiB, which {asked} cannot be taken from: a {en} of 2 MiB goes \
             back to the driver only when all of it is free. Many small tensors live in them; free those that are kept without \
             need, or keep several in one tensor"
        ),
        format!(
            "有 {free} 空闲在供不超过 1 MiB 请求使用的 segment 中，{asked} 的请求无法使用：2 MiB 的{zh}只有全部空闲才会归还驱动。\
             其中存活着许多小张量；请释放不必保留的，或将多个小张量合并为一个"
        ),
    );
    vec![small, batch(state)]
}

/// Blocks that were large enough, and that a setting keeps for requests of their own size.
fn oversize(kept: i64, state: &State, about: &Background<'_>) -> Text {
    let variable = about.variable();
    let (kept, asked) = (quantity::bytes(kept), known(state.requested));
    let limit = known(about.setting("max_split_size").and_then(serde_json::Value::as_i64));
    Text::new(
        format!(
            "{kept} was free in blocks that the setting max_split_size of {limit} keeps from a request of {asked}: blocks of that \
             size serve no smaller request, and a larger one takes none that has 20 MiB more than it needs. Raise \
             max_split_size_mb in {variable}, or leave it out"
        ),
        format!(
            "有 {kept} 空闲在 max_split_size（{limit}）不允许 {asked} 的请求使用的块中：不小于该值的块不供更小的请求使用，更大的请求也不使用\
             超出所需 20 MiB 及以上的块。请在 {variable} 中调大 max_split_size_mb，或去掉该设置"
        ),
    )
}

fn paged(about: &Background<'_>) -> Text {
    let variable = about.variable();
    Text::new(
        format!(
            "set {variable}=expandable_segments:True: of what serves large requests, pages of 20 MiB then go back when they are free and memory is short"
        ),
        format!(
            "设置 {variable}=expandable_segments:True：供大请求使用的内存中，空闲的 20 MiB 整页即可在内存不足时归还"
        ),
    )
}
