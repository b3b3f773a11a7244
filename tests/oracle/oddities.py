"""Odd content that real snapshots have shown, one oddity per function; each changes the top level of a snapshot in place.

`CONTENTS` has them by name. What the rows must be is not said here: `rows.py` takes it from the written file.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

FRAME = {"name": "forward", "filename": "model.py", "line": 7}
ENTRY = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": [FRAME]}
NOTE = {"name": "step", "stage": "START", "device": 0, "time_us": 1}


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every dict of a snapshot, once each."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)) and id(item) not in seen:
            seen.add(id(item))
            if isinstance(item, dict):
                yield item
            stack.extend(item.values() if isinstance(item, dict) else item)


def events(top: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of the first device that has any; a list of its own is made where none has."""
    traces = top.setdefault("device_traces", [])
    for trace in traces:
        if trace:
            return trace
    traces.append([copy.deepcopy(ENTRY)])
    return traces[-1]


def high_addresses(top: dict[str, Any]) -> None:
    """Addresses of the upper half, as unified memory of some drivers has them."""
    shift = (1 << 63) + (1 << 40)
    for item in dicts(top):
        for key in ("address", "addr"):
            if item.get(key) is not None:
                item[key] += shift


def highest_address(top: dict[str, Any]) -> None:
    """2^64-1 and its neighbours at the edge of the sign."""
    for number, address in enumerate(((1 << 64) - 1, 1 << 63, (1 << 63) - 1, (1 << 64) - 512, 0)):
        events(top).append({**ENTRY, "addr": address, "stream": -number, "size": 1 << (12 * number)})


def unknown_line(top: dict[str, Any]) -> None:
    """The unsigned form of -1 and the signed one are the same line."""
    for line in ((1 << 64) - 1, -1, 0, 1 << 31, (1 << 63) - 1):
        events(top).append({**ENTRY, "frames": [{**FRAME, "line": line}]})


def surrogates(top: dict[str, Any]) -> None:
    """File names that are not UTF-8, as Python's `os.fsdecode` gives them."""
    name = "caf\udce9/\ud800\udc00/é漢🙂\0\x7f\"\\\n"
    frame = {"name": name, "filename": "\udcff", "line": 1, "fx_original_trace": name}
    events(top).append({**ENTRY, "frames": [frame, FRAME], "compile_context": "\udce9", "user_metadata": name})
    events(top).append({**ENTRY, "frames": [{**frame, "name": "caf\\udce9"}]})
    names = [{**NOTE, "name": name}, {**NOTE, "name": ""}]
    top["external_annotations"] = [*top.get("external_annotations", ()), *names]


def unknown_things(top: dict[str, Any]) -> None:
    """A later producer: more keys everywhere, more actions, more top-level keys, some shaped like what we read."""
    extra = {"new_list": [1, [2, {}], ()], "new_dict": {"frames": [FRAME], "size": 3}, "new_none": None, "new_float": 0.5}
    for item in list(dicts(top.get("segments", [])))[:40]:
        if "line" not in item and "real_size" not in item:
            item.update(extra)
    trace = events(top)
    trace.append({**ENTRY, **extra, "action": "teleport"})
    trace.append({**extra, **ENTRY, "action": "user_defined", "addr": 0, "size": 0})
    trace.append({"action": "annotate", "addr": 4096, "size": 512, "stream": 0, "user_metadata": '{"a": 1}'})
    trace.append({**ENTRY, "internal_metadata": "mallocWithAddress", "forward_frames": ["a", "b"], "cpp_frames": ["c"]})
    top["new_number"] = 1
    top["new_segments"] = [{"device": 9, "total_size": 1, "blocks": [], "address": 0}]
    top["new_traces"] = {"device_traces": [[ENTRY]]}
    top["new_nothing"] = None


def oom_variants(top: dict[str, Any]) -> None:
    """`oom` has `device_free` in place of `addr`, both, or neither."""
    base = {"action": "oom", "size": 1 << 30, "stream": 3}
    events(top).extend([{**base, "device_free": 0}, base, {**base, "device_free": 1 << 33, "addr": 0}])


def absent_and_empty(top: dict[str, Any]) -> None:
    """An event without `frames`, one with none in it, and one of C++ frames only."""
    cpp = {"name": "at::native::copy_(at::Tensor&)", "filename": "??", "line": 0}
    bare = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0}
    events(top).extend([bare, {**bare, "frames": []}, {**bare, "frames": [cpp, cpp]}, {**bare, "frames": [cpp]}])


def optional_values(top: dict[str, Any]) -> None:
    """Values that only some producers write, each present, empty and zero."""
    for context, metadata, words, time in (
        ("N/A", "", (0, 0), 0),
        ("0/1_2", "x" * 300, (0, 7), 1_713_558_427_168_556),
        ("", "µ" * 255, [5, 0], 2),
    ):
        events(top).append(
            {**ENTRY, "compile_context": context, "user_metadata": metadata, "pool_id": words, "time_us": time}
        )


def fx_frames(top: dict[str, Any]) -> None:
    """Frames of generated code carry the nodes they came from, or None."""
    node = {"fx_node_op": "call_function", "fx_node_name": "add", "fx_node_target": "add.Tensor"}
    none = {"fx_node_op": None, "fx_node_name": None, "fx_original_trace": 'File "a.py", line 1\n'}
    for extra in (node, none, {}):
        events(top).append({**ENTRY, "frames": [{**FRAME, **extra}, FRAME]})


def host_memory(top: dict[str, Any]) -> None:
    """Pinned host memory: its own device, one block a segment, one flat trace."""
    block = {"address": 1 << 40, "size": 4096, "requested_size": 4096, "state": "active_allocated", "frames": [FRAME]}
    segment = {
        "device": -1, "address": 1 << 40, "total_size": 4096, "allocated_size": 4096, "active_size": 4096,
        "requested_size": 4096, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
        "is_expandable": False, "frames": [], "blocks": [block],
    }
    top["host_segments"] = [segment, {**segment, "address": 0, "blocks": [{**block, "address": 0, "frames": []}]}]
    actions = ("segment_alloc", "alloc", "free_requested", "free_completed", "segment_free")
    top["host_traces"] = [
        {**ENTRY, "action": action, "compile_context": "", "user_metadata": "", "time_us": 5} for action in actions
    ]


def empty_host_memory(top: dict[str, Any]) -> None:
    """The keys are there from 2.14 on, whether or not host history is."""
    top["host_segments"], top["host_traces"] = [], []


def host_traces_first(top: dict[str, Any]) -> None:
    """Host keys before the devices' keys, as in a file with sorted keys."""
    host_memory(top)
    for key in ("segments", "device_traces"):
        if key in top:
            top[key] = top.pop(key)


def device_lists(top: dict[str, Any]) -> None:
    """Trace lists of devices that have no segment, and empty ones around them."""
    top.setdefault("device_traces", []).extend([[], [dict(ENTRY)], [], [dict(ENTRY), dict(ENTRY)], []])


def fewer_lists(top: dict[str, Any]) -> None:
    """Segments on devices that have no list at all."""
    for number, segment in enumerate(top["segments"]):
        segment["device"] = (number * 7) % 12
    top["device_traces"] = top.get("device_traces", [])[:1]


def no_lists(top: dict[str, Any]) -> None:
    """`include_traces=False` gives zero inner lists."""
    top["device_traces"] = []


def no_traces_key(top: dict[str, Any]) -> None:
    """A dict with segments alone."""
    top.pop("device_traces", None)


def one_of_each(top: dict[str, Any]) -> None:
    """Lists with a single element are written without MARK."""
    top["segments"] = top["segments"][:1]
    for segment in top["segments"]:
        segment["blocks"] = segment["blocks"][:1]
    trace = events(top)[:1]
    top["device_traces"] = [trace]
    top["external_annotations"] = [dict(NOTE)]


def named_ranges(top: dict[str, Any]) -> None:
    """END without START, devices that are unknown, times before, at and after the events."""
    for number, time in enumerate((10, 20, 20, 30)):
        events(top).append({**ENTRY, "time_us": (1 << 52) + time, "addr": number})
    times = (0, (1 << 52) + 9, (1 << 52) + 10, (1 << 52) + 20, (1 << 52) + 25, (1 << 53))
    notes = [{"time_us": time, "device": 0, "stage": "END", "name": f"at {time}"} for time in times]
    notes += [{**NOTE, "device": device, "time_us": 1 << 53} for device in (-1, 1, 99)]
    notes += [{"stage": "END", "name": "no device, no time"}, {"device": 0, "time_us": 5}]
    top["external_annotations"] = [*top.get("external_annotations", ()), *notes]


def settings(top: dict[str, Any]) -> None:
    """Settings of a later version, with the overflow keys beside them."""
    top["allocator_settings"] = {
        "PYTORCH_CUDA_ALLOC_CONF": "a:b,é", "max_split_size": -1, "garbage_collection_threshold": 0.8,
        "expandable_segments": True, "roundup_power2_divisions": {"1": 0, "2": 4}, "max_cached_size": 1 << 62,
        "list": [1, None, "x"], "empty": {},
    }
    top["trace_alloc_max_entries"] = [100_000, 1]
    top["trace_alloc_overflowed"] = [True, False]


def states(top: dict[str, Any]) -> None:
    """The documentation's alias of a state, and one that nobody knows."""
    blocks = [block for segment in top["segments"] for block in segment["blocks"]]
    for number, block in enumerate(blocks):
        block["state"] = ("active_awaiting_free", "active_allocated", "inactive", "active_pending_free")[number % 4]


def long_strings(top: dict[str, Any]) -> None:
    """Lengths at which the opcode changes, and one that is written outside of FRAME."""
    for length in (0, 1, 254, 255, 256, 257, 65_535, 65_536, 70_000):
        events(top).append({**ENTRY, "frames": [{"name": "n" * length, "filename": "é" * (length // 2), "line": length}]})


def long_lists(top: dict[str, Any]) -> None:
    """Lengths at which the pickler ends a batch, for events, blocks and frames."""
    trace = events(top)
    for length in (999, 1000, 1001, 2001):
        trace.append({**ENTRY, "frames": [{**FRAME, "line": line} for line in range(length)]})
    top["device_traces"].extend([dict(ENTRY, size=n) for n in range(length)] for length in (999, 1000, 1001, 2001))


def bare_segments(top: dict[str, Any]) -> None:
    """Only what every version wrote: 1.13's segments and blocks, with and without `history`."""
    keep = ("device", "address", "total_size", "allocated_size", "active_size", "stream", "segment_type", "blocks")
    frames = [FRAME]
    for segment in top["segments"]:
        for key in [key for key in segment if key not in keep]:
            del segment[key]
        for number, block in enumerate(segment["blocks"]):
            size, state = block["size"], block["state"]
            block.clear()
            block.update(size=size, state=state)
            if state != "inactive" and number % 3:
                past = [{"addr": 0, "real_size": 1, "frames": [{**FRAME, "line": 99}]}] * (number % 2)
                block["history"] = [{"addr": 0, "real_size": size - 1, "frames": frames}, *past]


def two_zero_blocks(top: dict[str, Any]) -> None:
    """2.0: blocks have `requested_size` and `history`, which may be there without frames, or with `cpp_frames`."""
    bare_segments(top)
    for segment in top["segments"]:
        for block in segment["blocks"]:
            block["requested_size"] = max(0, block["size"] - 3)
            for entry in block.get("history", ()):
                entry["cpp_frames"] = ["a", "b"]
                if block["size"] % 1024:
                    del entry["frames"]


def workspace(top: dict[str, Any]) -> None:
    """Workspace triplets at the head of a list; the same actions later on are ordinary."""
    def triplet(addr: int, size: int) -> list[dict[str, Any]]:
        entry = {"addr": addr, "size": size, "stream": 77, "pool_id": (0, 0)}
        return [{"action": action, **entry} for action in ("workspace_snapshot", "segment_alloc", "alloc")]

    trace = events(top)
    trace[:0] = triplet(1 << 44, 36 << 20) + triplet(1 << 45, 2 << 20) + triplet(0, 1 << 21)
    trace.extend(triplet(1 << 44, 36 << 20))
    top["device_traces"].append(triplet(1 << 44, 4096))
    top["device_traces"].append(triplet(1 << 44, 4096)[:2])
    top["device_traces"].append([*triplet(1 << 44, 4096)[:2], {**ENTRY, "addr": 1}])


CONTENTS: dict[str, Callable[[dict[str, Any]], None]] = {
    function.__name__: function
    for function in (
        high_addresses, highest_address, unknown_line, surrogates, unknown_things, oom_variants, absent_and_empty,
        optional_values, fx_frames, host_memory, empty_host_memory, host_traces_first, device_lists, fewer_lists,
        no_lists, no_traces_key, one_of_each, named_ranges, settings, states, long_strings, long_lists, bare_segments,
        two_zero_blocks, workspace,
    )
}
