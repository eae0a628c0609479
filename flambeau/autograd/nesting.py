"""Backward passes within backward passes: callbacks at their ends, and how deep they may be.

Python's stack is limited; every so many passes within one another go on in a thread of their own,
which the thread before waits for, with all that is set for one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flambeau._core import autocast, modes
from flambeau._tensor import overriding

DEPTH = 30
"""How many passes there are within one another in one thread."""

CALLBACKS, LEVEL = object(), object()
"""Where a pass notes what is to be called at its end, and how many passes it is within."""


def run_within(task: Any, outer: Any) -> Any:
    """Run a backward pass within another one."""
    level = task.notes[LEVEL] = outer.notes.get(LEVEL, 0) + 1
    return task.run() if level % DEPTH else in_thread(task.run)


def states() -> list[Any]:
    """What is set for one thread."""
    from flambeau.autograd import engine, notes

    return [modes.grad, modes.stacks, overriding.state, autocast.settings, engine.running,
            notes.evaluating]  # fmt: skip


def in_thread(function: Callable[[], Any]) -> Any:
    """The result, or the error, of a function that runs in a new thread as if it were in this."""
    settings = [dict(state.__dict__) for state in states()]
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        for state, setting in zip(states(), settings, strict=True):
            state.__dict__.update(setting)
        try:
            done.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class ExecutionEngine:
    """`Variable._execution_engine`: callbacks at the end of the backward pass that runs."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Call a function once the innermost backward pass of this thread is done."""
        from flambeau.autograd.engine import running

        if running.task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        running.task.notes.setdefault(CALLBACKS, []).append(callback)


def call_back(notes: dict[Any, Any]) -> None:
    """Call what was queued, and what is queued meanwhile."""
    callbacks = notes.get(CALLBACKS, [])
    while callbacks:
        callbacks.pop(0)()
