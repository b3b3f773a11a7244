#!/usr/bin/env python3
"""Checks a snapshot against its truth file, with nothing but Python's own pickle module.

usage: check_synth.py SNAPSHOT TRUTH [TWIN]

Everything the truth says that a snapshot can show is worked out again from the unpickled objects. A file in CPython's
layout must also be what CPython would write: its objects, pickled again, give the same opcodes. TWIN is the same
simulation in another layout or protocol and must hold equal objects.
"""
import json
import pickle
import pickletools
import sys

COUNTERS = ("reserved", "allocated", "active", "allocated_requested", "active_requested")
SEGMENT_SIGN = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
ENUMERATED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
              "segment_unmap", "snapshot", "oom")


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    return raw, pickle.loads(raw)


def unsigned(snapshot):
    """The same objects with addresses as the C++ pickler means them: it has 64 bits and a sign."""
    if isinstance(snapshot, dict):
        return {key: value % (1 << 64) if key in ("address", "addr") else unsigned(value)
                for key, value in snapshot.items()}
    return [unsigned(item) for item in snapshot] if isinstance(snapshot, list) else snapshot


def opcodes(raw):
    return [(op.name, arg) for op, arg, _ in pickletools.genops(raw) if op.name != "FRAME"]


def expect(what, found, wanted):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, expected {wanted!r}")


def check_layout(raw, snapshot, generator):
    if generator["writer"] == "cpython":
        again = pickle.dumps(snapshot, protocol=generator["protocol"])
        mine, theirs = opcodes(raw), opcodes(again)
        for at, (a, b) in enumerate(zip(mine, theirs)):
            expect(f"opcode {at}", a, b)
        expect("number of opcodes", len(mine), len(theirs))
        return
    previous = None
    for op, arg, at in pickletools.genops(raw):
        assert op.name not in ("APPEND", "SETITEM", "FRAME", "MEMOIZE", "SHORT_BINUNICODE", "LONG4"), (op.name, at)
        if previous in ("EMPTY_LIST", "EMPTY_DICT"):
            expect(f"opcode behind a new container at {at}", op.name, "MARK")
        if op.name == "LONG1":
            expect(f"length of the long integer at {at}", raw[at + 1], 8)
        previous = op.name
    texts = [arg for op, arg, _ in pickletools.genops(raw) if op.name == "BINUNICODE"]
    expect("texts written twice", len(texts) - len(set(texts)), 0)


def frame_key(frame):
    return frame["name"], frame["filename"], frame["line"]


def stack_key(frames):
    return tuple(frame_key(frame) for frame in frames)


def check_identity(snapshot):
    """One dict per frame, one list per walk of the call stack: not more, not fewer."""
    lists = {}
    for holder in walk_holders(snapshot):
        lists[id(holder["frames"])] = holder["frames"]
    dicts, keys = set(), set()
    for frames in lists.values():
        for frame in frames:
            dicts.add(id(frame))
            keys.add(frame_key(frame))
    expect("dicts of frames", len(dicts), len(keys))


def walk_holders(snapshot):
    segments = snapshot if isinstance(snapshot, list) else snapshot["segments"]
    for segment in segments:
        if "frames" in segment:
            yield segment
        for block in segment["blocks"]:
            if "frames" in block:
                yield block
            for past in block.get("history", ()):
                if "frames" in past:
                    yield past
    if isinstance(snapshot, dict):
        for trace in snapshot["device_traces"]:
            for event in trace:
                if "frames" in event:
                    yield event


def check_segments(segments, device, workspaces):
    """The caching segments of a device, after looking at each."""
    own = [segment for segment in segments if segment["device"] == device["device"]]
    own, workspace = (own[:-workspaces], own[-workspaces:]) if workspaces else (own, [])
    expect("workspace bytes", sum(segment["total_size"] for segment in workspace), device["workspace_bytes"])
    for segment in workspace:
        expect("workspace blocks", [block["state"] for block in segment["blocks"]], ["inactive"])
    previous_end = 0
    for segment in own:
        at = segment["address"]
        assert at % (1 << 64) >= previous_end, "segments overlap or are not sorted"
        total = {"active_allocated": 0, "active_pending_free": 0, "inactive": 0}
        requested = 0
        for block in segment["blocks"]:
            expect("address of a block", block.get("address", at), at)
            at += block["size"]
            total[block["state"]] += block["size"]
            if block["state"] != "inactive":
                requested += block.get("requested_size", 0)
        expect("total_size", segment["total_size"], sum(total.values()))
        expect("allocated_size", segment["allocated_size"], total["active_allocated"])
        expect("active_size", segment["active_size"], total["active_allocated"] + total["active_pending_free"])
        expect("requested_size", segment.get("requested_size", requested), requested)
        previous_end = at % (1 << 64)
    return own


def check_final(own, device, legacy):
    final = device["final"]
    blocks = [block for segment in own for block in segment["blocks"]]
    live = [block for block in blocks if block["state"] == "active_allocated"]
    active = [block for block in blocks if block["state"] != "inactive"]
    found = {
        "reserved": sum(segment["total_size"] for segment in own),
        "allocated": sum(block["size"] for block in live),
        "active": sum(block["size"] for block in active),
        "allocated_requested": sum(requested(block) for block in live),
        "active_requested": sum(requested(block) for block in active),
        "segments": len(own),
        "segments_small": sum(segment["segment_type"] == "small" for segment in own),
        "segments_large": sum(segment["segment_type"] == "large" for segment in own),
        "blocks": {state: {"count": sum(block["state"] == state for block in blocks),
                           "bytes": sum(block["size"] for block in blocks if block["state"] == state)}
                   for state in ("active_allocated", "active_pending_free", "inactive")},
    }
    if legacy:
        for block in active:
            addresses = [past["addr"] for past in block["history"]]
            expect("order of a history", addresses, sorted(addresses))
    expect("final state", found, final)
    gap = found["reserved"] - found["allocated"]
    expect("fragmentation", device["fragmentation"]["rate"], gap / found["reserved"] if found["reserved"] else 0.0)
    worst = sorted((-(segment["total_size"] - segment["allocated_size"]) / segment["total_size"],
                    segment["address"] % (1 << 64)) for segment in own)[:5]
    expect("worst segments", [segment["address"] for segment in device["fragmentation"]["worst_segments"]],
           [address for _, address in worst])


def requested(block):
    return block["requested_size"] if "requested_size" in block else block["history"][0]["real_size"]


def check_trace(trace, device, own, truth):
    """Replays the window from the state it begins with; the end must be the segments."""
    generator = truth["generator"]
    offset = device["workspace_events"]
    head, events = trace[:offset], trace[offset:]
    for at in range(0, offset, 3):
        expect("workspace entries", [entry["action"] for entry in head[at:at + 3]],
               ["workspace_snapshot", "segment_alloc", "alloc"])
        expect("workspace addresses", len({(entry["addr"], entry["size"]) for entry in head[at:at + 3]}), 1)
    expect("events in the window", len(events), device["events_in_window"])
    counts = {}
    for event in events:
        assert event["action"] in ENUMERATED, event
        counts[event["action"]] = counts.get(event["action"], 0) + 1
    expect("events by action", counts, device["action_counts_window"])

    complete = device["window_start_event"] == 0
    exact = generator["expandable"]
    rounded = lambda size: max(1, size + generator["padding"]) + 511 & ~511
    now = dict(device["start_state"])
    peaks = {name: [now[name], -1] for name in COUNTERS}
    live, pending, mapped, at_peak = {}, {}, {}, {}
    # A large block that is not expandable may exceed the rounded request by up to 1 MiB: a band holds the true size.
    slack = lambda size: 0 if exact or rounded(size) <= 1 << 20 else 1 << 20
    claimed = {name: device["peak_window"][name] for name in ("allocated", "active")}
    band = {"allocated": 0, "active": 0}
    ooms = []
    for index, event in enumerate(events, offset):
        action, size = event["action"], event["size"]
        if action in SEGMENT_SIGN:
            now["reserved"] += SEGMENT_SIGN[action] * size
            for page in range(event["addr"], event["addr"] + size, 1 << 21):
                if SEGMENT_SIGN[action] > 0:
                    assert page not in mapped, "memory reserved twice"
                    mapped[page] = True
                elif complete:
                    del mapped[page]
                else:
                    mapped.pop(page, None)
        elif action == "alloc":
            assert event["addr"] not in live and event["addr"] not in pending, "an address given out twice"
            live[event["addr"]] = event
            for name in ("allocated", "active"):
                now[name] += rounded(size)
                now[name + "_requested"] += size
                band[name] += slack(size)
        elif action == "free_requested":
            freed = live.pop(event["addr"], None)
            assert freed is not None or not complete, "a free without an alloc"
            pending[event["addr"]] = event
            now["allocated"] -= rounded(size)
            now["allocated_requested"] -= size
            band["allocated"] -= slack(size)
        elif action == "free_completed":
            freed = pending.pop(event["addr"], None)
            assert freed is not None or not complete, "a free completed that was not requested"
            now["active"] -= rounded(size)
            now["active_requested"] -= size
            band["active"] -= slack(size)
        elif action == "snapshot":
            assert not exact or size == now["active"], "the marker disagrees with the counter"
        elif action == "oom":
            assert "addr" not in event
            ooms.append({"trace_index": index, "requested": size, "device_free": event["device_free"]})
            expect("device_free", event["device_free"], generator["capacity"] - now["reserved"])
        for name, peak in claimed.items():
            # Blocks from before a window are known by their request alone, so the band holds for complete ones.
            if complete and peak["trace_index"] == index:
                assert now[name] <= peak["bytes"] <= now[name] + band[name], f"peak of {name} is out of its band"
        for name in COUNTERS:
            if now[name] > peaks[name][0]:
                peaks[name] = [now[name], index]
                if name == "allocated":
                    at_peak = dict(live)
    certain = COUNTERS if exact else [name for name in COUNTERS if name == "reserved" or "_" in name]
    for name in certain:
        expect(f"replayed {name}", now[name], device["final"][name])
        found = {"bytes": peaks[name][0], "trace_index": peaks[name][1]}
        expect(f"peak of {name}", found, device["peak_window"][name])
    expect("out-of-memory events", ooms, [{name: oom[name] for name in ("trace_index", "requested", "device_free")}
                                          for oom in device["oom_events"]])
    if complete:
        pages = {page for segment in own
                 for page in range(segment["address"], segment["address"] + segment["total_size"], 1 << 21)}
        expect("reserved pages", set(mapped), pages)
        state = {(block["address"], block["state"]): block["requested_size"]
                 for segment in own for block in segment["blocks"] if block["state"] != "inactive"}
        replayed = {(addr, "active_allocated"): event["size"] for addr, event in live.items()}
        replayed.update({(addr, "active_pending_free"): event["size"] for addr, event in pending.items()})
        expect("blocks in use", state, replayed)
        if generator["context"] != "state" and exact:
            check_contributors(at_peak, device, truth, rounded)
        check_walks(events, own, generator)


def check_contributors(at_peak, device, truth, rounded):
    shares = {}
    for event in at_peak.values():
        share = shares.setdefault(stack_key(event["frames"]), [0, 0, 0])
        share[0] += rounded(event["size"])
        share[1] += event["size"]
        share[2] += 1
    expect("stacks at the peak", len(shares), device["contributors_distinct_stacks"])
    listed = device["contributors_at_allocated_peak"]
    for entry in listed:
        frames = stack_key(truth["stacks"][str(entry["stack"])])
        expect("share of a stack", shares[frames], [entry["bytes"], entry["requested"], entry["blocks"]])
    expect("order of the shares", [entry["bytes"] for entry in listed],
           sorted((share[0] for share in shares.values()), reverse=True)[:len(listed)])


def check_walks(events, own, generator):
    """An allocation, its block and the growth it caused show the same list; nothing else does."""
    blocks = {block["address"]: block for segment in own for block in segment["blocks"]}
    if generator["context"] == "state":
        assert not any("frames" in event for event in events)
        return
    latest = {}
    for before, event in zip([None] + events, events):
        if event["action"] == "alloc":
            latest[event["addr"]] = event
            if before is not None and before["action"] in ("segment_alloc", "segment_map"):
                assert before["frames"] is event["frames"], "growth and its allocation show two lists"
        elif event["action"] == "free_requested" and generator["context"] == "alloc":
            assert event["frames"] is latest[event["addr"]]["frames"]
    for address, block in blocks.items():
        if block["state"] == "active_allocated":
            assert block["frames"] is latest[address]["frames"], "a block and its allocation show two lists"
        elif block["state"] == "inactive":
            expect("frames of a free block", block["frames"], [])


def check_leak(segments, truth):
    if truth["leak"] is None:
        return
    frames = stack_key(truth["stacks"][str(truth["leak"]["stack"])])
    for device in truth["leak"]["per_device"]:
        held = [block for segment in segments if segment["device"] == device["device"]
                for block in segment["blocks"] if block["state"] == "active_allocated"
                and stack_key(block["frames"] if "frames" in block else block["history"][0]["frames"]) == frames]
        found = {"device": device["device"], "live_blocks": len(held),
                 "live_bytes": sum(block["size"] for block in held), "live_requested": sum(map(requested, held))}
        expect("the leak", found, device)


def main(snapshot_path, truth_path, twin_path=None):
    raw, snapshot = load(snapshot_path)
    with open(truth_path, encoding="utf-8") as file:
        truth = json.load(file)
    generator = truth["generator"]
    expect("bytes", len(raw), truth["info"]["bytes"])
    check_layout(raw, snapshot, generator)
    check_identity(snapshot)
    legacy = isinstance(snapshot, list)
    expect("list form", legacy, generator["dialect"] == "legacy")
    segments = snapshot if legacy else snapshot["segments"]
    check_leak(segments, truth)
    if not legacy:
        expect("trace lists", len(snapshot["device_traces"]), generator["devices"] + generator["idle_devices"])
        expect("events in the file", sum(map(len, snapshot["device_traces"])), truth["info"]["events_in_file"])
    for device in truth["devices"]:
        own = check_segments(segments, device, device["workspace_events"] // 3)
        check_final(own, device, legacy)
        if not legacy:
            check_trace(snapshot["device_traces"][device["device"]], device, own, truth)
    if twin_path:
        _, twin = load(twin_path)
        assert unsigned(twin) == unsigned(snapshot), "the twin holds other objects"


if __name__ == "__main__":
    main(*sys.argv[1:])
