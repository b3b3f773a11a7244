//! Figures: tables, sentences and charts that any renderer can show.

use super::Quantity;
use crate::analysis::chart::ChartFigure;
use crate::analysis::language::Text;
use crate::quantity;

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
