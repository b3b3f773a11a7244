//! The courses of two snapshots on one axis, for the chart of both.

use crate::analysis::chart::{Chart, ChartFigure, Course, Overlay};
use crate::analysis::language::Text;
use crate::analysis::outcome::share;
use crate::engine::{Engine, row};
use crate::error::Result;

row! {
    /// Allocated memory of two snapshots when the same share of their recordings had passed.
    pub struct CourseRow from "timeline_compare" {
        /// Number of the step of equal shares, from 1.
        step: i64,
        /// Bytes in allocated blocks.
        allocated: Option<i64>,
        /// Bytes in allocated blocks in the other.
        base_allocated: Option<i64>,
    }
}

/// Steps of the course that is drawn.
const COURSE: i64 = 800;

/// Allocated memory of a device in both snapshots; none where one of them has no history.
pub(super) fn overlay(engine: &Engine, device_index: i64, names: [String; 2]) -> Result<Option<ChartFigure>> {
    let rows: Vec<CourseRow> = engine.rows(&[("device", device_index.into()), ("points", COURSE.into())])?;
    let courses = filled(&rows);
    if courses.iter().all(|course| course.a.is_none()) || courses.iter().all(|course| course.b.is_none()) {
        return Ok(None);
    }
    Ok(Some(ChartFigure {
        name: "compare",
        device: Some(device_index),
        title: Text::new(
            "Allocated memory of both over their recordings",
            "两份快照的已分配内存随记录进度的变化",
        ),
        chart: Chart::Overlay(Overlay { names, courses }),
    }))
}

/// A level lasts until the next, so a step without an event of a recording has the level of the step before.
fn filled(rows: &[CourseRow]) -> Vec<Course> {
    let (mut a, mut b) = (None, None);
    let mut rows = rows.iter().peekable();
    let steps = (1..=COURSE).map(|step| {
        while let Some(row) = rows.next_if(|row| row.step <= step) {
            a = row.allocated.or(a);
            b = row.base_allocated.or(b);
        }
        Course { position: share(step, COURSE).unwrap_or(1.0), a, b }
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lasts_until_the_next() {
        let row = |step, allocated, base_allocated| CourseRow { step, allocated, base_allocated };
        let courses = filled(&[row(2, Some(5), None), row(4, None, Some(7)), row(5, Some(6), None)]);
        assert_eq!(courses.len(), 800);
        let levels: Vec<_> = courses.iter().take(6).map(|course| (course.a, course.b)).collect();
        let expected = [
            (None, None),
            (Some(5), None),
            (Some(5), None),
            (Some(5), Some(7)),
            (Some(6), Some(7)),
            (Some(6), Some(7)),
        ];
        assert_eq!(levels, expected);
    }
}
