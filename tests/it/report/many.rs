//! Pages of many devices: charts of a few, in all no more bytes than a mail takes.

use std::process::Command;

use npusnap::analysis::chart::{
    BlockState, Chart, ChartFigure, Counter, Expansion, Flame, FlameNode, Layout, Level, Mark, MarkedEvent,
    Peak, PoolEvent, SegmentRow, Span, StackBar, Stacks, Timeline,
};
use npusnap::analysis::{Figure, Lang, Text, Thresholds};
use npusnap::output::Redaction;
use npusnap::report::{Report, Section};

use super::{data, report};

/// Bytes of a page, ECharts included.
const LARGEST_PAGE: usize = 3_000_000;
/// Devices with charts of their own.
const CHARTED: i64 = 6;

/// Numbers that jump about as those of a busy allocator do.
struct Noise(u64);

impl Noise {
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % most
    }
}

fn timeline(noise: &mut Noise) -> Chart {
    let levels: Vec<Level> = (0..20_000)
        .map(|index| {
            let allocated = noise.below(1 << 26) * 512;
            let active = allocated + noise.below(1000) * 512;
            let reserved = active + noise.below(1 << 20) * 512;
            let bytes = [Some(reserved), Some(active), Some(allocated)];
            Level { trace_index: 90 * index, time_us: Some(1_700_000_000_000_000 + 37 * index), bytes }
        })
        .collect();
    let marks = (0..120)
        .map(|place| MarkedEvent {
            mark: Mark::Growth,
            trace_index: 90 * 160 * place,
            time_us: Some(1_700_000_000_000_000),
            detail: Text::same("+20.00 MiB"),
        })
        .collect();
    let peaks = vec![Peak { counter: Counter::Allocated, trace_index: 90, bytes: 1 << 35 }];
    Chart::Timeline(Timeline { levels, marks, peaks, moments: Vec::new(), stacks: Vec::new() })
}

fn expansion(noise: &mut Noise) -> Chart {
    let events = (0..8000)
        .map(|index| PoolEvent {
            trace_index: 500 * index,
            time_us: Some(1_700_000_000_000_000 + index),
            change: (noise.below(400) - 200) << 20,
            net_segments: noise.below(400),
            net_size: noise.below(1 << 30),
            stack_id: Some(noise.below(40_000)),
        })
        .collect();
    Chart::Expansion(Expansion { events, event_count: 8000, stacks: Vec::new() })
}

fn layout(noise: &mut Noise) -> Chart {
    let segments = (0..20)
        .map(|segment_id| SegmentRow {
            segment_id,
            address: Some(segment_id << 30),
            total_size: 2000 << 20,
            allocated_size: 1000 << 20,
            is_low_use: false,
            segment_type: "large".to_owned(),
            stream: Some(0),
            spans: (0..2000)
                .map(|place| Span {
                    offset: place << 20,
                    size: 1 << 20,
                    state: if place % 2 == 0 { BlockState::Allocated } else { BlockState::Inactive },
                    block_count: 1,
                    stack_id: Some(noise.below(40_000)),
                })
                .collect(),
        })
        .collect();
    Chart::Layout(Layout { segments, other: None, stacks: Vec::new() })
}

fn flame(noise: &mut Noise) -> Chart {
    let leaf = |name: String, bytes: i64| FlameNode { name, bytes, children: Vec::new() };
    let children = (0..60).map(|place| FlameNode {
        children: (0..30)
            .map(|below| {
                leaf(format!("function_{below} (a_file_of_the_model.py:{})", noise.below(900)), 1000 - below)
            })
            .collect(),
        ..leaf(format!("module_{place} (modeling_transformer.py:{place})"), 30_000 - place)
    });
    let root = FlameNode { children: children.collect(), ..leaf(String::new(), 1_800_000) };
    Chart::Flame(Flame { root })
}

fn stacks(noise: &mut Noise) -> Chart {
    let bars = (0..10)
        .map(|_| StackBar {
            stack_id: Some(noise.below(40_000)),
            bytes: 1 << 30,
            requested: Some(1 << 29),
            block_count: 7,
        })
        .collect();
    Chart::Stacks(Stacks { bars, other: Some((Some(39_990), 1 << 33)), total: 1 << 34, stacks: Vec::new() })
}

#[test]
fn a_page_stays_small_however_full_its_charts_and_however_many_devices() {
    let mut noise = Noise(7);
    let mut sections = Vec::new();
    for (mode, kinds) in [
        ("overview", vec!["expansion", "stacks", "flame"]),
        ("peak", vec!["timeline", "stacks", "flame"]),
        ("fragment", vec!["layout"]),
        ("leak", vec!["stacks"]),
    ] {
        let mut figures = Vec::new();
        for device in 0..CHARTED {
            for name in &kinds {
                let chart = match *name {
                    "timeline" => timeline(&mut noise),
                    "expansion" => expansion(&mut noise),
                    "layout" => layout(&mut noise),
                    "flame" => flame(&mut noise),
                    _ => stacks(&mut noise),
                };
                let figure = ChartFigure { name, device: Some(device), title: Text::same("chart"), chart };
                figures.push(Figure::Chart(Box::new(figure)));
            }
        }
        sections.push(Section { mode, findings: Vec::new(), figures });
    }
    let report = Report {
        source: "snapshot.pickle",
        reference: None,
        snapshot: None,
        notes: &[],
        gaps: &[],
        capture: None,
        thresholds: &Thresholds::default(),
        devices: &[],
        sections: &sections,
        stacks: &[],
        parts: &[],
        lang: Lang::En,
        redaction: Redaction::none(),
    };
    let mut page = Vec::new();
    report.write(&mut page).unwrap();
    // Room for what is not here: figures and tables of 64 devices, frames of stacks.
    let room = 400_000;
    assert!(page.len() + room <= LARGEST_PAGE, "{} bytes", page.len());
    let page = String::from_utf8(page).unwrap();
    let charts = data(&page)["charts"].as_array().unwrap().len();
    assert_eq!(charts, usize::try_from(CHARTED).unwrap() * 8, "every chart is there");
}

#[test]
fn of_sixty_four_devices_a_few_have_charts_and_all_have_figures() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("many.pickle");
    let made = Command::new(env!("CARGO_BIN_EXE_npusnap"))
        .args(["synth", "--quiet", "--devices", "64", "--events", "6400", "-o"])
        .arg(&source)
        .status()
        .unwrap();
    assert!(made.success());
    let page = report(&source, &["--mode", "all", "--section", "fragment"]);
    assert!(page.len() <= LARGEST_PAGE, "{} bytes", page.len());
    let charts = data(&page)["charts"].as_array().unwrap().len();
    assert_eq!(charts, usize::try_from(CHARTED).unwrap(), "a layout for each device that has charts");
    assert_eq!(page.matches("<article class=\"device ").count(), 64, "figures of every device");
    assert!(page.contains("Charts are shown of the devices that ran out of memory"));
}
