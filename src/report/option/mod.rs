//! Charts as options of Apache ECharts.
//!
//! An option is plain JSON. What only the page knows stands in it as an object with one key: `$words` in both
//! languages, `$color` of the theme in use, `$call` a function of `report.js`. Snapshots put no objects into options, so
//! none of their strings can be taken for one of these.

mod devices;
mod expansion;
mod flame;
mod layout;
mod overlay;
mod packed;
mod sequence;
mod stacks;
mod timeline;

use serde_json::{Value, json};

use crate::analysis::chart::Chart;
use crate::analysis::{Lang, Text};

use super::axis::{ByteAxis, margin};

pub(super) use flame::rectangles;
pub(super) use layout::{kinds, others};
pub(super) use stacks::{label as stack_label, other_label};

/// A chart as the page gets it.
#[derive(Debug)]
pub(super) struct Drawing {
    /// What ECharts is given.
    pub(super) option: Value,
    /// What the functions of the page need beside it.
    pub(super) extra: Value,
    /// Height in units of 10 pixels.
    pub(super) height: usize,
}

/// The chart as an option.
pub(super) fn draw(chart: &Chart) -> Drawing {
    match chart {
        Chart::Timeline(timeline) => timeline::draw(timeline),
        Chart::Devices(bars) => devices::draw(bars),
        Chart::Layout(layout) => layout::draw(layout),
        Chart::Expansion(expansion) => expansion::draw(expansion),
        Chart::Stacks(stacks) => stacks::draw(stacks),
        Chart::Flame(flame) => flame::draw(flame),
        Chart::Sequence(sequence) => sequence::draw(sequence),
        Chart::Overlay(overlay) => overlay::draw(overlay),
    }
}

/// Words that the page looks up in its language.
fn words(text: &Text) -> Value {
    let (en, zh) = (text.get(Lang::En), text.get(Lang::Zh));
    if en == zh { json!(en) } else { json!({"$words": [en, zh]}) }
}

/// A colour of the theme.
fn color(name: &str) -> Value {
    json!({"$color": name})
}

/// A function of the page.
fn call(name: &str) -> Value {
    json!({"$call": name})
}

/// What every chart has: no decoration that moves, a legend, a tooltip inside the page, tools to zoom and to save.
fn base(legend: &[Text], tooltip: &str, trigger: &str) -> Value {
    json!({
        "animation": false,
        "textStyle": {"fontFamily": {"$call": "font"}, "color": color("text")},
        "legend": {
            "top": 0,
            "left": 0,
            "right": 110,
            "type": "scroll",
            "icon": "roundRect",
            "itemWidth": 12,
            "itemHeight": 8,
            "itemGap": 16,
            "textStyle": {"color": color("text")},
            "inactiveColor": color("faint"),
            "pageIconColor": color("muted"),
            "pageTextStyle": {"color": color("muted")},
            "data": legend.iter().map(words).collect::<Vec<_>>(),
        },
        "tooltip": {
            "trigger": trigger,
            "confine": true,
            "transitionDuration": 0,
            "padding": 0,
            "borderWidth": 0,
            "backgroundColor": color("card"),
            "textStyle": {"color": color("text")},
            "className": "tip",
            "formatter": call(tooltip),
            "axisPointer": {"type": "line", "lineStyle": {"color": color("muted")}},
        },
        "toolbox": {
            "top": -6,
            "right": 0,
            "itemSize": 14,
            "itemGap": 10,
            "iconStyle": {"borderColor": color("muted")},
            "emphasis": {"iconStyle": {"borderColor": color("text")}},
            "feature": {
                "dataZoom": {
                    "title": {
                        "zoom": words(&Text::new("zoom in", "框选缩放")),
                        "back": words(&Text::new("zoom back", "撤销缩放")),
                    },
                },
                "restore": {"title": words(&Text::new("reset", "还原"))},
                "saveAsImage": {
                    "title": words(&Text::new("save as picture", "保存为图片")),
                    "backgroundColor": color("card"),
                    "pixelRatio": 2,
                    "excludeComponents": ["toolbox", "dataZoom"],
                },
            },
        },
    })
}

/// An axis of bytes.
fn byte_axis(axis: ByteAxis) -> Value {
    json!({
        "type": "value",
        "min": 0,
        "max": axis.max,
        "interval": axis.step,
        "axisLabel": {"show": true, "formatter": call("bytes"), "color": color("muted"), "hideOverlap": true},
        "axisLine": {"show": false},
        "axisTick": {"show": false},
        "splitLine": {"lineStyle": {"color": color("line")}},
    })
}

/// An axis of positions in the history of a device.
fn event_axis(first: i64, last: i64) -> Value {
    let margin = margin(first, last, 80);
    json!({
        "type": "value",
        "min": first.saturating_sub(margin),
        "max": last.saturating_add(margin),
        "name": words(&Text::new("event", "事件")),
        "nameLocation": "start",
        "nameGap": 8,
        "nameTextStyle": {"color": color("muted"), "align": "right", "verticalAlign": "top", "padding": [9, 0, 0, 0]},
        "axisLabel": {
            "formatter": call("count"),
            "color": color("muted"),
            "hideOverlap": true,
            "showMinLabel": margin == 0,
            "showMaxLabel": margin == 0,
        },
        "axisLine": {"lineStyle": {"color": color("faint")}},
        "axisTick": {"show": false},
        "splitLine": {"show": false},
    })
}

/// An axis of names, the first on top.
fn name_axis(names: &[Value], width: usize) -> Value {
    json!({
        "type": "category",
        "inverse": true,
        "data": names,
        "axisLabel": {"color": color("text"), "fontSize": 12, "width": width, "overflow": "truncate", "interval": 0},
        "axisLine": {"show": false},
        "axisTick": {"show": false},
    })
}

/// Zooming along an axis: with the wheel and Ctrl, by dragging, and with a slider under the chart.
fn zoom(axis: &str, slider: bool) -> Value {
    let inside = json!({
        "type": "inside",
        axis: 0,
        "filterMode": "none",
        "zoomOnMouseWheel": "ctrl",
        "moveOnMouseWheel": false,
    });
    let bar = json!({
        "type": "slider",
        axis: 0,
        "filterMode": "none",
        "height": 18,
        "bottom": 4,
        "borderColor": "transparent",
        "backgroundColor": color("wash"),
        "fillerColor": color("veil"),
        "handleStyle": {"color": color("card"), "borderColor": color("muted")},
        "moveHandleStyle": {"color": color("faint")},
        "dataBackground": {"lineStyle": {"color": color("faint")}, "areaStyle": {"color": color("faint")}},
        "selectedDataBackground": {"lineStyle": {"color": color("muted")}, "areaStyle": {"color": color("faint")}},
        "labelFormatter": "",
        "brushSelect": true,
    });
    if slider { json!([inside, bar]) } else { json!([inside]) }
}

/// Puts the members of `more` into `option`.
fn with(mut option: Value, more: Value) -> Value {
    if let (Some(into), Value::Object(from)) = (option.as_object_mut(), more) {
        into.extend(from);
    }
    option
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_alone_is_in_the_middle_of_its_axis() {
        let ends = |axis: &Value| (axis["min"].clone(), axis["max"].clone());
        assert_eq!(ends(&event_axis(4965, 4965)), (json!(4964), json!(4966)));
        assert_eq!(ends(&event_axis(0, 8000)), (json!(-100), json!(8100)));
    }
}
