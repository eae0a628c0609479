"""Many programs, in processes of their own: what crashes or hangs one is a finding, too."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import multiprocessing
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TextIO

from conformance.explained import explanation

LIMIT = 20.0
"""Seconds of computing for one program, in Python: a machine that is busy makes none slow."""
HUNG = 200.0
"""Seconds after which a process that says nothing is ended."""
IMPORT = 300.0
"""Seconds after which a process has imported both libraries, on a machine that is busy, too."""
MEMORY = 6 << 30
"""Bytes of addresses that a process may take, besides those that it begins with: once a kernel has
run, the memory pool has as many as the machine has memory."""
LIFE = 3000
"""Programs after which a process is replaced, so that nothing piles up in it."""
SHRUNK = 3
"""Findings of one kind that a process makes small."""


@dataclass(frozen=True)
class Plan:
    """What is to be done."""

    seed: str
    minutes: float = 0.0
    programs: int = 0
    workers: int = 1
    across: float = 0.0
    """The share of programs that are run by PyTorch, too."""
    output: str = ""
    first: int = 0
    judge: str = "conformance.jit.generated.judging"
    """The module that draws programs and judges them."""
    foreign: tuple[str, ...] = ()
    """Stages in which only PyTorch runs: its crashes are no findings."""


@dataclass
class Total:
    """What has come of it so far."""

    counts: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    unexplained: Counter[str] = field(default_factory=Counter)
    """Those of the groups that `conformance.explained` has no entry for."""
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        return self.counts["programs"] / max(time.monotonic() - self.started, 1e-9)

    def line(self) -> str:
        """Progress, in a line."""
        told = ", ".join(f"{self.counts[name]} {name}" for name in COUNTED)
        return f"{told}, {self.rate:.1f} programs/s, {len(self.groups)} kinds of findings"


COUNTED = ("programs", "calls", "raised", "unused", "undetermined", "not compiled", "findings",
           "slow", "crashes", "crashes of PyTorch")  # fmt: skip


class Slow(BaseException):
    """A program that takes too long."""


def run(plan: Plan) -> Total:
    """Run programs until the time is over or there are enough."""
    total = Total()
    end = time.monotonic() + plan.minutes * 60 if plan.minutes else float("inf")
    numbers = _numbers(plan)
    last = time.monotonic()
    output = Path(plan.output).open("a", encoding="utf-8") if plan.output else None  # noqa: SIM115
    crew = [Worker(plan, numbers) for _ in range(plan.workers)]
    while any(worker.busy for worker in crew):
        _listen(crew, total, output)
        for worker in crew:
            worker.tend(total, output, more=time.monotonic() < end)
        if time.monotonic() - last > 15:
            last = time.monotonic()
            print(total.line(), flush=True)
    for worker in crew:
        worker.stop()
    return total


def _numbers(plan: Plan) -> Iterator[int]:
    number = plan.first
    while not plan.programs or number < plan.first + plan.programs:
        yield number
        number += 1


def _listen(crew: list[Worker], total: Total, output: TextIO | None) -> None:
    ready = wait([worker.pipe for worker in crew], timeout=0.5)
    for worker in crew:
        if worker.pipe in ready:
            worker.hear(total, output)


class Worker:
    """A process, and what it is at."""

    def __init__(self, plan: Plan, numbers: Iterator[int]) -> None:
        self.plan = plan
        self.numbers = numbers
        self.current = -1
        self.done = 0
        self.stage = ""
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([self.plan.judge])  # imports both libraries once for all
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.plan), daemon=True)
        self.process.start()
        self.gone, self.stage = False, ""  # whether it has closed its end; what it is at
        theirs.close()
        self.done = 0
        self.next()

    @property
    def busy(self) -> bool:
        return self.current >= 0

    def next(self) -> None:
        """Give it the next program."""
        self.current = next(self.numbers, -1)
        self.since = time.monotonic()
        if self.current >= 0:
            with contextlib.suppress(BrokenPipeError):
                self.pipe.send(self.current)

    def hear(self, total: Total, output: TextIO | None) -> None:
        """Take what it has to say."""
        try:
            told = self.pipe.recv()
        except (EOFError, OSError):
            self.gone = True
            return
        if "stage" in told:
            self.since, self.stage = time.monotonic(), told["stage"]
            return
        _note(told, total, output)
        self.current, self.done = -1, self.done + 1

    def tend(self, total: Total, output: TextIO | None, more: bool) -> None:
        """See that it lives and has something to do."""
        dead = self.gone or not (self.process.is_alive() or self.pipe.poll())
        if self.busy and dead:
            self.process.join(5)
            self._lost(f"crash ({self.process.exitcode})", total, output, more)
        elif self.busy and time.monotonic() - self.since > (HUNG if self.stage else IMPORT):
            self._lost("hang", total, output, more)
        elif not self.busy and more:
            if self.done >= LIFE:
                self.stop()
                self.start()
            else:
                self.next()

    def _lost(self, kind: str, total: Total, output: TextIO | None, more: bool) -> None:
        self.process.kill()
        told = {"seed": f"{self.plan.seed}/{self.current}", "group": f"{kind} in {self.stage}"}
        is_foreign = self.stage in self.plan.foreign
        word = "crashes of PyTorch" if is_foreign else "crashes"
        found = [] if is_foreign else [told]
        _note({"counts": {"programs": 1, word: 1}, "found": found}, total, output)
        self.current = -1
        if more:
            self.start()

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError, OSError):
            self.pipe.send(-1)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


def _note(told: dict[str, Any], total: Total, output: TextIO | None) -> None:
    total.counts.update(told["counts"])
    for found in told["found"]:
        total.groups[found["group"]] += 1
        if explanation(found) is None:
            total.unexplained[found["group"]] += 1
        known = total.examples.get(found["group"])
        if known is None or len(found.get("case", "")) < len(known.get("case", "")):
            total.examples[found["group"]] = found
        if output is not None:
            output.write(json.dumps(found) + "\n")
            output.flush()


# ---- in the process


def _work(pipe: Connection, plan: Plan) -> None:
    limit_memory()
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None  # a `Slow` in a callback of the interpreter: there are more
    seen: Counter[str] = Counter()
    while True:
        number = pipe.recv()
        if number < 0:
            return
        pipe.send(_timed(pipe, plan, number, seen))


def limit_memory() -> None:
    """Let this process take MEMORY bytes of addresses more than it has."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


_armed = False


def _too_slow(number: int, frame: Any) -> None:
    if _armed:
        raise Slow


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Slow` in what takes longer; again and again, as the first may get lost in a callback
    of the interpreter."""
    global _armed  # noqa: PLW0603
    _armed = True
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        yield
    finally:
        _armed = False
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def untimed() -> Iterator[None]:
    """Time that is no program's, in which what serves many of them begins."""
    left, again = signal.setitimer(signal.ITIMER_PROF, 0)
    try:
        yield
    finally:
        if left:
            signal.setitimer(signal.ITIMER_PROF, left, again)


def _timed(pipe: Connection, plan: Plan, number: int, seen: Counter[str]) -> dict[str, Any]:
    """All that is to be done for a program; what goes wrong in that is told like a finding."""
    judge = importlib.import_module(plan.judge)
    seed = f"{plan.seed}/{number}"
    case = None
    try:
        pipe.send({"stage": "drawing"})
        with limited(LIMIT), contextlib.redirect_stdout(io.StringIO()):
            case = judge.drawn(seed)
        pipe.send({"stage": "running"})
        return judge.judged(pipe, plan, case, seen)
    except Slow:
        return {"counts": {"programs": 1, "slow": 1}, "found": []}
    except Exception:  # noqa: BLE001
        lines = traceback.format_exc().strip().splitlines()
        text = "" if case is None else judge.written(case)
        told = {"seed": seed, "group": f"tester: {lines[-1]:.100} {lines[-3].strip()}",
                "trace": "\n".join(lines[-12:]), "case": text}  # fmt: skip
        return {"counts": {"programs": 1}, "found": [told]}
