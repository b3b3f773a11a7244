//! The report's own words, from `reports/strings.en.json` and `reports/strings.zh.json`: the same keys in both.

use serde_json::{Map, Value};

use crate::analysis::Text;

const EN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/strings.en.json"));
const ZH: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/strings.zh.json"));
/// Queries that reproduce what the report shows, by mode and by chart.
const QUERIES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/queries.json"));

/// Words by key.
#[derive(Debug)]
pub(super) struct Strings {
    en: Map<String, Value>,
    zh: Map<String, Value>,
    queries: Map<String, Value>,
}

impl Strings {
    /// Reads the files that the program was built with.
    pub(super) fn load() -> Self {
        let map = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Self { en: map(EN), zh: map(ZH), queries: map(QUERIES) }
    }

    /// The words for a key; none where there is nothing to say.
    pub(super) fn find(&self, key: &str) -> Option<Text> {
        let text = |map: &Map<String, Value>| map.get(key)?.as_str().map(str::to_owned);
        Some(Text::new(text(&self.en)?, text(&self.zh)?))
    }

    /// The words for a key that is there; tests see to that.
    pub(super) fn get(&self, key: &str) -> Text {
        self.find(key).unwrap_or_else(|| Text::same(key))
    }

    /// The key of what is said of a chart: in a mode, else wherever it is.
    pub(super) fn chart_key(&self, mode: &str, chart: &str) -> String {
        let own = format!("{mode}.chart.{chart}");
        if self.en.contains_key(&own) { own } else { format!("chart.{chart}") }
    }

    /// The key of the query behind a chart, likewise.
    pub(super) fn query_key(&self, mode: &str, chart: &str) -> String {
        let own = format!("{mode}.chart.{chart}");
        if self.queries.contains_key(&own) { own } else { format!("chart.{chart}") }
    }

    /// All words that the page's script needs, by key without `script.`.
    pub(super) fn script(&self) -> Value {
        let words = self.en.keys().filter_map(|key| {
            let name = key.strip_prefix("script.")?;
            let text = self.get(key);
            Some((
                name.to_owned(),
                serde_json::json!([text.get(crate::analysis::Lang::En), text.get(crate::analysis::Lang::Zh)]),
            ))
        });
        Value::Object(words.collect())
    }

    /// The query that reproduces a chart or a mode's tables; `$device` stands for the device.
    pub(super) fn queries(&self, name: &str) -> Vec<String> {
        let list = self.queries.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_have_the_same_keys_and_words_for_each() {
        let strings = Strings::load();
        assert!(strings.en.len() > 30 && !strings.queries.is_empty());
        let keys = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&strings.en), keys(&strings.zh));
        for value in strings.en.values().chain(strings.zh.values()) {
            assert!(value.as_str().is_some_and(|text| !text.trim().is_empty()), "{value}");
        }
    }

    #[test]
    fn every_key_that_is_asked_for_is_there() {
        let strings = Strings::load();
        let sources = [
            include_str!("mod.rs"),
            include_str!("page.rs"),
            include_str!("section.rs"),
            include_str!("figure.rs"),
        ];
        for source in sources {
            for (at, mark) in source.match_indices("strings.get(\"") {
                let key = source[at + mark.len()..].split('"').next().unwrap();
                assert!(strings.find(key).is_some(), "no words for `{key}`");
            }
        }
    }
}
