//! `npusnap synth`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::cli::Outcome;
use crate::error::{Error, Result};
use crate::output::Sink;
use crate::pickle::writer::Layout;
use crate::quantity;
use crate::snapshot::synth::{self, Context, Dialect, Frames, Length, Order, Settings, Truth, Written};

/// Write a simulated snapshot of any size, with the truth about it.
///
/// A caching allocator under a training loop is simulated, event by event. The same arguments give the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    npusnap synth -o made.pickle --steps 20 --leak --truth made.truth.json\n  \
    npusnap synth -o failed.pickle --devices 2 --oom --expandable\n  \
    npusnap synth -o - --events 10000 --dialect cuda --protocol 5 | npusnap analyze -")]
pub(super) struct Args {
    /// Snapshot to write, which has its name only when it is whole; a file that is there is replaced then. `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Where to write what is true of the snapshot, as JSON, in the same way; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Training steps per device [default: 10].
    #[arg(long, value_name = "N", conflicts_with = "events")]
    steps: Option<u64>,
    /// Stop at the operation that reaches so many events, all devices together.
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Devices that train.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    devices: u64,
    /// Whose fields the snapshot has.
    #[arg(long, value_enum, default_value_t = DialectArg::Npu)]
    dialect: DialectArg,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A list of the program grows with every step.
    #[arg(long)]
    leak: bool,
    /// A last batch does not fit into the device.
    #[arg(long)]
    oom: bool,
    /// Segments grow by mapping pages.
    #[arg(long)]
    expandable: bool,
    /// Ring buffer of each device: only the last N events are in the snapshot; 0 keeps all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_entries: u64,
    /// Pickle protocol.
    #[arg(long, value_name = "2|4|5", default_value_t = 4, value_parser = protocol)]
    protocol: u8,
    #[command(flatten, next_help_heading = "Simulation")]
    simulation: SimulationArgs,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct SimulationArgs {
    /// Which pickler's layout is written; `cpp` is protocol 2 whatever `--protocol` says.
    #[arg(long, value_enum, default_value_t = WriterArg::Cpython)]
    writer: WriterArg,
    /// Which events carry call stacks, as the argument of `_record_memory_history`.
    #[arg(long, value_enum, default_value_t = ContextArg::All)]
    context: ContextArg,
    /// Python functions only, or C++ functions in front of them.
    #[arg(long, value_enum, default_value_t = StacksArg::Python)]
    stacks: StacksArg,
    /// Different call stacks of the program [default: 90 per layer, at most 20000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    n_stacks: Option<u64>,
    /// Modules around the innermost one, at most.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=200))]
    depth: u64,
    /// Layers of the model: the length of a step [default: 4, up to 32 for many events].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    layers: Option<u64>,
    /// Devices behind the others whose trace is empty.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=4096))]
    idle_devices: u64,
    /// Device memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    capacity: u64,
    /// Steps between two calls of `empty_cache()`.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..))]
    empty_cache_every: u64,
    /// Free everything at the end; the segments stay.
    #[arg(long)]
    teardown: bool,
    /// Which of the two big keys comes first.
    #[arg(long, value_enum, default_value_t = OrderArg::SegmentsFirst)]
    order: OrderArg,
    /// Events say their memory pool [default for npu].
    #[arg(long, overrides_with = "no_pool_id")]
    pool_id: bool,
    /// Events do not say their memory pool [default for cuda].
    #[arg(long, overrides_with = "pool_id")]
    no_pool_id: bool,
    /// NPU: leave the workspace blocks out.
    #[arg(long)]
    no_workspace: bool,
    /// Bytes added to a request before it is rounded [default: 32 for npu, else 0].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(..=4096))]
    padding: Option<u64>,
    /// Address of the first segment, such as 0x12c041200000.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    addr_base: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectArg {
    Npu,
    Cuda,
    Legacy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WriterArg {
    Cpython,
    Cpp,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ContextArg {
    All,
    Alloc,
    State,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StacksArg {
    Python,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderArg {
    SegmentsFirst,
    TracesFirst,
}

/// Runs the command.
pub(super) fn run(args: &Args, quiet: bool) -> Result<Outcome> {
    let settings = settings(args)?;
    if args.truth.as_ref() == Some(&args.output) {
        return Err(Error::Usage {
            what: format!("--truth `{}`", args.output.display()),
            reason: "the snapshot goes there; give the truth another name".to_owned(),
        });
    }
    let truth = if args.truth.is_some() { Truth::Wanted } else { Truth::Unwanted };
    let written = write_whole(&args.output, |out| synth::write(&settings, out, truth))?;
    if let (Some(path), Some(truth)) = (&args.truth, &written.truth) {
        write_whole(path, |out| {
            let narrow = PrettyFormatter::with_indent(b" ");
            // One call for all, or each comma would be a system call of its own.
            let mut json = Vec::new();
            truth.serialize(&mut Serializer::with_formatter(&mut json, narrow))?;
            json.push(b'\n');
            out.write_all(&json)
        })?;
    }
    if !quiet {
        summarise(&args.output, &written);
    }
    Ok(Outcome::Done)
}

fn settings(args: &Args) -> Result<Settings> {
    let simulation = &args.simulation;
    let dialect = match args.dialect {
        DialectArg::Npu => Dialect::Npu,
        DialectArg::Cuda => Dialect::Cuda,
        DialectArg::Legacy => Dialect::Legacy,
    };
    let npu = dialect == Dialect::Npu;
    if dialect == Dialect::Legacy && simulation.writer == WriterArg::Cpp {
        return Err(Error::Usage {
            what: "--writer cpp".to_owned(),
            reason: "no C++ pickler ever wrote the legacy list; leave it out or choose another --dialect"
                .to_owned(),
        });
    }
    let length = args.events.map_or(Length::Steps(args.steps.unwrap_or(10)), Length::Events);
    // Few events need a small model, or the run would end before its first step does.
    let layers = simulation.layers.unwrap_or(match length {
        Length::Steps(_) => 4,
        Length::Events(events) => (events / args.devices / 1000).clamp(2, 32),
    });
    Ok(Settings {
        dialect,
        layout: match simulation.writer {
            WriterArg::Cpython => Layout::CPython(args.protocol),
            WriterArg::Cpp => Layout::Jit,
        },
        length,
        devices: args.devices,
        idle_devices: simulation.idle_devices,
        seed: args.seed,
        max_entries: (args.max_entries > 0).then_some(args.max_entries),
        leak: args.leak,
        oom: args.oom,
        expandable: args.expandable,
        teardown: simulation.teardown,
        context: match simulation.context {
            ContextArg::All => Context::All,
            ContextArg::Alloc => Context::Alloc,
            ContextArg::State => Context::State,
        },
        frames: match simulation.stacks {
            StacksArg::Python => Frames::Python,
            StacksArg::All => Frames::All,
        },
        stack_count: simulation.n_stacks.unwrap_or((90 * layers).min(20_000)),
        depth: simulation.depth,
        layers,
        empty_cache_every: simulation.empty_cache_every,
        capacity: simulation.capacity << 20,
        address_base: simulation.addr_base,
        padding: simulation.padding.unwrap_or(if npu { 32 } else { 0 }),
        workspace: !simulation.no_workspace,
        pool_id: simulation.pool_id || (npu && !simulation.no_pool_id),
        order: match simulation.order {
            OrderArg::SegmentsFirst => Order::SegmentsFirst,
            OrderArg::TracesFirst => Order::TracesFirst,
        },
    })
}

/// Hands `write` what stands for `path`: standard output (`-`), a device, or a file that has its name when it is whole.
fn write_whole<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T> {
    let mut sink = Sink::open(Some(path), &[])?;
    let written = write(&mut sink).map_err(|source| sink.error(source))?;
    sink.finish()?;
    Ok(written)
}

fn summarise(output: &Path, written: &Written) {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    // Nobody listening is no failure.
    let _closed = writeln!(
        io::stderr().lock(),
        "wrote {} events, {}, to `{}`",
        quantity::count(count(written.events)),
        quantity::bytes(count(written.bytes)),
        output.display(),
    );
}

fn protocol(text: &str) -> std::result::Result<u8, String> {
    match text {
        "2" => Ok(2),
        "4" => Ok(4),
        "5" => Ok(5),
        _ => Err("the simulator writes protocols 2, 4 and 5".to_owned()),
    }
}

fn address(text: &str) -> std::result::Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| error.to_string())
}
