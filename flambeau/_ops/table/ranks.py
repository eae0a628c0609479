"""The order in which handlers are asked for a call, from outside to inside.

It is the same whatever a program used first. Rows keep their handlers in `dispatch.WATCHERS`,
functions that are written by hand in gates (`gates.py`); `docs/interpreters.md` has the whole.
"""

from __future__ import annotations

from enum import IntEnum


class Rank(IntEnum):
    """Who is asked before whom."""

    CLASSES = 0  # classes with `__torch_function__`
    AUTOCAST = 1
    RECORDING = 2  # what notes a function's operators on arrays of its own
    LEVELS = 3  # `vmap`, forward mode
    DISPATCH = 4  # modes and classes with `__torch_dispatch__`: rows and new tensors
    METHODS = 5  # the same for methods that are no rows
    NUMBERS = 6  # what tensors without numbers refuse
    META = 7
    DEVICES = 8
