"""The capture helper against stand-ins with the signatures of torch and torch_npu, old and new.

    test_capture.py -v                     all tests
    test_capture.py write FOLDER           a snapshot of the NPU stand-in with markers beside it, for npusnap to read
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import pickle
import signal
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

HELPER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "skill", "npusnap", "scripts", "npusnap_capture.py"
)


def helper():
    spec = importlib.util.spec_from_file_location("npusnap_capture", HELPER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Job:
    """A device that allocates: what both stand-ins record."""

    def __init__(self) -> None:
        self.calls = []
        self.events = []
        self.allocated = 0
        self.observers = []
        self.broken = False

    def alloc(self, number: int) -> None:
        for _ in range(number):
            self.allocated += 1
            addr = 0x12C041200000 + 1024 * self.allocated
            self.events.append({"action": "alloc", "addr": addr, "size": 512, "stream": 7})

    def dump(self, filename: str) -> None:
        if self.broken:
            with open(filename, "wb") as file:
                file.write(b"half")
            raise RuntimeError("disk full")
        with open(filename, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [self.events]}, file, 4)

    def stats(self, device=None):
        return {"allocation.all.allocated": self.allocated, "allocation.all.freed": 0}


def install(kind: str, job: Job, record, impl=None) -> types.ModuleType:
    """Puts a package `torch` or `torch_npu` with a `memory` module into `sys.modules`."""
    root, package = ("torch_npu", "npu") if kind == "npu" else ("torch", "cuda")
    top, middle, memory = (types.ModuleType(name) for name in (root, root + "." + package, root + "." + package + ".memory"))
    record.__module__ = memory.__name__
    memory._record_memory_history = record
    if impl is not None:
        impl.__module__ = memory.__name__
        memory._record_memory_history_impl = impl

    def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
        job.dump(filename)

    memory._dump_snapshot = _dump_snapshot
    memory.memory_stats = job.stats
    middle.memory = memory
    middle.current_device = lambda: 0
    setattr(top, package, middle)
    top._C = types.ModuleType(root + "._C")
    setattr(top._C, "_{}_attach_out_of_memory_observer".format(kind), job.observers.append)
    for module in (top, middle, memory):
        sys.modules[module.__name__] = module
    return memory


def npu(job: Job) -> types.ModuleType:
    def _record_memory_history_impl(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None):
        if enabled not in (None, "state", "all"):
            raise RuntimeError("expected state to be 'state', 'all', or None")
        job.calls.append({"enabled": enabled, "context": context, "stacks": stacks, "max_entries": max_entries})

    def _record_memory_history(enabled="all", *args, **kwargs):
        return _record_memory_history_impl(enabled, *args, **kwargs)

    return install("npu", job, _record_memory_history, _record_memory_history_impl)


def cuda(job: Job) -> types.ModuleType:
    def _record_memory_history_impl(
        enabled="all",
        context="all",
        stacks="all",
        max_entries=sys.maxsize,
        device=None,
        clear_history=False,
        compile_context=False,
        global_record_annotations=False,
        skip_actions=None,
        record_pinned_host_memory=False,
        record_cuda=True,
    ):
        job.calls.append(dict(locals()))

    def _record_memory_history(enabled="all", *args, **kwargs):
        if isinstance(enabled, bool):
            raise AssertionError("the old signature keeps one event only")
        return _record_memory_history_impl(enabled, *args, **kwargs)

    _record_memory_history.__signature__ = inspect.signature(_record_memory_history_impl)
    return install("cuda", job, _record_memory_history, _record_memory_history_impl)


def old(job: Job) -> types.ModuleType:
    """torch 2.0: other names, and no way to tell them."""

    def _record_memory_history(enabled, record_context=True, trace_alloc_max_entries=1):
        job.calls.append({"enabled": enabled})

    return install("cuda", job, _record_memory_history)


class CaptureTest(unittest.TestCase):
    def setUp(self) -> None:
        self.forget()
        self.addCleanup(self.forget)
        self.job = Job()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = os.path.join(self.place.name, "snapshots")

    @staticmethod
    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] in ("torch", "torch_npu")]:
            del sys.modules[name]

    def names(self) -> list:
        return sorted(os.listdir(self.folder))

    def quiet(self):
        caught = warnings.catch_warnings(record=True)
        log = caught.__enter__()
        warnings.simplefilter("always")
        self.addCleanup(caught.__exit__, None, None, None)
        return log

    def test_npu_gets_what_it_knows_and_one_warning_for_the_rest(self) -> None:
        npu(self.job)
        log = self.quiet()
        capture = helper()
        capture.start(self.folder, enabled=True, clear_history=True, max_entries=1000)
        self.assertEqual(
            self.job.calls, [{"enabled": "all", "context": "all", "stacks": "python", "max_entries": 1000}]
        )
        self.assertEqual(len(log), 1)
        self.assertIn("clear_history", str(log[0].message))
        capture.stop()
        self.assertIsNone(self.job.calls[-1]["enabled"])

    def test_memory_by_component_is_dumped_beside_the_snapshots(self) -> None:
        for before, expected in ((None, os.path.abspath(self.folder)), ("/elsewhere", "/elsewhere")):
            with mock.patch.dict(os.environ):
                os.environ.pop("OOM_SNAPSHOT_PATH", None)
                if before:
                    os.environ["OOM_SNAPSHOT_PATH"] = before
                npu(self.job)
                self.quiet()
                capture = helper()
                capture.start(self.folder, on_oom=False)
                self.assertEqual(os.environ["OOM_SNAPSHOT_PATH"], expected)
                capture.stop()

    def test_cuda_gets_every_argument(self) -> None:
        cuda(self.job)
        log = self.quiet()
        capture = helper()
        capture.start(self.folder, enabled=True, global_record_annotations=True, skip_actions=["snapshot"])
        call = self.job.calls[0]
        self.assertEqual((call["enabled"], call["global_record_annotations"]), ("all", True))
        self.assertEqual(call["skip_actions"], ["snapshot"])
        self.assertEqual(log, [])
        capture.stop()

    def test_an_old_signature_is_served_with_its_defaults(self) -> None:
        old(self.job)
        self.quiet()
        capture = helper()
        capture.start(self.folder)
        self.assertEqual(self.job.calls, [{"enabled": "all"}])
        capture.stop()

    def test_steps_are_marked_and_dumped(self) -> None:
        npu(self.job)
        capture = helper()
        capture.start(self.folder, dump_steps=[1])
        for number in range(3):
            with capture.step(number):
                self.job.alloc(2)
        capture.stop()
        snapshot, steps = self.names()
        self.assertTrue(snapshot.startswith("step1_rank0_pid") and steps == snapshot + ".steps.jsonl", self.names())
        with open(os.path.join(self.folder, steps), encoding="utf-8") as file:
            marks = [json.loads(line) for line in file]
        self.assertEqual(
            [(mark["stage"], mark.get("name"), mark["allocations"]) for mark in marks],
            [
                ("START", "step 0", 0),
                ("END", "step 0", 2),
                ("START", "step 1", 2),
                ("END", "step 1", 4),
                ("DUMP", None, 4),
            ],
        )

    def test_out_of_memory_and_a_signal_dump(self) -> None:
        for stand_in in (npu, cuda):
            with self.subTest(stand_in.__name__):
                self.forget()
                self.job.observers.clear()
                stand_in(self.job)
                capture = helper()
                capture.start(self.folder)
                self.job.observers[0](0, 1, 2, 3)
                os.kill(os.getpid(), signal.SIGUSR1)
                self.assertEqual(len([n for n in self.names() if n.startswith("step")]), 0)
                with capture.step(7):
                    pass
                kinds = {name.split("_rank")[0] for name in self.names()}
                self.assertEqual(kinds, {"oom_device0", "step7"})
                capture.stop()
                for name in self.names():
                    os.remove(os.path.join(self.folder, name))
                self.assertNotIn(signal.getsignal(signal.SIGUSR1), (None,))

    def test_what_fails_is_a_warning_and_leaves_nothing_half_written(self) -> None:
        npu(self.job)
        log = self.quiet()
        capture = helper()
        capture.start(self.folder, dump_steps=[0])
        self.job.broken = True
        with capture.step(0):
            pass
        self.assertIsNone(capture.dump())
        self.assertEqual(self.names(), [])
        self.assertTrue(all("disk full" in str(entry.message) for entry in log), log)
        with self.assertRaises(KeyError):
            with capture.step(1):
                raise KeyError("the job's own error comes through")
        capture.stop()

    def test_without_torch_training_goes_on(self) -> None:
        log = self.quiet()
        sys.modules["torch"] = sys.modules["torch_npu"] = None
        capture = helper()
        capture.start(self.folder)
        ran = []
        with capture.step(0):
            ran.append(0)
        capture.dump()
        capture.stop()
        self.assertEqual(ran, [0])
        self.assertTrue(log)


def write(folder: str) -> None:
    """Five steps of three allocations; the ring buffer forgot the first four events."""
    job = Job()
    npu(job)
    capture = helper()
    capture.start(folder, on_signal=None)
    for number in range(5):
        with capture.step(number):
            job.alloc(3)
    del job.events[:4]
    print(capture.dump("run"))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        unittest.main()
