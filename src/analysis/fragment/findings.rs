//! What the measures of fragmentation mean.

use super::workspace::doubt;
use super::{DeviceFragmentation, ExpansionCause, FragmentOutcome, FreeBlocks};
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Finding, Quantity, Severity, bytes, share};
use crate::analysis::thresholds::judge;
use crate::quantity;

/// Every judgement, worst first.
pub(super) fn all(outcome: &FragmentOutcome) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        outcome.devices().flat_map(|device| of_device(outcome, device)).collect();
    if findings.is_empty() {
        findings.push(nothing_reserved());
    }
    Finding::sort_worst_first(&mut findings);
    findings
}

fn of_device(outcome: &FragmentOutcome, device: &DeviceFragmentation) -> Vec<Finding> {
    if device.reserved == 0 {
        return Vec::new();
    }
    let mut findings: Vec<Finding> =
        [holes(outcome, device), pending(outcome, device), waste(outcome, device)]
            .into_iter()
            .flatten()
            .collect();
    let requests = outcome.requests.iter().filter(|row| row.device_index == device.device_index);
    findings.extend(requests.filter_map(|row| unfit(outcome, device, row)));
    findings.extend(expansions(outcome, device));
    let healthy = findings.is_empty() && device.active > 0;
    findings.extend([cache(device), private(device)].into_iter().flatten());
    if healthy {
        findings.push(fine(device));
    }
    findings
}

fn holes(outcome: &FragmentOutcome, device: &DeviceFragmentation) -> Option<Finding> {
    let ratio = share(device.hole_bytes, device.reserved);
    let thresholds = &outcome.thresholds;
    // An empty pool is all cache: nothing is split, so nothing is fragmented.
    let severity = judge(
        ratio.filter(|_| device.active > 0),
        thresholds.fragment_warning,
        thresholds.fragment_critical,
    )?;
    let (free, largest) = (quantity::bytes(device.hole_bytes), quantity::bytes(device.largest_hole));
    // An exception frees what the failed step held: what is free then says nothing of why the request failed.
    let after = if outcome.failed.contains(&device.device_index) {
        Text::new(
            "; this is the state at the dump, after a request had failed: the analysis `oom` has what was free then",
            "；这是请求失败之后转储时的状态，失败时的空闲情况见 `oom` 分析",
        )
    } else {
        Text::same("")
    };
    Some(Finding::on_device(
        device.device_index,
        "fragment/unallocated",
        severity,
        Text::new(
            format!(
                "{free} ({}) of the reserved memory is free inside segments that are in use, in {}, the largest of {largest}{}",
                quantity::ratio(ratio),
                quantity::counted(device.hole_count, "block", "blocks"),
                after.get(Lang::En),
            ),
            format!(
                "预留内存中有 {free}（{}）空闲在仍被占用的 segment 内，分散在 {} 个块中，最大的一块为 {largest}{}",
                quantity::ratio(ratio),
                quantity::count(device.hole_count),
                after.get(Lang::Zh),
            ),
        ),
        vec![
            ("hole_bytes", bytes(device.hole_bytes)),
            ("hole_count", Quantity::Count(device.hole_count)),
            ("hole_ratio", Quantity::Ratio(ratio)),
            ("largest_hole", bytes(device.largest_hole)),
            ("fragmentation_ratio", Quantity::Ratio(device.fragmentation_ratio)),
            ("expandable_count", Quantity::Count(device.expandable_count)),
        ],
    ))
}

fn pending(outcome: &FragmentOutcome, device: &DeviceFragmentation) -> Option<Finding> {
    let ratio = device.pending_free_share.filter(|_| device.pending_free_bytes > 0)?;
    let size = quantity::bytes(device.pending_free_bytes);
    (ratio > outcome.thresholds.pending_warning).then(|| {
        Finding::on_device(
            device.device_index,
            "fragment/pending_free",
            Severity::Warning,
            Text::new(
                format!(
                    "false fragmentation: {size} ({}) of the unallocated memory waits for another stream; asynchronous release is the cause",
                    quantity::ratio(Some(ratio))
                ),
                format!(
                    "假性碎片：未分配内存中有 {size}（{}）正等待其他 stream 完成；主因是异步释放，而非碎片",
                    quantity::ratio(Some(ratio))
                ),
            ),
            vec![
                ("pending_free_bytes", bytes(device.pending_free_bytes)),
                ("pending_free_count", Quantity::Count(device.pending_free_count)),
                ("pending_free_share", Quantity::Ratio(Some(ratio))),
            ],
        )
    })
}

fn waste(outcome: &FragmentOutcome, device: &DeviceFragmentation) -> Option<Finding> {
    let waste = device.internal_waste_bytes?;
    let ratio = share(waste, device.active)?;
    (ratio >= outcome.thresholds.waste_warning).then(|| {
        let (size, ratio_text) = (quantity::bytes(waste), quantity::ratio(Some(ratio)));
        Finding::on_device(
            device.device_index,
            "fragment/internal_waste",
            Severity::Warning,
            Text::new(
                format!("rounding takes {size}, {ratio_text} of the memory in use: many small or oddly sized tensors"),
                format!("对齐取整占用 {size}，为使用中内存的 {ratio_text}：小张量或零碎尺寸的张量过多"),
            ),
            vec![("internal_waste_bytes", bytes(waste)), ("internal_waste_ratio", Quantity::Ratio(Some(ratio)))],
        )
    })
}

/// Free memory in blocks that are too small for what is asked for; a little of it is everywhere and no matter.
fn unfit(outcome: &FragmentOutcome, device: &DeviceFragmentation, row: &FreeBlocks) -> Option<Finding> {
    let thresholds = &outcome.thresholds;
    let unfit_bytes = row.free_bytes - row.fits_median_bytes?;
    let unfit_share = share(unfit_bytes, row.free_bytes)?;
    let weight = share(unfit_bytes, device.reserved)?;
    if unfit_share < thresholds.unfit_warning || weight < thresholds.fragment_warning {
        return None;
    }
    let median = row.median_request?;
    let kind = row.segment_type.as_deref().unwrap_or("?");
    let (size, largest) = (quantity::bytes(unfit_bytes), quantity::bytes(row.largest_free_block));
    Some(Finding::on_device(
        device.device_index,
        "fragment/unfit",
        Severity::Warning,
        Text::new(
            format!(
                "{size} ({}) of what is free in {kind} segments lies in blocks too small for a median request of {}; the largest is {largest}",
                quantity::ratio(Some(unfit_share)),
                quantity::bytes(median),
            ),
            format!(
                "{kind} segment 的空闲内存中有 {size}（{}）所在的块小于典型请求（中位数 {}），最大空闲块为 {largest}",
                quantity::ratio(Some(unfit_share)),
                quantity::bytes(median),
            ),
        ),
        vec![
            ("free_bytes", bytes(row.free_bytes)),
            ("unfit_bytes", bytes(unfit_bytes)),
            ("unfit_ratio", Quantity::Ratio(Some(unfit_share))),
            ("median_request", bytes(median)),
            ("largest_free_block", bytes(row.largest_free_block)),
        ],
    ))
}

fn expansions(outcome: &FragmentOutcome, device: &DeviceFragmentation) -> Option<Finding> {
    let own = || outcome.expansions.iter().filter(|row| row.device_index == device.device_index);
    let count: i64 = own().map(|row| row.expansion_count).sum();
    let fragmented: &ExpansionCause = own().find(|row| row.cause.as_deref() == Some("fragmented"))?;
    let ratio = share(fragmented.grown_bytes, device.reserved)?;
    let most_free = fragmented.most_free_before?;
    (ratio >= outcome.thresholds.expansion_warning).then(|| {
        let (grown, most) = (quantity::bytes(fragmented.grown_bytes), quantity::bytes(most_free));
        let (part, whole) = (quantity::count(fragmented.expansion_count), quantity::count(count));
        // Where segments expand already, the holes lie between blocks that live on.
        let remedy = if device.expandable_count > 0 {
            Text::new(
                "allocating what lives long first, and sizes that vary less, keep holes together",
                "先分配长期存活的内存、减少大小变化，可以减少空洞",
            )
        } else {
            Text::new("expandable segments avoid that", "可扩展段可避免")
        };
        Finding::on_device(
            device.device_index,
            "fragment/expansions",
            Severity::Warning,
            Text::new(
                format!(
                    "{part} of {whole} expansions ({grown}) came while enough was free in smaller blocks, up to {most}: {}",
                    remedy.get(Lang::En)
                ),
                format!(
                    "{whole} 次扩容中有 {part} 次（共 {grown}）发生时空闲总量足够（最多 {most}），只是没有足够大的单块：{}",
                    remedy.get(Lang::Zh)
                ),
            ),
            vec![
                ("expansion_count", Quantity::Count(count)),
                ("fragmented_count", Quantity::Count(fragmented.expansion_count)),
                ("fragmented_bytes", bytes(fragmented.grown_bytes)),
                ("most_free_before", bytes(most_free)),
            ],
        )
    })
}

fn cache(device: &DeviceFragmentation) -> Option<Finding> {
    (device.unused_segment_bytes > 0).then(|| {
        let size = quantity::bytes(device.unused_segment_bytes);
        let count = device.unused_segment_count;
        let doubt = doubt(device);
        let mut evidence = vec![
            ("unused_segment_bytes", bytes(device.unused_segment_bytes)),
            ("unused_segment_count", Quantity::Count(count)),
        ];
        if device.workspace_like_bytes > 0 {
            evidence.push(("workspace_like_bytes", bytes(device.workspace_like_bytes)));
            evidence.push(("workspace_guess_bytes", bytes(device.workspace_guess_bytes)));
        }
        Finding::on_device(
            device.device_index,
            "fragment/cache",
            Severity::Info,
            Text::new(
                format!(
                    "{size} in {} is free as a whole: cache that `empty_cache()` gives back, no fragmentation{}",
                    quantity::counted(count, "segment", "segments"),
                    doubt.get(Lang::En),
                ),
                format!(
                    "{} 个 segment 整段空闲，共 {size}：属于缓存，可用 `empty_cache()` 归还，不是碎片{}",
                    quantity::count(count),
                    doubt.get(Lang::Zh),
                ),
            ),
            evidence,
        )
    })
}

fn private(device: &DeviceFragmentation) -> Option<Finding> {
    (device.private_segment_count > 0).then(|| {
        let (size, free) =
            (quantity::bytes(device.private_reserved), quantity::bytes(device.private_free_bytes));
        Finding::on_device(
            device.device_index,
            "fragment/private_pools",
            Severity::Info,
            Text::new(
                format!(
                    "private pools (graphs, MemPool) hold {size}, of which {free} is free for their owner only; it is not counted as fragmentation"
                ),
                format!("私有内存池（图捕获、MemPool）占用 {size}，其中 {free} 空闲但仅供其所有者使用；不计为碎片"),
            ),
            vec![
                ("private_reserved", bytes(device.private_reserved)),
                ("private_free_bytes", bytes(device.private_free_bytes)),
            ],
        )
    })
}

fn fine(device: &DeviceFragmentation) -> Finding {
    let ratio = share(device.hole_bytes, device.reserved);
    Finding::on_device(
        device.device_index,
        "fragment/ok",
        Severity::Ok,
        Text::new(
            format!(
                "only {} of the reserved memory is free inside segments that are in use",
                quantity::ratio(ratio)
            ),
            format!("预留内存中仅有 {} 空闲在仍被占用的 segment 内", quantity::ratio(ratio)),
        ),
        vec![("hole_bytes", bytes(device.hole_bytes)), ("hole_ratio", Quantity::Ratio(ratio))],
    )
}

fn nothing_reserved() -> Finding {
    Finding::on_snapshot(
        "fragment/nothing_reserved",
        Severity::Info,
        Text::new(
            "no device held a segment when this was dumped: there is nothing to be fragmented",
            "转储时没有设备持有 segment：无从谈起碎片",
        ),
    )
}
