//! What every result carries: which snapshot it speaks of, and what did not go into it.

use serde_json::{Value, json};

use super::language::Text;
use super::note_words::meaning;
use crate::engine::{Engine, row};
use crate::error::Result;

row! {
    /// The one row of table `snapshot`.
    pub struct SnapshotFacts from "snapshot" {
        /// File name without its folder.
        source_name: String,
        /// Bytes of the file.
        source_bytes: i64,
        /// SHA-256 (hex) of the file.
        sha256: String,
        /// What the snapshot came in, such as `pickle+gzip`.
        container: String,
        /// Which set of fields the snapshot has.
        dialect: String,
        /// `dict` or `list`.
        form: String,
        /// Best guess of the producer.
        producer: String,
        /// Pickle protocol.
        protocol: Option<i64>,
        /// Lists under `device_traces`.
        trace_lists: Option<i64>,
        /// Rows in `traces`.
        event_count: i64,
        /// Rows in `segments`.
        segment_count: i64,
        /// Rows in `blocks`.
        block_count: i64,
        /// Rows in `call_stacks`.
        stack_count: i64,
        /// `allocator_settings` as JSON.
        allocator_settings: Option<String>,
        /// Version of the tables.
        schema_version: i64,
        /// Version of npusnap that read the file.
        npusnap_version: String,
    }
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

impl SnapshotFacts {
    /// What the snapshot came in, such as `pickle+gzip`.
    #[must_use]
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Which set of fields it has, `dict` or `list` form, and the protocol, for a person.
    #[must_use]
    pub fn format(&self) -> String {
        let protocol = self.protocol.map_or(String::new(), |protocol| format!(", protocol {protocol}"));
        format!("{}, {} form{protocol}", self.dialect, self.form)
    }

    /// Whether the producer is `torch_npu`, as far as the fields tell.
    #[must_use]
    pub fn is_npu(&self) -> bool {
        self.dialect == "npu"
    }

    /// Reads the row.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn read(engine: &Engine) -> Result<Option<Self>> {
        Ok(engine.table_rows::<Self>()?.into_iter().next())
    }

    /// The `snapshot` object of contract section 4.
    #[must_use]
    pub fn json(&self) -> Value {
        let settings: Option<Value> =
            self.allocator_settings.as_deref().and_then(|text| serde_json::from_str(text).ok());
        json!({
            "source_name": self.source_name,
            "source_bytes": self.source_bytes,
            "sha256": self.sha256,
            "container": self.container,
            "dialect": self.dialect,
            "form": self.form,
            "producer": self.producer,
            "protocol": self.protocol,
            "trace_lists": self.trace_lists,
            "event_count": self.event_count,
            "segment_count": self.segment_count,
            "block_count": self.block_count,
            "stack_count": self.stack_count,
            "allocator_settings": settings,
            "schema_version": self.schema_version,
            "npusnap_version": self.npusnap_version,
        })
    }
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
        Text::new(&self.doc, meaning(&self.name).unwrap_or(&self.doc))
    }

    /// Whether rows are missing or wrong because of it.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.severity != "info"
    }
}
