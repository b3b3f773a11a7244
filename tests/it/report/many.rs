//! Pages of many devices: charts of a few, in all no more bytes than a mail takes, whatever stands in them.

use std::process::Command;

use npusnap::analysis::chart::{
    BlockState, Chart, ChartFigure, Counter, Expansion, Flame, FlameNode, Frame, Layout, Level, Mark,
    MarkedEvent, Peak, PoolEvent, SegmentRow, Span, StackBar, StackWords, Stacks, Timeline,
};
use npusnap::analysis::{Cell, Figure, Lang, TableFigure, Text, Thresholds};
use npusnap::output::Redaction;
use npusnap::report::{Report, Section};

use super::{data, report};

/// Bytes of a page, ECharts included.
const LARGEST_PAGE: usize = 3_000_000;
/// Devices with charts of their own.
const CHARTED: i64 = 6;

/// Call stacks that tables lead to.
const STACKS: i64 = 3000;
const FOLDER: &str = "/usr/local/lib/python3.10/dist-packages/torch_npu/contrib/function";

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
    let marks = (0..6000)
        .map(|place| MarkedEvent {
            mark: [Mark::Growth, Mark::Step, Mark::OutOfMemory][usize::try_from(place % 3).unwrap()],
            trace_index: 300 * place,
            time_us: Some(1_700_000_000_000_000 + noise.below(1 << 30)),
            detail: Text::new(
                format!("{place} (inferred from memory)"),
                format!("{place}（由内存变化推断）"),
            ),
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

/// What is said of a failure: the request's stack, and the events before it.
fn tables(noise: &mut Noise, device: i64) -> [Figure; 2] {
    let stack = |noise: &mut Noise| Cell::stack_id(Some(noise.below(STACKS)));
    let place = |noise: &mut Noise| {
        let stack_id = noise.below(STACKS);
        let words = format!("forward_{} (modeling_transformer.py:{})", stack_id % 97, stack_id);
        Cell::stack(Text::same(words), Some(stack_id))
    };
    let frame = |noise: &mut Noise| {
        vec![Cell::name("forward"), Cell::name(format!("{FOLDER}/module_{}.py:17", noise.below(90)))]
    };
    let event = |noise: &mut Noise| {
        let (index, size) = (noise.below(15_000_000), noise.below(1 << 34));
        vec![
            Cell::event(device, index),
            Cell::name("segment_alloc"),
            Cell::name("0x12d65c800000"),
            Cell::bytes(size),
            stack(noise),
            place(noise),
        ]
    };
    let (frames, events) = ((0..40).map(|_| frame(noise)).collect(), (0..60).map(|_| event(noise)).collect());
    let title = Text::new("Events before", "此前的事件");
    let headings = ["event", "action", "address", "size", "stack", "place"].map(|name| (name, name));
    [
        Figure::Table(TableFigure::new(title.clone(), &[("function", "函数"), ("file", "文件")], frames)),
        Figure::Table(TableFigure::new(title, &headings, events)),
    ]
}

/// Stacks of forty frames, of which no two have more than their last in common.
fn deep_stacks(noise: &mut Noise) -> Vec<StackWords> {
    let frame = |noise: &mut Noise, depth: i64| Frame {
        name: format!("forward_{depth}"),
        filename: format!("{FOLDER}/module_{}.py", noise.below(90)),
        line: 1 + noise.below(2000),
    };
    (0..STACKS)
        .map(|stack_id| StackWords {
            stack_id,
            label: format!("forward_{stack_id}"),
            frames: (0..40).map(|depth| frame(noise, depth)).collect(),
        })
        .collect()
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
    let figures = (0..40).flat_map(|device| tables(&mut noise, device)).collect();
    sections.push(Section { mode: "oom", findings: Vec::new(), figures });
    let stacks = deep_stacks(&mut noise);
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
        stacks: &stacks,
        parts: &[],
        lang: Lang::En,
        redaction: Redaction::none(),
    };
    let mut page = Vec::new();
    report.write(&mut page).unwrap();
    // Room for what is not here: figures, findings and gaps of 64 devices.
    let room = 150_000;
    assert!(page.len() + room <= LARGEST_PAGE, "{} bytes", page.len());
    let data = data(&String::from_utf8(page).unwrap());
    let charts = data["charts"].as_array().unwrap().len();
    assert_eq!(charts, usize::try_from(CHARTED).unwrap() * 8, "every chart is there");
    let rows = data["rows"].as_array().unwrap().iter().map(|table| table.as_array().unwrap().len());
    assert_eq!(rows.collect::<Vec<_>>(), [40, 60].repeat(16), "long tables are there in full");
    let list = data["stacks"]["list"].as_array().unwrap();
    assert_eq!(list.len(), usize::try_from(STACKS).unwrap(), "every stack has its label");
    assert!(list[0].as_array().unwrap().len() > 2, "the first have their frames");
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
