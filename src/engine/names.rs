//! The names that a query can use: to suggest the nearest, and to complete what is being typed.

use std::collections::BTreeSet;

use super::Engine;
use super::attach::{CATALOG, qualified};
use crate::schema::TABLES;

/// Names in a query, in order.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Tables, views and macros; those of an attached snapshot with its schema in front.
    pub relations: Vec<String>,
    /// Columns of all those.
    pub columns: Vec<String>,
    /// Functions of the engine.
    pub functions: Vec<String>,
}

impl Engine {
    /// The names there are; not those that are for the files of `sql/` only.
    #[must_use]
    pub fn names(&self) -> Names {
        let tables = TABLES.iter().flat_map(|table| table.columns.iter().map(|column| column.name));
        let macros = self.macros.values().map(|relation| &relation.definition);
        let macros = macros.filter(|definition| !definition.is_private());
        let macros = macros.flat_map(|definition| definition.columns.iter().map(|column| column.name));
        let columns: BTreeSet<&str> = tables.chain(macros).collect();
        Names {
            relations: self.relation_names(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            functions: self.function_names(),
        }
    }

    /// Names that can stand behind FROM.
    pub(super) fn relation_names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.context.state().table_functions().keys().cloned().collect();
        if let Some(catalog) = self.context.catalog(CATALOG) {
            for schema in catalog.schema_names() {
                let tables = catalog.schema(&schema).map(|tables| tables.table_names()).unwrap_or_default();
                names.extend(tables.iter().map(|table| qualified(&schema, table)));
            }
        }
        names.retain(|name| !name.rsplit('.').next().unwrap_or(name).starts_with('_'));
        names.into_iter().collect()
    }

    /// Names of functions that give a value.
    pub(super) fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let names: BTreeSet<&String> = state
            .scalar_functions()
            .keys()
            .chain(state.aggregate_functions().keys())
            .chain(state.window_functions().keys())
            .collect();
        names.into_iter().cloned().collect()
    }
}
