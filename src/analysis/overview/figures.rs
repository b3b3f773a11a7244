//! The final state as tables.

use super::DeviceOverview;
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, TableFigure};

/// Counters of devices.
pub(super) fn counters(title: Text, devices: &[DeviceOverview]) -> TableFigure {
    let headings = [
        ("device", "设备"),
        ("type", "类型"),
        ("reserved", "预留"),
        ("allocated", "已分配"),
        ("active", "活跃"),
        ("requested", "请求"),
        ("fragmentation", "碎片率"),
        ("segments", "段数"),
        ("blocks", "块数"),
        ("events", "事件"),
        ("workspace", "workspace"),
    ];
    let row = |device: &DeviceOverview| {
        vec![
            Cell::name(device.device_index.to_string()),
            Cell::name(device.device_type.clone()),
            Cell::bytes(device.reserved),
            Cell::bytes(device.allocated),
            Cell::bytes(device.active),
            Cell::bytes(device.requested),
            Cell::ratio(device.fragmentation_ratio),
            Cell::count(device.segment_count),
            Cell::count(device.block_count),
            Cell::count(device.trace_count),
            Cell::bytes(device.workspace_bytes),
        ]
    };
    TableFigure::new(title, &headings, devices.iter().map(row).collect())
}

/// Blocks of devices by their state.
pub(super) fn blocks(devices: &[DeviceOverview]) -> TableFigure {
    let headings =
        [("device", "设备"), ("state", "状态"), ("blocks", "块数"), ("bytes", "字节"), ("share", "占预留")];
    let rows = devices.iter().flat_map(|device| {
        [
            ("active_allocated", device.active_allocated_count, device.active_allocated_bytes),
            ("active_pending_free", device.active_pending_free_count, device.active_pending_free_bytes),
            ("inactive", device.inactive_count, device.inactive_bytes),
        ]
        .map(|(state, count, size)| {
            vec![
                Cell::name(device.device_index.to_string()),
                Cell::name(state),
                Cell::count(count),
                Cell::bytes(size),
                Cell::ratio(device.share_of_reserved(size)),
            ]
        })
    });
    TableFigure::new(Text::new("Blocks by state", "按状态统计的内存块"), &headings, rows.collect())
}
