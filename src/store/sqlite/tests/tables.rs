//! Tables with random rows, beside those that SQLite makes of them.

use std::path::Path;

use arrow::array::RecordBatch;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::tempdir;

use super::{check, open, rows};
use crate::error::Result;
use crate::schema::{
    Allocation, AllocationsBuilder, CallStack, CallStacksBuilder, Device, DevicesBuilder, Names, Symbol,
    TABLES, Table, TraceEvent, TracesBuilder,
};
use crate::store::sqlite::database::Database;
use crate::store::sqlite::{Indexes, SqliteOptions};
use crate::store::worker::TableWriter as _;

const STACKS: i64 = 4;

#[derive(Debug)]
struct Words(Vec<String>);

impl Names for Words {
    fn name(&self, symbol: Symbol) -> &str {
        &self.0[symbol.0 as usize % self.0.len()]
    }
}

/// What a row is made of.
#[derive(Debug, Clone)]
struct Seed {
    step: i64,
    is_next_device: bool,
    values: [Option<i64>; 9],
    stack_id: Option<i64>,
    word: u32,
    optional_word: Option<u32>,
}

/// Integers of every width as often.
fn value() -> impl Strategy<Value = Option<i64>> {
    proptest::option::weighted(0.8, (any::<i64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift))
}

fn seed() -> impl Strategy<Value = Seed> {
    let values = proptest::array::uniform9(value());
    let stack = proptest::option::of(1..=STACKS);
    let optional_word = proptest::option::of(0..9_u32);
    (1..3_i64, proptest::bool::weighted(0.02), values, stack, 0..9_u32, optional_word).prop_map(
        |(step, is_next_device, values, stack_id, word, optional_word)| Seed {
            step,
            is_next_device,
            values,
            stack_id,
            word,
            optional_word,
        },
    )
}

fn word() -> impl Strategy<Value = String> {
    let any = proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter);
    prop_oneof![4 => any, 1 => (1..3000_usize).prop_map(|length| "é".repeat(length))]
}

fn batches(seeds: &[Seed], words: &Words, rows: usize) -> Vec<(&'static Table, RecordBatch)> {
    let mut batches = Vec::new();
    let (mut traces, mut allocations) = (TracesBuilder::default(), AllocationsBuilder::default());
    let (mut id, mut device_id, mut trace_index) = (0, 1, -1);
    for (place, seed) in seeds.iter().enumerate() {
        if seed.is_next_device {
            (device_id, trace_index) = (device_id + 1, -1);
        }
        (id, trace_index) = (id + seed.step, trace_index + seed.step);
        let [addr, size, stream, time_us, one, two, three, four, five] = seed.values;
        traces.push(TraceEvent {
            id,
            device_id,
            trace_index,
            action: Symbol(seed.word),
            addr,
            device_free: five,
            size,
            stream,
            stack_id: seed.stack_id,
            time_us,
            pool_id_0: one,
            pool_id_1: two,
            compile_context: seed.optional_word.map(Symbol),
            user_metadata: seed.optional_word.map(|word| Symbol(word + 1)),
            is_workspace: i64::from(seed.is_next_device),
        });
        allocations.push(Allocation {
            id,
            device_id,
            addr: addr.unwrap_or(i64::MIN),
            size: size.unwrap_or_default(),
            block_size: three,
            block_size_exact: four,
            stream,
            pool_id_0: one,
            pool_id_1: two,
            alloc_index: five,
            free_requested_index: four,
            free_completed_index: three,
            alloc_time_us: two,
            free_time_us: time_us,
            stack_id: seed.stack_id,
            free_stack_id: seed.stack_id.map(|id| STACKS + 1 - id),
            origin: Symbol(seed.word + 1),
            fate: Symbol(seed.word),
        });
        if traces.len() == rows || place + 1 == seeds.len() {
            batches.push((&TraceEvent::TABLE, traces.finish(words).unwrap()));
            batches.push((&Allocation::TABLE, allocations.finish(words).unwrap()));
        }
    }
    // SQLite has its turns in between.
    let mut devices = DevicesBuilder::default();
    for id in 1..=device_id {
        devices.push(Device { id, device_index: id, device_type: "Ascend-NPU".to_owned() });
        batches.insert(batches.len() / 2, (&Device::TABLE, devices.finish(words).unwrap()));
    }
    let mut stacks = CallStacksBuilder::default();
    for id in 1..=STACKS {
        let stack_hash = format!("{:032x}", id * 7 % 5);
        stacks.push(CallStack { id, stack_hash, frames_json: words.0.concat(), frames: Vec::new() });
        batches.insert(batches.len() / 3, (&CallStack::TABLE, stacks.finish(words).unwrap()));
    }
    batches
}

fn write(mut database: Database, batches: &[(&'static Table, RecordBatch)]) -> Result<()> {
    batches.iter().try_for_each(|(table, batch)| database.write(table, batch))?;
    database.finish()
}

/// The database that is written directly, and the one that SQLite writes.
fn make(
    dir: &Path,
    page_size: u16,
    options: &SqliteOptions,
    batches: &[(&'static Table, RecordBatch)],
) -> [Connection; 2] {
    let (direct, plain) = (dir.join("direct"), dir.join("plain"));
    write(Database::with_pages(&direct, options.clone(), page_size).unwrap(), batches).unwrap();
    let inserting = Database::with_pages(&plain, options.clone(), page_size).unwrap();
    write(inserting.without_direct_tables(), batches).unwrap();
    let both = [open(&direct), open(&plain)];
    for connection in &both {
        assert_eq!(rows(connection, "PRAGMA freelist_count"), ["Integer(0)"]);
    }
    both
}

const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_master";

/// Everything that can be asked of the two is the same.
fn same(one: &Connection, other: &Connection) {
    let both = |sql: &str| {
        let found = rows(one, sql);
        assert_eq!(found, rows(other, sql), "{sql}");
        found
    };
    both(SCHEMA);
    for pragma in ["page_size", "user_version", "application_id", "encoding", "auto_vacuum"] {
        both(&format!("PRAGMA {pragma}"));
    }
    for table in TABLES {
        both(&format!("SELECT rowid, * FROM {} ORDER BY rowid", table.name));
        for (index, columns) in table.indexes {
            if both(&format!("SELECT 1 FROM sqlite_master WHERE name = '{index}'")).is_empty() {
                continue;
            }
            let sql = format!(
                "SELECT {columns}, rowid FROM {} INDEXED BY {index} ORDER BY {columns}, rowid",
                table.name
            );
            both(&sql);
            let plan = both(&format!("EXPLAIN QUERY PLAN {sql}")).concat();
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
    [one, other].into_iter().for_each(check);
}

/// The same changes leave both the same.
fn change(one: &Connection, other: &Connection) {
    let changes = [
        "DELETE FROM traces WHERE id % 3 = 0",
        "UPDATE traces SET stack_id = 2, action = action || 'x' WHERE id % 5 < 2",
        "INSERT INTO allocations SELECT max(id) + 1, device_id, addr, size, block_size, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 'a', 'b'
         FROM allocations HAVING count(*) > 0",
        "UPDATE allocations SET fate = fate || fate || fate",
        "VACUUM",
    ];
    for sql in changes {
        for connection in [one, other] {
            connection.execute_batch(sql).unwrap();
        }
        same(one, other);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_database_is_the_one_that_sqlite_makes(
        seeds in proptest::collection::vec(seed(), 0..400),
        words in proptest::collection::vec(word(), 1..10).prop_map(Words),
        rows in 1..300_usize,
        page_size in proptest::sample::select(vec![512_u16, 1024, 4096]),
        indexes in proptest::sample::select(vec![Indexes::Make, Indexes::Make, Indexes::LeaveOut]),
    ) {
        let dir = tempdir().unwrap();
        let views = vec![("v".to_owned(), "SELECT count(*) AS n FROM traces".to_owned())];
        let options = SqliteOptions { indexes, views };
        let [direct, plain] = make(dir.path(), page_size, &options, &batches(&seeds, &words, rows));
        same(&direct, &plain);
        change(&direct, &plain);
    }
}

fn words() -> Words {
    Words(["alloc", "free", ""].map(str::to_owned).to_vec())
}

fn plain_seed(word: u32) -> Seed {
    Seed { step: 1, is_next_device: false, values: [None; 9], stack_id: Some(1), word, optional_word: None }
}

#[test]
fn an_index_with_too_many_keys_is_left_to_sqlite() {
    let dir = tempdir().unwrap();
    let words = Words((0..140_000).map(|number| format!("{:x}", number * 7919 % 140_009)).collect());
    let seeds: Vec<Seed> = (0..140_000).map(plain_seed).collect();
    let batches = batches(&seeds, &words, 50_000);
    let [direct, plain] = make(dir.path(), 4096, &SqliteOptions::default(), &batches);
    same(&direct, &plain);
}

#[test]
fn rows_out_of_order_are_refused() {
    let dir = tempdir().unwrap();
    let seeds = vec![plain_seed(0); 10];
    let mut out_of_order = batches(&seeds, &words(), 5);
    out_of_order.reverse();
    let database = Database::with_pages(&dir.path().join("a"), SqliteOptions::default(), 4096).unwrap();
    let error = write(database, &out_of_order).unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("order of their numbers"), "{reason}");

    // The second batch has higher numbers than the first, and the device of the first comes after its own.
    let both = [vec![Seed { is_next_device: true, ..plain_seed(0) }], vec![plain_seed(0), plain_seed(1)]];
    let [first, second] = both.map(|seeds| batches(&seeds, &words(), 5));
    let traces = |batches: &[(&'static Table, RecordBatch)], from: usize| {
        let (table, batch) = batches.iter().find(|(table, _)| table.name == "traces").unwrap();
        (*table, batch.slice(from, batch.num_rows() - from))
    };
    let out_of_order = [traces(&first, 0), traces(&second, 1)];
    let database = Database::with_pages(&dir.path().join("b"), SqliteOptions::default(), 4096).unwrap();
    let error = write(database, &out_of_order).unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("order of index `idx_traces_device_index`"), "{reason}");
}

#[test]
fn references_to_ids_with_gaps_are_looked_up_in_rows_that_were_written_directly() {
    let dir = tempdir().unwrap();
    let mut devices = DevicesBuilder::default();
    for id in [1, 3] {
        devices.push(Device { id, device_index: id, device_type: "Ascend-NPU".to_owned() });
    }
    let devices = devices.finish(&words()).unwrap();
    let event = Seed { stack_id: None, ..plain_seed(0) };
    let next = Seed { stack_id: None, is_next_device: true, ..plain_seed(0) };
    // The device of the last event is the first, the second, which is not there, and the third.
    let reasons = [&[][..], std::slice::from_ref(&next), &[next.clone(), next.clone()]].map(|more| {
        let seeds = [std::slice::from_ref(&event), more].concat();
        let mut batches = batches(&seeds, &words(), 5);
        batches.retain(|(table, _)| table.name == "traces");
        // Of the third only the last event, or the second device would still be referred to.
        let batches = batches.iter().map(|(table, batch)| (*table, batch.slice(batch.num_rows() - 1, 1)));
        let batches: Vec<_> = batches.chain([(&Device::TABLE, devices.clone())]).collect();
        let path = dir.path().join(more.len().to_string());
        let database = Database::with_pages(&path, SqliteOptions::default(), 4096).unwrap();
        let error = write(database, &batches).err()?;
        Some(std::error::Error::source(&error).unwrap().to_string())
    });
    let missing = "row 2 of `traces` refers to a row of `devices` that is not there";
    assert_eq!(reasons, [None, Some(missing.to_owned()), None]);
}
