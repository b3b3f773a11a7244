#!/usr/bin/env python3
"""Makes snapshots, has them ingested, and compares every row: one command per family of snapshots.

    drive.py --binary NPUSNAP real        the recordings in SHARED/snapshots, and the counts their README states
    drive.py --binary NPUSNAP fixtures    the repository's own small snapshots, with their truth
    drive.py --binary NPUSNAP matrix      SHARED/tools/gen_snapshot.py over all its flags; also totals against its truth
    drive.py --binary NPUSNAP synth       what npusnap simulates itself, with its truth
    drive.py --binary NPUSNAP encodings   each recording written again by every pickler and protocol
    drive.py --binary NPUSNAP contents    recordings with something odd in them
    drive.py --binary NPUSNAP handmade    small hand-written snapshots
    drive.py --binary NPUSNAP folder DIR  the pickles in a folder, as they are and as Python writes them again
    drive.py --seed real|matrix|…         the same with seed_reference.py in place of npusnap, to prove these scripts

SHARED is $NPUSNAP_SHARED, else ../shared beside the repository. Where pyarrow can be imported, the Parquet files are
compared with the database as well; with --readers it must be there, and pandas, Polars and DuckDB too.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import expect
import mutate
import parquet_equals_sqlite
import rows
import totals

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("NPUSNAP_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
GENERATOR = os.path.join(SHARED, "tools", "gen_snapshot.py")
SEED_REFERENCE = os.path.join(SHARED, "tools", "seed_reference.py")
BIG = 400_000
"""Bytes from which a recording is not multiplied by everything."""


@dataclass(frozen=True)
class Case:
    """One snapshot and what is known about it beforehand."""

    name: str
    path: str = ""
    flags: tuple[str, ...] = ()
    """Arguments of the generator; then `path` is made first."""
    synth: bool = False
    """The generator is npusnap's own."""
    device_type: str | None = None
    dialect: str | None = None
    totals: bool = False
    truth: str | None = None
    """Truth file that lies beside a snapshot which is there already."""
    binary: str = ""
    """Empty for the reference converter."""
    readers: bool = False


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    name: str
    faults: str
    counts: str


def run(command: list[str]) -> None:
    """Runs a command; what it says on standard error ends up in the exception."""
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")


def convert(case: Case, folder: str) -> str:
    """Makes the database of a case."""
    database = os.path.join(folder, "rows.db")
    if case.binary:
        run([case.binary, "--quiet", "ingest", case.path, "-o", os.path.join(folder, "store.npusnap"), "--sqlite", database])
    else:
        run([sys.executable, SEED_REFERENCE, "convert", case.path, "-o", database, "--stack-key", "identity"])
    return database


def check(case: Case) -> Verdict:
    """Generates, ingests, compares; leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        truth = case.truth
        try:
            if case.flags:
                truth = os.path.join(folder, "truth.json")
                case = replace(case, path=os.path.join(folder, f"{case.name}.pickle"))
                own = [case.binary, "--quiet", "synth", *case.flags, "-o", case.path]
                other = [sys.executable, GENERATOR, *case.flags, "--out", case.path]
                run([*(own if case.synth else other), "--truth", truth])
            database = convert(case, folder)
        except RuntimeError as error:
            return Verdict(case.name, str(error), "")
        found, counts = rows.compare(
            case.path, database, seed=not case.binary, device_type=case.device_type, dialect=case.dialect
        )
        faults = [found.report()] if found.counts else []
        if case.binary and case.totals:
            faults += totals.compare(case.binary, case.path, truth)
        if case.binary and parquet_equals_sqlite.AVAILABLE:
            store = os.path.join(folder, "store.npusnap")
            faults += parquet_equals_sqlite.compare(store, database)
            faults += parquet_equals_sqlite.readers(store, database) if case.readers else []
        return Verdict(case.name, "\n".join(faults), counts)


# --------------------------------------------------------------------------------------------------- recordings


def recordings() -> list[str]:
    """Recordings that are there; none where the folder is absent."""
    folder = os.path.join(SHARED, "snapshots")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".pickle")]


def kind(path: str) -> str | None:
    """Recordings are named after their producer."""
    name = os.path.basename(path)
    return "Ascend-NPU" if name.startswith("npu") else "CUDA-GPU" if name.startswith("cuda") else None


def stated_counts() -> dict[str, tuple[int, int, int]]:
    """Segments, blocks and events as the README of the recordings states them."""
    out = {}
    with open(os.path.join(SHARED, "snapshots", "README.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) >= 5 and cells[0].endswith(".pickle"):
                events = sum(int(number) for number in re.findall(r"\d+", cells[4]))
                out[cells[0]] = (int(cells[2]), int(cells[3]), events)
    return out


def real() -> Iterator[Case]:
    """The recordings themselves."""
    for path in recordings():
        yield Case(os.path.basename(path), path, device_type=kind(path), totals=True)


def fixtures() -> Iterator[Case]:
    """The snapshots of `fixtures/`, and the truth beside them."""
    folder = os.path.join(ROOT, "fixtures")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pickle"):
            path = os.path.join(folder, name)
            truth = f"{path.removesuffix('.pickle')}.truth.json"
            yield Case(name, path, device_type=kind(path), totals=True, truth=truth)


def counts_faults(verdicts: list[Verdict]) -> list[str]:
    """Counts that differ from the README's; the text of a verdict names them."""
    stated = stated_counts()
    faults = [f"{name}: stated in README.md, but not there" for name in set(stated) - {v.name for v in verdicts}]
    for verdict in verdicts:
        numbers = tuple(int(n) for n in re.findall(r"(\d+) (?:segments|blocks|traces)", verdict.counts))
        if verdict.name in stated and numbers != stated[verdict.name]:
            faults.append(f"{verdict.name}: README.md states {stated[verdict.name]}, found {numbers}")
    return faults


# --------------------------------------------------------------------------------------------------- generator

DIALECTS = {"npu": "npu", "cuda": "cuda", "legacy": "legacy_list"}
"""What `snapshot.dialect` says of the generators' dialects: their legacy form is the list of segments."""

SMALL = ("--events", "2400", "--n-stacks", "200", "--layers", "6")
WRITERS = {
    "npu": [("py", "4"), ("jit", "2"), ("fast", "5"), ("py", "2"), ("py", "5"), ("fast", "4")],
    "cuda": [("jit", "2"), ("py", "4"), ("fast", "4"), ("py", "5"), ("py", "2"), ("fast", "5")],
    "legacy": [("py", "4"), ("py", "2"), ("py", "5")],
}
EXTRAS: tuple[tuple[str, ...], ...] = (
    ("--context", "alloc"), ("--context", "state"), ("--stacks", "all"), ("--order", "traces-first"),
    ("--expandable",), ("--oom",), ("--leak",), ("--devices", "3"), ("--idle-devices", "3"), ("--max-entries", "400"),
    ("--addr-base", "0xFFFFFF0000000000"), ("--no-pool-id",), ("--cuda-pool-id",), ("--no-workspace",),
    ("--capacity", "2"), ("--max-entries", "1"),
)


def generated(dialect: str, writer: tuple[str, str], extra: tuple[str, ...], seed: int) -> Case:
    """One run of the generator."""
    pickler, protocol = writer
    flags = (*SMALL, "--dialect", dialect, "--pickler", pickler, "--protocol", protocol, "--seed", str(seed), *extra)
    name = "_".join([dialect, pickler, f"p{protocol}", *(word.strip("-") for word in extra)])
    kinds = {"npu": "Ascend-NPU", "cuda": "CUDA-GPU", "legacy": None}
    return Case(name, flags=flags, device_type=kinds[dialect], dialect=DIALECTS[dialect], totals=True)


def matrix() -> Iterator[Case]:
    """Every writer of every dialect; every flag with every dialect; then flags at random, several at once."""
    for dialect, writers in WRITERS.items():
        for writer in writers:
            yield generated(dialect, writer, (), 1)
        for number, extra in enumerate(EXTRAS):
            yield generated(dialect, writers[number % len(writers)], extra, 2)
    chance = random.Random(7)
    for seed in range(24):
        dialect = chance.choice(("npu", "cuda", "npu", "cuda", "legacy"))
        chosen = [extra for extra in EXTRAS if chance.random() < 0.3]
        wide = any(extra[0] == "--devices" for extra in chosen)
        # Three devices of 2 TiB each do not fit between the high base and 2^64.
        chosen = [extra for extra in chosen if not (wide and extra[0] == "--addr-base")]
        yield generated(dialect, chance.choice(WRITERS[dialect]), tuple(itertools.chain(*chosen)), 10 + seed)


# ------------------------------------------------------------------------------------------------------- synth

SYNTH_EXTRAS: tuple[tuple[str, ...], ...] = (
    (), ("--leak",), ("--oom",), ("--expandable",), ("--max-entries", "500"), ("--devices", "3"),
    ("--leak", "--oom", "--expandable", "--devices", "2", "--max-entries", "700"), ("--max-entries", "1", "--oom"),
)


def synth() -> Iterator[Case]:
    """What npusnap simulates itself, of every dialect and protocol; its truth is held against Python's sums."""
    kinds = {"npu": "Ascend-NPU", "cuda": "CUDA-GPU", "legacy": None}
    for (dialect, kind), (number, extra) in itertools.product(kinds.items(), enumerate(SYNTH_EXTRAS)):
        protocol = ("4", "2", "5")[number % 3]
        flags = ("--dialect", dialect, "--protocol", protocol, "--events", "3000", "--seed", str(number + 1), *extra)
        name = "_".join(["synth", dialect, f"p{protocol}", *(word.strip("-") for word in extra)])
        yield Case(name, flags=flags, synth=True, device_type=kind, dialect=DIALECTS[dialect], totals=True)


# ---------------------------------------------------------------------------------------------------- variants


def encodings(folder: str) -> Iterator[Case]:
    """Each recording in other bytes; big ones by the protocols and the C++ writer only."""
    for path in recordings():
        stem = os.path.splitext(os.path.basename(path))[0]
        big = os.path.getsize(path) > BIG
        chosen = [
            variant for variant in mutate.encodings(path)
            if not big or variant[0] in ("jit", "keys_reversed_jit") or variant[0].startswith("protocol_")
        ]
        for written in mutate.write_all(iter(chosen), os.path.join(folder, stem)):
            yield Case(f"{stem}/{os.path.basename(written)}", written, device_type=kind(path))


def contents(folder: str) -> Iterator[Case]:
    """Every oddity in three recordings of different kinds."""
    bases = ("cuda_2.5_five_events", "cuda_2.0_block_history", "npu_train_all_freed")
    for path in recordings():
        stem = os.path.splitext(os.path.basename(path))[0]
        if stem in bases:
            for written in mutate.write_all(mutate.contents(path), os.path.join(folder, stem)):
                yield Case(f"{stem}/{os.path.basename(written)}", written, totals=True)


def handmade(folder: str) -> Iterator[Case]:
    """Snapshots that need no recording."""
    for written in mutate.write_all(mutate.handmade(), os.path.join(folder, "handmade")):
        yield Case(os.path.basename(written), written, totals=True)


def folder_cases(source: str, folder: str) -> Iterator[Case]:
    """Pickles that another writer made, and the same data from Python's pickler."""
    for name in sorted(os.listdir(source)):
        if name.endswith(".pickle"):
            path = os.path.join(source, name)
            yield Case(name, path, totals=True)
            again = iter([(f"again_{name[:-7]}", mutate.c_pickler(4), expect.load(path))])
            for written in mutate.write_all(again, folder):
                yield Case(os.path.basename(written), written)


# -------------------------------------------------------------------------------------------------------- main


def cases(family: str, folder: str, source: str) -> list[Case]:
    """The cases of a family."""
    if family == "folder":
        return list(folder_cases(source, folder))
    if family == "real":
        return list(real())
    if family == "matrix":
        return list(matrix()) if os.path.exists(GENERATOR) else []
    if family in ("synth", "fixtures"):
        return list(synth() if family == "synth" else fixtures())
    return list({"encodings": encodings, "contents": contents, "handmade": handmade}[family](folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--binary", default="", help="npusnap to run")
    which.add_argument("--seed", action="store_true", help="run seed_reference.py instead")
    parser.add_argument("--readers", action="store_true", help="read with pandas, Polars and DuckDB too; needs them")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--show", type=int, default=8, help="cases whose differences are printed")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("family", choices=("real", "matrix", "encodings", "contents", "handmade", "folder", "synth", "fixtures"))
    parser.add_argument("source", nargs="?", default="", help="folder of the family `folder`")
    args = parser.parse_args()
    if args.readers and not parquet_equals_sqlite.AVAILABLE:
        parser.error("--readers needs pyarrow, pandas, polars and duckdb")
    if args.binary and not os.access(args.binary, os.X_OK):
        parser.error(f"{args.binary} is no program; `cargo build --release` makes target/release/npusnap")
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix="npusnap-oracle-")
    try:
        chosen = [replace(case, binary=args.binary, readers=args.readers) for case in cases(args.family, folder, args.source) if args.only in case.name]
        with ProcessPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(check, chosen))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    faulty = [verdict for verdict in verdicts if verdict.faults]
    for verdict in faulty[: args.show]:
        print(f"--- {verdict.name}\n{verdict.faults}")
    if len(faulty) > args.show:
        print(f"--- also faulty: {', '.join(verdict.name for verdict in faulty[args.show :])}")
    faults = counts_faults(verdicts) if args.family == "real" and verdicts and not args.only else []
    print("\n".join(faults), end="\n" if faults else "")
    bad = sum(1 for verdict in verdicts if verdict.faults) + len(faults)
    seconds = time.monotonic() - began
    print(f"{args.family}: {len(verdicts)} snapshots, {bad} faults, {seconds:.0f} s, shared folder {SHARED}")
    return 1 if bad or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
