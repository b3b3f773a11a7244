//! A SQLite database becomes Parquet for a query: one of npusnap's, or one with only the five tables of older tools.
//!
//! Nothing is kept for the next time: the Parquet is made anew for each command, in a temporary folder. Which columns
//! are read follows from the declared tables; what a database of an older tool lacks is NULL or empty.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OpenFlags, Params};
use sha2::{Digest as _, Sha256};

use super::cells::Cells;
use super::parquet::ParquetSink;
use super::parquet::sorted_by;
use super::sqlite::APPLICATION_ID;
use crate::error::{Cause, Error, Result};
use crate::replay::Replay;
use crate::schema::{
    Block, CallStack, Column, Device, ImportStat, ImportStatsBuilder, NoNames, Segment, Snapshot,
    SnapshotBuilder, TABLES, Table, TraceEvent, VERSION,
};
use crate::snapshot::{Options, RowSink, Summary};

const ACTION: &str = "cannot read the SQLite database";

/// Rows in a batch.
const BATCH_ROWS: usize = 256 * 1024;
/// Bytes of text in a batch: Arrow's offsets have 31 bits.
const BATCH_TEXT: usize = 64 * 1024 * 1024;

/// The tables that every tool's database has.
const FIVE: [&Table; 5] =
    [&Device::TABLE, &CallStack::TABLE, &Segment::TABLE, &Block::TABLE, &TraceEvent::TABLE];

/// Writes the tables of the database at `path` as Parquet files into `dir`.
///
/// # Errors
/// It cannot be read, is damaged, lacks a table or a column, or is of another table version.
pub(super) fn copy(path: &Path, dir: &Path) -> Result<()> {
    let database = Database::open(path)?;
    let mut sink = ParquetSink::create(dir)?;
    if database.is_own()? {
        TABLES.iter().try_for_each(|table| database.copy(table, &mut sink))?;
    } else {
        let mut replay = Replay::new(dir, &mut sink);
        FIVE.iter().try_for_each(|table| database.copy(table, &mut replay))?;
        database.describe(&mut replay)?;
        replay.finish(&Options::default(), &Summary::default())?;
    }
    sink.finish()
}

struct Database<'a> {
    path: &'a Path,
    connection: Connection,
}

impl<'a> Database<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed(path))?;
        let database = Self { path, connection };
        // What stands in the schema is the file's, and may call nothing that does more than compute. All tables are of one
        // moment, also where another program writes meanwhile.
        database.connection.execute_batch("PRAGMA trusted_schema = OFF; BEGIN").map_err(failed(path))?;
        Ok(database)
    }

    /// Whether npusnap wrote it, in this table version.
    fn is_own(&self) -> Result<bool> {
        if self.value::<i32>("PRAGMA application_id", [])? != APPLICATION_ID {
            return Ok(false);
        }
        match self.value("PRAGMA user_version", [])? {
            VERSION => Ok(true),
            found => Err(Error::Version { path: self.path.to_owned(), found, expected: VERSION }),
        }
    }

    fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<T> {
        self.connection.query_row(sql, params, |row| row.get(0)).map_err(failed(self.path))
    }

    fn names(&self, sql: &str, params: impl Params) -> Result<Vec<String>> {
        let read = || -> Result<Vec<String>, rusqlite::Error> {
            self.connection.prepare(sql)?.query_map(params, |row| row.get(0))?.collect()
        };
        read().map_err(failed(self.path))
    }

    fn copy(&self, table: &'static Table, sink: &mut dyn RowSink) -> Result<()> {
        let sql = self.select(table)?;
        let wrong = |column: &Column, row: usize, cause: Cause| {
            let place = format!("table `{}`, column `{}`, row {}", table.name, column.name, row + 1);
            Error::store(self.path, ACTION)(format!("{place}: {cause}"))
        };
        let mut statement = self.connection.prepare(&sql).map_err(failed(self.path))?;
        let mut rows = statement.query([]).map_err(failed(self.path))?;
        let mut columns: Vec<(&Column, Cells)> =
            table.columns.iter().map(|column| (column, Cells::of(column))).collect();
        let (mut count, mut held, mut text) = (0, 0, 0);
        while let Some(row) = rows.next().map_err(failed(self.path))? {
            for (place, (column, cells)) in columns.iter_mut().enumerate() {
                let value = row.get_ref(place).map_err(failed(self.path))?;
                if value == ValueRef::Null && !column.nullable {
                    return Err(wrong(column, count, "is NULL".into()));
                }
                text += cells.push(value).map_err(|cause| wrong(column, count, cause))?;
            }
            (count, held) = (count + 1, held + 1);
            if held == BATCH_ROWS || text >= BATCH_TEXT {
                sink.write(table, self.batch(table, &mut columns)?)?;
                (held, text) = (0, 0);
            }
        }
        if held == 0 { Ok(()) } else { sink.write(table, self.batch(table, &mut columns)?) }
    }

    fn batch(&self, table: &Table, columns: &mut [(&Column, Cells)]) -> Result<RecordBatch> {
        let arrays = columns.iter_mut().map(|(_, cells)| cells.finish()).collect();
        self.built(RecordBatch::try_new(table.batch(), arrays))
    }

    fn built(&self, batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch> {
        batch.map_err(Error::store(self.path, "cannot build a batch of rows"))
    }

    /// The SELECT that gives all columns of `table` in order, in the order its Parquet file promises.
    fn select(&self, table: &Table) -> Result<String> {
        self.check_kind(table)?;
        let there = self.names("SELECT name FROM pragma_table_info(?1)", [table.name])?;
        let has = |name: &str| there.iter().any(|column| column == name);
        let mut columns = Vec::new();
        for column in table.columns {
            columns.push(match column.name {
                name if has(name) && column.sqlite.is_some() => format!("\"{name}\""),
                // The nested copy of the frames is made from their text.
                "frames" if has("frames_json") => "\"frames_json\"".to_owned(),
                "is_workspace" if has("action") => self.workspace()?,
                _ if column.nullable => "NULL".to_owned(),
                name => return Err(self.unfit(table, name, !there.is_empty())),
            });
        }
        let order = match sorted_by(table) {
            [] => "rowid".to_owned(),
            keys => keys.join(", "),
        };
        Ok(format!("SELECT {} FROM {} ORDER BY {order}", columns.join(", "), table.name))
    }

    /// Refuses a view of a table's name: its rows are as many as its query cares to make.
    fn check_kind(&self, table: &Table) -> Result<()> {
        let kinds = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
        match self.names(kinds, [table.name])?.iter().find(|kind| *kind != "table") {
            Some(kind) => {
                let reason =
                    format!("`{}` is a {kind} and not a table; npusnap reads tables only", table.name);
                Err(Error::store(self.path, ACTION)(reason))
            }
            None => Ok(()),
        }
    }

    fn unfit(&self, table: &Table, column: &str, is_there: bool) -> Error {
        let missing = if is_there {
            format!("table `{}` has no column `{column}`", table.name)
        } else {
            format!("there is no table `{}`", table.name)
        };
        let five = FIVE.map(|table| format!("`{}`", table.name)).join(", ");
        let reason = format!("{missing}; npusnap reads databases with the tables {five}");
        Error::store(self.path, "is a SQLite database without a snapshot in it")(reason)
    }

    /// The condition that marks the entries `torch_npu` puts before the history, for a database that does not say.
    ///
    /// They are whole triplets at the beginning of a device's list, and any further `workspace_snapshot`.
    fn workspace(&self) -> Result<String> {
        let devices = || -> Result<Vec<i64>, rusqlite::Error> {
            self.connection.prepare("SELECT id FROM devices")?.query_map([], |row| row.get(0))?.collect()
        };
        let mut conditions = vec!["action = 'workspace_snapshot'".to_owned()];
        for device in devices().map_err(failed(self.path))? {
            if let Some(last) = self.last_of_head(device).map_err(failed(self.path))? {
                conditions.push(format!("(device_id = {device} AND trace_index <= {last})"));
            }
        }
        Ok(format!("({})", conditions.join(" OR ")))
    }

    /// `trace_index` of the last entry of the whole triplets at the beginning of a device's list.
    fn last_of_head(&self, device: i64) -> Result<Option<i64>, rusqlite::Error> {
        let mut statement = self.connection.prepare(
            "SELECT action, trace_index, addr, size FROM traces WHERE device_id = ?1 ORDER BY trace_index",
        )?;
        let mut rows = statement.query([device])?;
        let mut last = None;
        loop {
            let mut block: Option<(Option<i64>, Option<i64>)> = None;
            let mut end = None;
            for expected in ["workspace_snapshot", "segment_alloc", "alloc"] {
                let Some(row) = rows.next()? else { return Ok(last) };
                let found = (row.get(2)?, row.get(3)?);
                let action = row.get_ref(0)?.as_str_or_null()?;
                if action != Some(expected) || *block.get_or_insert(found) != found {
                    return Ok(last);
                }
                end = Some(row.get(1)?);
            }
            last = end;
        }
    }

    /// Writes what is known of a database whose writer did not say where it came from.
    fn describe(&self, sink: &mut dyn RowSink) -> Result<()> {
        let count = |table: Table| self.value::<i64>(&format!("SELECT count(*) FROM {}", table.name), []);
        let (bytes, sha256) = digest(self.path).map_err(Error::io(self.path, "cannot read"))?;
        let is_cuda =
            self.value::<bool>("SELECT EXISTS (SELECT 1 FROM devices WHERE device_type = 'CUDA-GPU')", [])?;
        let mut snapshot = SnapshotBuilder::default();
        snapshot.push(Snapshot {
            source_name: self.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            source_bytes: bytes,
            sha256,
            container: "sqlite".to_owned(),
            dialect: if is_cuda { "cuda" } else { "npu" }.to_owned(),
            form: "dict".to_owned(),
            producer: "database of an older tool".to_owned(),
            protocol: None,
            trace_lists: None,
            event_count: count(TraceEvent::TABLE)?,
            segment_count: count(Segment::TABLE)?,
            block_count: count(Block::TABLE)?,
            stack_count: count(CallStack::TABLE)?,
            allocator_settings: None,
            block_padding: None,
            schema_version: VERSION,
            npusnap_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        sink.write(&Snapshot::TABLE, self.built(snapshot.finish(&NoNames))?)?;
        let mut stats = ImportStatsBuilder::default();
        stats.push(ImportStat {
            name: "source_is_five_tables".to_owned(),
            severity: "info".to_owned(),
            device_id: None,
            value: 1,
            doc: "the source is a database of an older tool with five tables; what those lack, such as times, pools \
                  of events, annotations and allocator settings, is missing here"
                .to_owned(),
        });
        sink.write(&ImportStat::TABLE, self.built(stats.finish(&NoNames))?)
    }
}

/// Bytes of a file, and their SHA-256 in hexadecimal.
fn digest(path: &Path) -> io::Result<(i64, String)> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0_i64;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(buffer.get(..count).unwrap_or_default());
        bytes = bytes.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let hex = digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    });
    Ok((bytes, hex))
}

/// What SQLite says, such as that the file is damaged.
fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    Error::store(path, ACTION)
}
