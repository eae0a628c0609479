"""What a thread launches, for those who want to know it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

empty = np.empty


class Seen:
    """What a thread launches in a region: (kernel, number of tasks, arguments) of each launch; the
    memory that nobody but the kernels has a use for; and, as the last of it, their flags."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, int, tuple[Any, ...]]] = []
        self.scratch: list[np.ndarray] = []
        self.flags: list[np.ndarray] = []


observers: dict[int, Seen] = {}
"""The threads that want to know what they launch."""


def tell(kernel: Any, tasks: int, arguments: tuple[Any, ...]) -> None:
    """Note a launch for its thread."""
    seen = observers.get(threading.get_ident())
    if seen is not None:
        seen.launches.append((kernel, tasks, arguments))


def scratch(count: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Memory for a kernel, whose contents nobody looks at before or afterwards."""
    memory = empty(count, dtype)
    seen = observers.get(threading.get_ident()) if observers else None
    if seen is not None:
        seen.scratch.append(memory)
    return memory


def flags(count: int) -> np.ndarray:
    """Numbers of a kernel's tasks, which are not 0 where one refuses the arguments."""
    memory = empty(count, np.int64)
    seen = observers.get(threading.get_ident()) if observers else None
    if seen is not None:
        seen.flags.append(memory)
    return memory


def constant(array: np.ndarray) -> np.ndarray:
    """A table of a plan, which nobody writes to from now on: calls that are described hold it."""
    array.flags.writeable = False
    return array


@contextmanager
def observed() -> Iterator[Seen]:
    """A region whose launches by this thread are noted."""
    number = threading.get_ident()
    before, seen = observers.get(number), Seen()
    try:
        observers[number] = seen
        yield seen
    finally:
        if before is None:
            observers.pop(number, None)
        else:
            observers[number] = before
