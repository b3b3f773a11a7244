//! Ctrl-C and the wish to terminate: the first signal ends the query that runs; where none runs, or the second time, what is
//! in the making is cleared away and the program ends as the signal asks.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};

use crate::error::{Error, Result};
use crate::store;

/// Whether the user wants the query to end.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    /// Whether the next signal is for a query.
    armed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on, once in a program.
    pub(super) fn listen() -> Result<Self> {
        let interrupt =
            Self { asked: Arc::new(AtomicBool::new(false)), armed: Arc::new(AtomicBool::new(false)) };
        interrupt.register().map_err(Error::io("-", "cannot listen to signals"))?;
        Ok(interrupt)
    }

    fn register(&self) -> io::Result<()> {
        let (woken, waker) = UnixStream::pair()?;
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| is_heeded(*signal)) {
            // In this order: whoever is woken knows by which signal.
            flag::register_usize(signal, Arc::clone(&last), usize::try_from(signal).unwrap_or_default())?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        let interrupt = self.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || interrupt.wait(woken, &last))?;
        Ok(())
    }

    /// Does what the signals ask for, one after the other.
    fn wait(&self, mut woken: UnixStream, last: &AtomicUsize) {
        while woken.read_exact(&mut [0]).is_ok() {
            if self.armed.swap(false, Ordering::SeqCst) {
                self.asked.store(true, Ordering::SeqCst);
                continue;
            }
            let signal = i32::try_from(last.load(Ordering::SeqCst)).unwrap_or(SIGTERM);
            // Whoever fails because its files are gone comes no further than to give them up.
            store::abandon(|| drop(emulate_default_handler(signal)));
        }
    }

    /// A flag for the query that starts now.
    pub(super) fn arm(&self) -> Armed<'_> {
        self.asked.store(false, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
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
        self.0.armed.store(false, Ordering::SeqCst);
    }
}

/// Whether whoever started the program lets it have the signal: `nohup` takes one away, and a shell takes Ctrl-C away from
/// what runs in its background. Where the system does not tell, hanging up is left alone, for the sake of `nohup`.
fn is_heeded(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    match ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) {
        Some(mask) => mask >> (signal - 1) & 1 == 0,
        None => signal != SIGHUP,
    }
}
