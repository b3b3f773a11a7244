//! The parts of the main job, each alone and warm: decoding, Parquet, SQLite, and the overview of a store.
//!
//! Whole processes, and other programs beside them, are measured by `benches/measure.py`; these figures say where the time
//! of a change went. Snapshots are simulated once per run, into a folder that goes with it.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to say")]

use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use arrow::record_batch::RecordBatch;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use npusnap::analysis::{ANALYSES, Lang, Scope, Thresholds};
use npusnap::engine::{self, Engine};
use npusnap::error::Result;
use npusnap::pickle::writer::Layout;
use npusnap::schema::Table;
use npusnap::snapshot::synth::{self, Context, Dialect, Frames, Length, Order, Settings, Truth};
use npusnap::snapshot::{self, RowSink};
use npusnap::store::{self, Cache, Indexes, Silent, SqliteOptions, Store, Targets};
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// A simulated snapshot: how many events it has, and how many different call stacks its program.
#[derive(Debug, Clone, Copy)]
struct Sample {
    events: u64,
    stacks: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events, {} stacks", self.events, self.stacks)
    }
}

const SAMPLES: [Sample; 3] = [
    Sample { events: 100_000, stacks: 3_000 },
    Sample { events: 1_000_000, stacks: 3_000 },
    Sample { events: 1_000_000, stacks: 40_000 },
];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a temporary folder"));

impl Sample {
    /// The snapshot on the disk.
    fn pickle(self) -> PathBuf {
        let path = FOLDER.path().join(format!("{}-{}.pickle", self.events, self.stacks));
        if !path.exists() {
            let file = BufWriter::new(File::create(&path).expect("a file to simulate into"));
            synth::write(&self.settings(), file, Truth::Unwanted).expect("a simulated snapshot");
        }
        path
    }

    /// Its Parquet folder.
    fn store(self) -> PathBuf {
        let folder = self.pickle().with_extension("npusnap");
        if !folder.exists() {
            ingest(&self.pickle(), &folder, None);
        }
        folder
    }

    fn settings(self) -> Settings {
        Settings {
            dialect: Dialect::Npu,
            layout: Layout::CPython(4),
            length: Length::Events(self.events),
            devices: 1,
            idle_devices: 0,
            seed: 1,
            max_entries: None,
            leak: true,
            oom: true,
            expandable: false,
            teardown: false,
            context: Context::All,
            frames: Frames::Python,
            stack_count: self.stacks,
            depth: 24,
            layers: 32,
            empty_cache_every: 50,
            capacity: 64 << 30,
            address_base: None,
            padding: 32,
            workspace: true,
            pool_id: true,
            order: Order::SegmentsFirst,
        }
    }
}

/// Takes rows and keeps none.
struct Dropped;

impl RowSink for Dropped {
    fn write(&mut self, _table: &'static Table, batch: RecordBatch) -> Result<()> {
        black_box(batch);
        Ok(())
    }
}

fn ingest(source: &Path, parquet: &Path, sqlite: Option<PathBuf>) {
    let views = engine::exported_views().expect("the macros of the program");
    let sqlite = sqlite.map(|path| (path, SqliteOptions { indexes: Indexes::Make, views }));
    let targets = Targets { parquet: parquet.to_owned(), sqlite, ..Targets::default() };
    store::ingest(source, &snapshot::Options::default(), targets, &Silent).expect("an ingest");
}

#[divan::bench(args = SAMPLES)]
fn decode(bencher: Bencher, sample: Sample) {
    let path = sample.pickle();
    bencher
        .counter(ItemsCount::new(sample.events))
        .bench(|| snapshot::read(&path, &snapshot::Options::default(), &mut Dropped, &Silent));
}

#[divan::bench(args = SAMPLES, sample_count = 10)]
fn parquet(bencher: Bencher, sample: Sample) {
    let path = sample.pickle();
    let folder = FOLDER.path().join("bench.npusnap");
    bencher.counter(ItemsCount::new(sample.events)).bench(|| ingest(&path, &folder, None));
}

#[divan::bench(args = SAMPLES, sample_count = 3, sample_size = 1)]
fn parquet_and_sqlite(bencher: Bencher, sample: Sample) {
    let path = sample.pickle();
    let folder = FOLDER.path().join("bench.npusnap");
    let database = FOLDER.path().join("bench.db");
    bencher.counter(ItemsCount::new(sample.events)).bench(|| ingest(&path, &folder, Some(database.clone())));
}

#[divan::bench(args = SAMPLES, sample_count = 10)]
fn overview(bencher: Bencher, sample: Sample) {
    let folder = sample.store();
    let analysis = ANALYSES.iter().find(|analysis| analysis.name() == "overview").expect("the overview");
    bencher.counter(ItemsCount::new(sample.events)).bench(|| {
        let store = Store::open_with(&folder, Cache::Keep, &Silent)?;
        let engine = Engine::open(store, engine::Options::default())?;
        analysis.run(&engine, &Thresholds::default(), Scope::default()).map(|outcome| outcome.json(Lang::En))
    });
}
