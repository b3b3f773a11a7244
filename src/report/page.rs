//! The page around the sections: title, navigation, verdict, devices, advice, what was read, and the footer.

use super::health;
use super::html::Html;
use super::registry::Registry;
use super::section;
use super::strings::Strings;
use super::{ECHARTS, Report};
use crate::analysis::{Finding, Quantity, Severity, Subject, Text};
use crate::quantity;

/// What the window is called.
pub(super) fn title(report: &Report<'_>, strings: &Strings) -> String {
    let name = report.snapshot.map_or("", |snapshot| snapshot.source_name());
    format!("{name} · {}", strings.get("page.title").get(report.lang))
}

pub(super) fn write<'a>(
    html: &mut Html<'_>,
    report: &Report<'a>,
    strings: &Strings,
    registry: &mut Registry<'a>,
) {
    html.open("a", &[("class", "skip"), ("href", "#main")]);
    html.both(&strings.get("page.skip"));
    html.close("a");
    masthead(html, report, strings);
    navigation(html, report, strings);
    html.open("main", &[("id", "main")]);
    health::write(html, report, strings);
    for part in report.sections {
        section::write(html, part, report, strings, registry);
    }
    if has_advice(report, strings) {
        advice(html, report, strings);
    }
    if report.shows("reading") {
        reading(html, report, strings);
    }
    html.close("main");
    footer(html, report, strings);
    html.open("dialog", &[("id", "stack"), ("aria-labelledby", "stack-title")]);
    html.close("dialog");
}

fn masthead(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    html.open("header", &[("class", "masthead")]);
    html.open("div", &[("class", "who")]);
    html.words("p", &[("class", "eyebrow")], &strings.get("page.title"));
    let name = report.snapshot.map_or("", |snapshot| snapshot.source_name());
    html.open("h1", &[]);
    html.element("bdi", &[], name);
    html.close("h1");
    if let Some(snapshot) = report.snapshot {
        html.open("ul", &[("class", "facts")]);
        let events = quantity::count(snapshot.event_count());
        let stacks = quantity::count(snapshot.stack_count());
        for fact in [
            Text::same(snapshot.producer()),
            Text::same(quantity::bytes(snapshot.source_bytes())),
            Text::new(format!("{events} events"), format!("{events} 条事件")),
            Text::new(format!("{stacks} call stacks"), format!("{stacks} 个调用栈")),
        ] {
            html.words("li", &[], &fact);
        }
        html.close("ul");
    }
    html.close("div");
    html.open("div", &[("class", "tools"), ("hidden", "")]);
    let group = strings.get("page.language");
    html.open("div", &[("class", "switch"), ("role", "group"), ("aria-label", group.get(report.lang))]);
    for (tag, word) in [("en", "English"), ("zh", "中文")] {
        html.element("button", &[("type", "button"), ("data-language", tag), ("lang", tag)], word);
    }
    html.close("div");
    for (class, key) in [("theme", "page.theme"), ("print", "page.print")] {
        html.words("button", &[("type", "button"), ("class", class)], &strings.get(key));
    }
    html.close("div");
    html.close("header");
}

fn navigation(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    let label = strings.get("page.sections");
    html.open("nav", &[("aria-label", label.get(report.lang))]);
    html.open("ul", &[]);
    let mut links = vec![("health", strings.get("page.health"))];
    links.extend(report.sections.iter().map(|part| (part.mode, section::title(strings, part.mode))));
    if has_advice(report, strings) {
        links.push(("advice", strings.get("advice.title")));
    }
    if report.shows("reading") {
        links.push(("reading", strings.get("page.reading")));
    }
    for (anchor, words) in links {
        html.open("li", &[]);
        html.words("a", &[("href", &format!("#{anchor}"))], &words);
        html.close("li");
    }
    html.close("ul");
    html.close("nav");
}

/// All findings of all sections once with the section they are from, worst first.
pub(super) fn findings<'a>(report: &'a Report<'_>) -> Vec<(&'static str, &'a Finding)> {
    Finding::merge(report.sections.iter().map(|part| (part.mode, part.findings.iter().collect())))
}

/// The device with the worst finding, which the page shows first.
pub(super) fn worst_device(report: &Report<'_>) -> Option<i64> {
    first_device(findings(report).into_iter().map(|(_, finding)| finding))
}

/// The first device that findings speak of.
pub(super) fn first_device<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<i64> {
    findings.map(|finding| finding.subject).find_map(|subject| match subject {
        Subject::Device(device) | Subject::Event { device_index: device, .. } => Some(device),
        Subject::Snapshot => None,
    })
}

fn has_advice(report: &Report<'_>, strings: &Strings) -> bool {
    report.shows("advice") && (report.capture.is_some() || !advised(report, strings).is_empty())
}

/// Advice for what was found, each once; never for what was not.
fn advised(report: &Report<'_>, strings: &Strings) -> Vec<(Text, Vec<Subject>)> {
    let mut advice: Vec<(Text, Vec<Subject>)> = Vec::new();
    let findings = findings(report);
    // Where causes of failed requests are known there is advice for each: none that leads to them is needed.
    let has_causes =
        findings.iter().any(|(mode, finding)| *mode == "oom" && finding.severity == Severity::Critical);
    for (_, finding) in findings {
        if has_causes && finding.rule == "overview/oom" {
            continue;
        }
        let Some(words) = advice_for(finding, strings) else { continue };
        match advice.iter_mut().find(|(known, _)| *known == words) {
            Some((_, subjects)) if subjects.contains(&finding.subject) => {}
            Some((_, subjects)) => subjects.push(finding.subject),
            None => advice.push((words, vec![finding.subject])),
        }
    }
    advice
}

/// The advice for a finding: for what its evidence has, else for its rule.
fn advice_for(finding: &Finding, strings: &Strings) -> Option<Text> {
    let expandable = finding.evidence.iter().find(|(name, _)| *name == "expandable_count");
    let variant =
        expandable.map(|(_, count)| if *count == Quantity::Count(0) { "fixed" } else { "expandable" });
    variant
        .and_then(|variant| strings.find(&format!("advice.{}.{variant}", finding.rule)))
        .or_else(|| strings.find(&format!("advice.{}", finding.rule)))
}

fn advice(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    let advice = advised(report, strings);
    html.open("section", &[("id", "advice"), ("class", "part"), ("aria-labelledby", "advice-title")]);
    html.words("h2", &[("id", "advice-title")], &strings.get("advice.title"));
    html.words("p", &[("class", "lead")], &strings.get("advice.shows"));
    html.open("ol", &[("class", "advice")]);
    for (words, subjects) in advice {
        html.open("li", &[]);
        html.words("p", &[], &words);
        html.open("p", &[("class", "for")]);
        for subject in subjects {
            html.words("span", &[("class", "chip")], &subject.words());
        }
        html.close("p");
        html.close("li");
    }
    if let Some(capture) = report.capture {
        html.open("li", &[]);
        html.open("p", &[]);
        html.both(&strings.get("advice.capture"));
        html.both(capture);
        html.close("p");
        html.close("li");
    }
    html.close("ol");
    html.close("section");
}

/// How the snapshot was read: what was lost or guessed, and the numbers that judged.
fn reading(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    html.open("section", &[("id", "reading"), ("class", "part"), ("aria-labelledby", "reading-title")]);
    html.words("h2", &[("id", "reading-title")], &strings.get("page.reading"));
    html.words("p", &[("class", "lead")], &strings.get("page.reading.shows"));
    if let Some(snapshot) = report.snapshot {
        html.open("dl", &[("class", "source")]);
        for (key, value) in [
            ("reading.format", snapshot.format()),
            ("reading.container", Text::same(snapshot.container())),
            ("reading.producer", Text::same(snapshot.producer())),
            ("reading.sha256", Text::same(snapshot.sha256())),
            ("reading.version", Text::same(format!("npusnap {}", snapshot.npusnap_version()))),
        ] {
            html.words("dt", &[], &strings.get(key));
            html.words("dd", &[], &value);
        }
        html.close("dl");
    }
    if report.notes.is_empty() {
        html.words("p", &[("class", "note")], &strings.get("reading.clean"));
    } else {
        html.open("details", &[("class", "notes")]);
        html.words("summary", &[], &strings.get("reading.notes"));
        html.open("ul", &[]);
        for note in report.notes {
            html.open("li", &[("class", if note.is_loss() { "loss" } else { "info" })]);
            html.element("code", &[], &note.name);
            html.text(" ");
            html.element("b", &[], &quantity::count(note.value));
            html.text(" ");
            html.both(&note.meaning());
            html.close("li");
        }
        html.close("ul");
        html.close("details");
    }
    html.open("details", &[("class", "notes")]);
    html.words("summary", &[], &strings.get("reading.thresholds"));
    html.open("ul", &[]);
    for (name, value, default, doc) in report.thresholds.list() {
        html.open("li", &[]);
        html.element("code", &[], &format!("{name}={value}"));
        html.text(" ");
        html.text(&doc);
        if (value - default).abs() > f64::EPSILON {
            html.words("b", &[], &Text::new(format!(" (default {default})"), format!("（默认 {default}）")));
        }
        html.close("li");
    }
    html.close("ul");
    html.close("details");
    html.close("section");
}

fn footer(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    html.open("footer", &[]);
    html.open("p", &[]);
    html.text(concat!("npusnap ", env!("CARGO_PKG_VERSION"), " · "));
    html.both(&strings.get("page.offline"));
    html.close("p");
    html.open("details", &[]);
    html.words("summary", &[], &strings.get("page.licence"));
    // The notice stands at the head of the script, as its licence asks; here it can be read.
    let notice = ECHARTS.split("*/").next().unwrap_or_default();
    let notice: Vec<&str> = notice
        .lines()
        .map(|line| line.trim_start_matches(['/', '*', ' ']))
        .filter(|line| !line.is_empty())
        .collect();
    html.element("pre", &[], &notice.join("\n"));
    html.close("details");
    if report.snapshot.is_some() {
        html.words("p", &[("class", "noscript")], &strings.get("page.noscript"));
    }
    html.close("footer");
}
