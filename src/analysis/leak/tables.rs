//! What is shown of leaks.

use super::judge::{Suspect, Verdict};
use super::{DeviceLeak, Named, StackGrowth};
use crate::analysis::frames::place;
use crate::analysis::language::Text;
use crate::analysis::outcome::{Cell, Figure, TableFigure};

/// Suspects that a person gets to see in the table.
const SHOWN: usize = 10;

pub(super) fn figures(devices: &[DeviceLeak]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for device in devices {
        if !device.suspects.is_empty() {
            figures.push(Figure::Table(suspects(device).of_device(device.device_index)));
        }
        if device.late_growth().is_some() && !device.attribution.late().is_empty() {
            figures.push(Figure::Table(
                device.attribution.figure(device.device_index).of_device(device.device_index),
            ));
        }
        if !device.long_lived.is_empty() && device.event_count() > 0 {
            figures.push(Figure::Table(long_lived(device).of_device(device.device_index)));
        }
    }
    figures
}

fn suspects(device: &DeviceLeak) -> TableFigure {
    let headings = [
        ("stack", "调用栈"),
        ("verdict", "判断"),
        ("grew in", "增长次数"),
        ("of intervals", "间隔数"),
        ("growth (requested)", "增长（请求）"),
        ("per step", "每步"),
        ("live (requested)", "存活（请求）"),
        ("blocks", "块数"),
        ("where", "位置"),
    ];
    let row = |suspect: &Named<Suspect>| {
        let growth = &suspect.what.growth;
        vec![
            Cell::stack_id(growth.stack_id),
            Cell::Text(verdict_word(suspect.what.verdict)),
            Cell::count(growth.grew_count),
            Cell::count(growth.interval_count),
            Cell::bytes(growth.growth_size),
            Cell::bytes(growth.growth_size.checked_div(growth.step_span)),
            Cell::bytes(growth.live_size),
            Cell::count(growth.live_count),
            Cell::stack(place(suspect.frames_json.as_deref()), growth.stack_id),
        ]
    };
    let index = device.device_index;
    TableFigure::new(
        Text::new(
            format!("Device {index}: call stacks that keep growing"),
            format!("设备 {index}：持续增长的调用栈"),
        ),
        &headings,
        device.suspects.iter().take(SHOWN).map(row).collect(),
    )
}

fn verdict_word(verdict: Verdict) -> Text {
    match verdict {
        Verdict::None => Text::new("none", "无"),
        Verdict::Suspected => Text::new("suspected", "疑似"),
        Verdict::Likely => Text::new("likely", "很可能"),
    }
}

fn long_lived(device: &DeviceLeak) -> TableFigure {
    let headings = [
        ("stack", "调用栈"),
        ("bytes (requested)", "字节（请求）"),
        ("blocks", "块数"),
        ("grew in", "增长次数"),
        ("of intervals", "间隔数"),
        ("where", "位置"),
    ];
    let row = |stack: &Named<StackGrowth>| {
        vec![
            Cell::stack_id(stack.what.stack_id),
            Cell::bytes(stack.what.early_size),
            Cell::count(stack.what.early_count),
            Cell::count(stack.what.grew_count),
            Cell::count(stack.what.interval_count),
            Cell::stack(place(stack.frames_json.as_deref()), stack.what.stack_id),
        ]
    };
    let index = device.device_index;
    TableFigure::new(
        Text::new(
            format!("Device {index}: alive since early on, which alone is no leak"),
            format!("设备 {index}：早期分配且仍存活（仅此并不说明泄漏）"),
        ),
        &headings,
        device.long_lived.iter().map(row).collect(),
    )
}
