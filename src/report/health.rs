//! The head of the page: the verdict with its reasons, and a card for each device.

use super::Report;
use super::html::Html;
use super::page::findings;
use super::section;
use super::strings::Strings;
use crate::analysis::{DeviceOverview, Finding, Lang, Severity, Subject, Text};
use crate::quantity;

/// Reasons that the verdict names; the sections have all of them.
const REASONS: usize = 6;

pub(super) fn write(html: &mut Html<'_>, report: &Report<'_>, strings: &Strings) {
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
        html.both(&section::colon());
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
