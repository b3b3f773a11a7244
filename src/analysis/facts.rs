//! What every result carries: which snapshot it speaks of, and what did not go into it.

use serde_json::{Map, Value, json};

use super::language::Text;
use super::note_words::meaning;
use crate::engine::{self, Engine, row};
use crate::error::Result;
use crate::schema::{self, Table};

/// The one row of table `snapshot`, column by column as the table declares them.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotFacts {
    values: Map<String, Value>,
}

row! {
    /// A row of table `import_stats`.
    pub struct ImportNote from "import_stats" {
        /// What it is about.
        name: String,
        /// `info`, `data_loss` or `error`.
        severity: String,
        /// Device it is about.
        device_id: Option<i64>,
        /// How many, or how much.
        value: i64,
        /// What it means for the numbers.
        doc: String,
    }
}

/// The table the facts stand in.
const TABLE: &str = "snapshot";

impl SnapshotFacts {
    /// Reads the row.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn read(engine: &Engine) -> Result<Option<Self>> {
        Self::read_from(engine, TABLE)
    }

    /// Reads the row of an attached snapshot.
    ///
    /// # Errors
    /// There is no such snapshot, or its table cannot be read.
    pub fn read_attached(engine: &Engine, schema: &str) -> Result<Option<Self>> {
        Self::read_from(engine, &format!("{schema}.{TABLE}"))
    }

    fn read_from(engine: &Engine, name: &str) -> Result<Option<Self>> {
        let rows = engine.table(name)?;
        let Some((table, batch)) =
            schema::table(TABLE).zip(rows.batches.iter().find(|batch| batch.num_rows() > 0))
        else {
            return Ok(None);
        };
        Ok(Some(Self { values: values(table, batch)? }))
    }

    fn text(&self, column: &str) -> &str {
        self.values.get(column).and_then(Value::as_str).unwrap_or_default()
    }

    fn integer(&self, column: &str) -> Option<i64> {
        self.values.get(column).and_then(Value::as_i64)
    }

    /// File name without its folder.
    #[must_use]
    pub fn source_name(&self) -> &str {
        self.text("source_name")
    }

    /// Bytes of the file.
    #[must_use]
    pub fn source_bytes(&self) -> i64 {
        self.integer("source_bytes").unwrap_or_default()
    }

    /// Best guess of the producer.
    #[must_use]
    pub fn producer(&self) -> &str {
        self.text("producer")
    }

    /// SHA-256 (hex) of the file.
    #[must_use]
    pub fn sha256(&self) -> &str {
        self.text("sha256")
    }

    /// Version of npusnap that read the file.
    #[must_use]
    pub fn npusnap_version(&self) -> &str {
        self.text("npusnap_version")
    }

    /// Pickle protocol; `None` for other containers.
    #[must_use]
    pub fn protocol(&self) -> Option<i64> {
        self.integer("protocol")
    }

    /// Rows in `traces`.
    #[must_use]
    pub fn event_count(&self) -> i64 {
        self.integer("event_count").unwrap_or_default()
    }

    /// Rows in `call_stacks`.
    #[must_use]
    pub fn stack_count(&self) -> i64 {
        self.integer("stack_count").unwrap_or_default()
    }

    /// What the snapshot came in, such as `pickle+gzip`.
    #[must_use]
    pub fn container(&self) -> &str {
        self.text("container")
    }

    /// Which set of fields the snapshot has, `dict` or `list` form, and the protocol, for a person.
    #[must_use]
    pub fn format(&self) -> Text {
        let (dialect, form) = (self.text("dialect"), self.text("form"));
        match self.protocol() {
            Some(protocol) => Text::new(
                format!("{dialect}, {form} form, protocol {protocol}"),
                format!("{dialect}，{form} 形式，协议 {protocol}"),
            ),
            None => Text::new(format!("{dialect}, {form} form"), format!("{dialect}，{form} 形式")),
        }
    }

    /// Whether the producer is `torch_npu`, as far as the fields tell.
    #[must_use]
    pub fn is_npu(&self) -> bool {
        self.text("dialect") == "npu"
    }

    /// The allocator settings; `None` where the snapshot has none.
    #[must_use]
    pub fn settings(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(self.text("allocator_settings")).ok()
    }

    /// The `snapshot` object of contract section 4: the settings as an object, all else as it is.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut values = self.values.clone();
        if let Some(settings) = values.get_mut("allocator_settings") {
            *settings = self.settings().map_or(Value::Null, Value::Object);
        }
        Value::Object(values)
    }
}

fn values(table: &'static Table, batch: &arrow::record_batch::RecordBatch) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for column in table.columns {
        let value = match engine::sql_type(&(column.data_type)()).as_str() {
            "BIGINT" => json!(engine::cell::<Option<i64>>(batch, TABLE, column.name, 0)?),
            "DOUBLE" => json!(engine::cell::<Option<f64>>(batch, TABLE, column.name, 0)?),
            _ => json!(engine::cell::<Option<String>>(batch, TABLE, column.name, 0)?),
        };
        values.insert(column.name.to_owned(), value);
    }
    Ok(values)
}

impl ImportNote {
    /// Reads all rows.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn read(engine: &Engine) -> Result<Vec<Self>> {
        engine.table_rows()
    }

    /// The row as an object of `import_stats`.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "severity": self.severity,
            "device_id": self.device_id,
            "value": self.value,
            "doc": self.doc,
        })
    }

    /// What it means for the numbers, for a person.
    #[must_use]
    pub fn meaning(&self) -> Text {
        Text::new(&self.doc, meaning(&self.name, &self.doc).unwrap_or_else(|| self.doc.clone()))
    }

    /// The byte from which on the file is damaged and was not read; `None` for a whole one.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(super) fn damaged_from(engine: &Engine) -> Result<Option<i64>> {
        let notes = Self::read(engine)?;
        Ok(notes.into_iter().find(|note| note.name == "salvaged_to_byte").map(|note| note.value))
    }

    /// Whether rows are missing or wrong because of it.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.severity != "info"
    }
}
