"""Takes exported pickles back event by event, as PyTorch's viewer does, and fails where that viewer would.

    viewer.py FOLDER        holds viz.pickle, part.pickle and plain.pickle

The viewer starts from the final state and undoes one event after the other. It stops at a block that lies in no segment
and at a segment event that does not fit, so an export must never lead there.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import sys

KNOWN = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom"}


class Plain(pickle.Unpickler):
    """Builds nothing but lists, dicts, tuples, numbers and texts."""

    def find_class(self, module, name):
        raise SystemExit(f"the pickle names {module}.{name}")


def load(path: str):
    with open(path, "rb") as file:
        return Plain(file).load()


def protocol(path: str) -> int:
    with open(path, "rb") as file:
        return next(argument for opcode, argument, _ in pickletools.genops(file) if opcode.name == "PROTO")


def undo(snapshot: dict, device: int) -> int:
    """Undoes every event of a device; the number of states that were looked at."""
    segments = {}
    blocks = {}
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        at = segment["address"]
        segments[at] = segment["total_size"]
        sums = {"active_allocated": 0, "active_pending_free": 0, "inactive": 0}
        for block in segment["blocks"]:
            assert block["address"] == at, "blocks tile their segment"
            assert isinstance(block["frames"], list) and block["requested_size"] is not None
            sums[block["state"]] += block["size"]
            if block["state"] != "inactive":
                blocks[at] = block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"], "blocks fill their segment"
        assert segment["allocated_size"] == sums["active_allocated"]
        assert segment["active_size"] == sums["active_allocated"] + sums["active_pending_free"]

    def look() -> None:
        places = sorted(segments.items())
        for addr in blocks:
            assert any(start <= addr < start + size for start, size in places), f"block {addr:#x} lies in no segment"

    events = snapshot["device_traces"][device]
    times = [event["time_us"] for event in events]
    assert all(isinstance(time, int) for time in times)
    look()
    for event in reversed(events):
        action, addr, size = event["action"], event.get("addr"), event["size"]
        assert action in KNOWN and isinstance(event["frames"], list) and isinstance(event["stream"], int)
        if action == "alloc":
            assert blocks.pop(addr, None) is not None, f"no block {addr:#x} to take back"
        elif action == "free_completed":
            assert addr not in blocks
            blocks[addr] = size
        elif action == "free_requested":
            assert addr in blocks
        elif action == "segment_alloc":
            assert segments.pop(addr) == size
        elif action == "segment_free":
            segments[addr] = size
        elif action == "segment_map":
            start = max(at for at in segments if at <= addr)
            stop = start + segments.pop(start)
            assert addr + size <= stop, "the mapped range is there"
            if start < addr:
                segments[start] = addr - start
            if addr + size < stop:
                segments[addr + size] = stop - addr - size
        elif action == "segment_unmap":
            segments[addr] = size
            for start in sorted(segments):
                behind = start + segments.get(start, 0)
                while start in segments and behind in segments and behind != start:
                    segments[start] += segments.pop(behind)
                    behind = start + segments[start]
        elif action == "oom":
            assert isinstance(event["device_free"], int)
        if not action.startswith("segment_"):
            look()
    return len(events)


def main(folder: str) -> None:
    looked = 0
    for name in ["viz.pickle", "part.pickle"]:
        path = os.path.join(folder, name)
        assert protocol(path) == 4
        snapshot = load(path)
        assert {"segments", "device_traces", "allocator_settings", "external_annotations"} <= snapshot.keys()
        devices = {segment["device"] for segment in snapshot["segments"]}
        assert all(device < len(snapshot["device_traces"]) for device in devices)
        for device in range(len(snapshot["device_traces"])):
            looked += undo(snapshot, device)
    assert load(os.path.join(folder, "plain.pickle"))
    print(f"viewer: {looked} events taken back")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
