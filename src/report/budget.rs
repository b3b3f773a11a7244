//! How much of each kind a page carries, so that it stays small with two devices and with sixty.

use crate::analysis::Figure;
use crate::analysis::chart::Chart;

use super::Section;
use super::downsample;

/// Bytes of a page, ECharts included. Frames of stacks have what all else leaves; they are most of what can be left out.
pub(super) const PAGE: usize = 2_700_000;
/// Devices that have charts of their own, at most.
pub(super) const DEVICES: usize = 6;
/// Tables of a section, at most: with an out-of-memory event on each of many devices there would be hundreds.
pub(super) const TABLES: usize = 32;
/// Levels of all timelines of a page, and fewest of one.
const LEVELS: usize = 6000;
const FEWEST_LEVELS: usize = 400;
/// Spans of all segment layouts of a page, and the fewest cells that a segment is divided into.
const SPANS: usize = 18_000;
const FEWEST_CELLS: usize = 24;
/// Cells of a segment where there is room: about what a wide screen has columns.
const CELLS: usize = 1000;
/// Pool events of all charts of a page, and fewest of one.
const POOL_EVENTS: usize = 1200;
const FEWEST_POOL_EVENTS: usize = 150;
/// Frames of all flame graphs of a page, fewest and most of one.
const FRAMES: usize = 1200;
const FEWEST_FRAMES: usize = 60;
const MOST_FRAMES: usize = 400;

/// Rows that all tables of a page hold as markup, if each has enough; fewest and most of one. The script has them all.
const ROWS: usize = 700;
const FEWEST_ROWS: usize = 8;
const MOST_ROWS: usize = 60;

/// What one chart or table may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// Rows of a table that are markup.
    pub(super) rows: usize,
    levels: usize,
    cells: usize,
    pool_events: usize,
    frames: usize,
}

impl Budget {
    /// For a chart on its own.
    pub(super) const WHOLE: Self = Self {
        rows: MOST_ROWS,
        levels: downsample::POINTS,
        cells: CELLS,
        pool_events: POOL_EVENTS,
        frames: MOST_FRAMES,
    };

    /// For every chart of a page.
    pub(super) fn of(sections: &[Section]) -> Self {
        let (mut timelines, mut segments, mut expansions, mut flames) = (0, 0, 0, 0);
        let mut tables = Vec::new();
        for figure in sections.iter().flat_map(|section| &section.figures) {
            let figure = match figure {
                Figure::Chart(figure) => figure,
                Figure::Table(table) => {
                    tables.push(table.rows.len());
                    continue;
                }
                _ => continue,
            };
            match &figure.chart {
                Chart::Timeline(_) => timelines += 1,
                Chart::Layout(layout) => segments += layout.segments.len(),
                Chart::Expansion(_) => expansions += 1,
                Chart::Flame(_) => flames += 1,
                _ => {}
            }
        }
        let share = |all: usize, count: usize| all / count.max(1);
        Self {
            rows: rows(&tables),
            levels: share(LEVELS, timelines).clamp(FEWEST_LEVELS, downsample::POINTS),
            // A cell can have a span of each of three states.
            cells: share(SPANS / 3, segments).clamp(FEWEST_CELLS, CELLS),
            pool_events: share(POOL_EVENTS, expansions).max(FEWEST_POOL_EVENTS),
            frames: share(FRAMES, flames).clamp(FEWEST_FRAMES, MOST_FRAMES),
        }
    }

    /// The chart within the budget; none where it is so already.
    pub(super) fn fit(self, chart: &Chart) -> Option<Chart> {
        match chart {
            Chart::Timeline(timeline) => Some(Chart::Timeline(downsample::timeline(timeline, self.levels))),
            Chart::Layout(layout) => Some(Chart::Layout(downsample::layout(layout, self.cells))),
            Chart::Expansion(expansion) if expansion.events.len() > self.pool_events => {
                Some(Chart::Expansion(downsample::expansion(expansion, self.pool_events)))
            }
            Chart::Flame(flame) => Some(Chart::Flame(downsample::flame(flame, self.frames))),
            _ => None,
        }
    }
}

/// The most rows of a table at which all tables together keep to theirs.
fn rows(tables: &[usize]) -> usize {
    let all = |most: usize| tables.iter().map(|rows| *rows.min(&most)).sum::<usize>();
    (FEWEST_ROWS..=MOST_ROWS).rev().find(|most| all(*most) <= ROWS).unwrap_or(FEWEST_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Text;
    use crate::analysis::chart::{ChartFigure, Timeline};

    fn section(timelines: usize) -> Section {
        let empty = Timeline {
            levels: Vec::new(),
            marks: Vec::new(),
            peaks: Vec::new(),
            moments: Vec::new(),
            stacks: Vec::new(),
        };
        let figure = ChartFigure {
            name: "timeline",
            device: Some(0),
            title: Text::same(""),
            chart: Chart::Timeline(empty),
        };
        let figures = vec![Figure::Chart(Box::new(figure)); timelines];
        Section { mode: "peak", findings: Vec::new(), figures }
    }

    #[test]
    fn tables_are_cut_where_all_of_them_together_are_too_long() {
        assert_eq!(rows(&[]), 60);
        assert_eq!(rows(&[1000; 3]), 60);
        // 30 short ones leave 400 rows for 16 long ones.
        assert_eq!(rows(&[[10; 30].as_slice(), &[60; 16]].concat()), 25);
        assert_eq!(rows(&[60; 500]), 8);
    }

    #[test]
    fn many_devices_share_what_two_need_not() {
        assert_eq!(Budget::of(&[section(2)]).levels, 2000);
        assert_eq!(Budget::of(&[section(16)]).levels, 400);
        assert_eq!(Budget::of(&[section(100)]).levels, 400);
        assert_eq!(Budget::of(&[]).cells, 1000);
    }
}
