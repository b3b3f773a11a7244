//! The SQL macros of `sql/`: one file per relation, its documentation in the header, its text the same on every engine.
//!
//! A file without `@param` is a view, one with `@param` a table function. List order is dependency order: a file may
//! use only what stands above it, so cycles cannot be written and nothing has to be parsed to find dependencies.

mod header;

use std::fmt::Write as _;

use crate::error::{Error, Result};

use super::sql_text::{Piece, pieces};
use super::value::{SqlType, Value};

/// Expands to the name and the text of every file.
macro_rules! sql_files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql")))),+]
    };
}

/// Every file, a file after those it uses. A name with a leading `_` is private: for other files, not for users.
const FILES: &[(&str, &str)] = sql_files![
    "_workspace_segments",
    "_pool_segments",
    "_pool_blocks",
    "_stack_frames",
    "_scale",
    "_size_steps",
    "_event_ranges",
    "_event_scale",
    "_event_rules",
    "_segment_events",
    "_event_signs",
    "_memory_base",
    "_doubtful_devices",
    "_event_changes",
    "_sized_allocations",
    "_hidden_pending",
    "_actual_blocks",
    "_rounding_excess",
    "_slice_changes",
    "_memory_slices",
    "_notable_events",
    "_exact_changes",
    "memory_timeline",
    "_segment_counters",
    "memory_timeline_by_stream",
    "memory_timeline_by_pool",
    "memory_peaks",
    "_known_peaks",
    "memory_marks",
    "memory_curve",
    "live_at",
    "live_moments",
    "peak_contributors",
    "_held_by_stack",
    "growth_since",
    "allocation_lifetimes",
    "churn",
    "live_by_slice",
    "_transient_levels",
    "_step_ends",
    "step_boundaries",
    "_growth_samples",
    "step_overview",
    "stack_growth",
    "segment_growth",
    "segment_growth_by_stack",
    "call_stack",
    "_segment_fragmentation",
    "device_overview",
    "block_state_dist",
    "memory_outside_pool",
    "expansion_timeline",
    "pool_growth",
    "top_allocations",
    "segment_layout",
    "recording",
    "field_presence",
    "table_counts",
    "segment_fragmentation",
    "device_fragmentation",
    "pool_overview",
    "free_blocks",
    "internal_waste",
    "pending_frees",
    "_split_limit",
    "_oom_events",
    "segments_at",
    "oom_context",
    "oom_growth",
    "oom_preceding",
    "last_events",
    "_growth_slices",
    "_growth_spans",
    "expansion_causes",
    "expansion_cause_dist",
    "settings_compare",
    "device_compare",
    "segment_compare",
    "stack_compare",
    "timeline_compare",
];

/// A relation of `sql/`.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlMacro {
    /// Name in SQL, and the stem of its file.
    pub name: &'static str,
    /// One sentence: what a row is.
    pub summary: String,
    /// What else there is to know.
    pub doc: String,
    /// Parameters in the order of the arguments.
    pub params: Vec<Param>,
    /// Columns in order.
    pub columns: Vec<ColumnDoc>,
    /// Whether SQLite can run it too.
    pub dialect: Dialect,
    /// `@needs base`: compares with a second snapshot, and is there only while one is attached as `base`.
    pub needs_base: bool,
    /// `@kept`: a private view that is worked out once, because others use it again and again.
    pub kept: bool,
    /// The statement, with `$name` where a parameter stands.
    pub body: &'static str,
}

/// Which engines can run a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// What DataFusion and SQLite share.
    Common,
    /// `@engine datafusion`: says what SQLite cannot.
    DataFusion,
}

/// A parameter of a macro.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Name, without the `$`.
    pub name: &'static str,
    /// Its type.
    pub sql_type: SqlType,
    /// Value where the caller gives none.
    pub default: Value,
    /// What it does.
    pub doc: String,
}

/// A column as the header documents it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDoc {
    /// Name.
    pub name: &'static str,
    /// Its type.
    pub sql_type: SqlType,
    /// What a value is, with its unit.
    pub doc: String,
}

/// Every relation, in dependency order.
///
/// # Errors
/// A file's header cannot be read: ours to repair, and a test fails before anyone sees it.
pub fn catalog() -> Result<Vec<SqlMacro>> {
    FILES.iter().map(|(name, text)| SqlMacro::parse(name, text)).collect()
}

/// Name and text of the views that a SQLite store gets, in the order to create them: the views, what they use, and the
/// macros as views of the same name, as [`SqlMacro::unrestricted`] says. Those that need a second snapshot are not
/// among them: a view of a database sees no other.
///
/// # Errors
/// As for [`catalog`].
pub fn exported_views() -> Result<Vec<(String, String)>> {
    let exported = catalog()?.into_iter();
    let exported =
        exported.filter(|definition| definition.dialect == Dialect::Common && !definition.needs_base);
    let view =
        |definition: SqlMacro| (definition.name.to_owned(), definition.bound(&definition.unrestricted()));
    Ok(exported.map(view).collect())
}

impl SqlMacro {
    /// Whether it is for other files only.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.name.starts_with('_')
    }

    /// How it is called: `top_allocations(limit BIGINT = 10, device BIGINT = NULL)`; a view by its bare name.
    #[must_use]
    pub fn signature(&self) -> String {
        if self.params.is_empty() {
            return self.name.to_owned();
        }
        let params: Vec<String> = self
            .params
            .iter()
            .map(|param| format!("{} {} = {}", param.name, param.sql_type.as_str(), param.default.literal()))
            .collect();
        format!("{}({})", self.name, params.join(", "))
    }

    /// The values of all parameters: `arguments` in header order, defaults for the rest.
    ///
    /// # Errors
    /// There are too many, or one has another type than its parameter.
    pub fn positional(&self, arguments: &[Value]) -> Result<Vec<(&'static str, Value)>> {
        if arguments.len() > self.params.len() {
            return Err(self.misuse(format!(
                "takes at most {} argument{}, found {}",
                self.params.len(),
                if self.params.len() == 1 { "" } else { "s" },
                arguments.len()
            )));
        }
        let mut values = Vec::with_capacity(self.params.len());
        for (index, param) in self.params.iter().enumerate() {
            values.push((param.name, self.checked(param, arguments.get(index))?));
        }
        Ok(values)
    }

    /// The values of all parameters: `arguments` by name, defaults for the rest.
    ///
    /// # Errors
    /// A name is no parameter, or a value has another type than its parameter.
    pub fn named(&self, arguments: &[(&str, Value)]) -> Result<Vec<(&'static str, Value)>> {
        for (name, _) in arguments {
            if !self.params.iter().any(|param| param.name == *name) {
                return Err(self.misuse(format!("has no parameter `{name}`")));
            }
        }
        let mut values = Vec::with_capacity(self.params.len());
        for param in &self.params {
            let argument = arguments.iter().find(|(name, _)| *name == param.name);
            values.push((param.name, self.checked(param, argument.map(|(_, value)| value))?));
        }
        Ok(values)
    }

    /// The values it has as a view of the same name: its defaults, and no limit, because a `WHERE` behind a limited
    /// view would look at ten rows and miss the rest.
    #[must_use]
    pub fn unrestricted(&self) -> Vec<(&'static str, Value)> {
        let value = |param: &Param| if param.name == "limit" { Value::Null } else { param.default.clone() };
        self.params.iter().map(|param| (param.name, value(param))).collect()
    }

    /// The statement with `values` written in the place of the parameters, for SQLite, which cannot bind them in a view.
    #[must_use]
    pub fn bound(&self, values: &[(&'static str, Value)]) -> String {
        let mut text = String::with_capacity(self.body.len());
        for piece in pieces(self.body) {
            match piece {
                Piece::Text(verbatim) => text.push_str(verbatim),
                Piece::Parameter(name) => match values.iter().find(|(known, _)| *known == name) {
                    // What DataFusion writes as LIMIT NULL.
                    Some((_, Value::Null)) if text.trim_end().ends_with("LIMIT") => text.push_str("-1"),
                    Some((_, value)) => text.push_str(&value.literal()),
                    None => {
                        let _infallible = write!(text, "${name}");
                    }
                },
            }
        }
        text
    }

    /// Names of the parameters the statement uses, in order of appearance, each once.
    #[must_use]
    pub fn used_params(&self) -> Vec<&'static str> {
        let mut used = Vec::new();
        for piece in pieces(self.body) {
            if let Piece::Parameter(name) = piece
                && !used.contains(&name)
            {
                used.push(name);
            }
        }
        used
    }

    fn checked(&self, param: &Param, argument: Option<&Value>) -> Result<Value> {
        let value = argument.unwrap_or(&param.default);
        if !value.fits(param.sql_type) {
            return Err(self.misuse(format!(
                "parameter `{}` is {}, found {}",
                param.name,
                param.sql_type.as_str(),
                value.literal()
            )));
        }
        if param.name == "limit" && matches!(value, Value::Integer(..0)) {
            return Err(self.misuse(format!("parameter `limit` is negative: {}", value.literal())));
        }
        Ok(value.clone())
    }

    fn misuse(&self, reason: String) -> Error {
        Error::Usage { what: format!("`{}`", self.signature()), reason }
    }
}

#[cfg(test)]
mod tests;
