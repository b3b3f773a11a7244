#!/usr/bin/env python3
"""Compares `allocations` and `replay_checks` with what a simulated allocator really did, over many runs.

The simulator (gen_snapshot.py of the shared tools) knows every block's size, also those of the history that its ring
buffer forgot. This script pairs the simulator's own records forward, with the sizes at hand, and asks npusnap for the
same from the file alone. Nothing here is taken from npusnap's code.

  replay_truth.py BINARY TOOLS [--runs N] [--first SEED] [--keep DIR]
"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

COUNTERS = ("reserved", "allocated", "active", "allocated_requested", "active_requested")


def load(tools):
    spec = importlib.util.spec_from_file_location("gen_snapshot", os.path.join(tools, "gen_snapshot.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["gen_snapshot"] = module
    spec.loader.exec_module(module)
    return module


def flags(seed):
    """Flags of one run: all of the generator's are drawn over the runs."""
    r = random.Random(seed)
    dialect = r.choice(("npu", "cuda"))
    pickler = r.choice(("py", "py", "fast", "jit"))
    devices = r.choice((1, 1, 2, 3))
    events = r.choice((60, 400, 1500, 4000)) * devices
    out = ["--seed", str(seed), "--dialect", dialect, "--pickler", pickler, "--devices", str(devices),
           "--events", str(events), "--layers", str(r.choice((2, 4, 8))), "--n-stacks", str(r.choice((50, 300))),
           "--context", r.choice(("all", "all", "alloc", "state")),
           "--protocol", str(r.choice((4, 5) if pickler == "fast" else (2, 4, 5))),
           "--order", r.choice(("segments-first", "traces-first")), "--stacks", r.choice(("python", "python", "all"))]
    if r.random() < 0.5:
        out += ["--max-entries", str(r.choice((1, 7, 50, 333, 1000)))]
    if r.random() < 0.4:
        out += ["--capacity", str(r.choice((0.3, 0.6, 1.5)))]
    for flag, share in (("--leak", 0.5), ("--oom", 0.4), ("--expandable", 0.4), ("--no-workspace", 0.3),
                        ("--no-pool-id", 0.3), ("--cuda-pool-id", 0.3)):
        if r.random() < share:
            out.append(flag)
    if r.random() < 0.2:
        out += ["--idle-devices", str(r.choice((1, 5)))]
    if r.random() < 0.15:
        # Beyond 2^63, where the tables show addresses with a sign.
        out += ["--addr-base", hex((1 << 63) - (20 << 20)), "--devices", "1"]
    return out


def generate(gen, arguments, path, truth):
    """Runs the generator in this process and returns its simulators and its stacks."""
    sims, stacks = [], []

    class Recorded(original := gen.Sim):
        def __init__(self, *args, **kwargs):
            original.__init__(self, *args, **kwargs)
            sims.append(self)

    def recorded_stacks(*args, original_stacks=gen.Stacks):
        stacks.append(original_stacks(*args))
        return stacks[-1]

    gen.Sim, original_stacks, gen.Stacks = Recorded, gen.Stacks, recorded_stacks
    argv, sys.argv = sys.argv, ["gen_snapshot.py", *arguments, "--out", path, "--truth", truth]
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            gen.main()
    finally:
        gen.Sim, gen.Stacks, sys.argv = original, original_stacks, argv
    return sims, stacks[0]


def lifetimes(gen, sim, first, offset):
    """Every allocation that the window sees, paired forward from the very first event."""
    live, done = {}, []
    index = lambda i: i - first + offset if i is not None and i >= first else None
    for i in range(len(sim.act)):
        action, addr = sim.act[i], sim.addr[i]
        if action == gen.A_ALLOC:
            assert addr not in live
            live[addr] = [addr, sim.size[i], sim.bsz[i], i, None, None]
        elif action == gen.A_FREQ:
            live[addr][4] = i
        elif action == gen.A_FCOMP:
            record = live.pop(addr)
            record[5] = i
            if i >= first:
                done.append(record)
    rows = []
    for addr, size, block, alloc, requested, completed in done + list(live.values()):
        frames = [sim.ctx_stack[sim.ctx[i]] if i is not None else None for i in (alloc, requested)]
        fate = "freed" if completed is not None else "pending_free" if requested is not None else "live"
        origin = "window" if alloc >= first else "before_window"
        rows.append((addr, size, block, index(alloc), index(requested), index(completed), origin, fate, frames))
    return sorted(rows, key=lambda row: (row[3] is not None, row[3] or 0, row[0]))


def wrong_stacks(row, got, stacks, context):
    """Whether the stacks of an allocation are not those of its alloc and its free."""
    _, _, _, alloc, requested, completed, _, fate, (owner, freer) = row
    owner, freer = (stacks.stacks[number] if number is not None else () for number in (owner, freer))
    # A live block has its stack also where events have none.
    knows_owner = fate != "freed" or (alloc is not None and context != "state")
    want_freer = freer if requested is not None and context != "state" else ()
    if context == "alloc":
        want_freer = owner if requested is not None else ()
    found_owner, found_freer = got
    # From before the window an owner may be known by the frees that carry its stack, and is not where they do not.
    right = found_owner == owner if knows_owner else found_owner in ((), owner)
    return not right or found_freer != want_freer


def check(database, gen, simulated, truth, arguments):
    """Differences between the database and the truth, and how many sizes it calls proven."""
    wrong = []
    sims, stacks = simulated
    context = arguments[arguments.index("--context") + 1]
    counts = {"rows": 0, "exact": 0, "bytes": 0, "exact_bytes": 0, "owned": 0}
    connection = sqlite3.connect(database)
    frames = {None: ()}
    for number, text in connection.execute("SELECT id, frames_json FROM call_stacks"):
        keys = [(frame["name"], frame["filename"], frame["line"]) for frame in json.loads(text)]
        frames[number] = tuple(stacks._fidx[key] for key in keys)
    ids = dict(connection.execute("SELECT device_index, id FROM devices"))
    for sim, device in zip(sims, truth["devices"]):
        first, offset = device["window_start_event"], device["workspace_events"]
        if "jit" in arguments:
            offset = 0
        if sim.dev not in ids:
            if len(sim.act) > first:
                wrong.append(f"device {sim.dev} is missing")
            continue
        number = ids[sim.dev]
        expected = lifetimes(gen, sim, first, offset)
        found = connection.execute(
            "SELECT addr, size, block_size, alloc_index, free_requested_index, free_completed_index, origin, fate,"
            " block_size_exact, stack_id, free_stack_id FROM allocations WHERE device_id = ? ORDER BY id", (number,)).fetchall()
        if len(found) != len(expected):
            wrong.append(f"device {sim.dev}: {len(found)} allocations, truth has {len(expected)}")
        all_exact = True
        for got, want in zip(found, expected):
            *got, exact, stack, free_stack = got
            counts["owned"] += stack is not None
            if wrong_stacks(want, (frames[stack], frames[free_stack]), stacks, context) and len(wrong) < 20:
                wrong.append(f"device {sim.dev}: {got} has stacks {stack} and {free_stack}, truth {want}")
            want = (want[0] - (1 << 64) if want[0] >= 1 << 63 else want[0], *want[1:-1])
            counts["rows"] += 1
            counts["bytes"] += want[2]
            if exact:
                counts["exact"] += 1
                counts["exact_bytes"] += want[2]
            else:
                all_exact = False
            same = (got == list(want)) if exact else (got[:2] + got[3:] == list(want[:2] + want[3:]))
            if not same and len(wrong) < 20:
                wrong.append(f"device {sim.dev}: {got} exact={exact}, truth {want}")
        rows = connection.execute(
            "SELECT counter, base, final, residual, exact FROM replay_checks WHERE device_id = ?", (number,))
        checks = {row[0]: row[1:] for row in rows}
        if sorted(checks) != sorted(COUNTERS):
            wrong.append(f"device {sim.dev}: counters {sorted(checks)}")
            continue
        for counter in COUNTERS:
            base, final, residual, exact = checks[counter]
            want_exact = counter in ("reserved", "allocated_requested", "active_requested") or all_exact
            if exact != int(want_exact):
                wrong.append(f"device {sim.dev} {counter}: exact={exact}, every size proven: {all_exact}")
            if residual != 0 or final != device["final"][counter]:
                wrong.append(f"device {sim.dev} {counter}: {checks[counter]}, final {device['final'][counter]}")
            if exact and base != device["start_state"][counter]:
                wrong.append(f"device {sim.dev} {counter}: base {base}, truth {device['start_state'][counter]}")
        wrong += curves(connection, number, sim, device, offset, all_exact)
    noise = connection.execute(
        "SELECT name, value FROM import_stats WHERE severity <> 'info'").fetchall()
    if noise:
        wrong.append(f"warnings: {noise}")
    connection.close()
    return wrong, counts


def curves(connection, number, sim, device, offset, all_exact):
    """Peaks of the window, from base, traces and block sizes alone."""
    base = dict(connection.execute("SELECT counter, base FROM replay_checks WHERE device_id = ?", (number,)))
    change = {name: {} for name in COUNTERS}
    for action, index, size in connection.execute(
            "SELECT action, trace_index, size FROM traces WHERE device_id = ? AND is_workspace = 0", (number,)):
        sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}.get(action)
        if sign:
            change["reserved"][index] = sign * size
        for counter, falls in (("allocated", "free_requested"), ("active", "free_completed")):
            if action in ("alloc", falls):
                change[counter + "_requested"][index] = size if action == "alloc" else -size
    for block, alloc, requested, completed in connection.execute(
            "SELECT block_size, alloc_index, free_requested_index, free_completed_index FROM allocations"
            " WHERE device_id = ?", (number,)):
        for counter, falls in (("allocated", requested), ("active", completed)):
            for index, value in ((alloc, block), (falls, -block)):
                if index is not None:
                    change[counter][index] = value
    wrong = []
    for counter, peak in device["peak_window"].items():
        value = best = base[counter]
        at = -1
        for index in sorted(change[counter]):
            value += change[counter][index]
            if value > best:
                best, at = value, index
        exact = all_exact or counter.endswith("requested") or counter == "reserved"
        # Where nothing rose above the start, the simulator may name the event before the first one.
        if exact and (best, at) != (peak["bytes"], peak["trace_index"]):
            wrong.append(f"device {sim.dev} peak of {counter}: {best} at {at}, truth {peak}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("tools")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    gen = load(args.tools)
    failed = 0
    totals = {}
    for seed in range(args.first, args.first + args.runs):
        arguments = flags(seed)
        with tempfile.TemporaryDirectory() as folder:
            path, truth = os.path.join(folder, "s.pickle"), os.path.join(folder, "truth.json")
            simulated = generate(gen, arguments, path, truth)
            run = subprocess.run([args.binary, "ingest", path, "-o", folder, "--no-indexes", "--quiet"],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                wrong, counts = [run.stderr], {}
            else:
                with open(truth) as file:
                    wrong, counts = check(os.path.join(folder, "s.db"), gen, simulated, json.load(file), arguments)
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        if wrong:
            failed += 1
            print(f"seed {seed}: {' '.join(arguments)}", *wrong[:12], sep="\n  ")
    print(f"{args.runs - failed} of {args.runs} runs agree;", *(f"{k} {v}" for k, v in totals.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
