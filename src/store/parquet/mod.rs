//! Tables become Parquet: one file per table in one folder, written on a thread of its own.
//!
//! All tables have a file, also those without rows, so that a reader need not ask which are there.

mod bits;
mod chunk;
mod columns;
mod delta;
mod dictionary;
mod encoding;
mod facts;
mod runs;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use self::columns::ColumnsWriter;
pub(super) use self::encoding::sorted_by;
use super::worker::{TableWriter, Worker};
use crate::error::{Error, Result, UNREADABLE};
use crate::schema::{TABLES, Table, VERSION};
use crate::snapshot::RowSink;

/// First and last bytes of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

const ACTION: &str = "cannot write the Parquet file";

/// Writes `<table>.parquet` for every table.
#[derive(Debug)]
pub struct ParquetSink {
    worker: Worker,
}

impl ParquetSink {
    /// Creates the files in `dir`, which exists and is the caller's to remove if the sink is dropped unfinished.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(dir: &Path) -> Result<Self> {
        let files = TABLES.iter().map(|table| TableFile::create(dir, table)).collect::<Result<_>>()?;
        Ok(Self { worker: Worker::spawn(dir, Files(files))? })
    }

    /// Completes the files and waits until they are on the disk.
    ///
    /// # Errors
    /// What any write since the start said, such as a full disk.
    pub fn finish(self) -> Result<()> {
        self.worker.finish()
    }
}

impl RowSink for ParquetSink {
    fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        self.worker.write(table, batch)
    }
}

struct Files(Vec<TableFile>);

impl TableWriter for Files {
    fn write(&mut self, table: &'static Table, batch: &RecordBatch) -> Result<()> {
        self.0.iter_mut().filter(|file| file.table.name == table.name).try_for_each(|file| file.write(batch))
    }

    fn finish(self) -> Result<()> {
        self.0.into_iter().try_for_each(TableFile::finish)
    }
}

/// Who encodes the columns of a table.
enum Writer {
    /// The library, which can write anything.
    Any(Box<ArrowWriter<File>>),
    Columns(Box<ColumnsWriter>),
}

impl Writer {
    fn create(output: File, table: &'static Table) -> Result<Self, ParquetError> {
        if columns::can_write(table) {
            let properties = encoding::properties(table).build();
            return Ok(Self::Columns(Box::new(ColumnsWriter::new(output, table, properties)?)));
        }
        // The properties carry a schema that shows interned strings as what they are: text.
        let properties = encoding::library_properties(table)?;
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        Ok(Self::Any(Box::new(ArrowWriter::try_new_with_options(output, table.batch(), options)?)))
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        match self {
            Self::Any(writer) => writer.write(batch),
            Self::Columns(writer) => writer.write(batch),
        }
    }

    /// Completes the file, which is not yet on the disk.
    fn finish(&mut self) -> Result<&File, ParquetError> {
        match self {
            Self::Any(writer) => {
                // Not `into_inner`, which tells of a full disk in words only.
                writer.finish()?;
                Ok(writer.inner())
            }
            Self::Columns(writer) => writer.finish(),
        }
    }
}

struct TableFile {
    table: &'static Table,
    path: PathBuf,
    writer: Writer,
    last: (i64, i64),
}

impl TableFile {
    fn create(dir: &Path, table: &'static Table) -> Result<Self> {
        let path = file(dir, table.name);
        let output = File::create(&path).map_err(Error::io(&path, "cannot create"))?;
        let writer = Writer::create(output, table).map_err(failed(&path))?;
        Ok(Self { table, path, writer, last: (i64::MIN, i64::MIN) })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if !self.in_order(batch) {
            let reason = format!("rows of `{}` came out of the order its metadata promises", self.table.name);
            return Err(Error::store(&self.path, ACTION)(reason));
        }
        self.writer.write(batch).map_err(failed(&self.path))
    }

    /// Whether the rows go on in the order that the file declares. A query engine relies on it and would be wrong in
    /// silence.
    fn in_order(&mut self, batch: &RecordBatch) -> bool {
        let keys = sorted_by(self.table);
        let (Some(first), Some(second)) = (keys.first(), keys.last()) else { return true };
        let column = |name: &str| {
            let array = batch.column_by_name(name)?;
            array.as_primitive_opt::<Int64Type>().map(arrow::array::PrimitiveArray::values)
        };
        let (Some(first), Some(second)) = (column(first), column(second)) else { return false };
        let mut last = self.last;
        // As most batches are: one key, or rows of one device.
        if let (Some(before), Some(number), Some(end)) = (first.first(), second.first(), second.last())
            && (keys.len() == 1 || first.iter().all(|other| other == before))
        {
            self.last = (*first.last().unwrap_or(before), *end);
            return last <= (*before, *number) && second.is_sorted();
        }
        let sorted = first.iter().zip(second.iter()).all(|(first, second)| {
            let before = std::mem::replace(&mut last, (*first, *second));
            before <= last
        });
        self.last = last;
        sorted
    }

    fn finish(mut self) -> Result<()> {
        let file = self.writer.finish().map_err(failed(&self.path))?;
        file.sync_all().map_err(Error::io(&self.path, "cannot bring to the disk"))
    }
}

/// The library hides the system's reason, such as a full disk, inside its own error.
fn failed(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io(path, "cannot write")(*source),
            Err(source) => Error::store(path, ACTION)(source),
        },
        error => Error::store(path, ACTION)(error),
    }
}

/// The Parquet file of a table in a store's folder.
pub(super) fn file(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}.parquet"))
}

/// Table version of the store in `dir`; `None` where npusnap did not write what is there.
pub(super) fn version(dir: &Path) -> Result<Option<i64>> {
    let path = file(dir, "snapshot");
    // Whoever opens a pipe waits for somebody to write to it.
    if !path.metadata().map_err(Error::io(&path, "cannot open"))?.is_file() {
        return Ok(None);
    }
    let input = File::open(&path).map_err(Error::io(&path, "cannot open"))?;
    let Ok(reader) = SerializedFileReader::new(input) else { return Ok(None) };
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let value = pairs.into_iter().flatten().find(|pair| pair.key == encoding::VERSION_KEY);
    Ok(value.and_then(|pair| pair.value.as_deref()).and_then(|text| text.parse().ok()))
}

/// Reads a table to its end, to see whether that is possible.
pub(super) fn read_through(dir: &Path, table: &str) -> Result<()> {
    let path = file(dir, table);
    let input = File::open(&path).map_err(Error::io(&path, "cannot open"))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(input).and_then(ParquetRecordBatchReaderBuilder::build);
    for batch in reader.map_err(Error::store(&path, UNREADABLE))? {
        batch.map_err(Error::store(&path, UNREADABLE))?;
    }
    Ok(())
}

/// Refuses a store of another table version, and one that lacks a table.
pub(super) fn check(dir: &Path) -> Result<()> {
    match version(dir)? {
        Some(VERSION) => {}
        Some(found) => return Err(Error::Version { path: dir.to_owned(), found, expected: VERSION }),
        None => {
            let reason = "`snapshot.parquet` was not written by npusnap";
            return Err(Error::store(dir, "not a store of npusnap")(reason));
        }
    }
    TABLES.iter().try_for_each(|table| {
        let path = file(dir, table.name);
        let metadata = path.metadata().map_err(Error::io(&path, "cannot open"))?;
        // The engine takes a folder for all files in it, and a file without a byte for one without a row.
        if !metadata.is_file() {
            return Err(Error::store(&path, UNREADABLE)("it is no file"));
        }
        if metadata.len() == 0 { Err(Error::store(&path, UNREADABLE)("the file is empty")) } else { Ok(()) }
    })
}

/// Whether a store has all its tables, and each begins and ends as a Parquet file does.
pub(super) fn is_whole(dir: &Path) -> bool {
    check(dir).is_ok() && TABLES.iter().all(|table| is_framed(&file(dir, table.name)).unwrap_or(false))
}

/// Whether the first and the last bytes of a file are those of a Parquet file.
fn is_framed(path: &Path) -> io::Result<bool> {
    let mut input = File::open(path)?;
    let (mut first, mut last) = ([0; MAGIC.len()], [0; MAGIC.len()]);
    input.read_exact(&mut first)?;
    input.seek(SeekFrom::End(-i64::try_from(MAGIC.len()).unwrap_or_default()))?;
    input.read_exact(&mut last)?;
    Ok(first == MAGIC && last == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{NoNames, Symbol, TraceEvent, TracesBuilder};

    fn batch(rows: &[(i64, i64)]) -> RecordBatch {
        let mut builder = TracesBuilder::default();
        let row = |(device_id, trace_index): &(i64, i64)| TraceEvent {
            id: 0,
            device_id: *device_id,
            trace_index: *trace_index,
            action: Symbol(0),
            addr: None,
            device_free: None,
            size: None,
            stream: None,
            stack_id: None,
            time_us: None,
            pool_id_0: None,
            pool_id_1: None,
            compile_context: None,
            user_metadata: None,
            is_workspace: 0,
        };
        for keys in rows {
            builder.push(row(keys));
        }
        builder.finish(&NoNames).unwrap()
    }

    #[test]
    fn rows_that_go_back_are_refused_within_a_batch_and_between_two() {
        let dir = tempfile::tempdir().unwrap();
        let is_taken = |batches: &[&[(i64, i64)]]| {
            let mut file = TableFile::create(dir.path(), &TraceEvent::TABLE).unwrap();
            batches.iter().all(|rows| file.write(&batch(rows)).is_ok())
        };
        assert!(is_taken(&[&[(1, 0), (1, 1)], &[(1, 2)], &[(1, 3), (2, 0), (2, 1)], &[(3, 0)]]));
        assert!(!is_taken(&[&[(1, 0), (1, 2), (1, 1)]]), "within a device");
        assert!(!is_taken(&[&[(1, 0), (2, 1), (2, 0)]]), "within the second device");
        assert!(!is_taken(&[&[(2, 0), (1, 1)]]), "to a device before");
        assert!(!is_taken(&[&[(1, 5), (1, 6)], &[(1, 5)]]), "in the next batch");
        assert!(!is_taken(&[&[(1, 0), (2, 0)], &[(1, 7), (1, 8)]]), "to a device before, in the next batch");
    }
}
