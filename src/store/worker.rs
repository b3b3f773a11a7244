//! A store's own thread: batches go in through a short queue, so that decoding and encoding overlap in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};
use crate::schema::Table;

/// Batches that wait at most: enough to even out their different costs, few enough to stay small.
const QUEUE: usize = 2;

/// Writes tables; lives on the worker's thread.
pub(super) trait TableWriter: Send + 'static {
    /// Writes one batch of `table`.
    fn write(&mut self, table: &'static Table, batch: &RecordBatch) -> Result<()>;
    /// Completes all tables and brings them to the disk.
    fn finish(self) -> Result<()>;
}

enum Message {
    Batch(&'static Table, RecordBatch),
    Finish,
}

/// Handle on the thread. Dropping it without [`finish`](Worker::finish) abandons the work and waits for the thread.
#[derive(Debug)]
pub(super) struct Worker {
    path: PathBuf,
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Worker {
    /// Starts a thread for `writer`, which writes to `path`.
    pub(super) fn spawn(path: &Path, writer: impl TableWriter) -> Result<Self> {
        let (queue, receiver) = sync_channel(QUEUE);
        let thread = Builder::new()
            .name("store".to_owned())
            .spawn(move || run(writer, &receiver))
            .map_err(Error::io(path, "cannot start a thread to write it"))?;
        Ok(Self { path: path.to_owned(), queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a batch. An error may be about an earlier batch.
    pub(super) fn write(&mut self, table: &'static Table, batch: RecordBatch) -> Result<()> {
        self.send(Message::Batch(table, batch))
    }

    /// Waits until everything is on the disk.
    pub(super) fn finish(mut self) -> Result<()> {
        self.send(Message::Finish)?;
        self.join()
    }

    fn send(&mut self, message: Message) -> Result<()> {
        if self.queue.as_ref().is_some_and(|queue| queue.send(message).is_ok()) {
            return Ok(());
        }
        // The thread is gone before its time: its error is the reason.
        self.join()?;
        Err(Error::store::<&str>(&self.path, "cannot write")("the writer ended before its input"))
    }

    fn join(&mut self) -> Result<()> {
        self.queue = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_panic)) => {
                Err(Error::store::<&str>(&self.path, "cannot write")("the writer's thread panicked"))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _abandoned = self.join();
    }
}

fn run(mut writer: impl TableWriter, queue: &Receiver<Message>) -> Result<()> {
    for message in queue {
        match message {
            Message::Batch(table, batch) => writer.write(table, &batch)?,
            Message::Finish => return writer.finish(),
        }
    }
    Ok(())
}
