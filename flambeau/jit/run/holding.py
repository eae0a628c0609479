"""What a running program holds: the memory of everything that its variables reach."""

from __future__ import annotations

from types import FrameType
from typing import Any

from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.values import ScriptObject
from flambeau.nn import Module

PROGRAM = "<torchscript "
"""How the names of files begin that generated functions are in."""
LOOKS = 16
"""Things that are looked at in a step's time."""


def held(frame: FrameType | None) -> tuple[int, int]:
    """Bytes that the functions of a program hold which have called this frame, and how many steps
    it took to find out."""
    roots: list[Any] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PROGRAM):
            roots += _variables(frame)
        frame = frame.f_back
    return _reached(roots)


def _variables(frame: FrameType) -> list[Any]:
    found: Any = frame.f_locals
    values = list(found.values())
    if type(found) is dict:
        found.clear()  # a copy that would hold them as long as the frame lives (before Python 3.13)
    return values


def _reached(left: list[Any]) -> tuple[int, int]:
    total, seen = 0, set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        size, inside = _parts(value)
        total += size
        left += inside
    return total, len(seen) // LOOKS


def _parts(value: Any) -> tuple[int, list[Any]]:
    """The bytes of one thing, and what it holds that may have some."""
    if isinstance(value, str):
        return len(value), []
    if isinstance(value, (list, tuple)):
        is_plain = not value or isinstance(value[0], (int, float, complex))
        return 8 * len(value), [] if is_plain and isinstance(value, list) else list(value)
    if isinstance(value, dict):
        return 100 * len(value), [*value.keys(), *value.values()]
    if isinstance(value, Module):
        return 0, list(value.__dict__.values())
    if isinstance(value, Tensor):
        tensor: Any = value
        return 0, [tensor.untyped_storage(), tensor.grad]
    if isinstance(value, UntypedStorage):
        return value.nbytes(), []
    if isinstance(value, ScriptObject):
        return 0, list(vars(value).values())
    return 0, []
