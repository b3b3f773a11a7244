"""What the contract says about the SQLite file itself: columns, indexes, keys. Compared without reading npusnap's code."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator

from expect import COLUMNS

INDEXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "idx_blocks_state": ("blocks", ("state",)),
    "idx_blocks_stack": ("blocks", ("stack_id",)),
    "idx_blocks_segment": ("blocks", ("segment_id",)),
    "idx_blocks_segment_state": ("blocks", ("segment_id", "state")),
    "idx_traces_stack": ("traces", ("stack_id",)),
    "idx_traces_device_action": ("traces", ("device_id", "action")),
    "idx_traces_device_index": ("traces", ("device_id", "trace_index")),
    "idx_segments_stack": ("segments", ("stack_id",)),
    "idx_segments_device": ("segments", ("device_id",)),
    "idx_segments_device_type": ("segments", ("device_id", "segment_type")),
}

UNIQUE = (("devices", "device_index"), ("call_stacks", "stack_hash"))

REFERENCES = {
    ("segments", "device_id"): ("devices", "NO ACTION"),
    ("segments", "stack_id"): ("call_stacks", "NO ACTION"),
    ("blocks", "segment_id"): ("segments", "CASCADE"),
    ("blocks", "stack_id"): ("call_stacks", "NO ACTION"),
    ("traces", "device_id"): ("devices", "NO ACTION"),
    ("traces", "stack_id"): ("call_stacks", "NO ACTION"),
}

OTHER_TABLES: dict[str, tuple[str, ...]] = {
    "allocations": (
        "id", "device_id", "addr", "size", "block_size", "block_size_exact", "stream", "pool_id_0", "pool_id_1",
        "alloc_index", "free_requested_index", "free_completed_index", "alloc_time_us", "free_time_us", "stack_id",
        "free_stack_id", "origin", "fate",
    ),
    "import_stats": ("name", "severity", "device_id", "value", "doc"),
    "replay_checks": ("device_id", "counter", "base", "final", "residual", "exact"),
    "module_memory": (
        "device_id", "component", "bytes", "peak_bytes", "time_us", "sample_count", "source_name",
    ),
}

SEVERITIES = ("info", "data_loss", "error")


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Names of a table's columns, in order; empty where there is no such table."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def column_faults(db: sqlite3.Connection) -> Iterator[str]:
    """Every table starts with the contract's columns, in the contract's order."""
    for table, expected in {**COLUMNS, **OTHER_TABLES}.items():
        found = columns(db, table)
        if tuple(found[: len(expected)]) != expected:
            yield f"table {table}: expected columns {', '.join(expected)}, found {', '.join(found) or 'no table'}"


def index_faults(db: sqlite3.Connection) -> Iterator[str]:
    """The ten indexes that users' scripts name in `INDEXED BY`."""
    for name, (table, expected) in INDEXES.items():
        found = tuple(row[2] for row in db.execute(f"PRAGMA index_info({name})"))
        on = db.execute("SELECT tbl_name FROM sqlite_master WHERE type = 'index' AND name = ?", (name,)).fetchone()
        if found != expected or on != (table,):
            yield f"index {name}: expected {table}{expected}, found {on and on[0]}{found}"


def key_faults(db: sqlite3.Connection) -> Iterator[str]:
    """Unique columns and references."""
    for table, column in UNIQUE:
        unique = [row[1] for row in db.execute(f"PRAGMA index_list({table})") if row[2]]
        keys = [[part[2] for part in db.execute(f"PRAGMA index_info({name})")] for name in unique]
        if [column] not in keys:
            yield f"{table}.{column}: not unique"
    for (table, column), expected in REFERENCES.items():
        found = {row[3]: (row[2], row[6]) for row in db.execute(f"PRAGMA foreign_key_list({table})")}
        if found.get(column) != expected:
            yield f"{table}.{column}: expected a reference to {expected}, found {found.get(column)}"
    not_null = {row[1] for row in db.execute("PRAGMA table_info(devices)") if row[3]}
    if "device_index" not in not_null:
        yield "devices.device_index: may be NULL"


def integrity_faults(db: sqlite3.Connection) -> Iterator[str]:
    """SQLite's own checks: a sound file, and no reference into the void."""
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            yield f"integrity_check: {message}"
    for row in db.execute("PRAGMA foreign_key_check"):
        yield f"foreign_key_check: {row}"
    if db.execute("PRAGMA user_version").fetchone()[0] < 1:
        yield "user_version: not set"


def stats_faults(db: sqlite3.Connection, high_addresses: Counter[str]) -> Iterator[str]:
    """`import_stats` speaks the contract's words, and counts the addresses that show negative."""
    found: Counter[str] = Counter()
    for name, severity, value, doc in db.execute("SELECT name, severity, value, doc FROM import_stats"):
        if name in ("high_addresses", "high_segment_addresses"):
            found[name] += value
        if severity not in SEVERITIES or not name or not doc or not isinstance(value, int):
            yield f"import_stats: odd row {(name, severity, value, doc)}"
    if found != high_addresses:
        yield f"import_stats: addresses that show negative: expected {dict(high_addresses)}, found {dict(found)}"


def faults(db: sqlite3.Connection, high_addresses: Counter[str], with_indexes: bool) -> Iterator[str]:
    """All of the above."""
    missing = list(column_faults(db))
    yield from missing
    if missing:
        return
    if with_indexes:
        yield from index_faults(db)
    yield from key_faults(db)
    yield from integrity_faults(db)
    yield from stats_faults(db, high_addresses)
