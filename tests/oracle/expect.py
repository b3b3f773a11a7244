"""The rows a snapshot must become, worked out by Python's own unpickler.

Nothing here is taken from npusnap's code: the column names are the contract's, the meaning of the fields is the
format's. `rows.py` compares the outcome with a database; the other scripts reuse the loader and the walk.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

Value = int | float | str | None
Row = tuple[Value, ...]

HOST_DEVICE = -1

COLUMNS: dict[str, tuple[str, ...]] = {
    "devices": ("id", "device_index", "device_type"),
    "call_stacks": ("id", "stack_hash", "frames_json"),
    "segments": (
        "id", "device_id", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
        "segment_type", "pool_id_0", "pool_id_1", "is_expandable", "stack_id",
    ),
    "blocks": ("id", "segment_id", "address", "size", "requested_size", "state", "stack_id"),
    "traces": (
        "id", "device_id", "trace_index", "action", "addr", "device_free", "size", "stream", "stack_id",
        "time_us", "pool_id_0", "pool_id_1", "compile_context", "user_metadata", "is_workspace",
    ),
    "annotations": ("device_id", "stage", "name", "time_us", "trace_index"),
}
"""Columns in order. The first nine of `traces` are the older tool's, the rest are ours."""

BASE_TABLES = ("devices", "call_stacks", "segments", "blocks", "traces")
BASE_TRACE_COLUMNS = 9


@dataclass(frozen=True)
class Conventions:
    """Where the reference converter fills a gap that the contract leaves NULL. The default is the contract."""

    absent_pool: Value = None
    absent_expandable: Value = None
    absent_block_request_is_size: bool = False


CONTRACT = Conventions()
SEED = Conventions(absent_pool=0, absent_expandable=0, absent_block_request_is_size=True)


class PlainUnpickler(pickle.Unpickler):
    """Refuses every class: a snapshot consists of plain containers, strings and numbers."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a snapshot holds no {module}.{name}")


def load(path: str) -> Any:
    """Unpickles without the collector, which would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        with open(path, "rb") as file:
            return PlainUnpickler(file).load()
    finally:
        if enabled:
            gc.enable()


def top_level(snapshot: Any) -> Mapping[str, Any]:
    """A list of segments is a snapshot without traces."""
    return {"segments": snapshot} if isinstance(snapshot, list) else snapshot


def signed(value: Any) -> Any:
    """64-bit two's complement, as SQLite and Arrow's int64 hold it. Booleans are 0 and 1."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value >= 1 << 63:
        return value - (1 << 64)
    return value


def clean(value: Any) -> Any:
    """Text that UTF-8 can hold: lone surrogates, legal in a pickle, become `\\udXXX` in letters."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def frames_text(frames: Sequence[Mapping[str, Any]]) -> str:
    """The text whose MD5 names the stack: what Python prints, so that the older tool's hashes are the same.

    The unsigned form of line -1 stays what it is here; the nested column of the Parquet file shows -1.
    """
    objects = [{clean(key): clean(value) for key, value in frame.items()} for frame in frames]
    return json.dumps(objects, ensure_ascii=False, sort_keys=True)


def md5(text: str) -> str:
    """Hexadecimal MD5 of the text's UTF-8."""
    return hashlib.md5(text.encode("utf-8")).hexdigest()


class Stacks:
    """Call stacks by content, numbered by the first list in the file that a row points to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._by_text: dict[str, int] = {}
        self._by_identity: dict[tuple[int, ...], int] = {}

    def use(self, frames: Sequence[Mapping[str, Any]] | None) -> int | None:
        """Number of a stack; an empty list is no stack."""
        if not frames:
            return None
        # Frame dicts are shared objects and outlive this walk, so their identities name the list's content.
        identity = tuple(map(id, frames))
        number = self._by_identity.get(identity)
        if number is None:
            text = frames_text(frames)
            number = self._by_text.get(text)
            if number is None:
                self.texts.append(text)
                number = self._by_text[text] = len(self.texts)
            self._by_identity[identity] = number
        return number

    def number(self, text: str) -> int | None:
        """Number of the stack with this JSON text."""
        return self._by_text.get(text)


def pool(container: Mapping[str, Any], key: str, absent: Value) -> tuple[Value, Value]:
    """Both words of a pool id, which is a tuple or a list of two."""
    words = container.get(key)
    return (absent, absent) if words is None else (signed(words[0]), signed(words[1]))


def block_state(state: str) -> str:
    """The documentation's name for the second state never was in a file of PyTorch's own; it means the same."""
    return "active_pending_free" if state == "active_awaiting_free" else clean(state)


def workspace_entries(trace: Sequence[Mapping[str, Any]]) -> int:
    """How many entries at the head are triplets that describe workspace blocks at the moment of the dump."""
    at = 0
    while at + 2 < len(trace):
        triplet = trace[at : at + 3]
        actions = [entry.get("action") for entry in triplet]
        places = {(entry.get("addr"), entry.get("size")) for entry in triplet}
        if actions != ["workspace_snapshot", "segment_alloc", "alloc"] or len(places) != 1:
            break
        at += 3
    return at


def workspace_flags(trace: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Which entries are no events: the triplets at the head, and their marker wherever it stands alone."""
    head = workspace_entries(trace)
    return [at < head or entry.get("action") == "workspace_snapshot" for at, entry in enumerate(trace)]


@dataclass
class Expected:
    """Expected rows. `device_id` columns hold the device *index*; `stack_id` the number by first appearance."""

    stacks: Stacks
    device_indexes: list[int]
    segments: list[Row] = field(default_factory=list)
    blocks: list[Row] = field(default_factory=list)
    traces: list[Row] = field(default_factory=list)
    annotations: list[Row] = field(default_factory=list)
    trace_lists: int | None = None
    high_addresses: Counter[str] = field(default_factory=Counter)
    """How many addresses of segments and blocks, and of events, show negative, by the name of their import_stats row."""


class Walk:
    """Visits a snapshot in the order in which a pickler wrote it: dict by dict, key by key."""

    def __init__(self, snapshot: Any, conventions: Conventions = CONTRACT) -> None:
        self.conventions = conventions
        self.top = top_level(snapshot)
        self.out = Expected(Stacks(), device_indexes(self.top))

    def run(self) -> Expected:
        """Visits everything."""
        for key, value in self.top.items():
            if key in ("segments", "host_segments"):
                for segment in value:
                    self.segment(segment)
            elif key == "device_traces":
                self.out.trace_lists = len(value)
                for device, trace in enumerate(value):
                    self.trace(device, trace)
            elif key == "host_traces":
                self.trace(HOST_DEVICE, value)
        self.annotate()
        return self.out

    def address(self, value: Any, stat: str = "high_segment_addresses") -> Value:
        """An address as it is stored; those that show negative are counted. The C++ writer's are so in the file."""
        stored = signed(value)
        if stored is not None and stored < 0:
            self.out.high_addresses[stat] += 1
        return stored

    def segment(self, segment: Mapping[str, Any]) -> None:
        """One row of `segments`, and its blocks where they stand among its keys."""
        number = len(self.out.segments) + 1
        stack: int | None = None
        for key, value in segment.items():
            if key == "frames":
                stack = self.out.stacks.use(value)
            elif key == "blocks":
                self.blocks(number, segment.get("address"), value)
        word_0, word_1 = pool(segment, "segment_pool_id", self.conventions.absent_pool)
        self.out.segments.append((
            number, segment["device"], self.address(segment.get("address")), signed(segment["total_size"]),
            signed(segment.get("allocated_size")), signed(segment.get("active_size")),
            signed(segment.get("requested_size")), signed(segment.get("stream")), clean(segment.get("segment_type")),
            word_0, word_1, signed(segment.get("is_expandable", self.conventions.absent_expandable)), stack,
        ))

    def blocks(self, segment: int, start: int | None, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Rows of `blocks`. Before 2.1 blocks have no address: they tile their segment."""
        for block in blocks:
            requested, stack = self.allocation(block)
            # What was added up here is no address of the file's, so it is not counted.
            address = self.address(block["address"]) if "address" in block else signed(start)
            self.out.blocks.append((
                len(self.out.blocks) + 1, segment, address, signed(block["size"]),
                signed(requested), block_state(block["state"]), stack,
            ))
            if start is not None:
                start += block["size"]

    def allocation(self, block: Mapping[str, Any]) -> tuple[Any, int | None]:
        """Requested size and call stack: the block's own, else those of the first entry of its `history`.

        Further entries are of allocations that are no more: no row has a place for them.
        """
        fallback = block["size"] if self.conventions.absent_block_request_is_size else None
        requested = block.get("requested_size", fallback)
        if "frames" in block or not block.get("history"):
            return requested, self.out.stacks.use(block.get("frames"))
        first = block["history"][0]
        return first.get("real_size", requested), self.out.stacks.use(first.get("frames"))

    def trace(self, device: int, trace: Sequence[Mapping[str, Any]]) -> None:
        """Rows of `traces` of one device."""
        workspace = workspace_flags(trace)
        for index, entry in enumerate(trace):
            word_0, word_1 = pool(entry, "pool_id", None)
            self.out.traces.append((
                len(self.out.traces) + 1, device, index, clean(entry["action"]), self.address(entry.get("addr"), "high_addresses"),
                signed(entry.get("device_free")), signed(entry.get("size")), signed(entry.get("stream")),
                self.out.stacks.use(entry.get("frames")), signed(entry.get("time_us")), word_0, word_1,
                clean(entry.get("compile_context")), clean(entry.get("user_metadata")), int(workspace[index]),
            ))

    def annotate(self) -> None:
        """Rows of `annotations`: each points to the last event of its device at or before its time."""
        events: dict[int, list[tuple[int, int]]] = {}
        times, index, device = (COLUMNS["traces"].index(name) for name in ("time_us", "trace_index", "device_id"))
        for row in self.out.traces:
            if row[times] is not None:
                events.setdefault(row[device], []).append((row[times], row[index]))  # type: ignore[arg-type]
        clocks = {device: clock(entries) for device, entries in events.items()}
        for note in self.top.get("external_annotations", ()):
            device_index = note.get("device")
            known = device_index if device_index in self.out.device_indexes else None
            nearest = last_at_or_before(clocks.get(device_index, []), note.get("time_us"))
            self.out.annotations.append((
                known, clean(note.get("stage")), clean(note.get("name")), signed(note.get("time_us")), nearest,
            ))


def clock(events: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(time, highest index among events up to that time), sorted: a list's times can go back."""
    ordered = sorted(events)
    return list(zip((time for time, _ in ordered), accumulate((index for _, index in ordered), max), strict=True))


def last_at_or_before(events: Sequence[tuple[int, int]], time_us: int | None) -> int | None:
    """Index of the last event whose time is not after `time_us`, from the pairs that `clock` gives."""
    if time_us is None:
        return None
    low, high = 0, len(events)
    while low < high:
        middle = (low + high) // 2
        if events[middle][0] <= time_us:
            low = middle + 1
        else:
            high = middle
    return events[low - 1][1] if low else None


def device_indexes(top: Mapping[str, Any]) -> list[int]:
    """Devices with a segment or an event, ascending, host memory last."""
    found = {segment["device"] for segment in segments(top)}
    found |= {device for device, trace in enumerate(top.get("device_traces", ())) if trace}
    if top.get("host_traces"):
        found.add(HOST_DEVICE)
    return sorted(found - {HOST_DEVICE}) + ([HOST_DEVICE] if HOST_DEVICE in found else [])


def segments(top: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Segments of devices and of pinned host memory."""
    yield from top.get("segments", ())
    yield from top.get("host_segments", ())


def expect(snapshot: Any, conventions: Conventions = CONTRACT) -> Expected:
    """The rows of an unpickled snapshot."""
    return Walk(snapshot, conventions).run()


def devices_are_ascending(snapshot: Any) -> bool:
    """Whether a reader that goes through the file once can number the devices by their index, host memory last.

    It can where the final state stands before the first event, and the host's events after all others.
    """
    keys = [key for key in top_level(snapshot) if key in ("segments", "device_traces", "host_traces")]
    return keys == sorted(keys, key=("segments", "device_traces", "host_traces").index)


def file_facts(path: str) -> dict[str, Any]:
    """What the `snapshot` table says about the file itself. Protocols 0 and 1 do not name themselves."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        head = file.read(2)
        file.seek(0)
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return {
        "source_name": os.path.basename(path),
        "source_bytes": os.path.getsize(path),
        "sha256": digest.hexdigest(),
        "protocol": {head[1]} if head[:1] == b"\x80" else {0, 1},
    }
