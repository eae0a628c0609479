"""Work that a fork must not cut in half.

The child of a fork has one thread: locks that others held stay locked in it, those of Python's
imports and of LLVM too, and what needs them would wait for ever. So a fork waits until no other
thread is at such work. Threads at such work do not wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 20.0
"""Seconds that a fork waits: work that takes longer may itself be waiting for the thread that
forks."""


class Work:
    """How deep each thread is in such work."""

    changed = threading.Condition(threading.RLock())
    depths: dict[int, int] = {}  # noqa: RUF012
    is_held = False


@contextmanager
def held_off() -> Iterator[None]:
    """No fork happens within the block, but for one of this thread's own."""
    number = threading.get_ident()
    depths = Work.depths
    before = depths.get(number, 0)
    try:
        with Work.changed:
            depths[number] = before + 1
        yield
    finally:
        with Work.changed:
            if before:
                depths[number] = before
            else:
                depths.pop(number, None)
                Work.changed.notify_all()


def _others_are_done() -> bool:
    return all(number == threading.get_ident() for number in Work.depths)


def _wait() -> None:
    """Before a fork: from here on nobody begins, until it is over."""
    Work.is_held = Work.changed.acquire()
    Work.changed.wait_for(_others_are_done, PATIENCE)


def _go_on() -> None:
    if Work.is_held:
        Work.is_held = False
        Work.changed.release()


def _begin_anew() -> None:
    """In the child, which has none of the other threads."""
    number = threading.get_ident()
    Work.is_held = False
    Work.changed = threading.Condition(threading.RLock())
    for other in set(Work.depths) - {number}:
        del Work.depths[other]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_begin_anew)
