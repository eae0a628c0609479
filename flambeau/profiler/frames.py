"""The lines of the program that an operator was called from, as PyTorch writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType
from typing import Any

PACKAGE = str(Path(__file__).parents[1])
OURS = (PACKAGE, "<flambeau", "<frozen ")
"""Beginnings of the file names of frames that are not the program's own."""
DEEPEST = 64
"""How many lines of a stack are kept."""

# By the code's address: its hash reads all of it. `_codes` keeps addresses from being used again.
_entries: dict[tuple[int, int], str] = {}
_ours: dict[int, bool] = {}
_codes: list[CodeType] = []


def user_stack() -> tuple[str, ...]:
    """The lines of the program that are running, the innermost first: "train.py(31): step"."""
    frame: Any = sys._getframe(2)
    found: list[str] = []
    while frame is not None and len(found) < DEEPEST:
        code = frame.f_code
        ours = _ours.get(id(code))
        if ours is None:
            ours = _look_at(code)
        if not ours:
            key = (id(code), frame.f_lineno)
            text = _entries.get(key)
            if text is None:
                text = _entries[key] = f"{code.co_filename}({key[1]}): {code.co_name}"
            found.append(text)
        frame = frame.f_back
    return tuple(found)


def _look_at(code: CodeType) -> bool:
    """Whether code belongs to flambeau, or to Python's own import system."""
    _codes.append(code)
    found = _ours[id(code)] = code.co_filename.startswith(OURS)
    return found
