//! Writes `device_traces`: each event at the moment the second run of the simulation makes it.

use std::io::{self, Write};

use super::emit::{Emitter, stream_pointer};
use super::event::{Action, Counters, Event, Recorder, Stream};
use super::ledger::Ledger;
use super::settings::{Context, Dialect};
use super::workspace::Workspace;
use crate::pickle::writer::{Layout, Symbol};

/// The keys and the constant texts of a trace entry.
#[derive(Debug)]
struct Keys {
    action: Symbol,
    addr: Symbol,
    device_free: Symbol,
    size: Symbol,
    stream: Symbol,
    time_us: Symbol,
    compile_context: Symbol,
    user_metadata: Symbol,
    pool_id: Symbol,
    frames: Symbol,
    actions: [Symbol; Action::ALL.len()],
}

/// Writes the events of one device that are in its window, and follows all of them for the truth.
#[derive(Debug)]
pub(super) struct TraceWriter<'e, 'a, W> {
    emitter: &'e mut Emitter<'a, W>,
    keys: Keys,
    device: usize,
    window_start: u64,
    /// Keys of an entry without its walk.
    entry_length: u64,
    shows_walks: bool,
    pub(super) ledger: Option<Ledger>,
}

impl<'e, 'a, W: Write> TraceWriter<'e, 'a, W> {
    /// A writer for the trace of `device` from event `window_start` on; its list is open.
    pub(super) fn new(
        emitter: &'e mut Emitter<'a, W>,
        device: usize,
        window_start: u64,
        ledger: Option<Ledger>,
    ) -> Self {
        let pickle = &mut emitter.pickle;
        let keys = Keys {
            action: pickle.intern("action"),
            addr: pickle.intern("addr"),
            device_free: pickle.intern("device_free"),
            size: pickle.intern("size"),
            stream: pickle.intern("stream"),
            time_us: pickle.intern("time_us"),
            compile_context: pickle.intern("compile_context"),
            user_metadata: pickle.intern("user_metadata"),
            pool_id: pickle.intern("pool_id"),
            frames: pickle.intern("frames"),
            actions: Action::ALL.map(|action| pickle.intern(action.name())),
        };
        let cuda = u64::from(emitter.settings.dialect == Dialect::Cuda);
        let entry_length = 4 + 3 * cuda + u64::from(emitter.settings.pool_id);
        let shows_walks = emitter.settings.context != Context::State;
        Self { emitter, keys, device, window_start, entry_length, shows_walks, ledger }
    }

    /// The entries that `torch_npu` puts in front of the history.
    pub(super) fn workspaces(&mut self, workspaces: &[Workspace]) -> io::Result<()> {
        for workspace in workspaces {
            for action in [Action::WorkspaceSnapshot, Action::SegmentAlloc, Action::Alloc] {
                let event = Event {
                    action,
                    address: workspace.address,
                    size: workspace.size,
                    stream: Some(workspace.stream),
                    context: None,
                    time_us: 0,
                    allocation: None,
                };
                self.entry(&event)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, event: &Event) -> io::Result<()> {
        let walk = event.context.as_deref().filter(|_| self.shows_walks);
        let keys = &self.keys;
        let emitter = &mut *self.emitter;
        let settings = emitter.settings;
        emitter.pickle.open_dict(self.entry_length + u64::from(walk.is_some()))?;
        emitter.pickle.symbol(keys.action)?;
        if let Some(action) = keys.actions.get(event.action.place()) {
            emitter.pickle.symbol(*action)?;
        }
        let addr = if event.action == Action::Oom { keys.device_free } else { keys.addr };
        emitter.number(addr, event.address)?;
        emitter.number(keys.size, event.size)?;
        let pointer = |stream: Stream| stream_pointer(settings.dialect, self.device, stream);
        emitter.number(keys.stream, event.stream.map_or(0, pointer))?;
        // The C++ pickler writes the clock behind the texts.
        let clock_last = settings.layout == Layout::Jit;
        if settings.dialect == Dialect::Cuda {
            if !clock_last {
                emitter.number(keys.time_us, event.time_us)?;
            }
            emitter.pickle.symbol(keys.compile_context)?;
            emitter.pickle.text("N/A")?;
            emitter.pickle.symbol(keys.user_metadata)?;
            emitter.pickle.text("")?;
            if clock_last {
                emitter.number(keys.time_us, event.time_us)?;
            }
        }
        if settings.pool_id {
            emitter.pickle.symbol(keys.pool_id)?;
            emitter.pickle.pair(0, 0)?;
        }
        if let Some(walk) = walk {
            emitter.pickle.symbol(keys.frames)?;
            emitter.walk(self.device, walk)?;
        }
        emitter.close_row(walk.is_some())
    }
}

impl<W: Write> Recorder for TraceWriter<'_, '_, W> {
    fn record(&mut self, index: u64, event: &Event, counters: Counters) -> io::Result<()> {
        if let Some(ledger) = &mut self.ledger {
            ledger.record(index, event, counters);
        }
        if index < self.window_start { Ok(()) } else { self.entry(event) }
    }
}

/// Follows the events for the truth alone, where the dialect has no trace.
#[derive(Debug)]
pub(super) struct Untraced(pub(super) Ledger);

impl Recorder for Untraced {
    fn record(&mut self, index: u64, event: &Event, counters: Counters) -> io::Result<()> {
        self.0.record(index, event, counters);
        Ok(())
    }
}
