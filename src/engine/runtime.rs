//! The asynchronous runtime behind a blocking front: whoever waits can stop waiting, however busy the threads are.

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use datafusion::common::DataFusionError;
use tokio::runtime::{Builder, Handle};

use crate::store::{READER, caught};

/// How long the threads may take to notice that they are not needed any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// Stack of a thread. Plans are walked recursively, and a long UNION is a deep plan; what is not used costs nothing.
const STACK: usize = 256 << 20;

/// What `work` comes to, on a thread with a stack as the engine's have.
pub(super) fn with_room<T: Send>(work: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| match thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        // Where there can be no more threads, this one has to do.
        Err(_) => work(),
    })
}

/// What the work of a query ended with.
#[derive(Debug, thiserror::Error)]
#[error("the work panicked with message \"{0}\"")]
pub(super) struct Panicked(String);

/// Threads for the plans' work.
pub(super) struct Runtime {
    handle: Handle,
    threads: Option<tokio::runtime::Runtime>,
}

impl Runtime {
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        let threads = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_stack_size(STACK)
            // What panics there becomes the error of a query.
            .thread_name(READER)
            .build()?;
        Ok(Self { handle: threads.handle().clone(), threads: Some(threads) })
    }

    /// What `work` comes to. It runs on this thread, and what panics there becomes an error as it does on the others.
    pub(super) fn caught<T>(
        &self,
        work: impl Future<Output = Result<T, DataFusionError>>,
    ) -> Result<T, DataFusionError> {
        caught(|| self.handle.block_on(work))
            .unwrap_or_else(|text| Err(DataFusionError::External(Box::new(Panicked(text)))))
    }

    /// What `work` comes to, or the first error of `go_on`, which is asked again and again in the meantime.
    ///
    /// The runtime's own timers do not serve here: they stand still while every thread sorts.
    pub(super) fn wait<T, E>(
        &self,
        work: impl Future<Output = T>,
        go_on: impl Fn() -> Result<Duration, E>,
    ) -> Result<T, E> {
        let _inside = self.handle.enter();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut work = pin!(work);
        loop {
            let patience = go_on()?;
            if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
                return Ok(done);
            }
            thread::park_timeout(patience);
        }
    }
}

impl Deref for Runtime {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_timeout(FAREWELL);
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
