//! The report of `analyze -o report.html`, and its charts as files.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use super::analyze::Args;
use super::mode::Mode;
use crate::analysis::{
    ANALYSES, Analysis, Cell, DeviceOverview, Figure, Finding, ImportNote, Info, Lang, Scope, SnapshotFacts,
    Target, Thresholds, chart,
};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::output::{Redaction, Sink};
use crate::report::{PARTS, Report, Section, charted, picture};

/// What the report is made from.
pub(super) struct Material<'a> {
    pub(super) args: &'a Args,
    pub(super) mode: Mode,
    pub(super) engine: &'a Engine,
    pub(super) thresholds: &'a Thresholds,
    pub(super) scope: Scope<'a>,
    pub(super) redaction: Redaction,
}

impl Material<'_> {
    /// Writes the page and the pictures that were asked for; gives back what was found.
    pub(super) fn write(&self, sections: &[Section], sink: &mut Sink) -> Result<Vec<Finding>> {
        let info = Info::read(self.engine)?;
        let capture = info.can_be_better().then(|| info.advice());
        let snapshot = SnapshotFacts::read(self.engine)?;
        let lang = Lang::from(self.args.lang);
        let reference = self.args.reference.as_ref().map(|path| path.to_string_lossy());
        let report = Report {
            source: &self.args.source.to_string_lossy(),
            reference: reference.as_deref(),
            snapshot: snapshot.as_ref(),
            notes: &ImportNote::read(self.engine)?,
            gaps: &info.gaps(),
            capture: capture.as_ref(),
            thresholds: self.thresholds,
            devices: &DeviceOverview::read(self.engine, self.scope)?,
            sections,
            stacks: &chart::words(self.engine, linked(sections).into_iter())?,
            parts: &self.args.sections,
            lang,
            redaction: self.redaction.clone(),
        };
        report.write(sink).map_err(|source| sink.error(source))?;
        Ok(report.findings().into_iter().cloned().collect())
    }

    /// What the analyses of the mode found, with their charts.
    pub(super) fn sections(&self) -> Result<Vec<Section>> {
        let has_base = self.args.reference.is_some();
        let chosen = ANALYSES.iter().copied().filter(|analysis| match self.mode {
            Mode::One(one) => one.name() == analysis.name(),
            Mode::All => has_base || !analysis.needs_base(),
        });
        // Files of their own need no budget; a page has one.
        let devices = DeviceOverview::read(self.engine, self.scope)?;
        let charted = charted(&devices);
        let wanted = |device: i64| self.args.svg.is_some() || charted.contains(&device);
        let chosen = chosen.filter(|analysis| self.wants(analysis.name()));
        chosen.map(|analysis| self.section(analysis, &wanted)).collect()
    }

    fn wants(&self, part: &str) -> bool {
        self.args.sections.is_empty() || self.args.sections.iter().any(|wanted| wanted == part)
    }

    fn section(&self, analysis: &dyn Analysis, wanted: &dyn Fn(i64) -> bool) -> Result<Section> {
        let outcome = analysis.run(self.engine, self.thresholds, self.scope)?;
        let mut figures = outcome.figures();
        let charts = outcome.charts(self.engine, wanted)?;
        figures.extend(charts.into_iter().map(|chart| Figure::Chart(Box::new(chart))));
        Ok(Section { mode: analysis.name(), findings: outcome.findings(), figures })
    }
}

/// Call stacks that tables of the page lead to.
fn linked(sections: &[Section]) -> BTreeSet<i64> {
    let figures = sections.iter().flat_map(|section| &section.figures);
    let tables = figures.filter_map(|figure| match figure {
        Figure::Table(table) => Some(table),
        _ => None,
    });
    let cells = tables.flat_map(|table| table.rows.iter().flatten());
    cells
        .filter_map(|cell| match cell {
            Cell::Link(_, Target::Stack(stack_id)) => Some(*stack_id),
            _ => None,
        })
        .collect()
}

/// Writes every chart as an SVG file into a folder.
pub(super) fn pictures(material: &Material<'_>, sections: &[Section], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io(folder, "cannot create"))?;
    let (sources, lang) = ([material.args.source.as_path()], Lang::from(material.args.lang));
    for section in sections {
        for figure in &section.figures {
            let Figure::Chart(chart) = figure else { continue };
            let path = folder.join(format!("{}.svg", chart.anchor(section.mode)));
            let mut sink = Sink::open(Some(&path), &sources)?;
            let picture = picture(chart, lang, &material.redaction);
            sink.write_all(picture.as_bytes()).map_err(|source| sink.error(source))?;
            sink.finish()?;
        }
    }
    Ok(())
}

/// The names that `--section` takes.
pub(super) fn parts() -> Vec<&'static str> {
    ANALYSES.iter().map(|analysis| analysis.name()).chain(PARTS).collect()
}
