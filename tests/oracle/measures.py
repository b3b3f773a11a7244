#!/usr/bin/env python3
"""Compares the modes fragment and oom of `npusnap analyze` with sums over the unpickled snapshot.

    measures.py BINARY SNAPSHOT...               fragmentation and failures worked out here, and the truth beside it
    measures.py BINARY --tools DIR [--runs N]    the generator's truth, over seeds and flags

Sums of the final state are compared exactly. A failure is replayed forward here: what is mapped is exact, and so is what is
allocated where every block is as large as its request rounded up; without expandable segments a block of a large segment
may be up to 1 MiB larger, and the figures have to lie within that.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

MIB = 1 << 20


class Difference(Exception):
    """What npusnap says is not what was worked out here."""


def analyze(binary: str, source: str, mode: str) -> Any:
    """The result of a mode."""
    command = [binary, "--quiet", "analyze", source, "--no-cache", "--mode", mode, "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise Difference(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)["result"]


def same(what: str, found: Any, expected: Any) -> None:
    """Exact, except for ratios, which are divisions of the same integers."""
    close = isinstance(found, float) and isinstance(expected, (int, float)) and abs(found - expected) < 1e-12
    if found != expected and not close:
        raise Difference(f"{what}: npusnap says {found!r}, here it is {expected!r}")


def ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# ------------------------------------------------------------------------------------------------------- final state

def workspaces(snapshot: Mapping[str, Any]) -> set[tuple[int, int]]:
    """Device and address of the workspace blocks that the head of a trace describes."""
    found = set()
    for device, trace in enumerate(snapshot.get("device_traces", [])):
        found |= {(device, entry["addr"]) for entry in trace if entry["action"] == "workspace_snapshot"}
    return found


def blocks(segment: Mapping[str, Any], state: str) -> list[int]:
    return [block["size"] for block in segment["blocks"] if block["state"] == state]


def requested(block: Mapping[str, Any]) -> int | None:
    """Bytes a block was asked for; in the oldest form its history says so, the newest entry first."""
    if "requested_size" in block:
        return int(block["requested_size"])
    history = block.get("history") or []
    return int(history[0]["real_size"]) if history else None


def expected_device(segments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reserved = sum(segment["total_size"] for segment in segments)
    allocated = sum(sum(blocks(segment, "active_allocated")) for segment in segments)
    pending = sum(sum(blocks(segment, "active_pending_free")) for segment in segments)
    holes = unused = private = 0
    for segment in segments:
        free = sum(blocks(segment, "inactive"))
        if segment.get("segment_pool_id", (0, 0)) != (0, 0):
            private += free
        elif free == segment["total_size"]:
            unused += free
        else:
            holes += free
    active = [b for segment in segments for b in segment["blocks"] if b["state"] != "inactive"]
    asked = [requested(block) for block in active]
    return {
        "reserved": reserved,
        "allocated": allocated,
        "fragmentation_ratio": ratio(reserved - allocated, reserved),
        "pending_free_bytes": pending,
        "pending_free_share": ratio(pending, reserved - allocated),
        "hole_bytes": holes,
        "unused_segment_bytes": unused,
        "private_free_bytes": private,
        "largest_free_block": max((size for s in segments for size in blocks(s, "inactive")), default=0),
        "internal_waste_bytes":
            None if None in asked else sum(b["size"] - (size or 0) for b, size in zip(active, asked)),
    }


def check_fragment(binary: str, path: str, snapshot: Mapping[str, Any]) -> None:
    result = analyze(binary, path, "fragment")
    left_out = workspaces(snapshot)
    pool = [s for s in snapshot["segments"] if (s["device"], s.get("address")) not in left_out]
    for device in result["devices"]:
        own = [s for s in pool if s["device"] == device["device_index"]]
        for key, value in expected_device(own).items():
            same(f"device {device['device_index']}: {key}", device[key], value)
    rows = [
        (ratio(s["total_size"] - sum(blocks(s, "active_allocated")), s["total_size"]), s["device"], s.get("address"),
         s["total_size"], sum(blocks(s, "active_allocated")), max(blocks(s, "inactive"), default=0))
        for s in pool if s["device"] >= 0
    ]
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    found = [
        (row["fragmentation_ratio"], row["device_index"], int(row["address"], 16), row["total_size"],
         row["allocated_size"], row["largest_free_block"])
        for row in result["segments"]
    ]
    same("segments, worst first", found, rows)


# ---------------------------------------------------------------------------------------------------------- failures

def rounded(size: int) -> int:
    return max(512, -(-size // 512) * 512)


def replay(trace: Sequence[Mapping[str, Any]], until: int) -> tuple[dict[int, int], dict[int, int], set[int]]:
    """Mapped ranges, active blocks (both address -> bytes) and the addresses of those that wait for a stream."""
    mapped: dict[int, int] = {}
    active: dict[int, int] = {}
    pending: set[int] = set()
    for entry in trace[: until + 1]:
        action, size = entry["action"], entry["size"]
        address = entry.get("addr", 0)
        if action in ("segment_alloc", "segment_map"):
            mapped[address] = size
        elif action in ("segment_free", "segment_unmap"):
            cut(mapped, address, size)
        elif action == "alloc":
            active[address] = rounded(size)
        elif action == "free_requested":
            pending.add(address)
        elif action == "free_completed":
            pending.discard(address)
            active.pop(address, None)
    return mapped, active, pending


def cut(mapped: dict[int, int], address: int, size: int) -> None:
    """Takes a range out of those that are mapped; it may lie across several."""
    for start, length in list(mapped.items()):
        low, high = max(start, address), min(start + length, address + size)
        if low >= high:
            continue
        del mapped[start]
        if start < low:
            mapped[start] = low - start
        if high < start + length:
            mapped[high] = start + length - high


def joined(mapped: Mapping[int, int], expandable: bool) -> list[list[int]]:
    ranges: list[list[int]] = []
    for start, length in sorted(mapped.items()):
        if expandable and ranges and ranges[-1][1] == start:
            ranges[-1][1] = start + length
        else:
            ranges.append([start, start + length])
    return ranges


def largest_gap(ranges: Sequence[Sequence[int]], active: Mapping[int, int]) -> int:
    largest = 0
    ordered = sorted(active.items())
    for low, high in ranges:
        at = low
        for address, size in ordered:
            if low <= address < high:
                largest = max(largest, address - at)
                at = address + size
        largest = max(largest, high - at)
    return largest


def check_oom(binary: str, path: str, snapshot: Mapping[str, Any]) -> int:
    events = analyze(binary, path, "oom")["events"]
    expected = [
        (device, index) for device, trace in enumerate(snapshot["device_traces"])
        for index, entry in enumerate(trace) if entry["action"] == "oom"
    ]
    same("failures", [(event["device_index"], event["trace_index"]) for event in events], expected)
    for event in events:
        device, index = event["device_index"], event["trace_index"]
        trace = snapshot["device_traces"][device]
        what = f"device {device}, event {index}"
        entry = trace[index]
        same(f"{what}: requested", event["requested"], entry["size"])
        same(f"{what}: device_free", event["device_free"], entry.get("device_free"))
        before = [(row["trace_index"], row["action"], row["size"]) for row in event["preceding"]]
        wanted = [(at, trace[at]["action"], trace[at]["size"]) for at in range(index - 1, max(-1, index - 51), -1)]
        same(f"{what}: preceding", before, wanted)
        mapped, active, pending = replay(trace, index)
        expandable = all(segment.get("is_expandable") for segment in snapshot["segments"])
        same(f"{what}: reserved", event["reserved"], sum(mapped.values()))
        waiting = sum(active[address] for address in pending)
        allocated = sum(active.values()) - waiting
        gap = largest_gap(joined(mapped, expandable), active)
        slack = 0 if expandable else sum(MIB for size in active.values() if size > MIB)
        if not allocated <= event["allocated"] <= allocated + slack:
            raise Difference(f"{what}: allocated {event['allocated']}, here {allocated} to {allocated + slack}")
        if not gap - (0 if expandable else MIB) <= event["largest_free_block"] <= gap:
            raise Difference(f"{what}: largest free block {event['largest_free_block']}, here up to {gap}")
        if expandable:
            same(f"{what}: pending_free_bytes", event["pending_free_bytes"], waiting)
    return len(events)


# ------------------------------------------------------------------------------------------------ the generator's truth

def check_truth(binary: str, path: str, truth: Mapping[str, Any]) -> None:
    fragment, oom = analyze(binary, path, "fragment"), analyze(binary, path, "oom")
    segments = fragment["segments"]
    for device in truth["devices"]:
        index, expected = device["device"], device["fragmentation"]
        found = next((row for row in fragment["devices"] if row["device_index"] == index), None)
        if found is None:
            same(f"device {index} is not in the file and holds", device["final"]["reserved"], 0)
            continue
        what = f"device {index}"
        same(f"{what}: rate", found["fragmentation_ratio"] or 0.0, expected["rate"])
        same(f"{what}: pending", found["pending_free_bytes"], expected["pending_free_bytes"])
        same(f"{what}: pending share", found["pending_free_share"] or 0.0, expected["pending_share_of_gap"])
        worst = [row for row in segments if row["device_index"] == index][:5]
        worst = [(int(row["address"], 16), row["total_size"], row["allocated_size"]) for row in worst]
        wanted = [(row["address"], row["total_size"], row["allocated_size"]) for row in expected["worst_segments"]]
        same(f"{what}: worst segments", worst, wanted)
        events = [event for event in oom["events"] if event["device_index"] == index]
        same(f"{what}: failures", len(events), device["action_counts_window"].get("oom", 0))
        for event, wanted in zip(events, device.get("oom_events", [])):
            for key in ("trace_index", "requested", "device_free", "reserved", "allocated"):
                same(f"{what}, event {event['trace_index']}: {key}", event[key], wanted[key])


def flags(seed: int) -> list[str]:
    choose = random.Random(seed)
    picked = ["--seed", str(seed), "--events", str(choose.randint(300, 3000))]
    picked += ["--dialect", choose.choice(["npu", "cuda"]), "--devices", str(choose.randint(1, 3))]
    for flag in ("--expandable", "--oom", "--leak"):
        picked += [flag] if choose.random() < 0.5 else []
    if choose.random() < 0.5:
        picked += ["--max-entries", str(choose.randint(50, 1500))]
    return picked


def check_generated(binary: str, tools: pathlib.Path, runs: int) -> None:
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        snapshot, truth = f"{folder}/s.pickle", f"{folder}/t.json"
        for seed in range(runs):
            command = [sys.executable, str(tools / "gen_snapshot.py"), *flags(seed), "--out", snapshot, "--truth", truth]
            subprocess.run(command, check=True, capture_output=True)
            with open(truth, encoding="utf-8") as file:
                known = json.load(file)
            try:
                check_truth(binary, snapshot, known)
            except Difference as difference:
                raise Difference(f"{' '.join(command[2:])}: {difference}") from None
            failures += sum(device["action_counts_window"].get("oom", 0) for device in known["devices"])
    print(f"measures: {runs} generated snapshots with {failures} failed requests agree")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("snapshots", nargs="*")
    parser.add_argument("--tools", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    try:
        if arguments.tools:
            check_generated(arguments.binary, arguments.tools, arguments.runs)
        for path in arguments.snapshots:
            with open(path, "rb") as file:
                snapshot = pickle.load(file)  # noqa: S301
            if isinstance(snapshot, list):
                snapshot = {"segments": snapshot, "device_traces": []}
            check_fragment(arguments.binary, path, snapshot)
            failures = check_oom(arguments.binary, path, snapshot)
            truth = pathlib.Path(path).with_suffix(".truth.json")
            if truth.exists():
                check_truth(arguments.binary, path, json.loads(truth.read_text(encoding="utf-8")))
            print(f"measures: {pathlib.Path(path).name}: {len(snapshot['segments'])} segments, {failures} failures agree")
    except Difference as difference:
        sys.exit(str(difference))


if __name__ == "__main__":
    main()
