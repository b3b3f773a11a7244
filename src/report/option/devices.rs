//! Devices side by side: three bars for each, and its fragmentation on an axis of its own.

use serde_json::json;

use super::{ByteAxis, Drawing, base, byte_axis, call, color, with, words, zoom};
use crate::analysis::Text;
use crate::analysis::chart::{Counter, DeviceBar};

pub(super) fn draw(bars: &[DeviceBar]) -> Drawing {
    let ratio = Text::new("fragmentation", "碎片率");
    let mut legend: Vec<Text> = Counter::ALL.iter().map(|counter| counter.words()).collect();
    legend.push(ratio.clone());
    let axis = ByteAxis::up_to(bars.iter().flat_map(|bar| bar.bytes).max().unwrap_or(0));
    // Both axes share their lines, so the one of shares may end above 100 %.
    let lines = axis.ticks().count().saturating_sub(1).max(1);
    let step = match lines {
        1 => 1.0,
        2 | 3 => 0.5,
        4 => 0.25,
        _ => 0.2,
    };
    let top = std::iter::repeat_n(step, lines).sum::<f64>();
    let names: Vec<_> = bars
        .iter()
        .map(|bar| {
            let index = bar.device_index;
            words(&Text::new(format!("device {index}"), format!("设备 {index}")))
        })
        .collect();
    let mut series: Vec<_> = Counter::ALL
        .iter()
        .enumerate()
        .map(|(place, counter)| {
            json!({
                "name": words(&counter.words()),
                "type": "bar",
                "barMaxWidth": 34,
                "barGap": "10%",
                "itemStyle": {"color": color(counter.name()), "borderRadius": [3, 3, 0, 0]},
                "data": bars.iter().map(|bar| bar.bytes.get(place).copied()).collect::<Vec<_>>(),
            })
        })
        .collect();
    series.push(json!({
        "name": words(&ratio),
        "type": "scatter",
        "yAxisIndex": 1,
        "symbol": "diamond",
        "symbolSize": 13,
        "z": 5,
        "itemStyle": {"color": color("critical"), "borderColor": color("card"), "borderWidth": 2},
        "data": bars.iter().map(|bar| bar.fragmentation_ratio).collect::<Vec<_>>(),
    }));
    let option = with(
        base(&legend, "tipDevices", "axis"),
        json!({
            "grid": {"left": 8, "right": 8, "top": 44, "bottom": 8, "containLabel": true},
            "xAxis": {
                "type": "category",
                "data": names,
                "axisLabel": {"color": color("text")},
                "axisLine": {"lineStyle": {"color": color("faint")}},
                "axisTick": {"show": false},
            },
            "yAxis": [
                byte_axis(axis),
                {
                    "type": "value",
                    "min": 0,
                    "max": top,
                    "interval": step,
                    "axisLabel": {"formatter": call("percentToWhole"), "color": color("muted")},
                    "axisLine": {"show": false},
                    "axisTick": {"show": false},
                    "splitLine": {"show": false},
                },
            ],
            "dataZoom": zoom("xAxisIndex", false),
            "series": series,
        }),
    );
    Drawing { option, extra: json!({}), height: 30 }
}
