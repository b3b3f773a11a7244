//! What the page keeps once although many places refer to it: charts by anchor, parts that charts have in common, the
//! rows of long tables, and call stacks.

use hashbrown::HashMap;
use serde_json::{Value, json};

use super::stacks;
use crate::analysis::chart::StackWords;

/// Parts of an option that look the same on most charts.
const COMMON: [&str; 5] = ["dataZoom", "legend", "textStyle", "toolbox", "tooltip"];

/// Charts, tables and stacks of a page.
#[derive(Debug, Default)]
pub(super) struct Registry<'a> {
    charts: Vec<Value>,
    parts: Vec<Value>,
    places: HashMap<String, usize>,
    rows: Vec<Value>,
    stacks: Vec<&'a StackWords>,
}

impl<'a> Registry<'a> {
    /// Keeps a chart. What its option has in common with others is kept beside it and referred to as `$part`.
    pub(super) fn add_chart(&mut self, mut chart: Value) {
        if let Some(option) = chart.get_mut("option").and_then(Value::as_object_mut) {
            for key in COMMON {
                if let Some(part) = option.get_mut(key) {
                    *part = json!({"$part": self.part(part)});
                }
            }
        }
        self.charts.push(chart);
    }

    fn part(&mut self, part: &Value) -> usize {
        let parts = &mut self.parts;
        *self.places.entry(part.to_string()).or_insert_with(|| {
            parts.push(part.clone());
            parts.len() - 1
        })
    }

    /// Keeps the rows of a long table; the number to refer to them by.
    pub(super) fn add_rows(&mut self, rows: Value) -> usize {
        self.rows.push(rows);
        self.rows.len() - 1
    }

    /// Keeps stacks; those that come first are the first to have their frames.
    pub(super) fn add_stacks(&mut self, stacks: &'a [StackWords]) {
        self.stacks.extend(stacks);
    }

    /// All charts with the parts they share, all rows, and stacks with frames as far as the page has room: it is to have
    /// no more than `most` bytes, of which `used` stand outside.
    pub(super) fn finish(self, used: usize, most: usize) -> [(String, Value); 4] {
        let (charts, parts, rows) = (json!(self.charts), json!(self.parts), json!(self.rows));
        let used = used + [&charts, &parts, &rows].map(|part| part.to_string().len()).iter().sum::<usize>();
        let stacks = stacks::shared(&self.stacks, most.saturating_sub(used));
        [("charts", charts), ("parts", parts), ("rows", rows), ("stacks", stacks)]
            .map(|(key, part)| (key.to_owned(), part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_charts_have_in_common_is_kept_once() {
        let mut registry = Registry::default();
        for tip in ["a", "b", "a"] {
            registry.add_chart(json!({"option": {"tooltip": tip, "series": [tip]}}));
        }
        let [(_, charts), (_, parts), ..] = registry.finish(0, 0);
        let place = |chart: usize| charts[chart]["option"]["tooltip"]["$part"].as_u64();
        assert_eq!(parts, json!(["a", "b"]));
        assert_eq!((place(0), place(1), place(2)), (Some(0), Some(1), Some(0)));
        assert_eq!(charts[2]["option"]["series"], json!(["a"]));
    }
}
