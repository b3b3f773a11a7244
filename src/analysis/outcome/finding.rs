//! Findings: what is judged, how bad it is, and what that rests on.

use std::borrow::Borrow;

use serde_json::{Map, Value, json};

use super::Quantity;
use crate::analysis::language::{Lang, Text};
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
    pub(in crate::analysis) fn on_device(
        device_index: i64,
        rule: &'static str,
        severity: Severity,
        message: Text,
        evidence: Vec<(&'static str, Quantity)>,
    ) -> Self {
        Self { rule, severity, subject: Subject::Device(device_index), message, evidence }
    }

    /// A judgement on the file as a whole that rests on no measure.
    pub(in crate::analysis) fn on_snapshot(rule: &'static str, severity: Severity, message: Text) -> Self {
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
