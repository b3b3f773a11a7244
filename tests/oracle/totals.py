#!/usr/bin/env python3
"""Compares `npusnap analyze --mode overview` with sums over the unpickled snapshot and with the generator's truth.

    totals.py --binary NPUSNAP SNAPSHOT [--truth FILE] [--show]

The binary gets the snapshot itself, or with --source a database or store made from it. Exits with 1 where a figure,
a key or a type of the JSON differs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import expect

STATES = ("active_allocated", "active_pending_free", "inactive")
ENVELOPE: dict[str, type] = {
    "npusnap": int, "version": str, "snapshot": dict, "mode": str, "thresholds": dict, "import_stats": list,
    "findings": list, "result": dict,
}
SEVERITIES = ("ok", "info", "warning", "critical")

Figures = dict[str, Any]


def overview(binary: str, source: str) -> Any:
    """The command's JSON; what it says on standard error ends up in the exception."""
    # Without the cache: recordings lie in a folder that is not ours to write to.
    command = [binary, "--quiet", "analyze", source, "--no-cache", "--mode", "overview", "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def add(values: Sequence[int | None]) -> int | None:
    """A sum; unknown where a part is. Integers, so nothing is lost."""
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)


def workspace_places(trace: Sequence[Mapping[str, Any]]) -> set[tuple[Any, Any]]:
    """Address and size of the blocks that triplets at the head of a trace describe."""
    return {(entry.get("addr"), entry.get("size")) for entry in trace[: expect.workspace_entries(trace)]}


def is_workspace(segment: Mapping[str, Any], places: set[tuple[Any, Any]]) -> bool:
    """A workspace segment has one block, always shown as inactive, and a triplet in its device's trace."""
    blocks = segment["blocks"]
    place = (segment.get("address"), segment["total_size"])
    return place in places and len(blocks) == 1 and blocks[0]["state"] == "inactive"


def block_request(block: Mapping[str, Any]) -> int | None:
    """Requested size of a block; before 2.1 its history knows."""
    requested: int | None = block.get("requested_size")
    history = block.get("history") or [{}]
    return requested if "frames" in block else history[0].get("real_size", requested)


def device_figures(device: int, segments: list[Mapping[str, Any]], trace: Sequence[Mapping[str, Any]]) -> Figures:
    """Contract section 4, mode overview, of one device."""
    places = workspace_places(trace)
    own = [segment for segment in segments if not is_workspace(segment, places)]
    blocks = [block for segment in own for block in segment["blocks"]]
    by_state = {state: [b for b in blocks if expect.block_state(b["state"]) == state] for state in STATES}
    active = by_state["active_allocated"] + by_state["active_pending_free"]
    sizes = {state: sum(block["size"] for block in part) for state, part in by_state.items()}
    reserved = sum(segment["total_size"] for segment in own)
    allocated = add([segment.get("allocated_size") for segment in own])
    requested = add([segment.get("requested_size") for segment in own])
    return {
        "device_index": device,
        "reserved": reserved,
        "allocated": sizes["active_allocated"] if allocated is None else allocated,
        "active": sizes["active_allocated"] + sizes["active_pending_free"]
        if (value := add([segment.get("active_size") for segment in own])) is None else value,
        "requested": add([block_request(block) for block in active]) if requested is None else requested,
        "allocated_requested": add([block_request(block) for block in by_state["active_allocated"]]),
        "active_requested": add([block_request(block) for block in active]),
        "fragmentation_ratio": (reserved - (allocated or 0)) / reserved if reserved else None,
        "segment_count": len(own),
        "block_count": len(blocks),
        "blocks": {state: {"count": len(part), "bytes": sizes[state]} for state, part in by_state.items()},
        "trace_count": expect.workspace_flags(trace).count(False),
        "workspace_bytes": sum(segment["total_size"] for segment in segments if segment not in own),
    }


def snapshot_figures(snapshot: Any) -> dict[int, Figures]:
    """Figures of every device, summed over the unpickled snapshot."""
    top = expect.top_level(snapshot)
    traces = dict(enumerate(top.get("device_traces", ())))
    if top.get("host_traces"):
        traces[expect.HOST_DEVICE] = top["host_traces"]
    return {
        device: device_figures(
            device, [segment for segment in expect.segments(top) if segment["device"] == device], traces.get(device, ())
        )
        for device in expect.device_indexes(top)
    }


def truth_figures(truth: Any, has_traces: bool) -> dict[int, Figures]:
    """The generator's own account of the final state, in the contract's words."""
    out = {}
    for device in truth["devices"]:
        final = device["final"]
        if not final["segments"] and not (device["events_in_window"] and has_traces) and not device["workspace_bytes"]:
            continue  # the device was there, but nothing in the file is about it
        out[device["device"]] = {
            "reserved": final["reserved"],
            "allocated": final["allocated"],
            "active": final["active"],
            "requested": final["active_requested"],
            "allocated_requested": final["allocated_requested"],
            "active_requested": final["active_requested"],
            "fragmentation_ratio": device["fragmentation"]["rate"] if final["reserved"] else None,
            "segment_count": final["segments"],
            "block_count": sum(state["count"] for state in final["blocks"].values()),
            "blocks": final["blocks"],
            "trace_count": device["events_in_window"] if has_traces else 0,
            "workspace_bytes": workspace_bytes(truth, device, has_traces),
        }
    return out


def workspace_bytes(truth: Any, device: Any, has_traces: bool) -> int:
    """A list of segments has no triplets, and one writer of the reference generator knows no workspace."""
    return device["workspace_bytes"] if has_traces and truth["generator"].get("pickler") != "jit" else 0


def differences(path: str, want: Any, have: Any) -> Iterator[str]:
    """Expected figures that are missing or differ; more may stand beside them."""
    if isinstance(want, dict):
        for key, value in want.items():
            yield from differences(f"{path}.{key}", value, have.get(key, "no such key") if isinstance(have, dict) else have)
    elif isinstance(want, float) and isinstance(have, (int, float)):
        if not math.isclose(want, have, rel_tol=1e-12):
            yield f"{path}: expected {want!r}, found {have!r}"
    elif type(want) is not type(have) or want != have:
        yield f"{path}: expected {want!r}, found {have!r}"


def envelope_faults(document: Any) -> Iterator[str]:
    """Keys and types that every mode has."""
    for key, kind in ENVELOPE.items():
        if not isinstance(document.get(key), kind):
            yield f"{key}: expected {kind.__name__}, found {document.get(key, 'no such key')!r}"
    if document.get("npusnap") != 1 or document.get("mode") != "overview":
        yield f"envelope: {document.get('npusnap')!r}, mode {document.get('mode')!r}"
    for finding in document.get("findings", ()):
        keys = {"rule", "severity", "subject", "message", "evidence"}
        if not keys <= set(finding) or finding["severity"] not in SEVERITIES:
            yield f"odd finding {finding}"


def compare(binary: str, snapshot_path: str, truth_path: str | None = None, source: str | None = None) -> list[str]:
    """Runs the command and compares; returns what differs."""
    try:
        document = overview(binary, source or snapshot_path)
    except (RuntimeError, ValueError) as error:
        return [str(error)]
    faults = list(envelope_faults(document))
    if faults:
        return faults
    snapshot = expect.load(snapshot_path)
    # Pinned host memory is kept apart from the devices.
    result = document["result"]
    found = {device["device_index"]: device for device in [*result["devices"], *result.get("host", [])]}
    if any(device["device_index"] == expect.HOST_DEVICE for device in result["devices"]):
        faults.append("host memory stands among the devices")
    wanted = {"snapshot": snapshot_figures(snapshot)}
    if truth_path is not None:
        with open(truth_path, encoding="utf-8") as file:
            truth = json.load(file)
        wanted["truth"] = truth_figures(truth, not isinstance(snapshot, list))
        for device, figures in wanted["truth"].items():
            summed = wanted["snapshot"].get(device, {})
            faults.extend(differences(f"truth against the snapshot, device {device}", figures, summed))
    for name, devices in wanted.items():
        if name == "snapshot" and list(found) != list(devices):
            faults.append(f"devices: expected {list(devices)}, found {list(found)}")
        for device, figures in devices.items():
            faults.extend(differences(f"{name} device {device}", figures, found.get(device, {})))
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot")
    parser.add_argument("--binary", required=True, help="npusnap to run")
    parser.add_argument("--truth", help="truth file that gen_snapshot.py or `npusnap synth` wrote")
    parser.add_argument("--source", help="what to analyze instead of the snapshot")
    parser.add_argument("--show", action="store_true", help="print the expected figures")
    args = parser.parse_args()
    if args.show:
        print(json.dumps(list(snapshot_figures(expect.load(args.snapshot)).values()), indent=1))
    faults = compare(args.binary, args.snapshot, args.truth, args.source)
    print("\n".join(faults) if faults else f"equal: {args.snapshot}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
