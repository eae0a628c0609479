"""Memory that kernels use while they run, where the stack is too small for it.

A thread's stack may be small: Python's `threading.stack_size` goes down to 32 KiB. What a kernel
asks for with `stack` and is large lies in the room of its thread instead: one block of memory,
taken when the thread first needs it and freed by the system when the thread ends. Each such array
has a place of its own in it; a kernel that calls others
through addresses (`call_address`) must have none, since they would lie in the same place.
"""

from __future__ import annotations

from flambeau._compiler.emitter import CompileError, Emitter, Value
from flambeau._compiler.types import Scalar, boolean, i8, i32, i64, pointer

LARGE = 2048
"""Bytes from which on an array of a kernel lies in the room of its thread."""
ROOM = (1 << 20) + (1 << 17)
"""Bytes of a room: what the kernel that needs most asks for, products of float64."""
LINE = 64
KEY = "flambeau_room_key"
"""The symbol under which machine code finds the key of pthread's memory by thread."""


class Rooms:
    """How the arrays of one module share the room of a thread. `key`: the type of pthread's keys,
    or None where there are none: all arrays lie on the stack then."""

    def __init__(self, key: Scalar | None) -> None:
        self.key = key
        self.size = 0
        self.users: set[str] = set()
        """The functions that are handed the room."""

    def place(self, emit: Emitter, size: int) -> str | None:
        """A name for `size` bytes of the room, or None where they belong on the stack."""
        if self.key is None or size < LARGE:
            return None
        start = self.size
        self.size += -(-size // LINE) * LINE
        emit.uses_room = True
        return emit.define(pointer(i8), f"getelementptr i8, ptr %thread.room, i64 {start}").text

    def enter(self, emit: Emitter) -> None:
        """Define `%thread.room`. Without memory for one it lies on the stack after all."""
        assert self.key is not None
        kind, size = self.key.llvm, -(-self.size // LINE) * LINE
        if size > ROOM:
            raise CompileError(f"a kernel asks for {size} bytes of its own, more than {ROOM}")
        emit.module.declare(f"@{KEY} = external global {kind}")
        key = emit.define(self.key, f"load {kind}, ptr @{KEY}, align {self.key.size}")
        found = emit.call(pointer(i8), "pthread_getspecific", [key])
        emit.branch(_is_null(emit, found), "room.new", "room.found")
        emit.label("room.new")
        sizes = Value(i64, str(LINE)), Value(i64, str(ROOM))
        made = emit.call(pointer(i8), "aligned_alloc", sizes)
        emit.branch(_is_null(emit, made), "room.none", "room.made")
        emit.label("room.made")
        emit.call(i32, "pthread_setspecific", [key, made])
        emit.jump("room.found")
        emit.label("room.none")
        emit.line(f"%room.stack = alloca i8, i64 {size}, align {LINE}")
        emit.jump("room.found")
        emit.label("room.found")
        emit.line(f"%thread.room = phi ptr [ {found.text}, %begin ], [ {made.text}, %room.made ], "
                  "[ %room.stack, %room.none ]")  # fmt: skip


def _is_null(emit: Emitter, address: Value) -> Value:
    return emit.define(boolean, f"icmp eq ptr {address.text}, null")
