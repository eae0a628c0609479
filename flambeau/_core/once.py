"""What is switched on once, wholly or not at all.

Many functions get a line at their entrance when the first mode, batch or class comes up. Whoever
comes second must not take that for done while it is under way, nor after a signal's handler has
raised in the middle: what follows would silently pass by the functions that have none yet.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Locks:
    """One lock for all work that is done once: some of it asks for other."""

    once = threading.RLock()


def _forget() -> None:
    """Nobody in the child of a fork holds the lock."""
    Locks.once = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Once:
    """Work that is done at the first call; other threads wait until it is. An error leaves it to
    the next call, so that what was done twice must be as if it was done once. Calls from within the
    work do nothing.

    >>> from flambeau._core.once import Once
    >>> greet = Once(lambda: print("hello"))
    >>> greet()
    hello
    >>> greet()
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.is_done = False
        self.thread = 0
        """Which thread is at it."""

    def __call__(self) -> None:
        if self.is_done:
            return
        with Locks.once:
            if self.is_done or self.thread == threading.get_ident():
                return
            try:
                self.thread = threading.get_ident()
                self.work()
                self.is_done = True
            finally:
                self.thread = 0


class Shared:
    """What the first of several users switches on, and the last one off. `off` undoes `on` also
    where that has raised half-way."""

    def __init__(self, on: Callable[[], None], off: Callable[[], None]) -> None:
        self.on, self.off = on, off
        self.users = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        is_user = False
        try:
            with self.lock:
                if not self.users:
                    self._begin()
                self.users += 1
                is_user = True
        except BaseException:  # a signal's handler, when the lock was given back
            if is_user:
                self.__exit__()
            raise

    def _begin(self) -> None:
        try:
            self.on()
        except BaseException:
            self.off()
            raise

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                self.off()
