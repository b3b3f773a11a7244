//! Tables, charts and the queries that reproduce them, as parts of a section.

use serde_json::{Value, json};

use super::Report;
use super::budget::Budget;
use super::html::Html;
use super::option;
use super::registry::Registry;
use super::strings::Strings;
use super::svg::{self, Wording};
use crate::analysis::chart::{Chart, ChartFigure, Layout, StackWords};
use crate::analysis::{Cell, Lang, Subject, TableFigure, Target, Text, share};

/// Rows of a table that stand in the page before it scrolls.
pub(super) const TALL_TABLE: usize = 14;

/// A table that scrolls on its own when it is wide or long. The page holds `most` rows as markup; with more, the script
/// shows those in view.
pub(super) fn table(
    html: &mut Html<'_>,
    table: &TableFigure,
    id: &str,
    most: usize,
    registry: &mut Registry<'_>,
) {
    let class = if table.rows.len() > TALL_TABLE { "scroll tall" } else { "scroll" };
    let is_long = table.rows.len() > most;
    let rows = if is_long { registry.add_rows(long_rows(table)).to_string() } else { String::new() };
    let mut attributes =
        vec![("class", class), ("tabindex", "0"), ("role", "region"), ("aria-labelledby", id)];
    if is_long {
        attributes.push(("data-rows", &rows));
    }
    html.open("div", &attributes);
    html.open("table", &[]);
    html.words("caption", &[("id", id)], &table.title);
    html.open("thead", &[]);
    html.open("tr", &[]);
    let is_number = |place: usize| {
        table.rows.iter().any(|row| {
            matches!(row.get(place), Some(Cell::Quantity(_) | Cell::Link(_, Target::Event { .. })))
        })
    };
    for (place, heading) in table.headings.iter().enumerate() {
        let class = if is_number(place) { "number" } else { "name" };
        html.words("th", &[("scope", "col"), ("class", class)], heading);
    }
    html.close("tr");
    html.close("thead");
    html.open("tbody", &[]);
    for row in table.rows.iter().take(most) {
        html.open("tr", &[]);
        for cell in row {
            match cell {
                Cell::Quantity(quantity) => html.element("td", &[("class", "number")], &quantity.text()),
                Cell::Text(text) => html.words("td", &[("class", width(text))], text),
                Cell::Link(text, target) => {
                    html.open("td", &[("class", if is_event(*target) { "number" } else { width(text) })]);
                    link(html, text, *target);
                    html.close("td");
                }
            }
        }
        html.close("tr");
    }
    html.close("tbody");
    html.close("table");
    html.close("div");
    if is_long {
        let (most, all) = (most.to_string(), table.rows.len().to_string());
        let words = Text::new(
            format!(
                "The first {most} of {all} rows: a script shows the others, and the query below finds them."
            ),
            format!("此处为前 {most} 行，共 {all} 行：其余由脚本显示，也可用下方的查询得到。"),
        );
        html.words("p", &[("class", "note noscript")], &words);
    }
}

/// Words that the script makes lead somewhere; without it they are only words.
pub(super) fn link(html: &mut Html<'_>, words: &Text, target: Target) {
    let (kind, identity) = target.parts();
    html.words("button", &[(&format!("data-{kind}"), &identity)], words);
}

/// Whether a cell stays in one line, as names do, or is to be read like prose.
fn width(text: &Text) -> &'static str {
    const LONGEST_NAME: usize = 56;
    let is_long = |lang| text.get(lang).chars().count() > LONGEST_NAME;
    if is_long(Lang::En) || is_long(Lang::Zh) { "prose" } else { "name" }
}

fn is_event(target: Target) -> bool {
    matches!(target, Target::Event { .. })
}

/// The rows of a table as the script takes them.
fn long_rows(table: &TableFigure) -> Value {
    let words = |text: &Text| match (text.get(Lang::En), text.get(Lang::Zh)) {
        (en, zh) if en == zh => json!(en),
        both => json!(both),
    };
    let cell = |cell: &Cell| match cell {
        Cell::Quantity(quantity) => json!([quantity.text(), "number"]),
        Cell::Text(text) => json!([words(text)]),
        Cell::Link(text, target) => {
            let (kind, identity) = target.parts();
            json!([words(text), kind, identity])
        }
    };
    table.rows.iter().map(|row| row.iter().map(cell).collect::<Value>()).collect()
}

/// A chart: a place for the browser to draw in, the words around it, and the query behind it.
pub(super) fn chart<'a>(
    html: &mut Html<'_>,
    mode: &str,
    figure: &'a ChartFigure,
    budget: Budget,
    report: &Report<'_>,
    strings: &Strings,
    registry: &mut Registry<'a>,
) {
    let id = figure.anchor(mode);
    let fitted = budget.fit(&figure.chart);
    let chart = fitted.as_ref().unwrap_or(&figure.chart);
    let drawing = option::draw(chart);
    let title = match figure.device {
        Some(device) if report.devices.len() > 1 => {
            let subject = Subject::Device(device).words();
            Text::new(
                format!("{}, {}", figure.title.get(Lang::En), subject.get(Lang::En)),
                format!("{}（{}）", figure.title.get(Lang::Zh), subject.get(Lang::Zh)),
            )
        }
        _ => figure.title.clone(),
    };
    html.open("figure", &[("id", &id), ("class", &format!("chart chart-{}", figure.name))]);
    html.open("figcaption", &[]);
    html.words("h3", &[], &title);
    let key = strings.chart_key(mode, figure.name);
    if let Some(how) = strings.find(&key) {
        html.open("p", &[]);
        html.both(&how);
        // What can be done with it is for where scripts run, not for paper.
        if let Some(hint) = strings.find(&format!("chart.{}.do", figure.name)) {
            html.words("span", &[("class", "hint")], &hint);
        }
        html.close("p");
    }
    if let Chart::Layout(Layout { other: Some(other), .. }) = chart {
        html.words("p", &[], &option::others(*other));
    }
    html.close("figcaption");
    let height = (drawing.height * 10).to_string();
    html.open("div", &[("class", "controls"), ("hidden", "")]);
    html.close("div");
    html.element(
        "div",
        &[
            ("class", "canvas"),
            ("role", "img"),
            ("tabindex", "0"),
            ("data-chart", &id),
            ("data-height", &height),
            ("aria-label", title.get(report.lang)),
            ("data-en", title.get(Lang::En)),
            ("data-zh", title.get(Lang::Zh)),
        ],
        "",
    );
    html.open("noscript", &[]);
    html.markup(&svg::draw(chart, Wording::Both, &report.redaction));
    html.close("noscript");
    html.element("div", &[("class", "detail"), ("aria-live", "polite")], "");
    if let Some(rows) = rows(chart, &title) {
        html.open("details", &[("class", "rows")]);
        html.words("summary", &[], &strings.get("page.rows"));
        table(html, &rows, &format!("{id}-rows"), Budget::WHOLE.rows, registry);
        html.close("details");
    }
    for sql in strings.queries(&strings.query_key(mode, figure.name)) {
        let device = figure.device.map_or_else(String::new, |device| device.to_string());
        query(html, report, mode, &sql.replace("$device", &device), strings);
    }
    html.close("figure");
    registry.add_stacks(stacks(&figure.chart));
    registry.add_chart(json!({
        "id": id,
        "kind": figure.name,
        "device": figure.device,
        "option": drawing.option,
        "extra": drawing.extra,
    }));
}

/// The numbers of a chart that no table of its section has, for those who read or tab rather than look and click.
fn rows(chart: &Chart, title: &Text) -> Option<TableFigure> {
    let Chart::Stacks(stacks) = chart else { return None };
    let headings = [
        ("call stack", "调用栈"),
        ("bytes", "字节"),
        ("share", "占比"),
        ("requested", "请求"),
        ("blocks", "块数"),
    ];
    let row = |name: Cell, bytes: i64, requested: Option<i64>, count: Option<i64>| {
        vec![
            name,
            Cell::bytes(bytes),
            Cell::ratio(share(bytes, stacks.total)),
            Cell::bytes(requested),
            count.map_or_else(|| Cell::name("-"), Cell::count),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = stacks
        .bars
        .iter()
        .map(|bar| {
            let words = option::stack_label(bar, stacks);
            row(Cell::stack(words, bar.stack_id), bar.bytes, bar.requested, Some(bar.block_count))
        })
        .collect();
    if let Some((count, bytes)) = stacks.other {
        rows.push(row(Cell::Text(option::other_label(count)), bytes, None, None));
    }
    Some(TableFigure::new(title.clone(), &headings, rows))
}

/// The command that gives a table's or a chart's numbers again.
pub(super) fn query(html: &mut Html<'_>, report: &Report<'_>, mode: &str, sql: &str, strings: &Strings) {
    let reference = report.reference.filter(|_| mode == "compare");
    let reference = reference.map_or_else(String::new, |name| format!(" --ref {}", quoted(name)));
    let command = format!("npusnap sql {}{reference} \"{sql}\"", quoted(report.source));
    html.open("div", &[("class", "query")]);
    html.element("code", &[], &command);
    html.words("button", &[("type", "button"), ("class", "copy"), ("hidden", "")], &strings.get("page.copy"));
    html.close("div");
}

/// A file name as a shell takes it.
fn quoted(name: &str) -> String {
    if name.chars().all(|symbol| symbol.is_alphanumeric() || "._-/+=,@%".contains(symbol)) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

fn stacks(chart: &Chart) -> &[StackWords] {
    match chart {
        Chart::Timeline(timeline) => &timeline.stacks,
        Chart::Layout(layout) => &layout.stacks,
        Chart::Expansion(expansion) => &expansion.stacks,
        Chart::Stacks(stacks) => &stacks.stacks,
        Chart::Sequence(sequence) => &sequence.stacks,
        Chart::Devices(_) | Chart::Flame(_) | Chart::Overlay(_) => &[],
    }
}
