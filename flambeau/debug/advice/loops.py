"""Whether an instruction of a program stands in a loop, and whether it writes."""

from __future__ import annotations

import dis
import weakref
from bisect import bisect_right
from types import CodeType
from typing import NamedTuple

from flambeau.debug.places import Line


class Instructions(NamedTuple):
    """What is known of a code object."""

    code: weakref.ref[CodeType]
    starts: list[int]
    """Where each instruction begins; a frame may stand at the cache behind one."""
    loops: list[tuple[int, int]]
    """First and last instruction of each loop: where a jump back goes to, and the jump."""


_KNOWN: dict[int, Instructions] = {}
"""By id: the hash of a code object changes in Python 3.11 once it has run for a while."""
CODES = 1000
"""Code objects that are remembered at most."""
WRITES = frozenset((dis.opmap["STORE_SUBSCR"], dis.opmap.get("STORE_SLICE", -1)))


def instructions_of(code: CodeType) -> Instructions:
    """Read a code object, or remember it."""
    known = _KNOWN.get(id(code))
    if known is not None and known.code() is code:
        return known
    if len(_KNOWN) >= CODES:
        _KNOWN.clear()
    steps = list(dis.get_instructions(code))
    loops = [(step.argval, step.offset) for step in steps if "JUMP_BACKWARD" in step.opname]
    starts = [step.offset for step in steps]
    known = _KNOWN[id(code)] = Instructions(weakref.ref(code), starts, loops)
    return known


def start_of(line: Line) -> int:
    """Where the instruction begins."""
    starts = instructions_of(line.code).starts
    return starts[bisect_right(starts, line.instruction) - 1]


def key_of(line: Line) -> tuple[int, int]:
    """What tells an instruction from all others, on the same line too."""
    return id(line.code), start_of(line)


def in_loop(line: Line) -> bool:
    """Whether it is run again by a `for`, `while` or comprehension around it."""
    where = start_of(line)
    return any(first <= where <= last for first, last in instructions_of(line.code).loops)


def writes(line: Line) -> bool:
    """Whether it is `x[...] = value`."""
    return line.code.co_code[start_of(line)] in WRITES
