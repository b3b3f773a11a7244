//! The comment at the top of a file of `sql/`: summary, doc, `@param`, `@column`, `@engine`, `@kept`, `@needs`.
//!
//! A line without a tag goes on with what stands above it.

use crate::error::{Error, Result};

use super::{ColumnDoc, Dialect, Param, SqlMacro};
use crate::engine::sql_text::{split_header, word};
use crate::engine::value::{SqlType, Value};

impl SqlMacro {
    /// Reads a file: header lines, then the statement.
    pub(super) fn parse(name: &'static str, text: &'static str) -> Result<Self> {
        let broken =
            |reason: String| Error::Query { relation: format!("sql/{name}.sql"), source: reason.into() };
        let (header, body) = split_header(text);
        let mut lines = header.lines().map(|line| line.trim_start_matches("--"));
        let summary = lines.next().map(str::trim).unwrap_or_default().to_owned();
        let mut parsed = Self {
            name,
            summary,
            doc: String::new(),
            params: Vec::new(),
            columns: Vec::new(),
            dialect: Dialect::Common,
            needs_base: false,
            kept: false,
            body: body.trim(),
        };
        for line in lines {
            let line = line.trim();
            let Some(tag) = line.strip_prefix('@') else {
                parsed.prose(line);
                continue;
            };
            let (kind, rest) = word(tag);
            match kind {
                "param" => parsed.params.push(
                    Param::parse(rest)
                        .ok_or_else(|| broken(format!("`@{tag}` is no `name TYPE = default  doc`")))?,
                ),
                "column" => parsed.columns.push(
                    ColumnDoc::parse(rest)
                        .ok_or_else(|| broken(format!("`@{tag}` is no `name TYPE  doc`")))?,
                ),
                "engine" if rest == "datafusion" => parsed.dialect = Dialect::DataFusion,
                "needs" if rest == "base" => parsed.needs_base = true,
                "kept" if rest.is_empty() => parsed.kept = true,
                _ => return Err(broken(format!("unknown tag `@{tag}`"))),
            }
        }
        parsed.trim();
        Ok(parsed)
    }

    fn trim(&mut self) {
        let docs = self.params.iter_mut().map(|param| &mut param.doc);
        let docs = docs.chain(self.columns.iter_mut().map(|column| &mut column.doc));
        for doc in docs.chain([&mut self.doc]) {
            *doc = doc.trim().to_owned();
        }
    }

    /// A line without a tag: goes on with the tag before it, or belongs to the doc. An empty one ends a paragraph.
    fn prose(&mut self, line: &str) {
        let doc = match (self.columns.last_mut(), self.params.last_mut()) {
            (Some(column), _) => &mut column.doc,
            (None, Some(param)) => &mut param.doc,
            (None, None) => &mut self.doc,
        };
        if line.is_empty() {
            doc.push('\n');
        } else {
            if !doc.is_empty() && !doc.ends_with('\n') {
                doc.push(' ');
            }
            doc.push_str(line);
        }
    }
}

impl Param {
    fn parse(text: &'static str) -> Option<Self> {
        let (name, rest) = word(text);
        let (sql_type, rest) = word(rest);
        let sql_type = SqlType::parse(sql_type)?;
        let (default, doc) = word(rest.strip_prefix('=')?.trim_start());
        Some(Self { name, sql_type, default: Value::parse(sql_type, default)?, doc: doc.to_owned() })
    }
}

impl ColumnDoc {
    fn parse(text: &'static str) -> Option<Self> {
        let (name, rest) = word(text);
        let (sql_type, doc) = word(rest);
        Some(Self { name, sql_type: SqlType::parse(sql_type)?, doc: doc.to_owned() })
    }
}
