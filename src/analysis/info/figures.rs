//! What `info` shows a person: notes and tables.

use super::words::history;
use super::{Info, Recording};
use crate::analysis::facts::SnapshotFacts;
use crate::analysis::language::{Lang, Text};
use crate::analysis::outcome::{Cell, Figure, TableFigure, share};

impl Info {
    /// What to show a person.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        if let Some(snapshot) = &self.snapshot {
            let (container, format) = (snapshot.container(), snapshot.format());
            figures.push(Figure::Note(Text::new(
                format!("Container {container}; format {}", format.get(Lang::En)),
                format!("容器 {container}；格式 {}", format.get(Lang::Zh)),
            )));
        }
        let tables = [self.recording_table(), self.field_table(), self.count_table(), self.gap_table()];
        figures.extend(tables.map(Figure::Table));
        figures.push(Figure::Note(self.advice()));
        figures
    }

    fn recording_table(&self) -> TableFigure {
        let headings = [
            ("device", "设备"),
            ("events", "事件数"),
            ("without stack", "无调用栈"),
            ("active", "活跃内存"),
            ("with stack", "有栈占比"),
            ("history", "历史"),
        ];
        let rows = self.recordings.iter().map(cells).collect();
        TableFigure::new(Text::new("Recording", "记录情况"), &headings, rows)
    }

    fn field_table(&self) -> TableFigure {
        let headings =
            [("field", "字段"), ("rows with it", "具备占比"), ("what its absence costs", "缺失的代价")];
        let rows = self.known_fields().map(|(presence, field)| {
            let cost = field.cost(presence.row_count, presence.present_count);
            vec![
                Cell::name(format!("{}.{}", presence.part, presence.field)),
                Cell::ratio(share(presence.present_count, presence.row_count)),
                Cell::Text(cost.unwrap_or_else(|| Text::same(""))),
            ]
        });
        TableFigure::new(Text::new("Fields", "字段"), &headings, rows.collect())
    }

    fn count_table(&self) -> TableFigure {
        let rows = self
            .tables
            .iter()
            .map(|table| vec![Cell::name(table.table_name.clone()), Cell::count(table.row_count)]);
        TableFigure::new(Text::new("Tables", "表"), &[("table", "表"), ("rows", "行数")], rows.collect())
    }

    fn gap_table(&self) -> TableFigure {
        let title = if self.snapshot.as_ref().is_some_and(SnapshotFacts::is_npu) {
            Text::new("What torch records and torch_npu does not", "torch 有而 torch_npu 没有的采集能力")
        } else {
            Text::new("What torch_npu records and torch does not", "torch_npu 有而 torch 没有的采集能力")
        };
        let headings = [
            ("kind", "类别"),
            ("name", "名称"),
            ("effect on analyses", "对分析的影响"),
            ("way around", "替代办法"),
        ];
        let rows = self.dialect_gap().into_iter().map(|difference| {
            let cells = [
                difference.kind.text(),
                Text::same(difference.name),
                difference.effect,
                difference.way_around,
            ];
            Vec::from(cells.map(Cell::Text))
        });
        TableFigure::new(title, &headings, rows.collect())
    }
}

fn cells(recording: &Recording) -> Vec<Cell> {
    vec![
        Cell::name(recording.device_index.to_string()),
        Cell::count(recording.event_count),
        Cell::count(recording.event_count - recording.stack_count),
        Cell::bytes(recording.active_bytes),
        Cell::ratio(recording.stack_ratio()),
        Cell::Text(history(recording)),
    ]
}
