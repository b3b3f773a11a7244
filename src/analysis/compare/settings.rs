//! Settings of two snapshots, key by key: what differs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::FactPair;

/// A setting that is not the same in both snapshots; `None` where one does not say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    /// Name: a key of the allocator settings, or a fact such as `producer`.
    pub(super) name: String,
    /// In this snapshot.
    pub(super) a: Option<Value>,
    /// In the other.
    pub(super) b: Option<Value>,
    /// Whether it is a setting of the allocator.
    is_setting: bool,
    /// Whether both snapshots have settings: where one has none, nothing says that it was set up differently.
    both_say: bool,
}

impl Difference {
    /// Whether the allocators were set up differently in this.
    pub(super) fn is_setting(&self) -> bool {
        self.is_setting && self.both_say
    }

    pub(super) fn json(&self) -> Value {
        json!({"name": self.name, "a": self.a, "b": self.b, "is_allocator_setting": self.is_setting})
    }
}

/// The facts whose difference says how the snapshots were made; names and counts of events differ always.
const COMPARED: [&str; 3] = ["producer", "dialect", "form"];
const SETTINGS: &str = "allocator_settings";

/// What differs. The settings are taken apart: also the text of the environment variable, into what it sets.
pub(super) fn differences(facts: &[FactPair]) -> Vec<Difference> {
    let mut found = Vec::new();
    for fact in facts {
        if fact.name == SETTINGS {
            found.extend(of_settings(fact.value.as_deref(), fact.base_value.as_deref()));
        } else if COMPARED.contains(&fact.name.as_str()) && fact.value != fact.base_value {
            found.push(Difference {
                name: fact.name.clone(),
                a: fact.value.clone().map(Value::String),
                b: fact.base_value.clone().map(Value::String),
                is_setting: false,
                both_say: fact.value.is_some() && fact.base_value.is_some(),
            });
        }
    }
    found
}

fn of_settings(a: Option<&str>, b: Option<&str>) -> Vec<Difference> {
    let both_say = a.is_some() && b.is_some();
    let (a, b) = (flat(a), flat(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| Difference {
            name: name.clone(),
            a: a.get(name).cloned(),
            b: b.get(name).cloned(),
            is_setting: true,
            both_say,
        })
        .collect()
}

/// `{"PYTORCH_CUDA_ALLOC_CONF": "x:1,y:2", "z": {"1": 0}}` as `PYTORCH_CUDA_ALLOC_CONF.x`, `….y` and `z.1`.
fn flat(settings: Option<&str>) -> Map<String, Value> {
    let parsed: Map<String, Value> =
        settings.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut flat = Map::new();
    for (name, value) in parsed {
        match value {
            Value::Object(inner) => {
                flat.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            Value::String(text) if name.ends_with("ALLOC_CONF") => {
                flat.extend(options(&text).map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            other => {
                flat.insert(name, other);
            }
        }
    }
    flat
}

/// `x:1,y:[a:1,b:2]`: a comma in brackets separates nothing.
fn options(text: &str) -> impl Iterator<Item = (String, Value)> {
    let mut depth = 0_usize;
    let parts = text.split(move |symbol| {
        match symbol {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        symbol == ',' && depth == 0
    });
    let options = parts.filter_map(|part| {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), json!(value.trim())))
    });
    options.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: Option<&str>, base_value: Option<&str>) -> FactPair {
        FactPair {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            base_value: base_value.map(str::to_owned),
        }
    }

    #[test]
    fn every_setting_is_compared_by_itself() {
        let a = r#"{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True, roundup:[1:2,2:4]", "max_split_size": -1,
                    "steps": {"1": 0, "2": 4}}"#;
        let b = r#"{"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "steps": {"1": 0, "2": 8}, "old": true}"#;
        let found = differences(&[
            pair("producer", Some("x"), Some("y")),
            pair("source_name", Some("1.pickle"), Some("2.pickle")),
            pair("dialect", Some("npu"), Some("npu")),
            pair("allocator_settings", Some(a), Some(b)),
        ]);
        let found: Vec<(&str, Option<Value>, Option<Value>)> =
            found.iter().map(|it| (it.name.as_str(), it.a.clone(), it.b.clone())).collect();
        assert_eq!(
            found,
            [
                ("producer", Some(json!("x")), Some(json!("y"))),
                ("PYTORCH_CUDA_ALLOC_CONF.expandable_segments", Some(json!("True")), None),
                ("PYTORCH_CUDA_ALLOC_CONF.roundup", Some(json!("[1:2,2:4]")), None),
                ("old", None, Some(json!(true))),
                ("steps.2", Some(json!(4)), Some(json!(8))),
            ]
        );
    }

    #[test]
    fn a_snapshot_without_settings_differs_in_all_of_them() {
        let found = differences(&[pair("allocator_settings", None, Some(r#"{"max_split_size": 5}"#))]);
        assert_eq!(found.len(), 1);
        assert!(found.iter().all(|it| !it.is_setting()), "nothing says that they were set up differently");
        assert_eq!(found.first().and_then(|it| it.b.clone()), Some(json!(5)));
        assert!(differences(&[pair("allocator_settings", None, None)]).is_empty());
    }
}
