"""What a program could do better: looks on while it runs, and says so, line by line."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ContextDecorator
from typing import Any, TextIO

from flambeau._core.modes import Observer, observing
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.engine import running
from flambeau.debug.advice import topics_of
from flambeau.debug.advice.base import MANY, Call, Finding
from flambeau.debug.advice.origins import Origin, Origins
from flambeau.debug.advice.taps import Taps
from flambeau.debug.places import Place, line

DEEP = 64
"""Operators within operators: more there are not."""


class Report:
    """What was found: `items`, the findings, those that took longest first. Prints as text."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, Place | None], Finding] = {}
        self.operators = 0
        self.seconds = 0.0
        self.watching = 0.0

    @property
    def items(self) -> list[Finding]:
        """The findings: topic, place, text, better, count, seconds."""
        return sorted(self.found.values(), key=lambda item: -item.seconds)

    def add(self, topic: str, place: Place | None, text: str, better: str, count: int,
            seconds: float, unit: str) -> Finding | None:  # fmt: skip
        """One more finding, or one more time of a known one. At most MANY are kept."""
        key = (topic, place)
        known = self.found.get(key)
        if known is None:
            if len(self.found) >= MANY:
                return None
            known = self.found[key] = Finding(topic, place, text, better, unit=unit)
        known.text, known.better = text, better
        known.count += count
        known.seconds += seconds
        return known

    def __str__(self) -> str:
        items = self.items
        count = f"{len(items)} advice{'s' if len(items) != 1 else ''}" if items else "no advice"
        head = (f"flambeau.debug.advise: {count} ({self.operators:,} operators in "
                f"{self.seconds:.3g} s; watching them took {self.watching:.2g} s)")  # fmt: skip
        return "\n\n".join([head, *(f"{k}. {item}" for k, item in enumerate(items, 1))])


class advise(ContextDecorator):
    """Look on while a program runs, and print what it could do better.

        with flambeau.debug.advise() as report:
            train()

    Says what costs time or goes wrong without an error (slices in a loop, a softmax followed by
    log, unscaled clipping, ...), each with the line of the program, how often it happened, the time
    measured there, and the better code; the table is in docs/debugging.md. Looks at the thread
    that it was opened in.

    quiet: do not print; `report.items` has the findings.
    file: where to print, at the end; standard error if it is not given.
    """

    def __init__(self, *, quiet: bool = False, file: TextIO | None = None) -> None:
        self.quiet, self.file = quiet, file
        self.open: list[Looker] = []

    def __enter__(self) -> Report:
        looker = Looker()
        self.open.append(looker)
        _warn_of_faults(True)
        return looker.report

    def __exit__(self, *error: object) -> None:
        report = self.open.pop().close()
        _warn_of_faults(bool(self.open))
        if not self.quiet:
            print(report, file=self.file or sys.stderr)


def _warn_of_faults(advised: bool) -> None:
    """Let the optimiser of scripts say where it failed and the plain program ran instead."""
    from flambeau.jit.optimise import settings

    settings.advised = advised


class Looker(Observer):
    """Hands every call to those topics that want to see it."""

    def __init__(self) -> None:
        self.report = Report()
        self.origins = Origins()
        self.topics = topics_of(self.report.add)
        self.wanted: dict[str, list[Any]] = {}
        self.inner: list[list[str]] = []  # of each call that is running, those within it
        self.modules: list[Any] = []
        self.begun: list[float] = []
        self.thread = threading.get_ident()
        self.start = time.perf_counter()
        self.observing = observing(self)
        self.observing.__enter__()
        self.taps = Taps(self)
        self.handles = self._hooks()

    def _hooks(self) -> list[Any]:
        from flambeau.nn.module_hooks import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )
        from flambeau.optim.optimizer import register_optimizer_step_pre_hook

        return [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._step),
        ]

    def close(self) -> Report:
        """Stop looking; the report is complete."""
        for handle in self.handles:
            handle.remove()
        self.taps.remove()
        self.observing.__exit__()
        for topic in self.topics:
            topic.end()
        self.report.seconds = time.perf_counter() - self.start
        return self.report

    # ---- operators

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> Any:
        """Take the time."""
        if len(self.inner) > DEEP:  # left by calls that raised errors
            self.inner.clear()
        if self.inner:
            self.inner[-1].append(name)
        self.inner.append([])
        return len(self.inner), time.perf_counter()

    def after(self, name: str, values: tuple[Any, ...], result: Any, seen: Any) -> None:
        """Let the topics look at a call. In an autocast region a call has a second one inside,
        with the types that were chosen, which is looked at instead."""
        now = time.perf_counter()
        depth, begun = seen
        within = self.inner[depth - 1] if depth <= len(self.inner) else []
        del self.inner[depth - 1 :]
        if running.task is None and name not in within:
            self._look(name, values, result, now - begun)
        self.report.operators += 1
        self.report.watching += time.perf_counter() - now

    def _look(self, name: str, values: tuple[Any, ...], result: Any, seconds: float) -> None:
        where = line()
        if where is None:
            return
        origins = [self.origins.of(value) for value in values]
        made = None
        if isinstance(result, Tensor):
            first = origins[0] if origins else None
            made = Origin(name, values, result, where, seconds, first)
            self.origins.note(result, made)
        for topic in self._topics_for(name):
            topic.operator(Call(name, values, result, seconds, where, origins, made))

    def _topics_for(self, name: str) -> list[Any]:
        found = self.wanted.get(name)
        if found is None:
            found = [topic for topic in self.topics if topic.wants(name)]
            self.wanted[name] = found
        return found

    # ---- modules and optimizers

    def _enter(self, module: Any, given: Any) -> None:
        if threading.get_ident() != self.thread:
            return
        where = line()
        if where is not None:
            for topic in self.topics:
                topic.enter(module, given, where, tuple(self.modules))
        self.modules.append(module)
        self.begun.append(time.perf_counter())

    def _leave(self, module: Any, given: Any, result: Any) -> None:
        if threading.get_ident() != self.thread or not any(m is module for m in self.modules):
            return
        found = None
        while found is not module:
            found, begun = self.modules.pop(), self.begun.pop()
        for topic in self.topics:
            topic.leave(module, time.perf_counter() - begun, tuple(self.modules))

    def _step(self, optimizer: Any, given: Any, named: Any) -> None:
        where = line()
        if where is not None and threading.get_ident() == self.thread:
            for topic in self.topics:
                topic.step(optimizer, where)
