"""Records the memory history of a training job on Ascend NPU or CUDA GPU, and dumps it: per step, on OOM, by signal.

    import npusnap_capture as capture
    capture.start("snapshots")
    for step, batch in enumerate(loader):
        with capture.step(step):
            train(batch)
    capture.stop()

One file, standard library only, Python 3.7 or newer. Nothing here raises into the training loop: what goes wrong is a
warning. What the installed torch or torch_npu does not know of is left out, with one warning.

Beside a snapshot `X.pickle` stands `X.pickle.steps.jsonl`: a line per step marker, because torch_npu has neither named
ranges nor a clock. npusnap reads it into the table `annotations`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

__all__ = ["start", "stop", "step", "mark", "dump", "Capture"]


def _warn(text: str) -> None:
    warnings.warn("npusnap_capture: " + text, RuntimeWarning, stacklevel=3)


def _guarded(function: Callable) -> Callable:
    """Turns every exception into a warning: a memory recorder must not end a training job."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            _warn("{} failed: {}: {}".format(function.__name__, type(error).__name__, error))
            return None

    guarded.__name__ = function.__name__
    guarded.__doc__ = function.__doc__
    return guarded


def _backend() -> Any:
    """The module with `_record_memory_history` and `_dump_snapshot`, and the name of its kind."""
    torch_npu = sys.modules.get("torch_npu")
    if torch_npu is None:
        with contextlib.suppress(Exception):
            import torch_npu  # type: ignore[no-redef]
    if torch_npu is not None:
        memory = torch_npu.npu.memory
        if hasattr(memory, "_record_memory_history"):
            return memory, "npu"
    import torch

    return torch.cuda.memory, "cuda"


def _known(function: Callable, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Those of the arguments that the function has. `(*args, **kwargs)` hides them: then its implementation is asked."""
    implementation = getattr(sys.modules.get(function.__module__, None), function.__name__ + "_impl", function)
    try:
        names = inspect.signature(implementation).parameters
    except (TypeError, ValueError):
        return wanted
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in names.values()):
        return wanted
    return {name: value for name, value in wanted.items() if name in names}


class Capture:
    """One recording. The functions of the module use one of these; take your own for a second backend or for tests."""

    def __init__(self, backend: Any = None, kind: str = "cuda") -> None:
        self.memory, self.kind = (backend, kind) if backend is not None else _backend()
        self.folder = "."
        self.rank = int(os.environ.get("RANK", "0") or 0)
        self.dump_steps: frozenset = frozenset()
        self.running = False
        self.marks: List[Dict[str, Any]] = []
        self._told: set = set()
        self._previous: Dict[int, Any] = {}
        self._lock = threading.RLock()
        self._asked = False

    def tell(self, text: str) -> None:
        """Warns once of one thing."""
        if text not in self._told:
            self._told.add(text)
            _warn(text)

    def start(
        self,
        folder: str = "snapshots",
        enabled: Any = "all",
        context: Optional[str] = "all",
        stacks: str = "python",
        max_entries: int = 100_000,
        dump_steps: Iterable[int] = (),
        on_oom: bool = True,
        on_signal: Optional[int] = getattr(signal, "SIGUSR1", None),
        **more: Any
    ) -> None:
        """Begins to record. `more` goes to `_record_memory_history` where it knows the argument."""
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        if self.kind == "npu":
            # Where torch_npu writes memory by component when it dumps; npusnap looks for it beside the snapshot.
            os.environ.setdefault("OOM_SNAPSHOT_PATH", os.path.abspath(folder))
        self.dump_steps = frozenset(dump_steps)
        if isinstance(enabled, bool):
            # torch_npu takes no bool, and torch's old signature keeps one event only.
            enabled = "all" if enabled else None
        wanted: Dict[str, Any] = dict(context=context, stacks=stacks, max_entries=max_entries)
        wanted.update(more)
        record = self.memory._record_memory_history
        known = _known(record, wanted)
        missing = sorted(set(wanted) - set(known))
        if missing:
            self.tell("{} has no {}: left out".format(self.kind, ", ".join(missing)))
        try:
            record(enabled, **known)
        except TypeError as error:
            self.tell("{} refused the arguments ({}): recording with its defaults".format(self.kind, error))
            record(enabled)
        self.running = enabled is not None
        if on_oom:
            self._attach_oom()
        if on_signal is not None:
            self._attach_signal(on_signal)

    def stop(self) -> None:
        """Ends the recording and gives signals back. What was recorded is forgotten: dump before."""
        if self.running:
            self.running = False
            self.memory._record_memory_history(None)
        for number, previous in self._previous.items():
            with contextlib.suppress(ValueError):
                signal.signal(number, previous)
        self._previous.clear()

    def mark(self, name: str, stage: str, step: Optional[int] = None) -> None:
        """Notes that a named range begins (`START`) or ends (`END`) here."""
        mark: Dict[str, Any] = {"name": name, "stage": stage, "time_us": time.time_ns() // 1000}
        if step is not None:
            mark["step"] = step
        with self._lock:
            mark.update(self._allocations())
            self.marks.append(mark)
            # As many as a ring of events has use for.
            del self.marks[:-100_000]

    def _allocations(self) -> Dict[str, int]:
        """The current device and how many allocations it has seen: a counter of the allocator's own, cheap to read."""
        try:
            package = sys.modules[self.memory.__name__.rpartition(".")[0]]
            device = int(package.current_device())
            allocations = self.memory.memory_stats(device).get("allocation.all.allocated")
        except Exception as error:  # noqa: BLE001
            self.tell("step markers get no place in the history: {}".format(error))
            return {}
        return {} if allocations is None else {"device": device, "allocations": int(allocations)}

    def dump(self, name: str = "snapshot") -> Optional[str]:
        """Writes a snapshot, whole or not at all, and the step markers beside it. Its path."""
        with self._lock:
            safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
            path = os.path.join(self.folder, "{}_rank{}_pid{}.pickle".format(safe, self.rank, os.getpid()))
            part = path + ".part"
            try:
                dumped: Dict[str, Any] = {"stage": "DUMP", "time_us": time.time_ns() // 1000}
                dumped.update(self._allocations())
                self.memory._dump_snapshot(part)
                os.replace(part, path)
            finally:
                with contextlib.suppress(OSError):
                    os.remove(part)
            with open(path + ".steps.jsonl.part", "w", encoding="utf-8") as file:
                for mark in self.marks + [dumped]:
                    file.write(json.dumps(mark) + "\n")
            os.replace(path + ".steps.jsonl.part", path + ".steps.jsonl")
            return path

    @contextlib.contextmanager
    def step(self, number: int, name: str = "step") -> Iterator[None]:
        """A step of the training: markers around it, a dump where `dump_steps` has it or a signal asked for one."""
        _guarded(self.mark)("{} {}".format(name, number), "START", number)
        try:
            yield
        finally:
            _guarded(self.mark)("{} {}".format(name, number), "END", number)
            if self._asked or number in self.dump_steps:
                self._asked = False
                _guarded(self.dump)("step{}".format(number))

    def _attach_oom(self) -> None:
        package = sys.modules.get("torch_npu" if self.kind == "npu" else "torch")
        attach = getattr(getattr(package, "_C", None), "_{}_attach_out_of_memory_observer".format(self.kind), None)
        if attach is None:
            self.tell(
                "no out-of-memory observer here; set OOM_SNAPSHOT_ENABLE=1 and OOM_SNAPSHOT_PATH before the start"
                if self.kind == "npu"
                else "no out-of-memory observer here"
            )
            return

        def observer(device: int, allocated: int, total: int, free: int) -> None:
            _guarded(self.dump)("oom_device{}".format(device))

        attach(observer)

    def _attach_signal(self, number: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.tell("signals can be heard in the main thread only: none is")
            return

        def asked(_number: int, _frame: Any) -> None:
            # Within an allocation a dump could wait for itself: the next step's end makes it.
            self._asked = True

        self._previous[number] = signal.signal(number, asked)


_CAPTURE: Optional[Capture] = None


def _current() -> Capture:
    global _CAPTURE
    if _CAPTURE is None:
        _CAPTURE = Capture()
    return _CAPTURE


@_guarded
def start(folder: str = "snapshots", **options: Any) -> None:
    """Begins to record; see `Capture.start`."""
    _current().start(folder, **options)


@_guarded
def stop() -> None:
    """Ends the recording."""
    _current().stop()


@_guarded
def mark(name: str, stage: str = "START") -> None:
    """Notes that a named range begins or ends here."""
    _current().mark(name, stage)


@_guarded
def dump(name: str = "snapshot") -> Optional[str]:
    """Writes a snapshot; its path, or None where that failed."""
    return _current().dump(name)


@contextlib.contextmanager
def step(number: int, name: str = "step") -> Iterator[None]:
    """A step of the training: markers around it, and perhaps a dump at its end."""
    try:
        capture: Optional[Capture] = _current()
    except Exception as error:  # noqa: BLE001
        _warn("no backend: {}".format(error))
        capture = None
    if capture is None:
        yield
        return
    with capture.step(number, name):
        yield
