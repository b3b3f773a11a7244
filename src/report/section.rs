//! A part of the page: what it shows, how to read it, what it cannot know here, then findings and figures.

use std::collections::BTreeSet;

use super::budget::{self, Budget};
use super::figure;
use super::html::Html;
use super::page;
use super::registry::Registry;
use super::strings::Strings;
use super::{Report, Section};
use crate::analysis::{
    DeviceOverview, Figure, Finding, Quantity, Severity, Subject, TableFigure, Target, Text,
};

/// Gaps that concern every section; others concern the parts of some.
const EVERYWHERE: [&str; 1] = ["history"];

/// Gaps that concern a section, by mode.
fn concerns(mode: &str, gap: &str) -> bool {
    match mode {
        "overview" => {
            gap.starts_with("segments.") || gap == "blocks.stack_id" || gap == "blocks.requested_size"
        }
        "peak" | "leak" | "compare" => {
            gap == "events.stack_id" || gap == "events.time_us" || gap == "blocks.stack_id"
        }
        "oom" => gap == "events.stack_id" || gap == "events.time_us",
        "fragment" => {
            gap == "blocks.stack_id" || gap == "segments.is_expandable" || gap == "blocks.requested_size"
        }
        _ => false,
    }
}

pub(super) fn write<'a>(
    html: &mut Html<'_>,
    section: &'a Section,
    report: &Report<'_>,
    strings: &Strings,
    registry: &mut Registry<'a>,
) {
    let mode = section.mode;
    html.open("section", &[("id", mode), ("class", "part"), ("aria-labelledby", &format!("{mode}-title"))]);
    html.words("h2", &[("id", &format!("{mode}-title"))], &title(strings, mode));
    if let Some(shows) = strings.find(&format!("{mode}.shows")) {
        html.words("p", &[("class", "lead")], &shows);
    }
    if let Some(how) = strings.find(&format!("{mode}.how")) {
        html.open("details", &[("class", "how")]);
        html.words("summary", &[], &strings.get("page.how"));
        html.words("p", &[], &how);
        html.close("details");
    }
    if !section.figures.is_empty() {
        gaps(html, section, report, strings);
    }
    findings(html, &section.findings, strings);
    figures(html, section, report, strings, registry);
    // Without a table one line is enough to see for oneself that there is nothing.
    let has_tables = section.figures.iter().any(|shown| matches!(shown, Figure::Table(_)));
    let lines = if has_tables { usize::MAX } else { 1 };
    for query in strings.queries(mode).iter().take(lines) {
        figure::query(html, report, mode, query, strings);
    }
    html.close("section");
}

/// Charts, then tables and sentences; what is about one device stands together, so that the page can show one at a time.
fn figures<'a>(
    html: &mut Html<'_>,
    section: &'a Section,
    report: &Report<'_>,
    strings: &Strings,
    registry: &mut Registry<'a>,
) {
    let charts = || {
        section.figures.iter().filter_map(|shown| match shown {
            Figure::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    };
    let tables = || {
        section.figures.iter().filter_map(|shown| match shown {
            Figure::Table(table) => Some(table),
            _ => None,
        })
    };
    let budget = Budget::of(report.sections);
    for chart in charts().filter(|chart| chart.device.is_none()) {
        figure::chart(html, section.mode, chart, budget, report, strings, registry);
    }
    let mut devices: BTreeSet<i64> =
        charts().filter_map(|chart| chart.device).chain(tables().filter_map(|table| table.device)).collect();
    if devices.len() > budget::DEVICES {
        let charted = charted(report.devices);
        devices.retain(|device| charted.contains(device));
    }
    if charts().any(|chart| chart.device.is_some()) && report.devices.len() > budget::DEVICES {
        html.words("p", &[("class", "note")], &strings.get("page.shown"));
    }
    let mut written = 0;
    let mut write = |html: &mut Html<'_>, registry: &mut Registry<'a>, table: &TableFigure| {
        written += 1;
        let is_shown = written <= budget::TABLES;
        if is_shown {
            let id = format!("{}-table-{written}", section.mode);
            figure::table(html, table, &id, budget.rows, registry);
        } else if written == budget::TABLES + 1 {
            html.words("p", &[("class", "note")], &strings.get("page.cut"));
        }
        is_shown
    };
    if !devices.is_empty() {
        // A section opens with the device that it finds most wrong.
        let bad = section.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        let first = page::first_device(bad).map_or_else(String::new, |device| device.to_string());
        html.open("div", &[("class", "by-device"), ("data-first", &first)]);
        for device in &devices {
            html.open("div", &[("class", "panel"), ("data-device", &device.to_string())]);
            for chart in charts().filter(|chart| chart.device == Some(*device)) {
                figure::chart(html, section.mode, chart, budget, report, strings, registry);
            }
            for table in tables().filter(|table| table.device == Some(*device)) {
                write(html, registry, table);
            }
            html.close("div");
        }
        html.close("div");
    }
    for shown in &section.figures {
        match shown {
            Figure::Chart(_) => {}
            Figure::Heading(words) => html.words("h3", &[], words),
            Figure::Note(words) => html.words("p", &[("class", "note")], words),
            Figure::Table(table) if table.device.is_some_and(|device| devices.contains(&device)) => {}
            Figure::Table(table) => {
                if !write(html, registry, table) {
                    break;
                }
            }
        }
    }
}

/// Of all devices those that a page has room for: the ones that ran out of memory, then those with the most reserved.
#[must_use]
pub fn charted(devices: &[DeviceOverview]) -> BTreeSet<i64> {
    let mut devices: Vec<&DeviceOverview> = devices.iter().collect();
    let failed = |device: &DeviceOverview| device.oom_count > 0;
    devices.sort_by_key(|device| {
        (std::cmp::Reverse(failed(device)), std::cmp::Reverse(device.reserved), device.device_index)
    });
    devices.into_iter().take(budget::DEVICES).map(|device| device.device_index).collect()
}

/// What a section is called.
pub(super) fn title(strings: &Strings, mode: &str) -> Text {
    strings.find(&format!("{mode}.title")).unwrap_or_else(|| Text::same(mode))
}

fn gaps(html: &mut Html<'_>, section: &Section, report: &Report<'_>, strings: &Strings) {
    let gaps: Vec<_> = report
        .gaps
        .iter()
        .filter(|gap| EVERYWHERE.contains(&gap.name.as_str()) || concerns(section.mode, &gap.name))
        .collect();
    if gaps.is_empty() {
        return;
    }
    html.open("aside", &[("class", "gaps")]);
    html.words("h3", &[], &strings.get("page.unknown"));
    html.open("ul", &[]);
    for gap in gaps {
        html.open("li", &[]);
        if let Some(device) = gap.device {
            html.words("b", &[], &Subject::Device(device).words());
            html.both(&colon());
        }
        if gap.name != "history" {
            html.element("code", &[], &gap.name);
            html.both(&colon());
        }
        html.both(&gap.cost);
        html.close("li");
    }
    html.close("ul");
    html.close("aside");
}

/// Judgements as a list, worst first.
pub(super) fn findings(html: &mut Html<'_>, findings: &[Finding], strings: &Strings) {
    if findings.is_empty() {
        return;
    }
    html.open("ul", &[("class", "findings")]);
    for finding in findings {
        html.open("li", &[("class", finding.severity.name())]);
        badge(html, finding.severity);
        html.open("div", &[]);
        html.open("p", &[]);
        html.open("b", &[]);
        match finding.subject {
            Subject::Event { device_index, trace_index } => {
                let target = Target::Event { device_index, trace_index };
                figure::link(html, &finding.subject.words(), target);
            }
            _ => html.both(&finding.subject.words()),
        }
        html.close("b");
        html.both(&colon());
        html.both(&finding.message);
        html.close("p");
        if !finding.evidence.is_empty() {
            html.open("details", &[("class", "evidence")]);
            html.words("summary", &[], &strings.get("page.evidence"));
            html.open("dl", &[]);
            for (name, value) in &finding.evidence {
                html.element("dt", &[], name);
                match (*name, value, finding.subject) {
                    ("trace_index", Quantity::Count(trace_index), Subject::Device(device_index)) => {
                        let target = Target::Event { device_index, trace_index: *trace_index };
                        evidence_link(html, value, target);
                    }
                    ("stack_id", Quantity::Count(stack_id), _) => {
                        evidence_link(html, value, Target::Stack(*stack_id));
                    }
                    _ => html.element("dd", &[], &value.text()),
                }
            }
            html.element("dt", &[], "rule");
            html.element("dd", &[], finding.rule);
            html.close("dl");
            html.close("details");
        }
        html.close("div");
        html.close("li");
    }
    html.close("ul");
}

/// A number of the evidence that leads to what it speaks of.
fn evidence_link(html: &mut Html<'_>, value: &Quantity, target: Target) {
    html.open("dd", &[]);
    figure::link(html, &Text::same(value.text()), target);
    html.close("dd");
}

/// What stands between a subject and what is said about it: both may begin or end with a number.
pub(super) fn colon() -> Text {
    Text::new(": ", "：")
}

/// A severity in a word, with a shape, so that nothing depends on colour.
pub(super) fn badge(html: &mut Html<'_>, severity: Severity) {
    html.open("span", &[("class", "badge")]);
    html.open("span", &[("class", "mark"), ("aria-hidden", "true")]);
    html.text(match severity {
        Severity::Ok => "✓",
        Severity::Info => "i",
        Severity::Warning => "!",
        Severity::Critical => "✕",
    });
    html.close("span");
    html.both(&severity.word());
    html.close("span");
}
