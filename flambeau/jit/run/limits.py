"""Limits of what a program may do: steps, memory, depth of calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.sizes import Estimate


class LimitExceeded(RuntimeError):
    """A program went beyond a limit that it was given."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may do; None for no limit.

    steps: operators and rounds of loops.
    memory: bytes of the results of operators, together, that one call may make.
    depth: calls within each other.
    code: characters of the code of an archive, together; it is compiled while it is loaded.
    """

    steps: int | None = None
    memory: int | None = None
    depth: int | None = 200
    code: int | None = 1 << 24

    @staticmethod
    def for_loading(size: int) -> Limits:
        """What an archive of `size` bytes may do while it is loaded, if nobody says otherwise: run
        its `__setstate__`, which put together what a file holds in parts.
        """
        return Limits(steps=10_000_000, memory=(1 << 30) + 32 * size)


class Meter:
    """Counts what a call does. One meter belongs to one archive or unit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = 0
        self.steps = 0
        self.memory = 0
        self.refused = False  # whether an array was not made: see `memory`

    def reset(self) -> None:
        """Begin to count anew: a call from outside."""
        if not self.depth:
            self.steps = self.memory = 0

    def enter(self) -> None:
        """A function begins."""
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
        try:
            yield
        finally:
            self.depth -= 1

    def tick(self) -> None:
        """One step."""
        self.steps += 1
        if self.limits.steps is not None and self.steps > self.limits.steps:
            raise LimitExceeded(f"more than {self.limits.steps} steps")

    def room(self, estimate: Estimate, *args: Any) -> None:
        """Refuse what would take more memory than is left, before it takes it."""
        if self.limits.memory is not None:
            self._check(estimate(*args))

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
        if self.limits.memory is not None and self.memory + size > self.limits.memory:
            raise self.beyond_memory()

    def allows(self, size: int) -> bool:
        """Whether so many bytes more are within the limit."""
        if self.limits.memory is None or self.memory + size <= self.limits.memory:
            return True
        self.refused = True
        return False

    def beyond_memory(self) -> LimitExceeded:
        """The error for too much memory."""
        return LimitExceeded(f"more than {self.limits.memory} bytes of memory")
