#!/usr/bin/env python3
"""Proves that `parquet_equals_sqlite.py` sees damage: a store made here equals its database, each spoiled copy does not.

    selftest_parquet.py

Needs pyarrow; says so and exits with 0 where it is missing.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import expect
import mutate
import parquet_equals_sqlite as subject
import rows
import selftest

if subject.AVAILABLE:
    import pyarrow as pa
    import pyarrow.parquet as pq

    FRAME = pa.struct([("name", pa.string()), ("filename", pa.string()), ("line", pa.int64())])


def arrow_table(db: sqlite3.Connection, table: str) -> Any:
    """A database table with the types of its values; `call_stacks` gets its nested frames."""
    names = subject.table_columns(db, table)
    quoted = ", ".join(f'"{name}"' for name in names)
    data = list(zip(*db.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid"))) or [()] * len(names)
    arrays = [pa.array(list(values)) for values in data]
    if table == "call_stacks":
        texts = data[names.index("frames_json")]
        frames = [subject.named_frames(text) for text in texts]
        names, arrays = [*names, "frames"], [*arrays, pa.array(frames, pa.list_(FRAME))]
    return pa.table(arrays, names=names)


def write(store: str, table: str, data: Any) -> None:
    """Writes a table as the store has it; traces say how they are sorted."""
    sorting = None
    if table == "traces":
        keys = ["device_id", "trace_index"]
        sorting = [pq.SortingColumn(data.column_names.index(key)) for key in keys if key in data.column_names]
    pq.write_table(data, os.path.join(store, f"{table}.parquet"), sorting_columns=sorting or None)


def with_column(data: Any, name: str, values: list[Any]) -> Any:
    """The table with other values in one column."""
    place = data.column_names.index(name)
    return data.set_column(place, name, pa.array(values, data.schema.field(name).type))


def damages(data: Any, table: str) -> Iterator[tuple[str, Any]]:
    """Spoiled copies of a table: a cell of each column, a row, the order, a column."""
    for name in data.column_names:
        values = data[name].to_pylist()
        last = values[-1] if values else None
        if isinstance(last, int):
            yield f"{table}.{name}: another number", with_column(data, name, [*values[:-1], last + 1])
            yield f"{table}.{name}: NULL", with_column(data, name, [*values[:-1], None])
        elif isinstance(last, str):
            yield f"{table}.{name}: another text", with_column(data, name, [*values[:-1], last + "x"])
        elif isinstance(last, list):
            line = [[{**frame, "line": frame["line"] + 1} for frame in last]]
            yield f"{table}.{name}: another line", with_column(data, name, values[:-1] + line)
            yield f"{table}.{name}: one frame fewer", with_column(data, name, [*values[:-1], last[:-1]])
        yield f"{table} without {name}", data.drop_columns([name])
    if data.num_rows:
        yield f"{table} without its last row", data.slice(0, data.num_rows - 1)
        yield f"{table} with its last row twice", pa.concat_tables([data, data.slice(data.num_rows - 1)])
    if data.num_rows > 1:
        yield f"{table} in reverse", data.take(list(range(data.num_rows))[::-1])


def unseen(database: str, store: str) -> Iterator[str]:
    """Damages that the comparison does not see; first of all, it must see none where there is none."""
    db = rows.open_database(database)
    tables = {table: arrow_table(db, table) for table in subject.TABLES}
    db.close()
    for table, data in tables.items():
        write(store, table, data)
    for fault in [*subject.compare(store, database), *reader_faults(store, database)]:
        yield f"sees damage where there is none: {fault}"
    for table, data in tables.items():
        for name, spoiled in damages(data, table):
            write(store, table, spoiled)
            if not subject.compare(store, database):
                yield f"unseen: {name}"
        write(store, table, data)
    pq.write_table(tables["traces"], os.path.join(store, "traces.parquet"))
    if not subject.compare(store, database):
        yield "unseen: traces do not say how they are sorted"


def reader_faults(store: str, database: str) -> list[str]:
    """The readers' comparison, where they are installed."""
    try:
        return subject.readers(store, database)
    except ImportError as error:
        print(f"SKIPPED: {error}", file=sys.stderr)
        return []


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not subject.AVAILABLE:
        print("SKIPPED: pyarrow is not installed", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        mutate.write_all(mutate.handmade(), folder)
        path, database = os.path.join(folder, "everything.pickle"), os.path.join(folder, "good.db")
        snapshot = expect.load(path)
        selftest.write_expected(path, snapshot, expect.expect(snapshot), database)
        faults = list(unseen(database, folder))
    print("\n".join(faults) if faults else "every damage of the Parquet files was seen")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
