"""Streams, events and graphs of the fake driver: when work that was put into a stream is done.

Without a seed, at once. With a seed, work waits, and whenever something is put into a stream some
of what waits, of streams drawn at random, is done; the rest when somebody waits for it. So a
program that forgets to wait meets, sooner or later, the order that breaks it, and `fake_checks`
says so even where the order was lucky.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from flambeau._runtime.cuda import errors
from flambeau._runtime.cuda.driver import CAPTURE_BROKEN, CAPTURING, NOT_CAPTURING

FIRST = 1 << 20
"""Numbers of streams, events and graphs begin here."""
Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes that work reads or writes, `address` to `address + nbytes`."""

    address: int
    nbytes: int
    writes: bool


class Work:
    """What was put into a stream, and what has to be done before."""

    __slots__ = ("clock", "done", "run", "time", "waits")

    def __init__(self, run: Run | None, waits: tuple[Work, ...] = ()) -> None:
        self.run, self.waits = run, waits
        self.done = False
        self.time = 0.0
        self.clock: dict[int, int] = {}

    def do(self) -> None:
        """Do it, and note the time."""
        if self.run is not None:
            self.run()
        self.done, self.time = True, time.perf_counter()


class Node:
    """A piece of work in a graph."""

    __slots__ = ("accesses", "before", "noted", "run")

    def __init__(self, run: Run, before: frozenset[Node], accesses: tuple[Access, ...],
                 noted: int) -> None:  # fmt: skip
        self.run, self.before, self.accesses = run, before, accesses
        self.noted = noted  # how many blocks had been taken, see `fake_checks`

    def ancestors(self) -> set[Node]:
        """All that has to be done before it."""
        found: set[Node] = set()
        waiting = list(self.before)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += node.before
        return found


@dataclass
class Capture:
    """A graph in the making."""

    origin: int
    mode: int
    nodes: list[Node] = field(default_factory=list)
    is_broken: bool = False


@dataclass
class Queue:
    """A stream of a device: what waits in it, and the graph that is made of it, if any."""

    device: int = 0
    priority: int = 0
    waiting: deque[Work] = field(default_factory=deque)
    last: Work | None = None
    capture: Capture | None = None
    tail: frozenset[Node] = frozenset()


class Event:
    """A mark: the work that it stands behind, or the nodes of a graph in the making."""

    def __init__(self, timing: bool) -> None:
        self.timing = timing
        self.mark: Work | None = None
        self.capture: Capture | None = None
        self.tail: frozenset[Node] = frozenset()


class Queues:
    """All streams of the fake driver; the default ones have the numbers of their devices."""

    def __init__(self, seed: int | None, checks: Any, devices: int) -> None:
        self.random = None if seed is None else random.Random(seed)
        self.checks = checks
        self.streams = {device: Queue(device) for device in range(devices)}
        self.events: dict[int, Event] = {}
        self.captures: list[Capture] = []
        self.numbers = iter(range(FIRST, 1 << 62, 16))
        self.lock = threading.RLock()

    # ---- streams

    def queue(self, stream: int) -> Queue:
        """A stream by its number. Raises CudaError."""
        found = self.streams.get(stream)
        if found is None:
            raise errors.error(errors.INVALID_HANDLE)
        return found

    def put(self, stream: int, run: Run | None, accesses: Iterable[Access] = (),
            waits: tuple[Work, ...] = (), nodes: Iterable[Node] = ()) -> Work:  # fmt: skip
        """Put work into a stream; it is noted for a graph where the stream is captured."""
        with self.lock:
            queue = self.queue(stream)
            work = Work(run, waits)
            if queue.capture is not None:
                self._note(queue, run, tuple(accesses))
                return work
            if self.checks is not None:
                self.checks.put(stream, work, accesses, nodes)
            queue.last = work
            if self.random is None:
                work.do()
                return work
            queue.waiting.append(work)
            for _ in range(self.random.choice((0, 0, 1, 1, 2, 4))):
                self.step()
            return work

    def _note(self, queue: Queue, run: Run | None, accesses: tuple[Access, ...]) -> None:
        if run is None or queue.capture is None:
            return
        noted = 0 if self.checks is None else self.checks.noted(accesses)
        node = Node(run, queue.tail, accesses, noted)
        queue.capture.nodes.append(node)
        queue.tail = frozenset((node,))

    def step(self) -> bool:
        """Do the next work of some stream; False where nothing can be done."""
        busy = [queue for queue in self.streams.values() if queue.waiting]
        ready = [queue for queue in busy if all(work.done for work in queue.waiting[0].waits)]
        if not ready:
            return False
        chosen = self.random.choice(ready) if self.random else ready[0]
        chosen.waiting.popleft().do()
        return True

    def finish(self, work: Work | None) -> None:
        """Do what has to be done until a piece of work is."""
        with self.lock:
            while work is not None and not work.done:
                if not self.step():
                    raise RuntimeError("streams wait for one another")

    def wait_for_stream(self, stream: int) -> None:
        """Wait for a stream. Raises CudaError while it is captured."""
        self.refuse_capture(self.queue(stream).capture)
        self.finish(self.queue(stream).last)
        if self.checks is not None:
            self.checks.waited(stream, self.queue(stream).last)

    def wait_for_all(self, device: int) -> None:
        """Wait for all streams of a device. Raises CudaError while one of them is captured."""
        for capture in self.captures:
            self.refuse_capture(capture)
        for stream, queue in list(self.streams.items()):
            if queue.device == device:
                self.wait_for_stream(stream)

    def is_idle(self, stream: int) -> bool:
        """Whether all work of a stream is done."""
        queue = self.queue(stream)
        self.refuse_capture(queue.capture)
        if self.random is not None:
            self.step()
        idle = queue.last is None or queue.last.done
        if idle and self.checks is not None:
            self.checks.waited(stream, queue.last)
        return idle

    def refuse_capture(self, capture: Capture | None) -> None:
        """What a graph cannot hold was asked for. Raises CudaError."""
        if capture is not None and capture.mode != 2:  # noqa: PLR2004
            capture.is_broken = True
            raise errors.error(errors.CAPTURE_UNSUPPORTED)

    # ---- events

    def event(self, number: int) -> Event:
        """An event by its number. Raises CudaError."""
        found = self.events.get(number)
        if found is None:
            raise errors.error(errors.INVALID_HANDLE)
        return found

    def record(self, number: int, stream: int) -> None:
        """Put an event into a stream."""
        with self.lock:
            event, queue = self.event(number), self.queue(stream)
            event.capture, event.tail = queue.capture, queue.tail
            if queue.capture is None:
                event.mark = self.put(stream, None)

    def wait(self, stream: int, number: int) -> None:
        """Let later work of a stream wait for an event."""
        with self.lock:
            event, queue = self.event(number), self.queue(stream)
            if event.capture is not None and event.capture in self.captures:
                queue.capture = event.capture
                queue.tail |= event.tail
            elif queue.capture is not None and event.mark is not None:
                if not event.mark.done:
                    queue.capture.is_broken = True
                    raise errors.error(errors.CAPTURE_ISOLATION)
            elif event.mark is not None:
                self.put(stream, None, waits=(event.mark,))

    def has_happened(self, number: int) -> bool:
        """Whether all work before an event is done."""
        event = self.event(number)
        self.refuse_capture(event.capture if event.capture in self.captures else None)
        if self.random is not None:
            self.step()
        happened = event.mark is None or event.mark.done
        if happened and self.checks is not None and event.mark is not None:
            self.checks.host_waited(event.mark)
        return happened

    def wait_for_event(self, number: int) -> None:
        """Wait for an event."""
        event = self.event(number)
        self.refuse_capture(event.capture if event.capture in self.captures else None)
        self.finish(event.mark)
        if self.checks is not None and event.mark is not None:
            self.checks.host_waited(event.mark)

    # ---- graphs

    def begin_capture(self, stream: int, mode: int) -> None:
        """Note what is put into a stream."""
        queue = self.queue(stream)
        if stream in range(FIRST):
            raise errors.error(errors.CAPTURE_UNSUPPORTED)
        if queue.capture is not None:
            raise errors.error(errors.CAPTURE_UNSUPPORTED)
        queue.capture, queue.tail = Capture(stream, mode), frozenset()
        self.captures.append(queue.capture)

    def end_capture(self, stream: int) -> list[Node]:
        """The nodes that were noted. Raises CudaError where the capture was broken."""
        queue = self.queue(stream)
        capture = queue.capture
        if capture is None or capture.origin != stream:
            raise errors.error(errors.CAPTURE_UNMATCHED)
        self.captures.remove(capture)
        reached = set(queue.tail).union(*[node.ancestors() for node in queue.tail])
        for other in self.streams.values():
            if other.capture is capture:
                other.capture, other.tail = None, frozenset()
        if capture.is_broken:
            raise errors.error(errors.CAPTURE_INVALIDATED)
        if not reached.issuperset(capture.nodes):
            raise errors.error(errors.CAPTURE_UNJOINED)
        if self.checks is not None:
            self.checks.graph(capture.nodes)
        return capture.nodes

    def status(self, stream: int) -> int:
        """What the capture of a stream is at."""
        capture = self.queue(stream).capture
        if capture is None:
            return NOT_CAPTURING
        return CAPTURE_BROKEN if capture.is_broken else CAPTURING

    def run_graph(self, nodes: list[Node]) -> None:
        """Do the nodes of a graph, in some order that its edges allow."""
        done: set[Node] = set()
        left = list(nodes)
        while left:
            ready = [node for node in left if node.before <= done]
            node = self.random.choice(ready) if self.random else ready[0]
            node.run()
            left.remove(node)
            done.add(node)
