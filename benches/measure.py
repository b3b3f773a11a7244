#!/usr/bin/env python3
"""Measures whole processes: npusnap against `pickle.load` and the reference converter, paired in one run.

    benches/measure.py --binary target/release/npusnap [--samples s100k_npu,s1m_npu] [--runs 3] [--write FILE]
                       [--peers DIR] [--memory-viz _memory_viz.py]

Prints a Markdown table per sample: CPU seconds (user and system), wall seconds and peak memory of the whole process.
CPU seconds on a shared machine move by a third between calls, so within a run every command is measured once after
the other, and the ratios are medians of the ratios within a run. Samples come from ../shared/tools/gen_snapshot.py
(NPUSNAP_SHARED) and are kept in --data. DIR is what `.ci/run peer` sets up: other tools from PyPI; `_memory_viz.py` is
PyTorch's script.
"""

from __future__ import annotations

import argparse
import datetime
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("NPUSNAP_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
TOOLS = os.path.join(SHARED, "tools")

SAMPLES: dict[str, str] = {
    "s100k_npu": "--events 100000 --dialect npu --leak --oom",
    "s100k_cuda": "--events 100000 --dialect cuda --leak --oom",
    "s100k_cuda_jit": "--events 100000 --dialect cuda --leak --oom --pickler jit",
    "s1m_npu": "--events 1000000 --dialect npu --leak --oom",
    "s1m_cuda": "--events 1000000 --devices 2 --dialect cuda --leak --oom --expandable",
    "s1m_wide": "--events 1000000 --dialect npu --leak --oom --n-stacks 40000 --layers 400 --seed 9 --pickler fast",
    "s3m_wide": "--events 3000000 --dialect npu --leak --oom --n-stacks 40000 --layers 400 --seed 9 --pickler fast",
    "g1_npu": "--events 7700000 --dialect npu --leak --oom --pickler fast",
    "g4_cuda": "--events 15600000 --devices 2 --dialect cuda --stacks all --leak --oom --pickler fast",
}
"""Names and arguments as the project's notes on speed have them."""

PICKLE_LOAD = "import gc, pickle, sys\n{gc}\npickle.load(open(sys.argv[1], 'rb'))"


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    cpu: float
    wall: float
    rss: int
    written: int


@dataclass(frozen=True)
class Job:
    """One command; `{}` in it is a fresh folder for what it writes."""

    name: str
    command: tuple[str, ...]


def sample(name: str, data: str) -> str:
    """Path of a sample, generated where it is not there yet."""
    path = os.path.join(data, f"{name}.pickle")
    if not os.path.exists(path):
        os.makedirs(data, exist_ok=True)
        print(f"generating {name} …", file=sys.stderr)
        command = [sys.executable, os.path.join(TOOLS, "gen_snapshot.py"), *SAMPLES[name].split(), "--out", f"{path}.part"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        os.rename(f"{path}.part", path)
    return path


def events(path: str, binary: str) -> int:
    """Events in a sample, as the program itself counts them; for bytes per event only."""
    query = [binary, "--quiet", "sql", path, "SELECT COUNT(*) AS n FROM traces", "--format", "csv"]
    done = subprocess.run(query, capture_output=True, check=False, text=True)
    lines = done.stdout.split()
    return int(lines[1]) if done.returncode == 0 and len(lines) == 2 and lines[1].isdigit() else 0


def folder_bytes(folder: str) -> int:
    """Bytes of all files below a folder."""
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def measure(job: Job) -> Cost:
    """Runs a command to its end. Peak memory is that of the process alone, as the system accounts it."""
    folder = tempfile.mkdtemp(prefix="npusnap-measure-")
    try:
        command = [part.replace("{}", folder) for part in job.command]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            assert process.stderr is not None
            raise SystemExit(f"{' '.join(command)}: exit {process.returncode}: {process.stderr.read().decode()}")
        return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, folder_bytes(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def jobs(path: str, args: argparse.Namespace) -> list[Job]:
    """Everything that is compared on one sample. The first two are what ratios are to."""
    npusnap = (args.binary, "--quiet")
    store, database = os.path.join("{}", "s.npusnap"), os.path.join("{}", "s.db")
    out = [
        Job("`pickle.load`", (sys.executable, "-c", PICKLE_LOAD.format(gc=""), path)),
        Job("`pickle.load`, gc off", (sys.executable, "-c", PICKLE_LOAD.format(gc="gc.disable()"), path)),
    ]
    if os.path.getsize(path) <= args.reference_up_to << 20:
        reference = os.path.join(TOOLS, "seed_reference.py")
        command = (sys.executable, reference, "convert", path, "-o", database, "--stack-key", "identity")
        out.append(Job("reference, SQLite", command))
    out += others(path, args)
    out += [
        Job("npusnap, decode alone", (*npusnap, "ingest", path, "--dry-run")),
        Job("npusnap, Parquet", (*npusnap, "ingest", path, "--no-sqlite", "-o", store)),
        Job("npusnap, Parquet + SQLite", (*npusnap, "ingest", path, "-o", store, "--sqlite", database)),
        Job("npusnap, Parquet + SQLite, no indexes",
            (*npusnap, "ingest", path, "-o", store, "--sqlite", database, "--no-indexes")),
    ]
    return out


def others(path: str, args: argparse.Namespace) -> list[Job]:
    """What other tools take to have the snapshot where they can work on it."""
    out: list[Job] = []
    if args.peers:
        at = os.path.join(args.peers, "venv", "bin")
        found = glob.glob(os.path.join(args.peers, "whl", "**", "snapshot_to_db.py"), recursive=True)
        out += [Job("`snapshot_to_db.py` of the skill, SQLite", (os.path.join(at, "python"), script, path, "-o", "{}/s.db"))
                for script in found[:1]]
        out.append(Job("`pt-snap import`, SQLite", (os.path.join(at, "pt-snap"), "import", path, "--no-focus", "-o", "{}/s")))
        out.append(Job("`ptmem --summary`", (os.path.join(at, "ptmem"), "--summary", path)))
    if args.memory_viz:
        viz = (sys.executable, args.memory_viz)
        out.append(Job("`_memory_viz.py trace_plot`", (*viz, "trace_plot", path, "-o", "{}/s.html")))
        out.append(Job("`_memory_viz.py trace`", (*viz, "trace", path)))
    return out


def store_jobs(path: str, args: argparse.Namespace, folder: str) -> list[Job]:
    """Analyses of a store that is there already."""
    store = os.path.join(folder, "s.npusnap")
    subprocess.run([args.binary, "--quiet", "ingest", path, "--no-sqlite", "-o", store], check=True, stdout=subprocess.DEVNULL)
    analyze = (args.binary, "--quiet", "analyze", store, "--format", "json", "--mode")
    return [Job(f"npusnap, {mode} of the store", (*analyze, mode)) for mode in ("overview", "all")]


def ratio(costs: list[Cost], base: list[Cost] | None) -> str:
    """How many times less CPU than `base`, run by run."""
    if base is None:
        return "–"
    return f"{statistics.median(b.cpu / max(c.cpu, 1e-4) for c, b in zip(costs, base)):.1f} x"


def table(name: str, path: str, costs: dict[str, list[Cost]], count: int) -> str:
    """The Markdown table of one sample."""
    size = os.path.getsize(path)
    reference = costs.get("reference, SQLite")
    lines = [
        f"### {name}: {size / 1e6:.1f} MB, {count:,} events (`{SAMPLES[name]}`)",
        "",
        "| process | CPU s | wall s | peak RSS MiB | written MB | B/event | less CPU than `pickle.load` | gc off | reference |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for job, runs in costs.items():
        cpu, wall = (statistics.median(getattr(run, field) for run in runs) for field in ("cpu", "wall"))
        rss, written = max(run.rss for run in runs), runs[-1].written
        cells = [
            job, f"{cpu:.2f}", f"{wall:.2f}", f"{rss / (1 << 20):.0f}", f"{written / 1e6:.1f}" if written else "–",
            f"{written / count:.1f}" if written and count else "–", ratio(runs, costs["`pickle.load`"]),
            ratio(runs, costs["`pickle.load`, gc off"]), ratio(runs, reference),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure_sample(name: str, args: argparse.Namespace) -> str:
    """Measures one sample, command after command, several times."""
    path = sample(name, args.data)
    with open(path, "rb") as file:  # into the page cache, which is what all are compared from
        while file.read(1 << 24):
            pass
    with tempfile.TemporaryDirectory() as folder:
        chosen = [*jobs(path, args), *store_jobs(path, args, folder)]
        costs: dict[str, list[Cost]] = {job.name: [] for job in chosen}
        for _ in range(args.runs):
            for job in chosen:
                costs[job.name].append(measure(job))
        return table(name, path, costs, events(os.path.join(folder, "s.npusnap"), args.binary))


HEADER = """# Measured

Whole processes, paired within one run; written by the command below and not by hand. CPU seconds are user and system of all
threads; ratios are medians of the ratios within a run, peak memory is the highest of all runs. The reference is
the converter in Python that users have today.

```sh
{command}
```

{machine}
"""


def machine(runs: int) -> str:
    """What the figures depend on, and how quiet it was."""
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{runs} runs, {os.cpu_count()} cores, {load}, Python {sys.version.split()[0]}, {datetime.date.today()}.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="npusnap, built with --release")
    parser.add_argument("--samples", default="s100k_npu,s1m_npu", help=f"of {', '.join(SAMPLES)}")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "npusnap-samples"))
    parser.add_argument("--reference-up-to", type=int, default=300, metavar="MB", help="larger: no reference converter")
    parser.add_argument("--peers", metavar="DIR", help="other tools, as `.ci/run peer` sets them up")
    parser.add_argument("--memory-viz", metavar="FILE", help="PyTorch's `_memory_viz.py`")
    parser.add_argument("--write", metavar="FILE", help="write the page there too, such as benches/README.md")
    args = parser.parse_args()
    samples = args.samples.split(",")
    if unknown := [name for name in samples if name not in SAMPLES]:
        parser.error(f"no sample {unknown[0]}; there are {', '.join(SAMPLES)}")
    parts = [machine(args.runs)]
    print(parts[0], flush=True)
    for name in samples:
        parts.append(measure_sample(name, args) + "\n")
        print(parts[-1], flush=True)
    if args.write:
        command = f"benches/measure.py --binary target/release/npusnap --samples {args.samples} --runs {args.runs} --write benches/README.md"
        text = HEADER.format(command=command, machine=parts[0]) + "\n".join(parts[1:])
        with open(f"{args.write}.part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{args.write}.part", args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
