#!/usr/bin/env python3
"""Runs the existing Python tool's scripts, unmodified, on npusnap's databases and on the databases it makes itself.

    peer_scripts.py --scripts DIR --binary NPUSNAP [SNAPSHOT…]

DIR is the folder with snapshot_to_db.py, snapshot_queries.py and snapshot_analyze.py; without --scripts it is
$PEER_SKILL, and without that the check is skipped. Without SNAPSHOTs the recordings of the shared folder are taken.
Every query function must give the same rows, and every mode of the command line must end without a traceback and
print the same JSON. Snapshots that the tool's own converter gets wrong (blocks without an address) are only run.
With --seed the reference converter stands in for npusnap.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import drive
import expect

ORDER_KEYS = {
    "get_top_allocations": "size",
    "get_top_blocks_with_stack": "size",
    "get_long_lived_blocks": "size",
    "get_peak_alloc_events": "size",
    "get_stack_attribution": "total_size",
    "get_fragmentation_detail": "waste_bytes",
    "get_oom_events": "trace_index",
}
"""Functions whose ORDER BY leaves ties, and its column."""

LIMITED = ("get_top_allocations", "get_top_blocks_with_stack", "get_peak_alloc_events", "get_stack_attribution")
MODES = ("overview", "peak", "fragment", "leak", "oom")

Rows = list[dict[str, Any]]


def normal_frames(text: Any) -> Any:
    """The tool hashes frames with sorted keys but stores them unsorted. What is no JSON is text for people: unchanged."""
    try:
        return expect.frames_text(json.loads(text))
    except (TypeError, ValueError, AttributeError):
        return text


def normal(row: Any) -> Any:
    """A row without what legitimately differs: ids of stacks depend on the order in which a converter meets them."""
    if not isinstance(row, dict):
        return row
    out = {key: value for key, value in row.items() if key != "stack_id"}
    return {key: normal_frames(value) if key in ("frames_json", "frames") else value for key, value in out.items()}


def bag(rows: Rows) -> Counter[str]:
    """Rows without their order."""
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def same(function: str, ours: Any, theirs: Any) -> bool:
    """Equal; where the order leaves ties, equal but for the order within a tie, and for which of a cut tie is shown."""
    if not isinstance(ours, list) or function not in ORDER_KEYS:
        return bool(ours == theirs)
    key = ORDER_KEYS[function]
    keys = [row[key] for row in ours]
    if keys != [row[key] for row in theirs]:
        return False
    cut = keys[-1] if keys and function in LIMITED else None
    return bag([row for row in ours if row[key] != cut]) == bag([row for row in theirs if row[key] != cut])


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a query function; the database is the last argument here, and the function's first."""
    *rest, database = arguments
    return function(database, *rest)


def calls(queries: Any, devices: list[int], events: int) -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Every public function with every device and without one."""
    for name in sorted(dir(queries)):
        function = getattr(queries, name)
        if not name.startswith("get_") or not callable(function):
            continue
        if name in ("get_device_overview", "get_device_count"):
            yield name, function
        elif name == "get_trace_range":
            for device in devices:
                yield name, partial(call, function, device, 0, events)
        else:
            for chosen in [None, *devices]:
                yield name, partial(call, function, chosen)
        if name in LIMITED and name != "get_stack_attribution":
            yield name, partial(call, function, None, 100_000)


def query_faults(queries: Any, ours: str, theirs: str, devices: list[int], events: int) -> Iterator[str]:
    """Functions whose results differ."""
    for name, query in calls(queries, devices, events):
        mine, other = query(ours), query(theirs)
        mine, other = ([normal(row) for row in rows] if isinstance(rows, list) else rows for rows in (mine, other))
        if not same(name, mine, other):
            yield f"{name}: {first_difference(mine, other)}"


def first_difference(ours: Any, theirs: Any) -> str:
    """The first row that differs, short enough to read."""
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{len(ours)} rows on npusnap's database, {len(theirs)} on the tool's own"
        for left, right in zip(ours, theirs):
            if left != right:
                return f"npusnap {str(left)[:300]}, tool {str(right)[:300]}"
    return f"npusnap {str(ours)[:300]}, tool {str(theirs)[:300]}"


def command_line(scripts: str, database: str, mode: str, folder: str, ref: str) -> tuple[str | None, str]:
    """Runs a mode; returns its JSON and what went wrong."""
    command = [sys.executable, os.path.join(scripts, "snapshot_analyze.py"), database, "--mode", mode, "--json"]
    command += ["--ref", ref] if mode == "compare" else []
    command += ["--output", os.path.join(folder, "report.html")] if mode == "all" else []
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode != 0 or "Traceback (most recent" in done.stderr:
        return None, f"--mode {mode}: exit {done.returncode}: {done.stderr[-800:]}"
    return done.stdout, ""


def mode_faults(scripts: str, ours: str, theirs: str | None, folder: str) -> Iterator[str]:
    """Modes that fail on our database, or print something else than on the tool's own."""
    for mode in (*MODES, "all", "compare"):
        text, fault = command_line(scripts, ours, mode, folder, ours)
        if fault:
            yield fault
        elif theirs is not None:
            other, _ = command_line(scripts, theirs, mode, folder, theirs)
            if other is not None and unordered(json.loads(text or "")) != unordered(json.loads(other)):
                yield f"--mode {mode}: other results than on the tool's own database"


def unordered(value: Any) -> Any:
    """JSON without the order of lists, without ids of stacks and with frames normalised."""
    if isinstance(value, dict):
        return {key: unordered(item) for key, item in normal(value).items() if key != "report_path"}
    if isinstance(value, list):
        return sorted((unordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def is_modern(snapshot: Any) -> bool:
    """Whether the tool's converter has all it needs; it writes 0 for what is absent."""
    blocks = [block for segment in expect.segments(expect.top_level(snapshot)) for block in segment["blocks"]]
    return all("address" in block and "requested_size" in block for block in blocks)


def check(scripts: str, binary: str, path: str) -> list[str]:
    """Compares one snapshot; returns what differs."""
    queries = importlib.import_module("snapshot_queries")
    snapshot = expect.load(path)
    top = expect.top_level(snapshot)
    with tempfile.TemporaryDirectory() as folder:
        ours = drive.convert(drive.Case("peer", path, binary=binary), folder)
        theirs = None
        faults: list[str] = []
        if is_modern(snapshot):
            theirs = os.path.join(folder, "theirs.db")
            drive.run([sys.executable, os.path.join(scripts, "snapshot_to_db.py"), path, "-o", theirs])
            events = max((len(trace) for trace in top.get("device_traces", ())), default=0)
            faults += query_faults(queries, ours, theirs, expect.device_indexes(top), events)
        return faults + list(mode_faults(scripts, ours, theirs, folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshots", nargs="*")
    parser.add_argument("--scripts", default=os.environ.get("PEER_SKILL", ""), help="folder of the tool's scripts")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--binary", default="", help="npusnap to run")
    which.add_argument("--seed", action="store_true", help="run seed_reference.py instead")
    args = parser.parse_args()
    if not os.path.isdir(args.scripts):
        print("SKIPPED: no scripts of the existing tool: give --scripts or set PEER_SKILL", file=sys.stderr)
        return 0
    sys.path.insert(0, args.scripts)
    paths = args.snapshots or drive.recordings()
    bad = 0
    for path in paths:
        faults = check(args.scripts, args.binary, path)
        bad += bool(faults)
        print(f"{os.path.basename(path)}: {'; '.join(faults) if faults else 'same results'}")
    print(f"{len(paths)} snapshots, {bad} with differences")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
