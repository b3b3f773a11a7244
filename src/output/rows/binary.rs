//! Rows for other programs: an Arrow IPC stream or a Parquet file, batch by batch.
//!
//! Text goes out in the layout that every reader knows, not as the views that the engine works with.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::object::distinct_names;

/// Bytes of a Parquet row group that are put together in memory; rows with long texts make smaller groups than others.
const GROUP_BYTES: usize = 64 << 20;

/// A file that is being written. The libraries' writers fill a buffer that is handed on after every batch.
pub(super) struct Binary {
    schema: SchemaRef,
    writer: Writer,
}

enum Writer {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl Binary {
    /// Starts an Arrow IPC stream.
    pub(super) fn arrow(schema: &Schema, out: &mut impl Write) -> io::Result<Self> {
        let schema = plain_schema(schema);
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(io::Error::other)?;
        let mut binary = Self { schema, writer: Writer::Arrow(Box::new(writer)) };
        binary.hand_on(out)?;
        Ok(binary)
    }

    /// Starts a Parquet file.
    pub(super) fn parquet(schema: &Schema, out: &mut impl Write) -> io::Result<Self> {
        let schema = plain_schema(schema);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("npusnap ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))
            .map_err(io::Error::other)?;
        let mut binary = Self { schema, writer: Writer::Parquet(Box::new(writer)) };
        binary.hand_on(out)?;
        Ok(binary)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch, out: &mut impl Write) -> io::Result<()> {
        let batch = self.plain(batch)?;
        match &mut self.writer {
            Writer::Arrow(writer) => writer.write(&batch).map_err(io::Error::other)?,
            Writer::Parquet(writer) => {
                writer.write(&batch).map_err(io::Error::other)?;
                if writer.memory_size() > GROUP_BYTES {
                    writer.flush().map_err(io::Error::other)?;
                }
            }
        }
        self.hand_on(out)
    }

    /// Writes what stands behind the rows.
    pub(super) fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        match &mut self.writer {
            Writer::Arrow(writer) => writer.finish().map_err(io::Error::other)?,
            Writer::Parquet(writer) => {
                writer.finish().map_err(io::Error::other)?;
            }
        }
        self.hand_on(out)
    }

    fn hand_on(&mut self, out: &mut impl Write) -> io::Result<()> {
        let buffer = match &mut self.writer {
            Writer::Arrow(writer) => writer.get_mut(),
            Writer::Parquet(writer) => {
                writer.sync().map_err(io::Error::other)?;
                writer.inner_mut()
            }
        };
        out.write_all(buffer)?;
        buffer.clear();
        Ok(())
    }

    fn plain(&self, batch: &RecordBatch) -> io::Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns
            .map(|(column, field)| cast(column, field.data_type()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(io::Error::other)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(io::Error::other)
    }
}

/// The columns with distinct names and plain types. Every one may be NULL: what a plan promises of a computed column is
/// nothing for a file to rely on.
fn plain_schema(schema: &Schema) -> SchemaRef {
    let names = distinct_names(schema);
    let fields = schema.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| Field::new(name, plain_type(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        other => other.clone(),
    }
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())))
}
