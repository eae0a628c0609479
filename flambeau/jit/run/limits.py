"""Limits of what a program may do: steps, memory, time, depth of calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from flambeau._core import settings
from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.sizes import Estimate
from flambeau.jit.operators.work import ELEMENTS, ITEMS, backward, extent
from flambeau.jit.run.holding import held

LOOK_EVERY = 256
MOST_PER_SECOND = 4_000_000
"""Steps, for every thread: a few times what a second of work counts, so that no operator is refused
that fits."""


class LimitExceeded(RuntimeError):
    """A program went beyond a limit that it was given."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may do; None for no limit.

    steps: operators and rounds of loops; an operator that works on much counts as many steps as
        the microseconds that it takes, about (`jit.operators.work`).
    memory: bytes that the results of operators may take at the same time.
    depth: calls within each other.
    code: characters of the code of an archive, together; it is compiled while it is loaded.
    seconds: how long a call may take. The clock is looked at between operators;
        one that would by far take longer than what is left is not begun.
    """

    steps: int | None = None
    memory: int | None = None
    depth: int | None = 200
    code: int | None = 1 << 24
    seconds: float | None = None

    @staticmethod
    def for_loading(size: int) -> Limits:
        """What an archive of `size` bytes may do while it is loaded, if nobody says otherwise: run
        its `__setstate__`, which put together what a file holds in parts.
        """
        seconds = 60 + size / 1e7
        return Limits(steps=10_000_000, memory=(1 << 30) + 32 * size, seconds=seconds)


class Meter:
    """Counts what a call does. One meter belongs to one archive or unit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = self.base = 0  # `base`: the depth at which calls from outside begin
        self.steps = self.worked = 0
        self.next_look = 0  # at the clock: as many steps
        self.deadline: float | None = None
        self.memory = self.kept = 0  # `kept`: what earlier calls have made
        self.refused = False  # whether an array was not made: see `memory`

    def reset(self) -> None:
        """Begin to count anew: a call from outside."""
        if not self.depth:
            self.steps = self.worked = self.memory = self.next_look = 0
            if self.limits.seconds is not None:
                self.deadline = time.monotonic() + self.limits.seconds

    def enter(self) -> None:
        """A function begins."""
        if not self.depth or self.depth == self.base:
            self.kept = self.memory
        self.depth += 1
        if self.limits.depth is not None and self.depth > self.limits.depth:
            raise LimitExceeded(f"more than {self.limits.depth} calls within each other")

    def leave(self) -> None:
        """A function ends."""
        self.depth -= 1

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all calls inside count as one."""
        self.reset()
        self.depth += 1
        self.base = self.depth
        try:
            yield
        finally:
            self.depth -= 1
            self.base = 0

    def tick(self, more: int = 0) -> None:
        """One step, or more."""
        self.steps += 1 + more
        if self.limits.steps is not None and self.steps > self.limits.steps:
            raise LimitExceeded(f"more than {self.limits.steps} steps")
        if self.deadline is not None and self.steps >= self.next_look:
            self.next_look = self.steps + LOOK_EVERY
            left = self.deadline - time.monotonic()
            fits = MOST_PER_SECOND * settings.get_num_threads() * max(left, 0.0)
            if left < 0 or more > fits:  # nobody stops an operator half-way
                raise LimitExceeded(f"more than {self.limits.seconds:g} seconds")

    def work(self, estimate: Estimate, *args: Any) -> None:
        """Count what an operator is going to do."""
        try:
            # a backward pass goes through what was done forward, all of it at most
            count = 2 * self.worked if estimate is backward else estimate(*args)
        except (AttributeError, IndexError, TypeError, ValueError):
            count = extent(args)  # arguments of other kinds than it is for
        if estimate is not backward:
            self.worked += count
        self.tick(count)

    def given(self, result: Any) -> Any:
        """Count what it takes to copy a result for the caller: lists may hold each other."""
        if isinstance(result, (list, tuple, dict)):
            self.tick(extent([result], with_tensors=False) // ITEMS)
        return result

    def room(self, estimate: Estimate, *args: Any) -> None:
        """Refuse what would take more memory than is left, and count the work of filling it."""
        size = estimate(*args)
        self._check(size)
        self.tick(size // (8 * ITEMS))

    def grow(self, estimate: Estimate, *args: Any) -> None:
        """Count what a list or dictionary is about to grow by."""
        self._add(estimate(*args))

    def made(self, *results: Any) -> None:
        """Count the memory of results; views of other tensors have none of their own."""
        for result in results:
            kind = result.__class__
            if kind is Tensor:
                if result._root is None:
                    self._add(result.numel() * result.dtype.itemsize)
                    self.tick(result.numel() // ELEMENTS)
            elif kind is str:
                self._add(len(result))
            elif kind in (list, tuple, dict):
                self._add(8 * len(result))
                if kind is not dict and result and result[0].__class__ is Tensor:
                    self.made(*result)

    def _add(self, size: int) -> None:
        self._check(size)
        self.memory += size

    def _check(self, size: int) -> None:
        if not self._fits(size):
            raise self.beyond_memory()

    def _fits(self, size: int) -> bool:
        """Whether so many bytes more are within the limit; what nobody holds any more is not
        counted, but looked for only where a good part of the limit may come free."""
        limit = self.limits.memory
        if limit is None or self.memory + size <= limit:
            return True
        found, looked_at = held(sys._getframe(1))
        self.tick(looked_at)
        self.memory = min(self.memory, self.kept + found)
        return self.memory + size <= limit - limit // 8

    def allows(self, size: int) -> bool:
        """Whether so many bytes more are within the limit."""
        with suppress(LimitExceeded):  # of steps, while it was looked for what is held
            if self._fits(size):
                return True
        self.refused = True
        return False

    def beyond_memory(self) -> LimitExceeded:
        """The error for too much memory."""
        return LimitExceeded(f"more than {self.limits.memory} bytes of memory")
