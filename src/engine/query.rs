//! Queries of the user's: they can only read, their rows come batch by batch, and they end when they are told to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{SQLOptions, SessionContext};
use futures::StreamExt as _;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

use super::attach::BASE;
use super::rows::{Row as _, row};
use super::statement::{self, Asked, Prepared, Thing};
use super::{Engine, Value, explain, memory};
use crate::error::{Error, Result};

/// How long a query may run on before it is noticed that it shall end.
const ATTENTION: Duration = Duration::from_millis(50);

/// What goes with a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// Values for each `$name` in the query.
    pub params: Vec<(String, Value)>,
    /// It ends with an error after this time.
    pub timeout: Option<Duration>,
    /// It ends with an error soon after this becomes true.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Engine {
    /// Starts a query of the user's. It can read, and nothing else; its rows come batch by batch.
    ///
    /// # Errors
    /// The text is not one read-only statement, or names what there is not.
    pub fn query(&self, sql: &str) -> Result<Batches<'_>> {
        self.query_with(sql, &QueryOptions::default())
    }

    /// [`query`](Self::query) with values for its parameters, and with what may end it early.
    ///
    /// # Errors
    /// As [`query`](Self::query); a parameter without value, or a value without parameter; the time is over.
    pub fn query_with(&self, sql: &str, options: &QueryOptions) -> Result<Batches<'_>> {
        let watch = Watch::start(options, self.memory_limit);
        statement::bounded(sql)?;
        // Planning computes what is constant, which can take as long as any query. On a thread of its own it has the stack
        // for it, too, and whoever waits can stop waiting.
        let (handle, context) = (self.runtime.clone(), self.context.clone());
        let (text, params) = (sql.to_owned(), options.params.clone());
        let planning = self.runtime.spawn_blocking(move || handle.block_on(start(&context, &text, &params)));
        let started = match self.runtime.wait(planning, || watch.check())? {
            Ok(Ok(started)) => started,
            Ok(Err(Refusal::Ours(error))) => return Err(error),
            Ok(Err(Refusal::Engine(source))) => return Err(self.user_error(sql, &source)),
            Err(broken) => {
                return Err(self.user_error(sql, &DataFusionError::ExecutionJoin(Box::new(broken))));
            }
        };
        let mut batches = self.batches(sql, started.schema, started.stream, watch);
        batches.asked = started.asked;
        Ok(batches)
    }

    /// Devices and events that a query asks macros for and that there are not, each with what there is: the numbers of
    /// the devices, or those of the first event and of the last one.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn unknown(&self, batches: &Batches<'_>) -> Result<Vec<(Asked, Vec<i64>)>> {
        let mut unknown = Vec::new();
        for asked in &batches.asked {
            let name = |name: &str| if asked.of_base { format!("{BASE}.{name}") } else { name.to_owned() };
            match asked.thing {
                Thing::Device(device_index) => {
                    let known = self.table(&name(DeviceNumber::RELATION))?.read::<DeviceNumber>()?;
                    let mut known: Vec<i64> = known.iter().map(|device| device.device_index).collect();
                    known.sort_unstable();
                    if !known.contains(&device_index) {
                        unknown.push((*asked, known));
                    }
                }
                Thing::Event(trace_index, device) => {
                    let mut known = self.relation(&name(EventRange::RELATION), &[])?.read::<EventRange>()?;
                    known.retain(|range| device.is_none_or(|device| device == range.device_index));
                    let first = known.iter().map(|range| range.first_index).min();
                    let last = known.iter().map(|range| range.last_index).max();
                    let known: Vec<i64> = first.into_iter().chain(last).collect();
                    // -1 is the moment before the first event, whatever number that has, and so is the number before it.
                    let is_known = first.zip(last).is_some_and(|(first, last)| {
                        trace_index == -1 || (first.saturating_sub(1)..=last).contains(&trace_index)
                    });
                    if !is_known {
                        unknown.push((*asked, known));
                    }
                }
            }
        }
        Ok(unknown)
    }

    /// Rows of a relation that is no query of the user's; `name` is what errors call it by.
    pub(super) fn batches_of(
        &self,
        name: &str,
        schema: SchemaRef,
        stream: SendableRecordBatchStream,
    ) -> Batches<'_> {
        let watch = Watch::start(&QueryOptions::default(), self.memory_limit);
        self.batches(name, schema, stream, watch)
    }

    fn batches(
        &self,
        sql: &str,
        schema: SchemaRef,
        mut stream: SendableRecordBatchStream,
        watch: Watch,
    ) -> Batches<'_> {
        // Rows are computed on the engine's threads: whoever waits for them can then stop waiting at any moment.
        let (sender, receiver) = mpsc::channel(1);
        let task = self.runtime.spawn(async move {
            while let Some(batch) = stream.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        let asked = BTreeSet::new();
        Batches { engine: self, sql: sql.to_owned(), schema, receiver, task, watch, ended: false, asked }
    }
}

/// Why a statement is not run.
enum Refusal {
    Ours(Error),
    Engine(DataFusionError),
}

impl From<DataFusionError> for Refusal {
    fn from(source: DataFusionError) -> Self {
        Self::Engine(source)
    }
}

row! {
    /// A device by its number.
    struct DeviceNumber from "devices" {
        /// Number in the snapshot.
        device_index: i64,
    }
}

row! {
    /// The events of a device.
    #[expect(clippy::struct_field_names, reason = "they are the columns")]
    struct EventRange from "_event_ranges" {
        /// Number of the device.
        device_index: i64,
        /// Position of the first one in the device's history.
        first_index: i64,
        /// Position of the last one.
        last_index: i64,
    }
}

/// A query that runs.
struct Started {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    asked: BTreeSet<Asked>,
}

/// Plans a statement and starts it.
async fn start(context: &SessionContext, sql: &str, params: &[(String, Value)]) -> Result<Started, Refusal> {
    let Prepared { statement, asked } = statement::prepare(context, sql, params).map_err(Refusal::Ours)?;
    let plan = context.state().statement_to_plan(statement).await?;
    // What is refused by its first word does not come so far; this is for what hides in a query, as `SELECT … INTO` does.
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    read_only.verify_plan(&plan).map_err(|_| Refusal::Ours(statement::only_reads("what it does")))?;
    let frame = context.execute_logical_plan(plan).await?;
    let schema = Arc::clone(frame.schema().inner());
    Ok(Started { schema, stream: frame.execute_stream().await?, asked })
}

/// Rows of a query as they are computed.
#[expect(missing_debug_implementations, reason = "a stream has no useful text")]
pub struct Batches<'a> {
    engine: &'a Engine,
    sql: String,
    schema: SchemaRef,
    receiver: Receiver<Result<RecordBatch, DataFusionError>>,
    task: JoinHandle<()>,
    watch: Watch,
    ended: bool,
    /// Devices and events that macros are asked for.
    asked: BTreeSet<Asked>,
}

impl Batches<'_> {
    /// Names and types of the columns, also where there are no rows.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; none at the end.
    fn receive(&mut self) -> Result<Option<RecordBatch>> {
        let runtime = &self.engine.runtime;
        let failed = |source: &DataFusionError| self.engine.user_error(&self.sql, source);
        match runtime.wait(self.receiver.recv(), || self.watch.check())? {
            Some(batch) => batch.map(Some).map_err(|source| failed(&source)),
            // A task that broke down leaves a channel that looks like one at its end.
            None => match runtime.block_on(&mut self.task) {
                Ok(()) => Ok(None),
                Err(error) => Err(failed(&DataFusionError::ExecutionJoin(Box::new(error)))),
            },
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.receive().transpose();
        self.ended = !matches!(batch, Some(Ok(_)));
        batch
    }
}

impl Drop for Batches<'_> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What ends a query before it has all its rows.
#[derive(Debug)]
struct Watch {
    end: Option<(Duration, Instant)>,
    interrupt: Option<Arc<AtomicBool>>,
    memory_limit: usize,
    /// Bytes that the program may come to hold.
    most_bytes: Option<u64>,
}

/// What a query may hold beyond twice its limit: rows on their way, and whatever else the engine does not count.
const UNCOUNTED: u64 = 1 << 30;

impl Watch {
    fn start(options: &QueryOptions, memory_limit: usize) -> Self {
        // A time that is beyond the clock's end never comes.
        let end = options.timeout.and_then(|timeout| Some((timeout, Instant::now().checked_add(timeout)?)));
        let more =
            u64::try_from(memory_limit).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(UNCOUNTED);
        let most_bytes = memory::resident().map(|bytes| bytes.saturating_add(more));
        Self { end, interrupt: options.interrupt.clone(), memory_limit, most_bytes }
    }

    /// How long the query may run on before this has to be asked again, or why it shall not.
    fn check(&self) -> Result<Duration> {
        if self.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
            return Err(Error::Sql {
                reason: "the query was interrupted".to_owned(),
                place: None,
                hint: None,
            });
        }
        // The pool counts what sorts and aggregations hold; a function that makes a long text asks nobody.
        if let (Some(most), Some(held)) = (self.most_bytes, memory::resident())
            && held > most
        {
            return Err(explain::memory_error(self.memory_limit, "its values are too large"));
        }
        let Some((timeout, end)) = self.end else { return Ok(ATTENTION) };
        match end.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(left.min(ATTENTION)),
            _ => Err(Error::Sql {
                reason: format!("the query took more than {} s and was stopped", timeout.as_secs_f64()),
                place: None,
                hint: Some("give it more time with `--timeout SECONDS`".to_owned()),
            }),
        }
    }
}
