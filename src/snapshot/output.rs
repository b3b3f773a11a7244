//! Rows on their way to the sink, in batches.

use std::path::Path;

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use super::event::Event;
use super::waiting::{Numbered, Waiting};
use super::{Filter, RowSink, words};
use crate::error::{Error, Result};
use crate::pickle::State;
use crate::schema::{Block, BlocksBuilder, Names, Symbol, Table, TraceEvent, TracesBuilder};

/// Rows in a batch.
pub(super) const BATCH_ROWS: usize = 64 * 1024;
/// Bytes of text in a batch. Arrow's offsets have 31 bits, and a batch is held in memory more than once.
pub(super) const BATCH_TEXT: usize = 64 * 1024 * 1024;

/// The machine's strings, as batches ask for them.
pub(super) struct Texts<'a>(pub(super) &'a State);

impl Names for Texts<'_> {
    fn name(&self, symbol: Symbol) -> &str {
        self.0.text(symbol.0)
    }
}

/// The sink, and the rows of the two tables that are written while the file is read.
pub(super) struct Output<'a> {
    path: &'a Path,
    /// `None` where rows are counted and nobody wants them.
    sink: Option<&'a mut dyn RowSink>,
    traces: TracesBuilder,
    waiting: Waiting,
    blocks: BlocksBuilder,
    trace_count: i64,
    block_count: i64,
    /// Bytes of text in the batch of events, and the strings of the last event, which most often are those of the next.
    trace_text: usize,
    last_texts: [Option<Symbol>; 3],
    block_text: usize,
    /// Which events are written; `None` for all.
    filter: Option<Filter>,
}

impl<'a> Output<'a> {
    pub(super) fn new(path: &'a Path, filter: &Filter, sink: Option<&'a mut dyn RowSink>) -> Self {
        Self {
            path,
            sink,
            traces: TracesBuilder::default(),
            waiting: Waiting::default(),
            blocks: BlocksBuilder::default(),
            trace_count: 0,
            block_count: 0,
            trace_text: 0,
            last_texts: [None; 3],
            block_text: 0,
            filter: (!filter.is_all()).then(|| filter.clone()),
        }
    }

    /// Whether rows are wanted and not only counted.
    pub(super) fn is_wanted(&self) -> bool {
        self.sink.is_some()
    }

    /// Counts an event whose row nobody wants.
    pub(super) fn count(&mut self) {
        self.trace_count += 1;
    }

    /// Adds a row and numbers it, unless it is one to leave out.
    #[cold]
    pub(super) fn trace(&mut self, state: &State, row: &TraceEvent) -> Result<()> {
        if self.filter.as_ref().is_some_and(|filter| !filter.keeps(row)) {
            return Ok(());
        }
        self.trace_count += 1;
        if self.sink.is_none() {
            return Ok(());
        }
        self.weigh(state, [Some(row.action), row.compile_context, row.user_metadata]);
        self.waiting.settle(&mut self.traces);
        self.traces.push(TraceEvent { id: self.trace_count, ..*row });
        self.flush_full(state)
    }

    /// Adds an event that is known to be kept, and numbers its row.
    #[inline]
    pub(super) fn event(
        &mut self,
        state: &State,
        event: &Event,
        device_id: i64,
        trace_index: i64,
        stack_id: Option<i64>,
    ) -> Result<()> {
        self.trace_count += 1;
        if self.sink.is_none() {
            return Ok(());
        }
        let (context, metadata) = (event.compile_context(), event.user_metadata());
        self.weigh(state, [Some(event.action), context, metadata].map(|text| text.map(Symbol)));
        let id = self.trace_count;
        self.waiting.push(Numbered { id, device_id, trace_index, stack_id, event: *event }, &mut self.traces);
        self.flush_full(state)
    }

    /// Counts the bytes of an event's texts, unless they are those of the event before.
    #[inline]
    fn weigh(&mut self, state: &State, [action, context, metadata]: [Option<Symbol>; 3]) {
        // The format's own words weigh nothing.
        let texts = [action.filter(|action| !words::is_word(action.0)), context, metadata];
        if texts != self.last_texts {
            self.last_texts = texts;
            self.trace_text += texts.iter().flatten().map(|text| state.text_length(text.0)).sum::<usize>();
        }
    }

    /// Hands on the events of a batch that is full.
    #[inline]
    fn flush_full(&mut self, state: &State) -> Result<()> {
        let rows = self.traces.len() + self.waiting.len();
        if rows < BATCH_ROWS && self.trace_text < BATCH_TEXT { Ok(()) } else { self.flush_traces(state) }
    }

    /// Adds a block and numbers it.
    pub(super) fn block(&mut self, state: &State, mut row: Block) -> Result<()> {
        self.block_count += 1;
        if self.sink.is_none() {
            return Ok(());
        }
        row.id = self.block_count;
        self.block_text += state.text_length(row.state.0);
        self.blocks.push(row);
        if self.blocks.len() < BATCH_ROWS && self.block_text < BATCH_TEXT {
            return Ok(());
        }
        self.flush_blocks(state)
    }

    #[inline(never)]
    fn flush_traces(&mut self, state: &State) -> Result<()> {
        self.trace_text = 0;
        self.last_texts = [None; 3];
        self.waiting.settle(&mut self.traces);
        let batch = self.traces.finish(&Texts(state));
        self.write(&TraceEvent::TABLE, batch)
    }

    fn flush_blocks(&mut self, state: &State) -> Result<()> {
        self.block_text = 0;
        let batch = self.blocks.finish(&Texts(state));
        self.write(&Block::TABLE, batch)
    }

    /// Hands a batch to the sink.
    pub(super) fn write(
        &mut self,
        table: &'static Table,
        batch: std::result::Result<RecordBatch, ArrowError>,
    ) -> Result<()> {
        let batch = batch.map_err(Error::store(self.path, "cannot build a batch of rows"))?;
        match &mut self.sink {
            Some(sink) if batch.num_rows() > 0 => sink.write(table, batch),
            _ => Ok(()),
        }
    }

    /// Writes what is left of events and blocks.
    pub(super) fn flush(&mut self, state: &State) -> Result<()> {
        self.flush_traces(state)?;
        self.flush_blocks(state)
    }

    /// Events so far.
    pub(super) fn trace_count(&self) -> i64 {
        self.trace_count
    }

    /// Blocks so far.
    pub(super) fn block_count(&self) -> i64 {
        self.block_count
    }
}
