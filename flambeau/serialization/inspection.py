"""Looking into a checkpoint without running it."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import Any

from flambeau.serialization.allowed import STANDARD_ROWS, modern_name, user_rows
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.rebuild import SAFE_ROWS

TEXT_OPCODES = frozenset((
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE",
    "SHORT_BINSTRING", "BINSTRING", "STRING",
))  # fmt: skip
PUT_OPCODES = frozenset(("BINPUT", "LONG_BINPUT", "PUT"))
GET_OPCODES = frozenset(("BINGET", "LONG_BINGET", "GET"))
NAMED_OPCODES = frozenset(("GLOBAL", "INST"))
EXTENSION_OPCODES = frozenset(("EXT1", "EXT2", "EXT4"))
MARK = object()


def globals_in_pickle(content: bytes) -> Iterator[str]:
    """The full name of every global that a pickle mentions. ValueError if that cannot be told.

    Nothing runs, but the stack is followed: which texts STACK_GLOBAL finds there depends on what
    was pushed, popped and kept in the memo before.
    """
    stack = TextStack()
    is_old = False
    argument: Any
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "PROTO":
            is_old = argument < 3
        elif opcode.name in EXTENSION_OPCODES:
            yield f"copyreg.extension_{argument}"
        elif opcode.name == "STACK_GLOBAL":
            name, module = stack.pop(), stack.pop()
            if type(name) is not str or type(module) is not str:
                raise ValueError("the pickle computes the name of a global")
            yield f"{module}.{name}"
            stack.items.append(None)
            continue
        elif opcode.name in NAMED_OPCODES:
            module, _, name = argument.partition(" ")
            yield ".".join(modern_name(module, name) if is_old else (module, name))
        stack.run(opcode, argument)


class TextStack:
    """The stack of a pickle that does not run: texts as they are, None for everything else."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        """Take the top. ValueError if there is none."""
        if not self.items:
            raise ValueError("the pickle takes more from its stack than it put there")
        return self.items.pop()

    def run(self, opcode: pickletools.OpcodeInfo, argument: Any) -> None:
        """What one opcode does to stack and memo."""
        name = opcode.name
        if name == "MARK":
            self.items.append(MARK)
        elif name in PUT_OPCODES or name == "MEMOIZE":
            index = len(self.memo) if name == "MEMOIZE" else argument
            self.items.append(self.pop())
            self.memo[index] = self.items[-1]
        elif name in GET_OPCODES:
            self.items.append(self.memo.get(argument))
        elif name == "DUP":
            self.items.append(self.pop())
            self.items.append(self.items[-1])
        else:
            self._exchange(opcode, argument if name in TEXT_OPCODES else None)

    def _exchange(self, opcode: pickletools.OpcodeInfo, result: Any) -> None:
        """Take what the opcode takes, put `result` for each thing it puts."""
        before = opcode.stack_before
        if pickletools.markobject in before:
            while self.pop() is not MARK:
                pass
            before = before[: before.index(pickletools.markobject)]
        for _ in before:
            self.pop()
        self.items.extend(result for _ in opcode.stack_after)


def unsafe_globals(reader: ArchiveReader) -> list[str]:
    """The globals of a checkpoint that a safe load would refuse."""
    if reader.has("constants.pkl"):
        raise ValueError(
            "Expected input to be a checkpoint returned by torch.save but got a torchscript "
            "checkpoint"
        )
    known = {**STANDARD_ROWS, **SAFE_ROWS, **user_rows()}
    found = dict.fromkeys(globals_in_pickle(reader.read("data.pkl")))
    return [name for name in found if name not in known]
