#!/usr/bin/env python3
"""Writes variants of a snapshot: other encodings of the same rows, and odd content that real files have shown.

    mutate.py encodings SNAPSHOT OUTDIR     the same snapshot in other bytes; the rows must not change
    mutate.py contents SNAPSHOT OUTDIR      the snapshot with something odd in it, one oddity per file
    mutate.py handmade OUTDIR               a small snapshot that has every field once, and other hand-written ones

Each file is `OUTDIR/NAME.pickle`; the names written are printed, one a line. What the rows must be is not said here:
`rows.py` takes it from the written file.
"""

from __future__ import annotations

import argparse
import copy
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import expect
from jit_pickler import JitPickler
from oddities import CONTENTS, ENTRY, FRAME, NOTE, dicts

Snapshot = Any
Writer = Callable[[Snapshot, Any], None]


# ------------------------------------------------------------------------------------------------- encodings


def c_pickler(protocol: int, fast: bool = False) -> Writer:
    """CPython's accelerated pickler; `fast` writes no memo."""

    def write(snapshot: Snapshot, file: Any) -> None:
        pickler = pickle.Pickler(file, protocol)
        pickler.fast = fast
        pickler.dump(snapshot)

    return write


def python_pickler(protocol: int, fast: bool = False) -> Writer:
    """The pure Python pickler: it ends batches in another way."""

    def write(snapshot: Snapshot, file: Any) -> None:
        pickler = pickle._Pickler(file, protocol)  # type: ignore[attr-defined]
        pickler.fast = fast
        pickler.dump(snapshot)

    return write


def jit_pickler(snapshot: Snapshot, file: Any) -> None:
    """PyTorch's C++ writer."""
    JitPickler(file).dump(snapshot)


def padded(snapshot: Snapshot, file: Any) -> None:
    """The viewer pads pickles with NULs before it encodes them."""
    pickle.dump(snapshot, file, protocol=4)
    file.write(b"\0\0\0")


def with_garbage(snapshot: Snapshot, file: Any) -> None:
    """What stands after STOP is no part of the pickle."""
    pickle.dump(snapshot, file, protocol=4)
    file.write(b"\x80\x04]\x94.garbage")


WRITERS: dict[str, Writer] = {
    **{f"protocol_{n}": c_pickler(n) for n in range(6)},
    **{f"python_protocol_{n}": python_pickler(n) for n in (0, 1, 2, 4)},
    "memo_free": c_pickler(4, fast=True),
    "memo_free_protocol_2": c_pickler(2, fast=True),
    "python_memo_free": python_pickler(3, fast=True),
    "jit": jit_pickler,
    "trailing_nuls": padded,
    "trailing_garbage": with_garbage,
}


def reorder(value: Any, order: Callable[[list[Any]], list[Any]]) -> Any:
    """A deep copy whose dicts have their keys in another order. Sharing is kept: equal identities stay equal."""
    seen: dict[int, Any] = {}

    def visit(item: Any) -> Any:
        if not isinstance(item, (dict, list)):
            return item
        if id(item) not in seen:
            if isinstance(item, dict):
                seen[id(item)] = {key: visit(item[key]) for key in order(list(item))}
            else:
                seen[id(item)] = [visit(part) for part in item]
        return seen[id(item)]

    return visit(value)


def deep(value: Any) -> Any:
    """A copy that shares nothing with itself: every frame, list and string is inline."""
    if isinstance(value, dict):
        return {key: deep(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(deep(item) for item in value)
    return value


def pool_ids_as_lists(snapshot: Snapshot) -> Snapshot:
    """JSON knows no tuples, so tools that went through it write lists."""
    for item in dicts(snapshot):
        for key in ("pool_id", "segment_pool_id"):
            if key in item:
                item[key] = list(item[key])
    return snapshot


def one_empty_list(snapshot: Snapshot) -> Snapshot:
    """All that is empty is the same object, and so is every equal stack."""
    shared: dict[tuple[int, ...], list[Any]] = {}
    for item in dicts(snapshot):
        for key in ("frames", "history", "blocks"):
            if isinstance(item.get(key), list) and (key == "frames" or not item[key]):
                item[key] = shared.setdefault(tuple(map(id, item[key])), item[key])
    return snapshot


def booleans_as_numbers(snapshot: Snapshot) -> Snapshot:
    """Converters write flags as 0 and 1."""
    for item in dicts(snapshot):
        if "is_expandable" in item:
            item["is_expandable"] = int(item["is_expandable"])
    return snapshot


RESHAPES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "keys_reversed": lambda snapshot: reorder(snapshot, lambda keys: keys[::-1]),
    "keys_sorted": lambda snapshot: reorder(snapshot, sorted),
    "unshared": deep,
    "pool_ids_as_lists": pool_ids_as_lists,
    "one_empty_list": one_empty_list,
    "booleans_as_numbers": booleans_as_numbers,
}
"""Other objects with the same meaning, written by the default pickler. Key order changes ids, never content."""


def encodings(path: str) -> Iterator[tuple[str, Writer, Snapshot]]:
    """Every other encoding of the snapshot at `path`."""
    snapshot = expect.load(path)
    for name, writer in WRITERS.items():
        yield name, writer, first_events(snapshot) if "memo_free" in name else snapshot
    for name, reshape in RESHAPES.items():
        copied = expect.load(path)
        yield name, c_pickler(4), reshape(first_events(copied) if name == "unshared" else copied)
    yield "keys_reversed_jit", jit_pickler, RESHAPES["keys_reversed"](snapshot)
    yield "traces_first", c_pickler(4), traces_first(snapshot)


def first_events(snapshot: Snapshot, count: int = 200) -> Snapshot:
    """The snapshot with a few events of each device: without sharing every stack is written at every use."""
    if isinstance(snapshot, list):
        return snapshot
    traces = [trace[:count] for trace in snapshot.get("device_traces", [])]
    return {**snapshot, "device_traces": traces}


def traces_first(snapshot: Snapshot) -> Snapshot:
    """`device_traces` before `segments`, as in the C++ writer's dicts and after a round trip through sorted JSON."""
    if isinstance(snapshot, list):
        return snapshot
    keys = sorted(snapshot, key=lambda key: key != "device_traces")
    return {key: snapshot[key] for key in keys}


# -------------------------------------------------------------------------------------------------- contents


def contents(path: str) -> Iterator[tuple[str, Writer, Snapshot]]:
    """The snapshot with one oddity each, written in turn by CPython's protocols and the C++ writer."""
    writers = (c_pickler(4), jit_pickler, c_pickler(2), c_pickler(5), c_pickler(0))
    for number, (name, change) in enumerate(CONTENTS.items()):
        # The copy shares what the original shares, and no dict that a change could reach twice.
        top = copy.deepcopy(dict(expect.top_level(expect.load(path))))
        change(top)
        yield name, writers[number % len(writers)], top


# -------------------------------------------------------------------------------------------------- handmade


def small() -> dict[str, Any]:
    """A snapshot of two devices in which a person can follow every row."""
    stack = [FRAME, {"name": "main", "filename": "train.py", "line": 3}]
    blocks = [
        {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": stack},
        {"address": 5120, "size": 512, "requested_size": 512, "state": "active_pending_free", "frames": [FRAME]},
        {"address": 5632, "size": 2048, "requested_size": 0, "state": "inactive", "frames": []},
    ]
    segment = {
        "device": 0, "address": 4096, "total_size": 3584, "allocated_size": 1024, "active_size": 1536,
        "requested_size": 1512, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 1),
        "is_expandable": True, "blocks": blocks, "frames": stack,
    }
    trace = [
        {**ENTRY, "action": "segment_alloc", "size": 3584, "time_us": 10},
        {**ENTRY, "size": 1000, "frames": stack, "time_us": 12},
        {"action": "oom", "device_free": 0, "size": 1 << 40, "stream": 0, "time_us": 14},
    ]
    return {"segments": [segment], "device_traces": [trace, [], [dict(ENTRY)]], "external_annotations": [dict(NOTE)]}


def handmade() -> Iterator[tuple[str, Writer, Snapshot]]:
    """Snapshots that need no file to start from."""
    everything = small()
    for name in ("highest_address", "named_ranges", "settings", "surrogates", "optional_values", "host_memory", "workspace", "oom_variants"):
        CONTENTS[name](everything)
    yield "small", c_pickler(4), small()
    yield "everything", c_pickler(4), everything
    yield "everything_jit", jit_pickler, everything
    yield "nothing", c_pickler(4), {"segments": [], "device_traces": []}
    yield "nothing_jit", jit_pickler, {"segments": [], "device_traces": [[], []]}
    yield "empty_list", c_pickler(4), []
    yield "list_of_one", c_pickler(2), small()["segments"]
    yield "traces_only", c_pickler(4), {"segments": [], "device_traces": small()["device_traces"]}
    yield "no_address", c_pickler(4), {"segments": [{**small()["segments"][0], "address": None, "blocks": [
        {"size": 512, "requested_size": 1, "state": "inactive"}]}], "device_traces": []}


# ------------------------------------------------------------------------------------------------------ main


def write_all(variants: Iterator[tuple[str, Writer, Snapshot]], folder: str) -> list[str]:
    """Writes variants into a folder; returns the files."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for name, writer, snapshot in variants:
        paths.append(os.path.join(folder, f"{name}.pickle"))
        with open(paths[-1], "wb") as file:
            writer(snapshot, file)
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("encodings", "contents"):
        sub = kinds.add_parser(kind)
        sub.add_argument("snapshot")
        sub.add_argument("outdir")
    kinds.add_parser("handmade").add_argument("outdir")
    args = parser.parse_args()
    sources = {"encodings": encodings, "contents": contents}
    variants = handmade() if args.kind == "handmade" else sources[args.kind](args.snapshot)
    print("\n".join(write_all(variants, args.outdir)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
