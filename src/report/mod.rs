//! One HTML file that opens anywhere: what the analyses found, as text, tables and charts, without a network.
//!
//! The page is text first: verdict, figures and tables are there without a script. Charts are data in an island of JSON
//! that `reports/report.js` hands to ECharts when they come into view.

mod axis;
mod budget;
mod downsample;
mod figure;
mod health;
mod html;
mod option;
mod page;
mod registry;
mod section;
mod stacks;
mod strings;
mod svg;

use std::io::{self, Write};

use serde_json::json;

use crate::analysis::chart::{ChartFigure, StackWords};
use crate::analysis::{
    DeviceOverview, Figure, Finding, Gap, ImportNote, Lang, SnapshotFacts, Text, Thresholds,
};
use crate::output::Redaction;

use budget::Budget;
use html::{Html, island};
use registry::Registry;
use strings::Strings;

pub use section::charted;

/// A file of `reports/`.
macro_rules! hand_written {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/", $name))
    };
}

/// What the build script made: ECharts, and the hash of what a page runs.
macro_rules! built {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

const TEMPLATE: &str = hand_written!("template.html");
const STYLE: (&str, &str) = (hand_written!("report.css"), built!("report.css.sha256"));
const ECHARTS: &str = built!("echarts.min.js");
/// Scripts in the order they run: mark of the template, text, hash.
const SCRIPTS: [(&str, &str, &str); 5] = [
    ("echarts", ECHARTS, built!("echarts.min.js.sha256")),
    ("page", hand_written!("page.js"), built!("page.js.sha256")),
    ("calls", hand_written!("calls.js"), built!("calls.js.sha256")),
    ("charts", hand_written!("charts.js"), built!("charts.js.sha256")),
    ("report", hand_written!("report.js"), built!("report.js.sha256")),
];

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
    /// The source it is compared with, likewise.
    pub reference: Option<&'a str>,
    /// The snapshot it speaks of.
    pub snapshot: Option<&'a SnapshotFacts>,
    /// What was left out or repaired while reading.
    pub notes: &'a [ImportNote],
    /// What the snapshot lacks, and what that costs.
    pub gaps: &'a [Gap],
    /// How to record a better snapshot, in one line; none where no other would say more.
    pub capture: Option<&'a Text>,
    /// The numbers that judge.
    pub thresholds: &'a Thresholds,
    /// Every device and its counters.
    pub devices: &'a [DeviceOverview],
    /// What the analyses found, in order.
    pub sections: &'a [Section],
    /// Call stacks that tables lead to.
    pub stacks: &'a [StackWords],
    /// Names of the parts to show; all where there are none.
    pub parts: &'a [String],
    /// Language that the page opens in.
    pub lang: Lang,
    /// Whether paths are shortened.
    pub redaction: Redaction,
}

impl Report<'_> {
    /// All findings once, worst first. Two analyses may judge the same thing: then the later one, which looked closer, is
    /// heard.
    #[must_use]
    pub fn findings(&self) -> Vec<&Finding> {
        page::findings(self).into_iter().map(|(_, finding)| finding).collect()
    }

    /// Whether a part is to be shown.
    fn shows(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The output is closed or full.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let strings = Strings::load();
        let mut registry = Registry::default();
        let mut html = Html::new(&self.redaction);
        page::write(&mut html, self, &strings, &mut registry);
        registry.add_stacks(self.stacks);
        let body = html.finish();
        let built = SCRIPTS.iter().map(|(_, text, _)| text.len()).sum::<usize>() + STYLE.0.len();
        let mut data = json!({
            "words": strings.script(),
            "source": self.source,
            "worst": page::worst_device(self).map(|device| device.to_string()),
        });
        if let Some(data) = data.as_object_mut() {
            data.extend(registry.finish(built + body.len(), budget::PAGE));
        }
        let mut title = Html::new(&self.redaction);
        title.text(&page::title(self, &strings));
        let allowed: Vec<String> = SCRIPTS.iter().map(|(.., hash)| format!("'sha256-{hash}'")).collect();
        let policy = format!(
            "default-src 'none'; script-src {}; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
             form-action 'none'",
            allowed.join(" "),
            STYLE.1
        );
        let (title, data) = (title.finish(), island(&data, &self.redaction));
        let mut fills = vec![
            ("lang", lang_tag(self.lang)),
            ("policy", &policy),
            ("title", &title),
            ("style", STYLE.0),
            ("body", &body),
            ("data", &data),
        ];
        fills.extend(SCRIPTS.iter().map(|(mark, text, _)| (*mark, *text)));
        fill(out, TEMPLATE, &fills)
    }
}

/// Parts of a report that are no section of an analysis.
pub const PARTS: [&str; 2] = ["advice", "reading"];

/// A chart as an SVG file of its own.
#[must_use]
pub fn picture(figure: &ChartFigure, lang: Lang, redaction: &Redaction) -> String {
    let fitted = Budget::WHOLE.fit(&figure.chart);
    svg::draw(fitted.as_ref().unwrap_or(&figure.chart), svg::Wording::One(lang), redaction)
}

/// The language as HTML names it.
fn lang_tag(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    }
}

/// Writes the template with each `{{mark}}` replaced once; what is filled in is not looked at again.
fn fill(out: &mut dyn Write, template: &str, fills: &[(&str, &str)]) -> io::Result<()> {
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((mark, after)) = behind.split_once("}}") else { break };
        out.write_all(before.as_bytes())?;
        if let Some((_, text)) = fills.iter().find(|(name, _)| *name == mark) {
            out.write_all(text.as_bytes())?;
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}
