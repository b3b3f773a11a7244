#!/usr/bin/env python3
"""Compares every row and column of an npusnap database with Python's own unpickling of the snapshot.

    rows.py SNAPSHOT DB [--device-type CUDA-GPU|Ascend-NPU] [--no-indexes] [--seed] [--show N]

Prints the differences (table, row, column, expected, found) and exits with 1 where there are any.
With --seed the database is the reference converter's: the five base tables only, with its known choices.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import expect
import schema
from expect import BASE_TRACE_COLUMNS, COLUMNS, CONTRACT, SEED, Expected, Row, Value

MISSING = object()


class Differences:
    """Counts all, keeps the first few: one wrong rule makes a difference in every row."""

    def __init__(self, show: int) -> None:
        self.show = show
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()

    def add(self, where: str, line: str) -> None:
        """Notes one difference; of one kind no more than a quarter of the lines."""
        self.counts[where] += 1
        if self.counts[where] <= max(1, self.show // 4) and len(self.lines) < self.show:
            self.lines.append(f"{where}: {line}")

    def cell(self, table: str, key: Any, column: str, expected: Value, found: Value) -> None:
        """Notes one wrong cell."""
        self.add(f"{table}.{column}", f"row {key}: expected {short(expected)}, found {short(found)}")

    def report(self) -> str:
        """What was found, as text."""
        summary = ", ".join(f"{where} {count}" for where, count in self.counts.most_common())
        return "\n".join([*self.lines, f"{sum(self.counts.values())} differences: {summary}"])


def short(value: Value) -> str:
    """A value for a message: call stacks can be 100 KiB."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:120]} … {text[-60:]} ({len(text)} characters)"


def same(expected: Value, found: Value) -> bool:
    """Equal, and of the same type: 0 is not NULL and '1' is not 1."""
    return type(expected) is type(found) and expected == found


def compare_rows(
    table: str, columns: tuple[str, ...], expected: Iterable[Row], found: Iterable[Row], out: Differences
) -> int:
    """Compares two sequences of rows in step; returns how many were expected."""
    count = 0
    want: Any
    have: Any
    for at, (want, have) in enumerate(itertools.zip_longest(expected, found, fillvalue=MISSING), start=1):
        if want is MISSING or have is MISSING:
            row, what = (have, "unexpected row") if want is MISSING else (want, "missing row")
            out.add(table, f"{what} at {at}: {short(str(row))}")
            count += have is MISSING
            continue
        count += 1
        if want == have and all(map(same, want, have)):
            continue
        for column, left, right in zip(columns, want, have):
            if not same(left, right):
                out.cell(table, at, column, left, right)
    return count


class Translation:
    """The database's device and stack ids, in the terms of the expected rows."""

    def __init__(self, devices: dict[int, int], stacks: dict[int, int]) -> None:
        self.devices = devices
        self.stacks = stacks

    def device(self, number: int | None) -> Value:
        """Index of a device by its id."""
        return None if number is None else self.devices.get(number, f"no device with id {number}")

    def stack(self, number: int | None) -> Value:
        """Number by first appearance of a stack by its id."""
        return None if number is None else self.stacks.get(number, f"no stack with id {number}")

    def rows(self, columns: tuple[str, ...], rows: Iterable[Row]) -> Iterator[Row]:
        """Rows with both kinds of ids translated."""
        maps = {"device_id": self.device, "stack_id": self.stack}
        places = [(columns.index(name), function) for name, function in maps.items() if name in columns]
        for row in rows:
            cells = list(row)
            for place, function in places:
                cells[place] = function(cells[place])  # type: ignore[arg-type]
            yield tuple(cells)


def open_database(path: str) -> sqlite3.Connection:
    """Opens read-only; text that is not UTF-8 becomes visible instead of ending the comparison."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return db


def compare_devices(
    db: sqlite3.Connection, want: Expected, ascending: bool, types: tuple[str, ...], out: Differences
) -> dict[int, int]:
    """Compares `devices`; returns index by id."""
    rows = db.execute("SELECT id, device_index, device_type FROM devices ORDER BY id").fetchall()
    found = [row[1] for row in rows]
    if ascending:
        compare_rows("devices", ("device_index",), [(x,) for x in want.device_indexes], [(x,) for x in found], out)
    elif sorted(found) != sorted(want.device_indexes):
        out.add("devices.device_index", f"expected {want.device_indexes} in any order, found {found}")
    compare_rows("devices", ("id",), [(n,) for n in range(1, len(rows) + 1)], [(row[0],) for row in rows], out)
    for number, _, kind in rows:
        if types and kind not in types:
            out.add("devices.device_type", f"row {number}: expected {' or '.join(types)}, found {kind!r}")
    return {number: index for number, index, _ in rows}


def compare_stacks(db: sqlite3.Connection, want: Expected, seed: bool, out: Differences) -> dict[int, int]:
    """Compares `call_stacks` by content, then the order of the ids; returns number by id."""
    numbers: dict[int, int] = {}
    for number, digest, text in db.execute("SELECT id, stack_hash, frames_json FROM call_stacks ORDER BY id"):
        known = want.stacks.number(text)
        if known is None:
            out.add("call_stacks.frames_json", f"row {number}: no such stack in the snapshot: {short(text)}")
            continue
        numbers[number] = known
        if digest != expect.md5(text):
            out.cell("call_stacks", number, "stack_hash", expect.md5(text), digest)
    for absent in sorted(set(range(1, len(want.stacks.texts) + 1)) - set(numbers.values())):
        out.add("call_stacks", f"missing stack {absent}: {short(want.stacks.texts[absent - 1])}")
    if list(numbers) != list(range(1, len(numbers) + 1)):
        out.add("call_stacks.id", "ids do not count from 1 without gaps")
    order = [] if seed else list(numbers.values())
    for at, (left, right) in enumerate(itertools.pairwise(order), start=1):
        if left >= right:
            out.add("call_stacks.id", f"rows {at}, {at + 1} hold the stacks that appear as {left} and {right} in the file")
    return numbers


def compare_table(
    db: sqlite3.Connection, table: str, columns: tuple[str, ...], rows: list[Row], ids: Translation, out: Differences
) -> int:
    """Compares a table whose expected rows are known in full."""
    order = "id" if "id" in columns else "rowid"
    found = db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
    return compare_rows(table, columns, rows, ids.rows(columns, found), out)


def strict(value: Any) -> Any:
    """JSON with types that Python's `==` does not blur: True is not 1 and 1 is not 1.0."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return (type(value).__name__, value)


def parsed(text: str | None) -> Any:
    """JSON text with its types; text that is no JSON stays text, which equals no JSON."""
    try:
        return None if text is None else strict(json.loads(text))
    except ValueError:
        return text


def settings_types(top: Any) -> Any:
    """`allocator_settings` as JSON types."""
    settings = top.get("allocator_settings")
    return None if settings is None else strict(json.loads(json.dumps(settings)))


def compare_overflow(db: sqlite3.Connection, top: Any, devices: dict[int, int], out: Differences) -> None:
    """What a producer says about its ring buffers is a row of `import_stats` for each device that has rows."""
    for key in ("trace_alloc_max_entries", "trace_alloc_overflowed"):
        found = dict(db.execute("SELECT device_id, value FROM import_stats WHERE name = ?", (key,)))
        for number, index in devices.items():
            values = top.get(key, [])
            value = int(values[index]) if 0 <= index < len(values) else 0
            if found.get(number, 0) != value:
                out.cell("import_stats", f"{key} of device {index}", "value", value, found.get(number))


def compare_snapshot(
    db: sqlite3.Connection, path: str, snapshot: Any, want: Expected, dialect: str | None, out: Differences
) -> None:
    """Compares the one row of `snapshot`."""
    cursor = db.execute("SELECT * FROM snapshot")
    names = [item[0] for item in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor]
    if len(rows) != 1:
        out.add("snapshot", f"expected one row, found {len(rows)}")
        return
    row = rows[0]
    facts = expect.file_facts(path)
    protocols = facts.pop("protocol")
    facts |= {
        "form": "list" if isinstance(snapshot, list) else "dict",
        "trace_lists": want.trace_lists,
        "event_count": len(want.traces),
        "segment_count": len(want.segments),
        "block_count": len(want.blocks),
        "stack_count": len(want.stacks.texts),
        "schema_version": db.execute("PRAGMA user_version").fetchone()[0],
    }
    if dialect is not None:
        facts["dialect"] = dialect
    for column, value in facts.items():
        if not same(value, row.get(column)):
            out.cell("snapshot", 1, column, value, row.get(column))
    if row["protocol"] not in protocols:
        out.cell("snapshot", 1, "protocol", str(protocols), row["protocol"])
    if row["dialect"] not in ("npu", "cuda", "legacy_list") or not row["producer"] or not row["npusnap_version"]:
        out.add("snapshot", f"odd row {row}")
    wanted = settings_types(expect.top_level(snapshot))
    if parsed(row["allocator_settings"]) != wanted:
        out.cell("snapshot", 1, "allocator_settings", str(wanted), row["allocator_settings"])


def compare(
    path: str,
    database: str,
    *,
    seed: bool = False,
    with_indexes: bool = True,
    device_type: str | None = None,
    dialect: str | None = None,
    show: int = 20,
) -> tuple[Differences, str]:
    """Compares all tables; returns the differences and a line that says how much was compared."""
    snapshot = expect.load(path)
    want = expect.expect(snapshot, SEED if seed else CONTRACT)
    out = Differences(show)
    db = open_database(database)
    try:
        types = () if seed else (device_type,) if device_type else ("Ascend-NPU", "CUDA-GPU")
        devices = compare_devices(db, want, seed or expect.devices_are_ascending(snapshot), types, out)
        ids = Translation(devices, compare_stacks(db, want, seed, out))
        tables = {"segments": want.segments, "blocks": want.blocks, "traces": want.traces}
        if not seed:
            tables["annotations"] = want.annotations
        counts = []
        for table, rows in tables.items():
            columns = COLUMNS[table]
            if seed and table == "traces":
                columns = columns[:BASE_TRACE_COLUMNS]
                rows = [row[:BASE_TRACE_COLUMNS] for row in rows]
            counts.append(f"{compare_table(db, table, columns, rows, ids, out)} {table}")
        if not seed:
            for fault in schema.faults(db, want.high_addresses, with_indexes):
                out.add("schema", fault)
            compare_overflow(db, expect.top_level(snapshot), devices, out)
            compare_snapshot(db, path, snapshot, want, dialect, out)
    except sqlite3.Error as error:
        out.add("database", str(error))
        counts = []
    finally:
        db.close()
    counts.append(f"{len(want.stacks.texts)} call_stacks, {len(want.device_indexes)} devices")
    return out, ", ".join(counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot")
    parser.add_argument("database")
    parser.add_argument("--device-type", choices=("CUDA-GPU", "Ascend-NPU"), help="what `devices.device_type` must be")
    parser.add_argument("--dialect", choices=("npu", "cuda", "legacy_list"), help="what `snapshot.dialect` must be")
    parser.add_argument("--no-indexes", action="store_true", help="the database was written without indexes")
    parser.add_argument("--seed", action="store_true", help="the database is seed_reference.py's")
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    args = parser.parse_args()
    differences, counts = compare(
        args.snapshot, args.database, seed=args.seed, with_indexes=not args.no_indexes,
        device_type=args.device_type, dialect=args.dialect, show=args.show,
    )
    if differences.counts:
        print(f"{args.database} differs from {args.snapshot}\n{differences.report()}")
        return 1
    print(f"equal: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
