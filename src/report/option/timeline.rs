//! Counters over time as filled steps, the largest behind: what shows between two of them is their difference.

use serde_json::{Value, json};

use super::packed::packed;
use super::{ByteAxis, Drawing, base, byte_axis, call, color, event_axis, with, words, zoom};
use crate::analysis::chart::{Counter, Level, Mark, MarkedEvent, Peak, Timeline};
use crate::analysis::{Lang, Text};

/// Lines across the chart that stay readable, and signs at its foot; with more of them there are ticks.
const MOST_LINES: usize = 40;
const MOST_SIGNS: usize = 120;
/// How many times the usual height a peak is that makes all else look flat.
const SPIKE: i64 = 3;

#[expect(clippy::too_many_lines, reason = "one object of options, which reads best in one piece")]
pub(super) fn draw(timeline: &Timeline) -> Drawing {
    let levels = &timeline.levels;
    let known: Vec<(usize, Counter)> = Counter::ALL
        .into_iter()
        .enumerate()
        .filter(|(place, _)| levels.iter().any(|level| level.bytes.get(*place).is_some_and(Option::is_some)))
        .collect();
    let most = levels.iter().flat_map(|level| level.bytes).flatten();
    let most = most.chain(timeline.peaks.iter().map(|peak| peak.bytes)).max().unwrap_or(0);
    let axis = ByteAxis::up_to(most.saturating_add(most / 20));
    let start = levels.iter().find_map(|level| level.time_us);
    let since = |time: Option<i64>| time.zip(start).map(|(time, start)| time.saturating_sub(start));
    let first = levels.first().map_or(0, |level| level.trace_index);
    let last = levels.last().map_or(1, |level| level.trace_index);
    let mut legend: Vec<Text> = known.iter().map(|(_, counter)| counter.words()).collect();
    let mut series: Vec<Value> = known
        .iter()
        .map(|(place, counter)| {
            let peaks: Vec<Value> = timeline
                .peaks
                .iter()
                .filter(|peak| peak.counter == *counter)
                .map(|peak| {
                    let side = side(peak, first, last);
                    json!({
                        "index": peak.trace_index,
                        "value": peak.bytes,
                        "coord": [peak.trace_index, peak.bytes],
                        "label": {"position": side, "offset": apart(side, *counter)},
                    })
                })
                .collect();
            json!({
                "name": words(&counter.words()),
                "type": "line",
                "step": "end",
                "showSymbol": false,
                "symbolSize": 7,
                "encode": {"x": 0, "y": place + 2},
                "lineStyle": {"color": color(counter.name()), "width": 1.5},
                "itemStyle": {"color": color(counter.name())},
                "areaStyle": {"color": color(&format!("{}_fill", counter.name())), "opacity": 1},
                "emphasis": {"disabled": true},
                "markPoint": {
                    "z": 8,
                    "symbol": "circle",
                    "symbolSize": 9,
                    "itemStyle": {"color": color(counter.name()), "borderColor": color("card"), "borderWidth": 2},
                    "label": {
                        "show": *counter != Counter::Active,
                        "formatter": call("peakLabel"),
                        "color": color("text"),
                        "fontWeight": 600,
                        "backgroundColor": color("card"),
                        "borderRadius": 4,
                        "padding": [1, 4],
                    },
                    "data": peaks,
                },
            })
        })
        .collect();
    let marks = [
        (Mark::Growth, "triangle", "growth"),
        (Mark::OutOfMemory, "diamond", "critical"),
        (Mark::Snapshot, "rect", "allocated"),
        (Mark::Step, "pin", "muted"),
    ];
    let mut marked: Vec<Value> = Vec::new();
    for (mark, symbol, tone) in marks {
        let events: Vec<&MarkedEvent> = timeline.marks.iter().filter(|event| event.mark == mark).collect();
        if events.is_empty() {
            continue;
        }
        legend.push(mark.words());
        let crosses = matches!(mark, Mark::OutOfMemory | Mark::Step) && events.len() <= MOST_LINES;
        marked.push(with(
            details(&events),
            json!({
                "series": series.len(),
                "crosses": crosses,
                "index": packed(&events.iter().map(|event| Some(event.trace_index)).collect::<Vec<_>>()),
                "time": packed(&events.iter().map(|event| since(event.time_us)).collect::<Vec<_>>()),
            }),
        ));
        let is_dense = events.len() > MOST_SIGNS;
        let size = match mark {
            _ if is_dense => json!([1, 7]),
            Mark::OutOfMemory => json!(14),
            _ => json!(9),
        };
        series.push(json!({
            "name": words(&mark.words()),
            "type": "scatter",
            "symbol": if is_dense { "rect" } else { symbol },
            "symbolSize": size,
            "z": 6,
            "itemStyle": {
                "color": color(tone),
                "borderColor": color("card"),
                "borderWidth": i32::from(!is_dense),
            },
            "markLine": {
                "symbol": "none",
                "silent": true,
                "label": {"show": false},
                "lineStyle": {"color": color(tone), "type": "dashed", "width": 1, "opacity": 0.7},
            },
        }));
    }
    let option = with(
        base(&legend, "tipTimeline", "axis"),
        json!({
            "grid": {"left": 8, "right": 28, "top": 44, "bottom": 34, "containLabel": true},
            "xAxis": event_axis(first, last),
            "yAxis": byte_axis(axis),
            "dataZoom": zoom("xAxisIndex", true),
            "series": series,
        }),
    );
    let moments: Vec<Value> = timeline
        .moments
        .iter()
        .map(|moment| {
            let live: Vec<Value> =
                moment.live.iter().map(|held| json!([held.stack_id, held.bytes])).collect();
            json!({"index": moment.trace_index, "live": live, "other": moment.other_bytes})
        })
        .collect();
    // What the page makes its rows of: position, microseconds since the first event, then the counters.
    let column =
        |place: usize| levels.iter().map(|level| level.bytes.get(place).copied().flatten()).collect();
    let columns = [
        levels.iter().map(|level| Some(level.trace_index)).collect(),
        levels.iter().map(|level| since(level.time_us)).collect(),
        column(0),
        column(1),
        column(2),
    ];
    let extra = json!({
        "levels": columns.map(|column: Vec<Option<i64>>| packed(&column)),
        "marks": marked,
        "usual": usual(levels).filter(|usual| usual.saturating_mul(SPIKE) < most),
        "start": start,
        "span": since(levels.iter().rev().find_map(|level| level.time_us)),
        "moments": moments,
    });
    Drawing { option, extra, height: 38 }
}

/// What the counters stay below for all but the fiftieth part of the events.
fn usual(levels: &[Level]) -> Option<i64> {
    let mut spans: Vec<(i64, i64)> = levels
        .windows(2)
        .filter_map(|pair| match pair {
            [level, next] => {
                let highest = level.bytes.iter().flatten().max()?;
                Some((*highest, next.trace_index.saturating_sub(level.trace_index)))
            }
            _ => None,
        })
        .collect();
    spans.sort_unstable();
    let all: i64 = spans.iter().map(|(_, events)| events).sum();
    let mut below = 0;
    spans.into_iter().find_map(|(highest, events)| {
        below += events;
        (below >= all - all / 50 && highest > 0).then_some(highest)
    })
}

/// What is said of each event: most say the same, or differ in the number they begin with. `texts` has what follows the
/// number once, `text` the place of each event's in it, `number` their numbers.
fn details(events: &[&MarkedEvent]) -> Value {
    let mut texts: Vec<Text> = Vec::new();
    let (mut numbers, mut places) = (Vec::new(), Vec::new());
    for event in events {
        let (number, text) = numbered(&event.detail);
        let place = texts.iter().position(|known| *known == text).unwrap_or_else(|| {
            texts.push(text);
            texts.len() - 1
        });
        numbers.push(number);
        places.push(place);
    }
    json!({"texts": texts.iter().map(words).collect::<Vec<_>>(), "text": places, "number": packed(&numbers)})
}

/// A text in two: the whole number that it begins with in both languages, if it does, and what follows.
fn numbered(text: &Text) -> (Option<i64>, Text) {
    let split = |lang| {
        let all = text.get(lang);
        let end = all.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(all.len());
        let (digits, rest) = all.split_at_checked(end)?;
        let number: i64 = digits.parse().ok()?;
        (number.to_string() == digits).then_some((number, rest))
    };
    match (split(Lang::En), split(Lang::Zh)) {
        (Some((number, en)), Some((same, zh))) if number == same => (Some(number), Text::new(en, zh)),
        _ => (None, text.clone()),
    }
}

/// How far the label of a peak gives way: beside their marks two of nearly the same height would cover each other.
fn apart(side: &str, counter: Counter) -> [i64; 2] {
    match side {
        "left" | "right" if counter == Counter::Allocated => [0, 8],
        "left" | "right" => [0, -8],
        _ => [0, 0],
    }
}

/// Where the label of a peak stands, so that it neither leaves the chart nor covers the curve below it.
fn side(peak: &Peak, first: i64, last: i64) -> &'static str {
    let margin = last.saturating_sub(first) / 8;
    if peak.trace_index > last.saturating_sub(margin) {
        "left"
    } else if peak.trace_index < first.saturating_add(margin) {
        "right"
    } else if peak.counter == Counter::Allocated {
        "bottom"
    } else {
        "top"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_is_not_what_is_usual() {
        let level = |trace_index, bytes| Level {
            trace_index,
            time_us: None,
            bytes: [Some(bytes), None, Some(bytes / 2)],
        };
        // 40 for 500 events, 50 for 490, 900 for 10.
        let spiked = [level(0, 40), level(500, 900), level(510, 50), level(1000, 50)];
        assert_eq!(usual(&spiked), Some(50));
        // 900 for 30 of 1000 is no spike.
        let rising = [level(0, 40), level(970, 900), level(1000, 900)];
        assert_eq!(usual(&rising), Some(900));
        assert_eq!((usual(&[level(0, 40)]), usual(&[level(0, 0), level(9, 0)])), (None, None));
    }

    #[test]
    fn what_events_say_alike_is_said_once() {
        let event = |detail| MarkedEvent { mark: Mark::Step, trace_index: 0, time_us: None, detail };
        let step =
            |number: &str| event(Text::new(format!("{number} (guessed)"), format!("{number}（推断）")));
        let events =
            [step("9"), step("10"), event(Text::same("007")), step("12"), event(Text::same("+2.00 MiB"))];
        assert_eq!(
            details(&events.iter().collect::<Vec<_>>()),
            json!({
                "texts": [{"$words": [" (guessed)", "（推断）"]}, "007", "+2.00 MiB"],
                "text": [0, 0, 1, 0, 2],
                "number": [1, [9, 1, null, 2, null]],
            })
        );
        assert_eq!(numbered(&Text::new("3 a", "4 b")), (None, Text::new("3 a", "4 b")));
        assert_eq!(numbered(&Text::same("17")), (Some(17), Text::same("")));
    }
}
