"""Pickles like `torch::jit::Pickler`, PyTorch's C++ writer: memo after completion, 8-byte LONG1, no batches.

CPython has no writer with this order of opcodes, so the decoder would otherwise only see it in synthetic traces.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO


class JitPickler:
    """Writes plain containers with protocol 2. Strings are memoized by value, containers if they are met twice."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.memo = 0
        self.strings: dict[str, int] = {}
        self.containers: dict[int, int] = {}
        self.references: dict[int, int] = {}

    def dump(self, value: Any) -> None:
        """Writes a whole pickle."""
        self.count(value)
        self.file.write(b"\x80\x02")
        self.push(value)
        self.file.write(b".")

    def count(self, value: Any) -> None:
        """Counts how often each container is met: the C++ writer asks for the reference count."""
        if not isinstance(value, (list, dict)):
            return
        seen = self.references.get(id(value), 0)
        self.references[id(value)] = seen + 1
        if not seen:
            for item in value.values() if isinstance(value, dict) else value:
                self.count(item)

    def put(self) -> int:
        """Stores what was just completed in the next memo slot."""
        slot = self.memo
        self.memo += 1
        self.file.write(b"q" + bytes((slot,)) if slot < 256 else b"r" + struct.pack("<I", slot))
        return slot

    def get(self, slot: int) -> None:
        """Pushes a memo slot."""
        self.file.write(b"h" + bytes((slot,)) if slot < 256 else b"j" + struct.pack("<I", slot))

    def push(self, value: Any) -> None:
        """Pushes any value."""
        if isinstance(value, str):
            self.push_string(value)
        elif isinstance(value, bool):
            self.file.write(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.push_int(value)
        elif isinstance(value, float):
            self.file.write(b"G" + struct.pack(">d", value))
        elif value is None:
            self.file.write(b"N")
        elif isinstance(value, tuple):
            self.push_tuple(value)
        else:
            self.push_container(value)

    def push_string(self, value: str) -> None:
        """Strings are the same if their text is."""
        slot = self.strings.get(value)
        if slot is not None:
            self.get(slot)
            return
        raw = value.encode("utf-8", "surrogatepass")
        self.file.write(b"X" + struct.pack("<I", len(raw)) + raw)
        self.strings[value] = self.put()

    def push_int(self, value: int) -> None:
        """What does not fit 32 bits takes 8 bytes whatever its size; 2^63 and more come out negative."""
        if 0 <= value < 1 << 8:
            self.file.write(b"K" + bytes((value,)))
        elif 0 <= value < 1 << 16:
            self.file.write(b"M" + struct.pack("<H", value))
        elif -(1 << 31) <= value < 1 << 31:
            self.file.write(b"J" + struct.pack("<i", value))
        elif value == (1 << 64) - 1:
            self.push_int(-1)
        else:
            self.file.write(b"\x8a\x08" + (value & ((1 << 64) - 1)).to_bytes(8, "little"))

    def push_tuple(self, value: tuple[Any, ...]) -> None:
        """Pairs have an opcode of their own."""
        if len(value) != 2:
            self.file.write(b"(")
        for item in value:
            self.push(item)
        self.file.write(b"\x86" if len(value) == 2 else b"t")

    def push_container(self, value: Any) -> None:
        """Lists and dicts: always MARK, never in batches, memoized when complete."""
        slot = self.containers.get(id(value))
        if slot is not None:
            self.get(slot)
            return
        is_dict = isinstance(value, dict)
        self.file.write(b"}(" if is_dict else b"](")
        for item in value.items() if is_dict else value:
            for part in item if is_dict else (item,):
                self.push(part)
        self.file.write(b"u" if is_dict else b"e")
        if self.references[id(value)] > 1:
            self.containers[id(value)] = self.put()
