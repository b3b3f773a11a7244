//! The SQL front end over a small snapshot: any text becomes rows, which every format can write, or an error; in time, and
//! without touching anything.

#![no_main]

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use libfuzzer_sys::fuzz_target;
use npusnap::engine::{Engine, Options, QueryOptions, Value, is_ended, parameters, statements};
use npusnap::output::{Format, RowWriter};
use npusnap::schema::TABLES;
use npusnap_fuzz::{read, told};

const FORMATS: [Format; 7] = [
    Format::Table, Format::Json, Format::Ndjson, Format::Csv, Format::Markdown, Format::Arrow, Format::Parquet,
];

/// Rows that are asked for before a query has shown what it can.
const ENOUGH: usize = 20_000;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/npu_oom.pickle")).unwrap();
    let rows = read(&bytes, &npusnap::snapshot::Options::default()).unwrap();
    let mut tables = HashMap::new();
    for table in TABLES {
        let plain = rows.tables.get(table.name).into_iter().flatten().map(|batch| {
            let schema = table.arrow();
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| cast(column, field.data_type()).unwrap()).collect();
            RecordBatch::try_new(schema, columns).unwrap()
        });
        tables.insert(table.name, plain.collect());
    }
    Engine::in_memory(tables, Options { partitions: 2, memory_limit: 64 << 20 }).unwrap()
});

fn answer(sql: &str) -> npusnap::error::Result<()> {
    let mut params: Vec<(String, Value)> = Vec::new();
    for name in parameters(sql) {
        if params.iter().all(|(known, _)| known != name) {
            params.push((name.to_owned(), Value::from(3)));
        }
    }
    let options = QueryOptions { params, timeout: Some(Duration::from_secs(1)), ..QueryOptions::default() };
    let mut batches = ENGINE.query_with(sql, &options)?;
    let format = FORMATS[sql.len() % FORMATS.len()];
    let Ok(mut writer) = RowWriter::new(format, batches.schema(), Some(80), io::sink()) else { return Ok(()) };
    let mut rows = 0;
    while rows < ENOUGH
        && let Some(batch) = batches.next().transpose()?
    {
        rows += batch.num_rows();
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    Ok(())
}

fuzz_target!(init: LazyLock::force(&ENGINE), |bytes: &[u8]| {
    let Ok(sql) = std::str::from_utf8(bytes) else { return };
    let parts: usize = statements(sql).iter().map(|statement| statement.len()).sum();
    assert!(parts <= sql.len());
    let _either = is_ended(sql);
    if let Err(error) = answer(sql) {
        told(&error);
    }
});
