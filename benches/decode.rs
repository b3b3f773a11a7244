//! Decodes the snapshot it is given and keeps no row: the part of `benches/measure.py` that no command does alone.
//!
//! `cargo bench --bench decode --no-run` builds it and prints its path.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use arrow::record_batch::RecordBatch;
use npusnap::error::Result;
use npusnap::schema::Table;
use npusnap::snapshot::{self, Options, Progress, RowSink};

/// Counts rows and drops them.
struct Dropped(u64);

impl RowSink for Dropped {
    fn write(&mut self, _table: &'static Table, batch: RecordBatch) -> Result<()> {
        self.0 += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        Ok(())
    }
}

struct Silent;

impl Progress for Silent {
    fn advance(&self, _bytes: u64, _events: u64) {}
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`, and without a snapshot there is nothing to decode.
    let Some(path) = std::env::args_os().nth(1).filter(|argument| Path::new(argument).is_file()) else {
        return ExitCode::SUCCESS;
    };
    let mut rows = Dropped(0);
    match snapshot::read(Path::new(&path), &Options::default(), &mut rows, &Silent) {
        Ok(summary) => {
            let _closed = writeln!(std::io::stdout(), "{} rows, {} events", rows.0, summary.events);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _closed = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
