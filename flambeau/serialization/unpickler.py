"""`SafeUnpickler`: an interpreter for the part of pickle's language that checkpoints need.

It never imports what a file names. A GLOBAL is looked up in a table, and only what came out of
that table can be called, with arguments that the table's own functions check. Opcodes and their
operands are those of Python's `pickletools`; protocols 2 to 5 are understood.
"""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from struct import Struct
from typing import Any

from flambeau.serialization.allowed import AllowedGlobals
from flambeau.serialization.checks import CopyBudget, Keys, decode, extent
from flambeau.serialization.file_bytes import FileBytes
from flambeau.serialization.opcodes import HANDLERS

FREE_COPIES = 4096


class SafeUnpickler:
    """Run one pickle that begins at `position` of `data`.

    `persistent_load` turns the tuple ("storage", type, key, location, numel, ...) into a storage.
    After `load()`, `position` is the first byte behind the pickle. Every failure is an
    UnpicklingError, except those that `persistent_load` raises.
    """

    handlers = HANDLERS

    def __init__(
        self,
        data: bytes | memoryview | FileBytes,
        allowed: AllowedGlobals,
        persistent_load: Callable[[tuple[Any, ...]], Any],
        *,
        position: int = 0,
        encoding: str = "utf-8",
    ) -> None:
        self.data: Any = data if isinstance(data, FileBytes) else memoryview(data)
        self.length = len(self.data)
        self.position = position
        self.allowed = allowed
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.protocol = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self._keys: dict[int, Keys] = {}  # of containers, by address
        self.finished = False
        self.budget = CopyBudget(FREE_COPIES + 2 * (self.length - position))

    def load(self) -> Any:
        """The object that the pickle describes."""
        while not self.finished:
            if self.position >= self.length:
                raise UnpicklingError("pickle data was truncated")
            code = self.data[self.position]
            self.position += 1
            handler = self.handlers.get(code)
            if handler is None:
                raise UnpicklingError(f"Unsupported operand {code}")
            handler(self)
        result = self.pop()
        if self.stack or self.marks:
            raise UnpicklingError("the pickle ends with more than one object on its stack")
        return result

    def keys_of(self, container: Any) -> Keys:
        """The keys of a dict or set so far."""
        found = self._keys.get(id(container))
        if found is None:
            found = self._keys[id(container)] = Keys(container)
        return found

    def take(self, count: int) -> memoryview:
        """The next `count` bytes."""
        end = self.position + count
        if count < 0 or end > self.length:
            raise UnpicklingError("pickle data was truncated")
        chunk = self.data[self.position : end]
        self.position = end
        return chunk

    def unpack(self, layout: Struct) -> Any:
        """One number in a `struct` layout."""
        start = self.position
        self.position = start + layout.size
        if self.position > self.length:
            raise UnpicklingError("pickle data was truncated")
        return layout.unpack(self.data[start : self.position])[0]

    def take_line(self) -> str:
        """The text up to the next newline."""
        window = bytes(self.data[self.position : self.position + 4096])
        length = window.find(b"\n")
        if length < 0:
            raise UnpicklingError("pickle data was truncated")
        line = bytes(self.take(length + 1))[:-1]
        return decode(line, "utf-8")

    def spend(self, argument: Any) -> None:
        """Count what a call of the file may copy; UnpicklingError when it is too much."""
        amount = extent(argument)
        if amount:
            self.budget.spend(amount)

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Take the top value; the values below the last mark are out of reach."""
        floor = self.marks[-1] if self.marks else 0
        if len(self.stack) <= floor:
            raise UnpicklingError("the pickle takes more from its stack than it put there")
        return self.stack.pop()

    def top(self) -> Any:
        """The top value, left in place."""
        value = self.pop()
        self.stack.append(value)
        return value

    def pop_mark(self) -> list[Any]:
        """The values above the last mark, which goes too."""
        if not self.marks:
            raise UnpicklingError("the pickle uses a mark that it did not set")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items
