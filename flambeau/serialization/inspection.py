"""Looking into a checkpoint without running it."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import Any

from flambeau.serialization.allowed import STANDARD_ROWS, modern_name, user_rows
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.rebuild import SAFE_ROWS

TEXT_OPCODES = frozenset(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"))
PUT_OPCODES = frozenset(("BINPUT", "LONG_BINPUT"))
GET_OPCODES = frozenset(("BINGET", "LONG_BINGET"))


def globals_in_pickle(content: bytes) -> Iterator[str]:
    """The full name of every global that a pickle mentions, found by reading its opcodes."""
    texts: list[Any] = [None, None]
    memo: dict[int, Any] = {}
    is_old = False
    argument: Any
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "PROTO":
            is_old = argument < 3
        elif opcode.name in TEXT_OPCODES:
            texts.append(argument)
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = texts[-1]
        elif opcode.name in PUT_OPCODES:
            memo[argument] = texts[-1]
        elif opcode.name in GET_OPCODES:
            texts.append(memo.get(argument))
        elif opcode.name == "STACK_GLOBAL":
            yield f"{texts[-2]}.{texts[-1]}"
        elif opcode.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            yield ".".join(modern_name(module, name) if is_old else (module, name))


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
