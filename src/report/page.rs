//! The page around the sections: title, navigation, verdict, devices, advice, what was read, and the footer.

use super::html::Html;
use super::registry::Registry;
use super::section;
use super::strings::Strings;
use super::{ECHARTS, Report};
use crate::analysis::{DeviceOverview, Finding, Lang, Severity, Subject, Text};
use crate::quantity;

/// Reasons that the verdict names; the sections have all of them.
const REASONS: usize = 6;

/// What the window is called.
pub(super) fn title(report: &Report<'_>, strings: &Strings) -> String {
    let name = report.snapshot.map_or("", |snapshot| snapshot.source_name());
    format!("{name} · {}", strings.get("page.title").get(report.lang))
}

pub(super) fn write(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings, registry: &mut Registry) {
    html.open("a", &[("class", "skip"), ("href", "#main")]);
    html.both(&strings.get("page.skip"));
    html.close("a");
    masthead(html, report, strings);
    navigation(html, report, strings);
    html.open("main", &[("id", "main")]);
    health(html, report, strings);
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
    let mut all: Vec<(&'static str, &Finding)> = Vec::new();
    for part in report.sections {
        all.retain(|(_, earlier)| {
            !part.findings.iter().any(|later| later.rule == earlier.rule && later.subject == earlier.subject)
        });
        all.extend(part.findings.iter().map(|finding| (part.mode, finding)));
    }
    all.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    all
}

/// The device with the worst finding, which the page shows first.
pub(super) fn worst_device(report: &Report<'_>) -> Option<i64> {
    findings(report).into_iter().find_map(|(_, finding)| match finding.subject {
        Subject::Device(device) | Subject::Event { device_index: device, .. } => Some(device),
        Subject::Snapshot => None,
    })
}

fn health(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
    let all = findings(report);
    let worst = all.first().map_or(Severity::Ok, |(_, finding)| finding.severity);
    let class = match report.devices.len() {
        0 | 1 => "health one",
        2 => "health",
        _ => "health many",
    };
    html.open("section", &[("id", "health"), ("class", class), ("aria-labelledby", "verdict")]);
    html.open("div", &[("class", &format!("verdict {}", worst.name()))]);
    html.words("h2", &[], &strings.get("page.health"));
    html.open("p", &[("id", "verdict"), ("class", "word")]);
    section::badge(html, worst);
    html.both(&strings.get(&format!("verdict.{}", worst.name())));
    html.close("p");
    html.open("ol", &[("class", "reasons")]);
    let reasons: Vec<_> = all
        .iter()
        .filter(|(_, finding)| finding.severity > Severity::Info || worst <= Severity::Info)
        .collect();
    for (mode, finding) in reasons.iter().take(REASONS) {
        html.open("li", &[("class", finding.severity.name())]);
        html.open("a", &[("href", &format!("#{mode}"))]);
        html.words("b", &[], &finding.subject.words());
        html.close("a");
        html.text(" ");
        html.both(&finding.message);
        html.close("li");
    }
    html.close("ol");
    if reasons.len() > REASONS {
        let more = reasons.len() - REASONS;
        html.words(
            "p",
            &[("class", "more")],
            &Text::new(
                format!("and {more} more in the sections below"),
                format!("另有 {more} 条，见下文各节"),
            ),
        );
    }
    html.close("div");
    html.open("div", &[("class", "devices")]);
    for device in report.devices {
        card(html, device, &all, strings);
    }
    html.close("div");
    html.close("section");
}

/// A device in figures, with what its reserved memory is made of.
fn card(html: &mut Html<'_>, device: &DeviceOverview, all: &[(&'static str, &Finding)], strings: &Strings) {
    let subject = Subject::Device(device.device_index);
    let worst = all
        .iter()
        .filter(|(_, finding)| finding.subject == subject)
        .map(|(_, finding)| finding.severity)
        .max();
    let worst = worst.unwrap_or(Severity::Ok);
    html.open("article", &[("class", &format!("device {}", worst.name()))]);
    html.open("h3", &[]);
    html.both(&subject.words());
    html.element("span", &[("class", "type")], &device.device_type);
    html.close("h3");
    html.open("p", &[("class", "big")]);
    html.element("strong", &[], &quantity::bytes(device.reserved));
    html.words("span", &[], &strings.get("metric.reserved"));
    html.close("p");
    bar(html, device, strings);
    html.open("dl", &[]);
    let metrics = [
        ("metric.allocated", quantity::bytes(device.allocated)),
        ("metric.active", quantity::bytes(device.active)),
        ("metric.fragmentation", quantity::ratio(device.fragmentation_ratio)),
        ("metric.segments", quantity::count(device.segment_count)),
        ("metric.events", quantity::count(device.trace_count)),
        ("metric.oom", quantity::count(device.oom_count)),
    ];
    for (key, value) in metrics {
        html.open("div", &[]);
        html.words("dt", &[], &strings.get(key));
        html.element("dd", &[], &value);
        html.close("div");
    }
    html.close("dl");
    html.close("article");
}

/// Reserved memory by what it is used for, as one bar of an inline picture.
fn bar(html: &mut Html<'_>, device: &DeviceOverview, strings: &Strings) {
    let parts = [
        ("allocated", "metric.allocated", device.active_allocated_bytes),
        ("pending", "metric.pending", device.active_pending_free_bytes),
        ("free", "metric.free", device.inactive_bytes),
    ];
    let whole: i64 = parts.iter().map(|(.., bytes)| bytes).sum();
    let share = |bytes: i64| {
        let share = i128::from(bytes).saturating_mul(1000).checked_div(i128::from(whole)).unwrap_or(0);
        i64::try_from(share).unwrap_or(0)
    };
    let label = |lang: Lang| {
        let words: Vec<String> = parts
            .iter()
            .map(|(_, key, bytes)| format!("{} {}", strings.get(key).get(lang), quantity::bytes(*bytes)))
            .collect();
        words.join(", ")
    };
    html.open(
        "svg",
        &[
            ("class", "bar"),
            ("viewBox", "0 0 1000 10"),
            ("preserveAspectRatio", "none"),
            ("role", "img"),
            ("aria-label", &label(Lang::En)),
            ("data-en", &label(Lang::En)),
            ("data-zh", &label(Lang::Zh)),
        ],
    );
    let mut at = 0;
    for (class, _, bytes) in parts {
        let width = share(bytes);
        html.element(
            "rect",
            &[("class", class), ("x", &at.to_string()), ("width", &width.to_string()), ("height", "10")],
            "",
        );
        at += width;
    }
    html.close("svg");
}

fn has_advice(report: &Report<'_>, strings: &Strings) -> bool {
    report.shows("advice") && (report.capture.is_some() || !advised(report, strings).is_empty())
}

/// Advice for what was found, each once; never for what was not.
fn advised(report: &Report<'_>, strings: &Strings) -> Vec<(Text, Vec<Subject>)> {
    let mut advice: Vec<(Text, Vec<Subject>)> = Vec::new();
    for (_, finding) in findings(report) {
        let Some(words) = strings.find(&format!("advice.{}", finding.rule)) else { continue };
        match advice.iter_mut().find(|(known, _)| *known == words) {
            Some((_, subjects)) if subjects.contains(&finding.subject) => {}
            Some((_, subjects)) => subjects.push(finding.subject),
            None => advice.push((words, vec![finding.subject])),
        }
    }
    advice
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
