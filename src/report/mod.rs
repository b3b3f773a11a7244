//! One HTML file that opens anywhere: what the analyses found, as text, tables and charts, without a network.
//!
//! The page is text first: verdict, figures and tables are there without a script. Charts are data in an island of JSON
//! that `reports/report.js` hands to ECharts when they come into view.

mod axis;
mod downsample;
mod figure;
mod html;
mod option;
mod page;
mod registry;
mod section;
mod strings;
mod svg;

use std::io::{self, Write};

use serde_json::{Map, json};

use crate::analysis::{DeviceOverview, Figure, Finding, Gap, ImportNote, Lang, SnapshotFacts, Thresholds};
use crate::output::Redaction;

use html::{Html, island};
use registry::Registry;
use strings::Strings;

const TEMPLATE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/template.html"));
const STYLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/report.css"));
const SCRIPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/report.js"));
const ECHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.min.js"));
const STYLE_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css.sha256"));
const SCRIPT_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js.sha256"));
const ECHARTS_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.min.js.sha256"));

/// What one analysis found.
#[derive(Debug)]
pub struct Section {
    /// Name of the analysis.
    pub mode: &'static str,
    /// Judgements, worst first.
    pub findings: Vec<Finding>,
    /// What to show.
    pub figures: Vec<Figure>,
}

/// What a report is made of.
#[derive(Debug)]
pub struct Report<'a> {
    /// The source as `npusnap sql` takes it.
    pub source: &'a str,
    /// The snapshot it speaks of.
    pub snapshot: Option<&'a SnapshotFacts>,
    /// What was left out or repaired while reading.
    pub notes: &'a [ImportNote],
    /// What the snapshot lacks, and what that costs.
    pub gaps: &'a [Gap],
    /// The numbers that judge.
    pub thresholds: &'a Thresholds,
    /// Every device and its counters.
    pub devices: &'a [DeviceOverview],
    /// What the analyses found, in order.
    pub sections: &'a [Section],
    /// Language that the page opens in.
    pub lang: Lang,
    /// Whether paths are shortened.
    pub redaction: Redaction,
}

impl Report<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// The output is closed or full.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let strings = Strings::load();
        let mut registry = Registry::default();
        let mut html = Html::new(&self.redaction);
        page::write(&mut html, self, &strings, &mut registry);
        let (charts, stacks) = registry.finish();
        let data = json!({
            "words": strings.script(),
            "charts": charts,
            "stacks": stacks,
            "source": self.source,
        });
        let mut title = Html::new(&self.redaction);
        title.text(&page::title(self, &strings));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{ECHARTS_HASH}' 'sha256-{SCRIPT_HASH}'; \
             style-src 'sha256-{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
        );
        let fills: Map<_, _> = Map::from_iter([
            ("lang".to_owned(), json!(lang_tag(self.lang))),
            ("policy".to_owned(), json!(policy)),
            ("title".to_owned(), json!(title.finish())),
            ("style".to_owned(), json!(STYLE)),
            ("body".to_owned(), json!(html.finish())),
            ("data".to_owned(), json!(island(&data, &self.redaction))),
            ("echarts".to_owned(), json!(ECHARTS)),
            ("script".to_owned(), json!(SCRIPT)),
        ]);
        fill(out, TEMPLATE, &fills)
    }
}

/// The language as HTML names it.
fn lang_tag(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    }
}

/// Writes the template with each `{{mark}}` replaced once; what is filled in is not looked at again.
fn fill(out: &mut dyn Write, template: &str, fills: &Map<String, serde_json::Value>) -> io::Result<()> {
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((mark, after)) = behind.split_once("}}") else { break };
        out.write_all(before.as_bytes())?;
        let text = fills.get(mark).and_then(serde_json::Value::as_str).unwrap_or_default();
        out.write_all(text.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}
