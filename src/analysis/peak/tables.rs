//! What is shown of the peaks.

use super::{COUNTERS, Contributor, DevicePeak, Peak};
use crate::analysis::frames::place;
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, Figure, TableFigure};

/// Call stacks of the peak that a person gets to see.
const SHOWN: usize = 10;

pub(super) fn figures(devices: &[DevicePeak], host: &[DevicePeak]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (title, devices) in [
        (Text::new("Peaks within the recorded window", "记录窗口内的峰值"), devices),
        (Text::new("Pinned host memory", "主机锁页内存"), host),
    ] {
        if !devices.is_empty() {
            figures.push(Figure::Table(peaks(title, devices)));
        }
    }
    for device in devices {
        if device.has_history && !device.contributors.is_empty() {
            figures.push(Figure::Table(contributors(device).of_device(device.device_index)));
        }
    }
    figures
}

fn peaks(title: Text, devices: &[DevicePeak]) -> TableFigure {
    let headings = [
        ("device", "设备"),
        ("counter", "计数器"),
        ("at start", "起点"),
        ("peak", "峰值"),
        ("after event", "在此事件之后"),
        ("at end", "终点"),
        // Says of numbers that they are estimates; where none is, there is no such column.
        ("", ""),
    ];
    let mut all = devices.iter().flat_map(|device| COUNTERS.iter().filter_map(|name| device.peak(name)));
    let columns = if all.all(|peak| peak.exact == 1) { headings.len() - 1 } else { headings.len() };
    let row = |device: &DevicePeak, peak: &Peak| {
        let index = match peak.trace_index {
            Some(index @ 0..) => Cell::event(device.device_index, index),
            Some(_) => Cell::Text(Text::new("start", "起点")),
            None => Cell::name("-"),
        };
        let label = if peak.exact == 1 { Text::same("") } else { Text::new("estimate", "估算") };
        let mut cells = vec![
            Cell::name(device.device_index.to_string()),
            Cell::name(peak.counter.clone()),
            // The base of a device without events is its final state, and no start of anything.
            Cell::bytes(peak.base.filter(|_| device.has_history)),
            Cell::bytes(peak.peak),
            index,
            Cell::bytes(peak.at_end),
            Cell::Text(label),
        ];
        cells.truncate(columns);
        cells
    };
    let rows = devices.iter().flat_map(|device| {
        COUNTERS.iter().filter_map(|counter| Some(row(device, device.peak(counter)?))).collect::<Vec<_>>()
    });
    TableFigure::new(title, headings.get(..columns).unwrap_or(&headings), rows.collect())
}

fn contributors(device: &DevicePeak) -> TableFigure {
    let headings = [
        ("bytes", "字节"),
        ("share", "占比"),
        ("requested", "请求"),
        ("blocks", "块数"),
        ("stack", "调用栈"),
        ("where", "位置"),
    ];
    let row = |contributor: &Contributor| {
        vec![
            Cell::bytes(contributor.allocated_size),
            Cell::ratio(device.share(contributor.allocated_size)),
            Cell::bytes(contributor.requested_size),
            Cell::count(contributor.block_count),
            Cell::stack_id(contributor.stack_id),
            Cell::stack(contributor.place(), contributor.stack_id),
        ]
    };
    let (shown, rest): (Vec<_>, Vec<_>) = device
        .contributors
        .iter()
        .enumerate()
        .partition(|(place, contributor)| *place < SHOWN || contributor.part == "unexplained");
    let mut rows: Vec<Vec<Cell>> = shown.into_iter().map(|(_, contributor)| row(contributor)).collect();
    if !rest.is_empty() {
        let mut others = Contributor {
            device_index: device.device_index,
            part: "others".to_owned(),
            stack_id: None,
            allocated_size: 0,
            requested_size: 0,
            block_count: 0,
            pending_size: 0,
            frames_json: None,
        };
        for (_, contributor) in rest {
            others.allocated_size += contributor.allocated_size;
            others.requested_size += contributor.requested_size;
            others.block_count += contributor.block_count;
        }
        rows.push(row(&others));
    }
    let index = device.device_index;
    TableFigure::new(
        Text::new(
            format!("Device {index}: what was allocated at the peak, by call stack"),
            format!("设备 {index}：峰值时刻的分配（按调用栈）"),
        ),
        &headings,
        rows,
    )
}

impl Contributor {
    fn place(&self) -> Text {
        match self.part.as_str() {
            "no_stack" => Text::new("no call stack", "无调用栈"),
            "others" => Text::new("all others", "其余合计"),
            "unexplained" => Text::new("not explained by any block", "无法由任何内存块解释"),
            _ => place(self.frames_json.as_deref()),
        }
    }
}
