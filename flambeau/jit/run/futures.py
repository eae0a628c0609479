"""Forks of programs: calls that run beside the caller, in threads of their own.

As many run at a time as `set_num_interop_threads` says. A thread that makes calls, and in one of
them waits for a call that has not begun, makes that itself, so that calls that wait for each other
need no more threads than there are. All others wait.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from flambeau._core import device, modes, settings
from flambeau.futures import Future

__all__ = ["Future", "forked", "forked_here"]


class Call:
    """A call that a thread of the pool is to make."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        self.future: Future[Any] = Future()
        self.future._work = self.help
        self.pool = pool
        self.free = threading.Lock()
        self.context = contextvars.copy_context()
        self.grad = modes.grad.enabled
        self.device = device.thread.chosen, list(device.thread.blocks)

    def help(self) -> None:
        """Make the call where it is waited for: in a thread of the pool, or where that is not, in
        the child of a fork."""
        if making.calls or self.pool is not pool:
            self.make()

    def make(self) -> None:
        """Make the call, if nobody has begun to; as its caller would, whatever modes hold here."""
        if not self.free.acquire(blocking=False):
            return
        before = modes.grad.enabled, device.thread.chosen, device.thread.blocks
        modes.grad.enabled = self.grad
        device.thread.chosen, device.thread.blocks = self.device
        try:
            self.context.run(_settle, self.future, self.function, self.args)
        finally:
            modes.grad.enabled, device.thread.chosen, device.thread.blocks = before


def _settle(future: Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        result = function(*args)
    except Exception as error:  # raised where the result is waited for
        future.set_exception(error)
        return
    future.set_result(result)


class Making(threading.local):
    """Whether this thread is one of the pool's, which makes calls."""

    calls = False


making = Making()


class Pool:
    """Threads that make calls: they begin when there is something to do, and never end."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque()
        self.changed = threading.Condition()
        self.threads = self.idle = 0

    def add(self, call: Call) -> None:
        """Let a thread make a call."""
        with self.changed:
            self.calls.append(call)
            if len(self.calls) > self.idle and self.threads < settings.get_num_interop_threads():
                self.threads += 1
                threading.Thread(target=self._live, daemon=True).start()
            self.changed.notify()

    def _live(self) -> None:
        making.calls = True
        while True:
            with self.changed:
                self.idle += 1
                self.changed.wait_for(lambda: self.calls)
                self.idle -= 1
                call = self.calls.popleft()
            call.make()


pool = Pool()


def _forget() -> None:
    """The child of a fork has none of its parent's threads."""
    global pool  # noqa: PLW0603
    pool = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def forked(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """A call as a Future. While somebody looks on, or changes what operators do, the call is made
    at once: modes belong to a thread.
    """
    if modes.watch.interferes():
        return forked_here(function, *args)
    settings.Threads.begun = True
    call = Call(function, args)
    pool.add(call)
    return call.future


def forked_here(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """A call as a Future, made at once; for programs whose steps are counted."""
    made: Future[Any] = Future()
    _settle(made, function, args)
    return made
