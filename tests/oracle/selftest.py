#!/usr/bin/env python3
"""Proves that `rows.py` sees damage: each cell kind, row and key of a good database is spoiled once.

    selftest.py [SNAPSHOT DB]

Without arguments the database is made here from the expected rows of a hand-written snapshot. With arguments it is
npusnap's own, and must be equal to begin with. A damage that goes unseen fails the test.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator

import expect
import mutate
import rows
import schema
from expect import COLUMNS, Expected

CONSTRAINTS = {
    ("devices", "id"): "PRIMARY KEY", ("call_stacks", "id"): "PRIMARY KEY", ("segments", "id"): "PRIMARY KEY",
    ("blocks", "id"): "PRIMARY KEY", ("traces", "id"): "PRIMARY KEY",
    ("devices", "device_index"): "NOT NULL UNIQUE", ("call_stacks", "stack_hash"): "UNIQUE",
    ("segments", "device_id"): "REFERENCES devices(id)", ("segments", "stack_id"): "REFERENCES call_stacks(id)",
    ("blocks", "segment_id"): "REFERENCES segments(id) ON DELETE CASCADE",
    ("blocks", "stack_id"): "REFERENCES call_stacks(id)",
    ("traces", "device_id"): "REFERENCES devices(id)", ("traces", "stack_id"): "REFERENCES call_stacks(id)",
}

SNAPSHOT_COLUMNS = (
    "source_name", "source_bytes", "sha256", "dialect", "form", "producer", "protocol", "trace_lists", "event_count",
    "segment_count", "block_count", "stack_count", "allocator_settings", "schema_version", "npusnap_version",
)

Damage = tuple[str, list[str]]


def create(db: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    """Creates a table; types do not matter here but for the INTEGER of a primary key."""
    parts = [f'"{name}" INTEGER {CONSTRAINTS.get((table, name), "")}' for name in columns]
    if table in ("call_stacks", "snapshot", "import_stats", "annotations"):
        parts = [part if part.startswith('"id"') else part.replace(" INTEGER", "", 1) for part in parts]
    db.execute(f"CREATE TABLE {table} ({', '.join(parts)})")


def insert(db: sqlite3.Connection, table: str, data: list[tuple[object, ...]]) -> None:
    """Inserts whole rows."""
    for row in data:
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def write_expected(path: str, snapshot: object, want: Expected, database: str) -> None:
    """Writes the expected rows as a database of the contract's shape."""
    db = sqlite3.connect(database)
    ids = {index: number for number, index in enumerate(want.device_indexes, start=1)}

    def with_ids(table: str, data: list[expect.Row]) -> list[tuple[object, ...]]:
        place = COLUMNS[table].index("device_id")
        return [row[:place] + (ids.get(row[place]),) + row[place + 1 :] for row in data]  # type: ignore[arg-type]

    for table, columns in {**COLUMNS, **schema.OTHER_TABLES, "snapshot": SNAPSHOT_COLUMNS}.items():
        create(db, table, columns)
    insert(db, "devices", [(number, index, "CUDA-GPU") for index, number in ids.items()])
    insert(db, "call_stacks", [(n, expect.md5(text), text) for n, text in enumerate(want.stacks.texts, start=1)])
    insert(db, "segments", with_ids("segments", want.segments))
    insert(db, "blocks", want.blocks)  # type: ignore[arg-type]
    insert(db, "traces", with_ids("traces", want.traces))
    insert(db, "annotations", with_ids("annotations", want.annotations))
    facts = expect.file_facts(path)
    top = expect.top_level(snapshot)
    settings = json.dumps(top["allocator_settings"]) if "allocator_settings" in top else None
    insert(db, "snapshot", [(
        facts["source_name"], facts["source_bytes"], facts["sha256"], "cuda", "dict", "by hand", max(facts["protocol"]),
        want.trace_lists, len(want.traces), len(want.segments), len(want.blocks), len(want.stacks.texts), settings,
        1, "0",
    )])
    for name, count in want.high_addresses.items():
        insert(db, "import_stats", [(name, "info", None, count, "shown negative")])
    for key in ("trace_alloc_max_entries", "trace_alloc_overflowed"):
        values = [(ids[index], int(value)) for index, value in enumerate(top.get(key, ())) if index in ids]
        insert(db, "import_stats", [(key, "info", number, value, "ring buffer") for number, value in values])
    for name, (table, columns) in schema.INDEXES.items():
        db.execute(f"CREATE INDEX {name} ON {table}({', '.join(columns)})")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


def cell_damages(db: sqlite3.Connection) -> Iterator[Damage]:
    """Each column of each table, in its first, middle and last row: another value, and NULL against a value."""
    for table, columns in {**COLUMNS, "snapshot": SNAPSHOT_COLUMNS}.items():
        numbers = [row[0] for row in db.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        chosen = {numbers[0], numbers[len(numbers) // 2], numbers[-1]} if numbers else set()
        for column in columns:
            free_text = column in ("producer", "npusnap_version", "dialect", "device_type")
            for rowid in sorted(chosen):
                where = f"WHERE rowid = {rowid}"
                (value,) = db.execute(f'SELECT "{column}" FROM {table} {where}').fetchone()
                if free_text:
                    changes = ["''"]
                elif value is None:
                    changes = ["0", "''"]
                elif isinstance(value, str):
                    changes = [f'"{column}" || "x"'.replace('"x"', "'x'"), "NULL"]
                else:
                    # A key may collide with its neighbour; far away it is wrong just as well.
                    changes = [f'"{column}" + {1_000_000 if column.endswith("id") else 1}', "NULL"]
                for change in changes:
                    yield f"{table}.{column} row {rowid} = {change}", [f'UPDATE {table} SET "{column}" = {change} {where}']


def row_damages(db: sqlite3.Connection) -> Iterator[Damage]:
    """Rows that are missing, doubled or exchanged."""
    for table, columns in COLUMNS.items():
        numbers = [row[0] for row in db.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        if not numbers:
            continue
        for rowid in sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]}):
            yield f"{table} without row {rowid}", [f"DELETE FROM {table} WHERE rowid = {rowid}"]
        rest = ", ".join(f'"{name}"' for name in columns if name not in ("id", "device_index", "stack_hash"))
        if table in ("segments", "blocks", "traces", "annotations"):
            yield f"{table} with its last row twice", [
                f"INSERT INTO {table} ({rest}) SELECT {rest} FROM {table} WHERE rowid = {numbers[-1]}"
            ]
        if len(numbers) > 1 and table != "annotations":
            first, last = numbers[0], numbers[-1]
            yield f"{table} with ids {first} and {last} exchanged", [
                f"UPDATE {table} SET id = -99 WHERE id = {first}",
                f"UPDATE {table} SET id = {first} WHERE id = {last}",
                f"UPDATE {table} SET id = {last} WHERE id = -99",
            ]


def schema_damages() -> Iterator[Damage]:
    """Indexes, columns and keys that scripts rely on."""
    for name, (table, columns) in schema.INDEXES.items():
        yield f"no index {name}", [f"DROP INDEX {name}"]
        yield f"index {name} on another column", [f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table}(id)"]
    yield "a column renamed", ["ALTER TABLE traces RENAME COLUMN addr TO address"]
    yield "a table gone", ["DROP TABLE replay_checks"]
    yield "no version", ["PRAGMA user_version = 0"]
    yield "negative addresses that nobody mentions", ["DELETE FROM import_stats WHERE name = 'high_addresses'"]
    yield "one too many", ["UPDATE import_stats SET value = value + 1 WHERE name = 'high_addresses'"]
    yield "another ring buffer", ["UPDATE import_stats SET value = value + 1 WHERE name = 'trace_alloc_max_entries'"]
    yield "no overflow", ["DELETE FROM import_stats WHERE name = 'trace_alloc_overflowed'"]
    yield "an unknown severity", ["INSERT INTO import_stats VALUES ('x', 'fatal', NULL, 1, 'y')"]
    for table in ("devices", "call_stacks", "blocks"):
        plain = [f"CREATE TABLE plain AS SELECT * FROM {table}", f"DROP TABLE {table}"]
        yield f"{table} without keys", [*plain, f"ALTER TABLE plain RENAME TO {table}"]


def is_seen(snapshot: str, database: str, damage: Damage, folder: str) -> bool:
    """Applies one damage to a copy; whether `rows.py` objects."""
    spoiled = os.path.join(folder, "spoiled.db")
    shutil.copyfile(database, spoiled)
    db = sqlite3.connect(spoiled)
    try:
        # Views would keep a column from being renamed; they are not what is compared.
        for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        for statement in damage[1]:
            db.execute(statement)
        db.commit()
    except sqlite3.IntegrityError:
        return True  # the database's own constraint keeps this damage out
    finally:
        db.close()
    differences, _ = rows.compare(snapshot, spoiled)
    return bool(differences.counts)


def run(snapshot: str, database: str, folder: str) -> int:
    """Checks one good database and all its damages; returns the exit code."""
    differences, counts = rows.compare(snapshot, database)
    if differences.counts:
        print(f"not equal to begin with:\n{differences.report()}")
        return 1
    db = sqlite3.connect(database)
    damages = [*cell_damages(db), *row_damages(db), *schema_damages()]
    db.close()
    unseen = [name for name, _ in (damage for damage in damages if not is_seen(snapshot, database, damage, folder))]
    for name in unseen:
        print(f"unseen: {name}")
    print(f"equal: {counts}; {len(damages) - len(unseen)} of {len(damages)} damages seen")
    return 1 if unseen else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot", nargs="?")
    parser.add_argument("database", nargs="?")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.database:
            return run(args.snapshot, args.database, folder)
        mutate.write_all(mutate.handmade(), folder)
        path, database = os.path.join(folder, "everything.pickle"), os.path.join(folder, "good.db")
        snapshot = expect.load(path)
        write_expected(path, snapshot, expect.expect(snapshot), database)
        return run(path, database, folder)


if __name__ == "__main__":
    sys.exit(main())
