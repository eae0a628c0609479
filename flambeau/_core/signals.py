"""Signals that wait while something is done."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager


@contextmanager
def blocked(signals: Collection[signal.Signals]) -> Iterator[None]:
    """This thread, and what it starts, gets none of these signals within the block.

    The signals that were blocked before are known first: a handler may raise as soon as
    `pthread_sigmask` has blocked more, and would leave them blocked for good.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
