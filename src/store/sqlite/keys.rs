//! Keys of an index: the values of its columns, row by row, with a number in the place of each text.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array as _, Int32Array, Int64Array};
use arrow::datatypes::DataType;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::record::Record;
use super::values::Values;
use crate::schema::Table;

/// Most keys of an index in memory; beyond, a key's share of it would be more than its rows'.
pub(super) const MOST_KEYS: usize = 1 << 17;

/// Most bytes of all texts of an index in memory.
const MOST_TEXT: usize = 16 << 20;

/// The values of a key, or the numbers of its texts; a key of one column has no second value.
pub(super) type Key = [Option<i64>; 2];

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Text,
}

/// A column of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyColumn {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

impl KeyColumn {
    /// The columns of an index, which are separated by commas; `None` where keys of them are not made.
    pub(super) fn of(table: &Table, columns: &'static str) -> Option<Vec<Self>> {
        let columns: Vec<Self> = columns
            .split(',')
            .map(|name| {
                let name = name.trim();
                let column = table.columns.iter().find(|column| column.name == name)?;
                let kind = match (column.batch_type)() {
                    DataType::Int64 => Kind::Integer,
                    DataType::Dictionary(..) => Kind::Text,
                    _ => return None,
                };
                Some(Self { name, kind })
            })
            .collect::<Option<_>>()?;
        (columns.len() <= Key::default().len()).then_some(columns)
    }
}

/// The keys of the rows of a batch.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    columns: [Numbers<'a>; 2],
}

/// The values of a column, as numbers.
#[derive(Debug, Default)]
enum Numbers<'a> {
    #[default]
    None,
    Integer(&'a Int64Array),
    Text(&'a Int32Array, Vec<i64>),
}

impl<'a> Keys<'a> {
    /// The keys in `columns`, of which there are at most two; texts get numbers in `texts`.
    pub(super) fn new(columns: &[Values<'a>], texts: &mut Texts) -> Self {
        let mut keys = Self::default();
        for (numbers, values) in keys.columns.iter_mut().zip(columns) {
            *numbers = match values {
                Values::Integer(values) => Numbers::Integer(values),
                Values::Interned(codes, names) => Numbers::Text(
                    codes,
                    names.iter().map(|name| texts.number(name.unwrap_or_default())).collect(),
                ),
                Values::Real(_) | Values::Text(_) => Numbers::None,
            };
        }
        keys
    }

    /// The key of a row.
    pub(super) fn at(&self, row: usize) -> Key {
        self.columns.each_ref().map(|numbers| match numbers {
            Numbers::Integer(values) => values.is_valid(row).then(|| values.value(row)),
            Numbers::Text(codes, numbers) if codes.is_valid(row) => {
                usize::try_from(codes.value(row)).ok().and_then(|code| numbers.get(code)).copied()
            }
            Numbers::Text(..) | Numbers::None => None,
        })
    }
}

/// Texts by number, each once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Arc<str>, i64, RandomState>,
    list: Vec<Arc<str>>,
    /// Bytes of all.
    length: usize,
}

impl Texts {
    /// The number of `text`.
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = i64::try_from(self.list.len()).unwrap_or(i64::MAX);
        let text: Arc<str> = text.into();
        self.length += text.len();
        self.numbers.insert(Arc::clone(&text), number);
        self.list.push(text);
        number
    }

    /// Whether they are few and short enough to hold them in memory.
    pub(super) fn are_small(&self) -> bool {
        self.list.len() <= MOST_KEYS && self.length <= MOST_TEXT
    }

    fn text(&self, number: i64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.list.get(number)).map_or("", |text| text)
    }

    /// The order of two keys in SQLite: NULL first, texts by their bytes.
    pub(super) fn compare(&self, columns: &[KeyColumn], one: &Key, other: &Key) -> Ordering {
        let values = columns.iter().zip(one.iter().zip(other));
        values.fold(Ordering::Equal, |order, (column, (one, other))| {
            order.then_with(|| match column.kind {
                Kind::Integer => one.cmp(other),
                Kind::Text => one.map(|one| self.text(one)).cmp(&other.map(|other| self.text(other))),
            })
        })
    }

    /// Appends the values of a key to a record.
    pub(super) fn put(&self, columns: &[KeyColumn], key: &Key, record: &mut Record) {
        for (column, value) in columns.iter().zip(key) {
            match (column.kind, value) {
                (_, None) => record.null(),
                (Kind::Integer, Some(value)) => record.integer(*value),
                (Kind::Text, Some(number)) => record.text(self.text(*number)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TraceEvent;

    #[test]
    fn keys_are_in_the_order_of_sqlite() {
        let columns = KeyColumn::of(&TraceEvent::TABLE, "device_id, action").unwrap();
        let mut texts = Texts::default();
        // In the order of their first appearance, which is not that of their bytes.
        let number = ["é", "b", "ab", "", "B"].map(|text| Some(texts.number(text)));
        assert_eq!(Some(texts.number("b")), number[1]);
        assert_eq!((texts.list.len(), texts.length), (5, 6));
        let [accent, small, long, empty, capital] = number;
        let sorted: [Key; 9] = [
            [None, None],
            [None, empty],
            [Some(i64::MIN), accent],
            [Some(-1), None],
            [Some(-1), empty],
            [Some(-1), capital],
            [Some(-1), long],
            [Some(-1), small],
            [Some(i64::MAX), empty],
        ];
        for (place, one) in sorted.iter().enumerate() {
            for (other_place, other) in sorted.iter().enumerate() {
                assert_eq!(texts.compare(&columns, one, other), place.cmp(&other_place), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn texts_are_small_up_to_a_point() {
        let mut texts = Texts::default();
        texts.number(&"x".repeat(MOST_TEXT));
        assert!(texts.are_small());
        texts.number("x");
        assert!(!texts.are_small());
    }

    #[test]
    fn keys_that_are_not_made_are_left_to_sqlite() {
        for columns in ["device_id, action, id", "missing"] {
            assert!(KeyColumn::of(&TraceEvent::TABLE, columns).is_none(), "{columns}");
        }
        assert!(KeyColumn::of(&crate::schema::CallStack::TABLE, "stack_hash").is_none(), "a plain text");
    }
}
