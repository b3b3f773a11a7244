#!/usr/bin/env python3
"""Runs the relations of sql/ on DuckDB over the same Parquet files, and compares results and CPU time with npusnap's.

    benches/against_duckdb.py --binary target/release/npusnap [--top 10] [--runs 3] [--write FILE] STORE...

A STORE is a folder that `npusnap ingest` wrote. The relations that cost npusnap the most on the first one are run on all.
Both engines get the text that `ingest` writes into a database, so all macros have their defaults and no limit; both add up
every column of the relation, so that nothing is left out, and the sums must agree. What the library keeps once it is worked
out (`@kept`) is a temporary table in DuckDB. CPU seconds are user and system with two threads: of npusnap the whole process,
of DuckDB from the connection on, without Python's own start. Needs the package `duckdb`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHILD = """
import json, resource, sys
import duckdb
def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
start = cpu()
connection = duckdb.connect(config={"threads": 2})
connection.execute("SET enable_progress_bar = false")
row = None
for statement in json.load(open(sys.argv[1])):
    row = connection.execute(statement).fetchall()
print(json.dumps([cpu() - start, *(float(value or 0) for value in row[0])]))
"""


@dataclass(frozen=True)
class View:
    """A relation of sql/ as a database has it."""

    name: str
    body: str
    kept: bool


@dataclass(frozen=True)
class Measured:
    """What a query gave, and its CPU seconds."""

    sums: tuple[float, ...]
    cpu: float


def run(command: Sequence[str]) -> Measured:
    """Runs npusnap, or the child that tells its own CPU seconds first; both print a row of numbers as JSON."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    after = os.times()
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: {done.stderr.strip()}\n{command[-1][:2000]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    row = json.loads(done.stdout)
    if isinstance(row[0], dict):
        return Measured(tuple(float(value or 0) for value in row[0].values()), cpu)
    return Measured(tuple(row[1:]), row[0])


def catalogue(binary: str, folder: str) -> list[View]:
    """The views that `ingest` writes, in the order in which they stand on each other."""
    fixture = next((ROOT / "fixtures").glob("*.pickle"))
    database = os.path.join(folder, "views.db")
    command = [binary, "ingest", str(fixture), "-o", folder, "--sqlite", database, "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid"
    with sqlite3.connect(database) as connection:
        found = connection.execute(query).fetchall()
    views = []
    for name, sql in found:
        body = re.sub(r"\bLIMIT -1\b", "", sql.split(" AS ", 1)[1])
        text = (ROOT / "sql" / f"{name}.sql").read_text(encoding="utf-8")
        views.append(View(name, body, "\n-- @kept\n" in text))
    return views


def needed(views: Sequence[View], name: str) -> list[View]:
    """The relation and what it stands on, in order."""
    wanted, found = {name}, []
    for view in reversed(views):
        if view.name in wanted:
            wanted.update(re.findall(r"\w+", view.body))
            found.append(view)
    return found[::-1]


def sums(binary: str, store: str, name: str) -> str:
    """A query that adds up every column of a relation."""
    query = f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{name}'"
    done = subprocess.run(
        [binary, "sql", store, query, "--format", "json"], capture_output=True, check=True, text=True
    )
    parts = ["COUNT(*)"]
    for column in json.loads(done.stdout):
        quoted = f'"{column["column_name"]}"'
        is_text = column["data_type"].startswith("Utf8")
        value = f"LENGTH({quoted})" if is_text else quoted
        parts.append(f"SUM(CAST({value} AS DOUBLE))")
    listed = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))
    return f"SELECT {listed} FROM {name}"


def statements(views: Sequence[View], store: str, name: str, query: str) -> list[str]:
    """What DuckDB runs for a relation."""
    made = ["SET integer_division = true"]
    for path in sorted(Path(store).glob("*.parquet")):
        made.append(f"CREATE VIEW {path.stem} AS SELECT * FROM read_parquet('{path}')")
    for view in needed(views, name):
        kind = "TEMP TABLE" if view.kept else "VIEW"
        made.append(f"CREATE {kind} {view.name} AS {view.body}")
    return [*made, query]


def agree(left: Measured, right: Measured) -> bool:
    """Whether both found the same; sums of real numbers depend on the order in the last digits."""
    pairs = zip(left.sums, right.sums, strict=True)
    return all(math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6) for one, other in pairs)


def events(binary: str, store: str) -> int:
    """Events of a store."""
    measured = run([binary, "sql", store, "--format", "json", "SELECT COUNT(*) AS n FROM traces"])
    return int(measured.sums[0])


def compare(options: argparse.Namespace, folder: str) -> tuple[list[str], int]:
    """The page, and how many relations differ."""
    views = catalogue(options.binary, folder)
    public = [view.name for view in views if not view.name.startswith("_")]
    first = options.stores[0]

    def ours(store: str, name: str) -> Measured:
        query = sums(options.binary, store, name)
        return run([options.binary, "sql", store, "--format", "json", query])

    if options.relations:
        heaviest = options.relations.split(",")
    else:
        costs = {name: ours(first, name).cpu for name in public}
        heaviest = sorted(public, key=lambda name: -costs[name])[: options.top]
    nothing = [options.binary, "sql", first, "--format", "json", "SELECT 1 AS n"]
    start = statistics.median(run(nothing).cpu for _ in range(3))
    lines, differing = [f"A query that reads nothing costs npusnap {start:.2f} CPU seconds.", ""], 0
    for store in options.stores:
        lines += [f"## {events(options.binary, store):,} events", ""]
        lines += ["| relation | npusnap, CPU s | DuckDB, CPU s | ratio | rows | results |", "|---|---:|---:|---:|---:|---|"]
        for name in heaviest:
            query = sums(options.binary, store, name)
            script = os.path.join(folder, "script.json")
            Path(script).write_text(json.dumps(statements(views, store, name, query)), encoding="utf-8")
            own, other = [], []
            for _ in range(options.runs):
                own.append(run([options.binary, "sql", store, "--format", "json", query]))
                other.append(run([sys.executable, "-c", CHILD, script]))
            same = agree(own[0], other[0])
            differing += not same
            mine = statistics.median(one.cpu for one in own)
            theirs = statistics.median(one.cpu for one in other)
            ratio = statistics.median(one.cpu / max(two.cpu, 0.001) for one, two in zip(own, other, strict=True))
            verdict = "equal" if same else "DIFFERENT"
            lines.append(f"| {name} | {mine:.2f} | {theirs:.2f} | {ratio:.2f} | {own[0].sums[0]:,.0f} | {verdict} |")
            print(lines[-1], flush=True)
        lines.append("")
    return lines, differing


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--relations", metavar="NAME,NAME", help="these, and not the heaviest")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("stores", nargs="+", metavar="STORE")
    options = parser.parse_args()
    import duckdb  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        lines, differing = compare(options, folder)
    head = [
        "# The heaviest relations against DuckDB",
        "",
        "Written by `benches/against_duckdb.py`, which says what is compared. A ratio below 1 is npusnap being faster.",
        f"DuckDB {duckdb.__version__}, {os.cpu_count()} cores ({platform.machine()}), two threads each, "
        f"{options.runs} runs, {datetime.date.today().isoformat()}.",
        "",
    ]
    page = "\n".join([*head, *lines]).rstrip() + "\n"
    if options.write:
        Path(options.write).write_text(page, encoding="utf-8")
    print(page)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
