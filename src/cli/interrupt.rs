//! Ctrl-C and the wish to terminate: the first one ends the query that runs, whatever was being written is cleared away;
//! a second one, or one without a query, ends the program as usual.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// Whether the user wants the query to end.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    /// Whether the next signal ends the program.
    deadly: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on, once in a program.
    pub(super) fn listen() -> Result<Self> {
        let interrupt =
            Self { asked: Arc::new(AtomicBool::new(false)), deadly: Arc::new(AtomicBool::new(true)) };
        interrupt.register().map_err(Error::io("-", "cannot listen to signals"))?;
        Ok(interrupt)
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // In this order: what the first signal sets is seen by the second only.
            flag::register_conditional_default(signal, Arc::clone(&self.deadly))?;
            flag::register(signal, Arc::clone(&self.asked))?;
            flag::register(signal, Arc::clone(&self.deadly))?;
        }
        Ok(())
    }

    /// A flag for the query that starts now.
    pub(super) fn arm(&self) -> Armed<'_> {
        self.asked.store(false, Ordering::SeqCst);
        self.deadly.store(false, Ordering::SeqCst);
        Armed(self)
    }
}

/// While it is there, a first signal ends the query and not the program.
#[derive(Debug)]
pub(super) struct Armed<'a>(&'a Interrupt);

impl Armed<'_> {
    /// Becomes true when the query shall end.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.asked)
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.0.deadly.store(true, Ordering::SeqCst);
    }
}
