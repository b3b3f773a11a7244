//! Fragmentation as tables.

use super::{DeviceFragmentation, FragmentOutcome, SegmentFragmentation};
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, Figure, TableFigure};

/// Segments that a person is shown; programs get all.
const WORST: usize = 5;

/// What to show.
pub(super) fn all(outcome: &FragmentOutcome) -> Vec<Figure> {
    let (host, devices): (Vec<_>, Vec<_>) =
        outcome.devices.iter().partition(|device| device.device_index < 0);
    let mut tables = Vec::new();
    if !devices.is_empty() {
        tables.push(parts(Text::new("Unallocated memory by what it is", "未分配内存的构成"), &devices));
    }
    if !host.is_empty() {
        tables.push(parts(
            Text::new("Pinned host memory: unallocated, by what it is", "主机锁页内存：未分配部分的构成"),
            &host,
        ));
    }
    tables.extend(
        [worst(outcome), requests(outcome), expansions(outcome), pools(outcome)].into_iter().flatten(),
    );
    tables.into_iter().map(Figure::Table).collect()
}

fn parts(title: Text, devices: &[&DeviceFragmentation]) -> TableFigure {
    let row = |device: &&DeviceFragmentation| {
        vec![
            Cell::name(device.device_index.to_string()),
            Cell::bytes(device.reserved),
            Cell::bytes(device.allocated),
            Cell::ratio(device.fragmentation_ratio),
            Cell::bytes(device.pending_free_bytes),
            Cell::bytes(device.hole_bytes),
            Cell::bytes(device.unused_segment_bytes),
            Cell::bytes(device.private_free_bytes),
            Cell::bytes(device.largest_free_block),
            Cell::bytes(device.internal_waste_bytes),
        ]
    };
    TableFigure::new(
        title,
        &[
            ("device", "设备"),
            ("reserved", "预留"),
            ("allocated", "已分配"),
            ("unallocated", "未分配占比"),
            ("pending free", "等待释放"),
            ("holes", "空洞"),
            ("cache", "整段缓存"),
            ("private free", "私有池空闲"),
            ("largest free", "最大空闲块"),
            ("rounding", "对齐损耗"),
        ],
        devices.iter().map(row).collect(),
    )
}

/// The worst segments that are in use; a whole free segment is cache and says nothing here.
fn worst(outcome: &FragmentOutcome) -> Option<TableFigure> {
    let used = outcome.segments.iter().filter(|segment| segment.is_unused == 0 && segment.device_index >= 0);
    let row = |segment: &SegmentFragmentation| {
        let mut kind = segment.segment_type.clone().unwrap_or_default();
        if segment.is_expandable == 1 {
            kind.push_str(", expandable");
        }
        if segment.is_private == 1 {
            kind.push_str(", private");
        }
        vec![
            Cell::name(segment.device_index.to_string()),
            Cell::segment(segment.device_index, segment.address),
            Cell::name(kind),
            Cell::bytes(segment.total_size),
            Cell::bytes(segment.allocated_size),
            Cell::ratio(segment.fragmentation_ratio),
            Cell::count(segment.hole_count),
            Cell::bytes(segment.largest_free_block),
        ]
    };
    let rows: Vec<Vec<Cell>> = used.take(WORST).map(row).collect();
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Worst segments in use", "碎片最严重的在用 segment"),
            &[
                ("device", "设备"),
                ("address", "地址"),
                ("kind", "类型"),
                ("size", "大小"),
                ("allocated", "已分配"),
                ("unallocated", "未分配占比"),
                ("holes", "空洞数"),
                ("largest hole", "最大空洞"),
            ],
            rows,
        )
    })
}

fn requests(outcome: &FragmentOutcome) -> Option<TableFigure> {
    let rows: Vec<Vec<Cell>> = outcome
        .requests
        .iter()
        .filter(|row| row.free_bytes > 0)
        .map(|row| {
            vec![
                Cell::name(row.device_index.to_string()),
                Cell::name(row.stream.map_or_else(|| "-".to_owned(), |stream| stream.to_string())),
                Cell::name(row.segment_type.clone().unwrap_or_default()),
                Cell::bytes(row.free_bytes),
                Cell::count(row.free_count),
                Cell::bytes(row.largest_free_block),
                Cell::bytes(row.median_request),
                Cell::bytes(row.p90_request),
                Cell::bytes(row.largest_request),
                Cell::bytes(row.fits_median_bytes),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Free blocks against typical requests", "空闲块与典型请求"),
            &[
                ("device", "设备"),
                ("stream", "stream"),
                ("kind", "类型"),
                ("free", "空闲"),
                ("blocks", "块数"),
                ("largest", "最大块"),
                ("median request", "请求中位数"),
                ("9 of 10 up to", "九成请求不超过"),
                ("largest request", "最大请求"),
                ("fits median", "可容纳中位数"),
            ],
            rows,
        )
    })
}

fn expansions(outcome: &FragmentOutcome) -> Option<TableFigure> {
    let rows: Vec<Vec<Cell>> = outcome
        .expansions
        .iter()
        .filter(|row| row.device_index >= 0)
        .map(|row| {
            vec![
                Cell::name(row.device_index.to_string()),
                Cell::Text(cause(row.cause.as_deref())),
                Cell::count(row.expansion_count),
                Cell::bytes(row.grown_bytes),
                Cell::bytes(row.most_free_before),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| {
        TableFigure::new(
            Text::new("Why reserved memory grew", "预留内存增长的原因"),
            &[
                ("device", "设备"),
                ("cause", "原因"),
                ("times", "次数"),
                ("grown by", "增长"),
                ("most that was free", "当时最多空闲"),
            ],
            rows,
        )
    })
}

fn cause(cause: Option<&str>) -> Text {
    match cause {
        Some("first") => Text::new("first of its stream and kind", "该 stream 与类型的首次申请"),
        Some("fragmented") => Text::new("enough was free, in smaller blocks", "空闲总量足够，但单块不够大"),
        Some("pending_free") => {
            Text::new("enough waited for another stream", "足够的内存正等待其他 stream 释放")
        }
        Some("other_pool") => Text::new("enough was free, in another pool", "足够的内存空闲在其他池中"),
        Some(_) => Text::new("not enough was free", "空闲不足"),
        None => Text::new(
            "no request followed, or what was free is not known",
            "其后没有请求，或无法得知当时的空闲",
        ),
    }
}

/// Only where there are private pools: otherwise the table of devices has said it.
fn pools(outcome: &FragmentOutcome) -> Option<TableFigure> {
    if outcome.pools.iter().all(|pool| pool.is_private == 0) {
        return None;
    }
    let rows = outcome.pools.iter().map(|pool| {
        let id = |word: Option<i64>| word.map_or_else(|| "-".to_owned(), |word| word.to_string());
        vec![
            Cell::name(pool.device_index.to_string()),
            Cell::name(format!("({}, {})", id(pool.pool_id_0), id(pool.pool_id_1))),
            Cell::count(pool.segment_count),
            Cell::bytes(pool.reserved),
            Cell::bytes(pool.allocated),
            Cell::bytes(pool.pending_free_bytes),
            Cell::bytes(pool.hole_bytes),
            Cell::bytes(pool.unused_segment_bytes),
            Cell::ratio(pool.fragmentation_ratio),
        ]
    });
    Some(TableFigure::new(
        Text::new("Memory pools", "内存池"),
        &[
            ("device", "设备"),
            ("pool", "池"),
            ("segments", "段数"),
            ("reserved", "预留"),
            ("allocated", "已分配"),
            ("pending free", "等待释放"),
            ("holes", "空洞"),
            ("cache", "整段缓存"),
            ("unallocated", "未分配占比"),
        ],
        rows.collect(),
    ))
}
