//! What an analysis hands on: findings, and figures that any renderer can show without knowing the analysis.

use serde_json::{Map, Value, json};

use super::chart::ChartFigure;
use super::language::{Lang, Text};
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
}

impl Subject {
    /// The name that JSON uses: `snapshot`, `device 0`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Snapshot => "snapshot".to_owned(),
            Self::Device(index) => format!("device {index}"),
        }
    }

    /// The words a person reads.
    #[must_use]
    pub fn words(self) -> Text {
        match self {
            Self::Snapshot => Text::new("snapshot", "快照"),
            Self::Device(index) => Text::new(format!("device {index}"), format!("设备 {index}")),
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

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A measured value, aligned right.
    Quantity(Quantity),
    /// A name, aligned left.
    Text(Text),
}

/// Rows of cells under headings.
#[derive(Debug, Clone)]
pub struct TableFigure {
    /// What the table shows.
    pub title: Text,
    /// Heading of each column.
    pub headings: Vec<Text>,
    /// Cells, as many in each row as there are headings.
    pub rows: Vec<Vec<Cell>>,
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
}

/// What an analysis found out.
pub trait Outcome {
    /// The `result` object of contract section 4.
    fn json(&self) -> Value;
    /// Judgements, worst first.
    fn findings(&self) -> Vec<Finding>;
    /// What to show.
    fn figures(&self) -> Vec<Figure>;
}
