//! What an analysis hands on: findings, and figures that any renderer can show without knowing the analysis.

use std::borrow::Borrow;

use serde_json::{Map, Value, json};

use super::chart::ChartFigure;
use super::language::{Lang, Text};
use crate::engine::Engine;
use crate::error::Result;
use crate::quantity;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Looked at, and fine.
    Ok,
    /// Worth knowing, nothing to repair.
    Info,
    /// Worth looking at.
    Warning,
    /// Costs memory or will end the job.
    Critical,
}

impl Severity {
    /// The name that JSON and `--fail-on` use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The word a person reads.
    #[must_use]
    pub fn word(self) -> Text {
        match self {
            Self::Ok => Text::new("ok", "正常"),
            Self::Info => Text::new("note", "提示"),
            Self::Warning => Text::new("warning", "警告"),
            Self::Critical => Text::new("critical", "严重"),
        }
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The file as a whole.
    Snapshot,
    /// A device, by its number in the snapshot.
    Device(i64),
    /// An event of a device.
    Event {
        /// Number of the device.
        device_index: i64,
        /// Position in its history.
        trace_index: i64,
    },
}

impl Subject {
    /// The name that JSON uses: `snapshot`, `device 0`, `device 0, event 17`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Snapshot => "snapshot".to_owned(),
            Self::Device(index) => format!("device {index}"),
            Self::Event { device_index, trace_index } => {
                format!("device {device_index}, event {trace_index}")
            }
        }
    }

    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Snapshot => Text::new("snapshot", "快照"),
            Self::Device(index) => Text::new(format!("device {index}"), format!("设备 {index}")),
            Self::Event { device_index, trace_index } => {
                let event = quantity::count(trace_index);
                Text::new(
                    format!("device {device_index}, event {event}"),
                    format!("设备 {device_index} 事件 {event}"),
                )
            }
        }
    }
}

/// A measured value with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Bytes; `None` is not known, which is not zero.
    Bytes(Option<i64>),
    /// How many.
    Count(i64),
    /// A share of one; `None` where it is not defined.
    Ratio(Option<f64>),
}

/// Bytes that are known.
pub(super) fn bytes(value: i64) -> Quantity {
    Quantity::Bytes(Some(value))
}

/// A share of a whole; `None` where there is no whole.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "a share needs no more than 53 bits")]
#[must_use]
pub fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Quantity {
    /// The raw value for programs.
    #[must_use]
    pub fn json(self) -> Value {
        match self {
            Self::Bytes(value) => json!(value),
            Self::Count(value) => json!(value),
            Self::Ratio(value) => json!(value),
        }
    }

    /// The value for people.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Bytes(value) => value.map_or_else(|| "-".to_owned(), quantity::bytes),
            Self::Count(value) => quantity::count(value),
            Self::Ratio(value) => quantity::ratio(value),
        }
    }
}

/// A judgement with what it rests on.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Stable name, such as `fragment/unallocated`.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// One sentence for people.
    pub message: Text,
    /// The measures it rests on, by name.
    pub evidence: Vec<(&'static str, Quantity)>,
}

impl Finding {
    /// A judgement on one device.
    pub(super) fn on_device(
        device_index: i64,
        rule: &'static str,
        severity: Severity,
        message: Text,
        evidence: Vec<(&'static str, Quantity)>,
    ) -> Self {
        Self { rule, severity, subject: Subject::Device(device_index), message, evidence }
    }

    /// A judgement on the file as a whole that rests on no measure.
    pub(super) fn on_snapshot(rule: &'static str, severity: Severity, message: Text) -> Self {
        Self { rule, severity, subject: Subject::Snapshot, message, evidence: Vec::new() }
    }

    /// Puts the worst first and leaves equals in their order.
    pub fn sort_worst_first(findings: &mut [Self]) {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }

    /// What several analyses found, worst first, each with the name of its analysis. Two may judge the same thing: then the
    /// later one, which looked closer, is heard.
    pub fn merge<M, F: Borrow<Self>>(analyses: impl IntoIterator<Item = (M, Vec<F>)>) -> Vec<(M, F)>
    where
        M: Copy,
    {
        let mut all: Vec<(M, F)> = Vec::new();
        for (name, own) in analyses {
            all.retain(|(_, earlier)| {
                let earlier: &Self = earlier.borrow();
                let judges_same =
                    |later: &Self| later.rule == earlier.rule && later.subject == earlier.subject;
                !own.iter().any(|later| judges_same(later.borrow()))
            });
            all.extend(own.into_iter().map(|finding| (name, finding)));
        }
        all.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.borrow().severity));
        all
    }

    /// The finding as contract section 4 shapes it.
    #[must_use]
    pub fn json(&self, lang: Lang) -> Value {
        let evidence: Map<String, Value> =
            self.evidence.iter().map(|(name, value)| ((*name).to_owned(), value.json())).collect();
        json!({
            "rule": self.rule,
            "severity": self.severity.name(),
            "subject": self.subject.name(),
            "message": self.message.get(lang),
            "evidence": evidence,
        })
    }
}

/// Something that a page shows when it is asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// All frames of a call stack: `call_stacks.id`.
    Stack(i64),
    /// An event on the timeline of its device.
    Event {
        /// Number of the device.
        device_index: i64,
        /// Position in its history.
        trace_index: i64,
    },
    /// A segment on the map of its device.
    Segment {
        /// Number of the device.
        device_index: i64,
        /// Where it starts.
        address: i64,
    },
}

impl Target {
    /// Kind and identity, as the page's script takes them.
    #[must_use]
    pub fn parts(self) -> (&'static str, String) {
        match self {
            Self::Stack(id) => ("stack", id.to_string()),
            Self::Event { device_index, trace_index } => ("event", format!("{device_index}:{trace_index}")),
            Self::Segment { device_index, address } => ("segment", format!("{device_index}:{address}")),
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A measured value, aligned right.
    Quantity(Quantity),
    /// A name, aligned left.
    Text(Text),
    /// A name that stands for something a page can show.
    Link(Text, Target),
}

/// Rows of cells under headings.
#[derive(Debug, Clone)]
pub struct TableFigure {
    /// What the table shows.
    pub title: Text,
    /// The one device that it is about; none where it is about all.
    pub device: Option<i64>,
    /// Heading of each column.
    pub headings: Vec<Text>,
    /// Cells, as many in each row as there are headings.
    pub rows: Vec<Vec<Cell>>,
}

impl Cell {
    /// A name that reads the same in both languages.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Text(Text::same(name))
    }

    /// An event of a device, by its position.
    #[must_use]
    pub fn event(device_index: i64, trace_index: i64) -> Self {
        let words = Text::same(quantity::count(trace_index));
        Self::Link(words, Target::Event { device_index, trace_index })
    }

    /// A segment of a device by its address, `-` where it is not known.
    #[must_use]
    pub fn segment(device_index: i64, address: Option<i64>) -> Self {
        address.map_or_else(
            || Self::name("-"),
            |address| {
                let words = Text::same(quantity::address(address));
                Self::Link(words, Target::Segment { device_index, address })
            },
        )
    }

    /// A call stack by a name for it; only the name where there is no stack.
    #[must_use]
    pub fn stack(name: Text, stack_id: Option<i64>) -> Self {
        match stack_id {
            Some(stack_id) => Self::Link(name, Target::Stack(stack_id)),
            None => Self::Text(name),
        }
    }

    /// A call stack by its id, `-` where there is none.
    #[must_use]
    pub fn stack_id(stack_id: Option<i64>) -> Self {
        Self::stack(Text::same(stack_id.map_or_else(|| "-".to_owned(), |id| id.to_string())), stack_id)
    }

    /// Bytes, or `-` where they are not known.
    pub fn bytes(value: impl Into<Option<i64>>) -> Self {
        Self::Quantity(Quantity::Bytes(value.into()))
    }

    /// How many.
    #[must_use]
    pub fn count(value: i64) -> Self {
        Self::Quantity(Quantity::Count(value))
    }

    /// A share of one, or `-` where it is not defined.
    #[must_use]
    pub fn ratio(value: Option<f64>) -> Self {
        Self::Quantity(Quantity::Ratio(value))
    }
}

impl TableFigure {
    /// A table with headings in English and Chinese.
    #[must_use]
    pub fn new(title: Text, headings: &[(&str, &str)], rows: Vec<Vec<Cell>>) -> Self {
        let headings = headings.iter().map(|(en, zh)| Text::new(*en, *zh)).collect();
        Self { title, device: None, headings, rows }
    }

    /// The table as one about a single device.
    #[must_use]
    pub fn of_device(mut self, device_index: i64) -> Self {
        self.device = Some(device_index);
        self
    }
}

/// Something to look at.
#[derive(Debug, Clone)]
pub enum Figure {
    /// A table.
    Table(TableFigure),
    /// A sentence.
    Note(Text),
    /// A chart; terminals do without.
    Chart(Box<ChartFigure>),
    /// What the figures below it belong to.
    Heading(Text),
}

/// What an analysis found out.
pub trait Outcome {
    /// The `result` object of contract section 4; sentences in it are in `lang`.
    fn json(&self, lang: Lang) -> Value;
    /// Judgements, worst first.
    fn findings(&self) -> Vec<Finding>;
    /// What to show.
    fn figures(&self) -> Vec<Figure>;
    /// What only a report draws, of the devices it has room for; it may take more queries.
    ///
    /// # Errors
    /// A relation failed or lacks a column.
    fn charts(&self, _engine: &Engine, _wanted: &dyn Fn(i64) -> bool) -> Result<Vec<ChartFigure>> {
        Ok(Vec::new())
    }
}
