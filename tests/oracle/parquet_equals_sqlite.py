#!/usr/bin/env python3
"""Compares the Parquet files of a store with its SQLite database, row by row, and reads both as their users do.

    parquet_equals_sqlite.py STORE DB [--readers]

Needs pyarrow; says so and exits with 0 where it is missing, because a machine without it can still run the rest. With
--readers, pandas, Polars and DuckDB must read `call_stacks.frames` as nested values, and these three are required.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import expect
import rows

try:
    import pyarrow as pa
    import pyarrow.parquet as pq

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

TABLES = (
    "devices", "call_stacks", "segments", "blocks", "traces", "allocations", "snapshot", "annotations", "import_stats",
    "replay_checks", "module_memory",
)
FRAME_KEYS = ("name", "filename", "line")


def parquet_rows(path: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of a Parquet file, in its order."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=columns):
            yield from zip(*(column.to_pylist() for column in batch.columns))


def table_columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Columns of a database table, in order."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def compare_table(db: sqlite3.Connection, store: str, table: str, out: rows.Differences) -> bool:
    """Columns, their order, and every cell; whether the columns are those expected."""
    path = os.path.join(store, f"{table}.parquet")
    if not os.path.exists(path):
        out.add(table, "no Parquet file")
        return False
    columns = table_columns(db, table)
    only_parquet = ["frames"] if table == "call_stacks" else []
    schema = pq.read_schema(path)
    if schema.names != columns + only_parquet:
        out.add(table, f"expected columns {columns + only_parquet}, found {schema.names}")
        return False
    names = ", ".join(f'"{name}"' for name in columns)
    found = db.execute(f"SELECT {names} FROM {table} ORDER BY rowid")
    rows.compare_rows(table, tuple(columns), found, parquet_rows(path, columns), out)
    return True


def named_frames(text: Any) -> Any:
    """What the nested column holds of a stack's JSON: an unknown line is -1. Text that is no JSON equals no frames."""
    try:
        frames = json.loads(text)
        return [{key: expect.signed(frame[key]) for key in FRAME_KEYS} for frame in frames]
    except (TypeError, ValueError):
        return text


def compare_frames(store: str, out: rows.Differences) -> None:
    """The nested frames say what `frames_json` says, and have the declared type."""
    path = os.path.join(store, "call_stacks.parquet")
    field = pq.read_schema(path).field("frames")
    if not (pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)):
        out.add("call_stacks.frames", f"expected a list of structs, found {field.type}")
        return
    for number, text, frames in parquet_rows(path, ["id", "frames_json", "frames"]):
        want = named_frames(text)
        if want != frames:
            out.cell("call_stacks", number, "frames", str(want), str(frames))


def sorting_faults(store: str, out: rows.Differences) -> None:
    """Traces are sorted, and the file says so, so that no engine sorts them again."""
    path = os.path.join(store, "traces.parquet")
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        for group in range(file.num_row_groups):
            said = [names[part.column_index] for part in file.metadata.row_group(group).sorting_columns or ()]
            if said[:2] != ["device_id", "trace_index"]:
                out.add("traces", f"row group {group}: sorting columns are {said}")
    keys = list(parquet_rows(path, ["device_id", "trace_index"]))
    if any(None in key for key in keys) or keys != sorted(keys):
        out.add("traces", "not sorted by (device_id, trace_index)")


def compare(store: str, database: str, show: int = 20) -> list[str]:
    """Compares a store with its database; returns what differs."""
    out = rows.Differences(show)
    db = rows.open_database(database)
    try:
        sound = [table for table in TABLES if compare_table(db, store, table, out)]
        if "call_stacks" in sound:
            compare_frames(store, out)
        if "traces" in sound:
            sorting_faults(store, out)
    finally:
        db.close()
    return [out.report()] if out.counts else []


def readers(store: str, database: str) -> list[str]:
    """What pandas, Polars and DuckDB make of the nested frames, against the JSON in the database."""
    import duckdb
    import pandas
    import polars

    path = os.path.join(store, "call_stacks.parquet")
    db = rows.open_database(database)
    want = [
        (number, [tuple(frame.values()) for frame in named_frames(text)])
        for number, text in db.execute("SELECT id, frames_json FROM call_stacks ORDER BY id")
    ]
    db.close()
    tuples = lambda frames: [tuple(frame[key] for key in FRAME_KEYS) for frame in frames]
    by_pandas = pandas.read_parquet(path)[["id", "frames"]].itertuples(index=False)
    by_polars = polars.read_parquet(path).select("id", "frames").rows()
    duck = duckdb.connect()
    by_duckdb = duck.execute(f"SELECT id, frames FROM read_parquet('{path}') ORDER BY id").fetchall()
    unnested = duck.execute(
        f"SELECT id, f.name, f.filename, f.line FROM (SELECT id, unnest(frames) AS f FROM read_parquet('{path}')) ORDER BY id"
    ).fetchall()
    found = {
        "pandas": [(int(number), tuples(frames)) for number, frames in by_pandas],
        "Polars": [(number, tuples(frames)) for number, frames in by_polars],
        "DuckDB": [(number, tuples(frames)) for number, frames in by_duckdb],
    }
    faults = [f"{name} reads other frames" for name, stacks in found.items() if stacks != want]
    exploded = polars.read_parquet(path).select("id", "frames").explode("frames").unnest("frames").rows()
    flat = sorted((number, *frame) for number, frames in want for frame in frames)
    faults += [] if sorted(unnested) == flat else ["DuckDB: unnest(frames) gives other rows"]
    faults += [] if sorted(exploded) == flat else ["Polars: explode and unnest give other rows"]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("database")
    parser.add_argument("--readers", action="store_true", help="also read with pandas, Polars and DuckDB")
    args = parser.parse_args()
    if not AVAILABLE:
        print("SKIPPED: pyarrow is not installed; Parquet was not compared with SQLite", file=sys.stderr)
        return 0
    faults = compare(args.store, args.database)
    if args.readers:
        faults += readers(args.store, args.database)
    print("\n".join(faults) if faults else f"equal: {args.store} and {args.database}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
