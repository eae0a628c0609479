"""Collectives through memory that processes share.

Every process has two slots, used in turn. A round: wait until all have read what was in the slot
two rounds ago, write, count up, wait for those that one reads from, read, count up. Only a process
itself writes its counters, so there are no locks, and a process that dies holds none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import numpy as np

from flambeau._runtime.cpu import address
from flambeau.distributed.passes import copy
from flambeau.distributed.transport import futex
from flambeau.distributed.transport.call import (
    LABEL,
    Call,
    Exchange,
    MakingStep,
    Pieces,
    Sink,
    Step,
)
from flambeau.distributed.transport.inbox import Inbox
from flambeau.distributed.transport.segment import LINE, PAGE

SLOT, SMALLEST, ROOM = 1 << 21, 1 << 19, 1 << 22
"""Bytes of a slot at most and at least, and of those of all processes that are used at a time: they
stay in a cache that the processes share, and rounds are few (benchmarks/distributed.py)."""
SPINS = 500
"""How often a process looks before it sleeps, 30 us: not where it has threads that compute, or
where others need its core. It does not give way meanwhile: on a machine with much to do it would be
long before it has its next turn, and one that sleeps is run soon after it is woken."""
LOOK = 0.1
ALIGNED = 64
WRITTEN, READ, TEXT = 0, 64, 128
"""Where in a process's line the counters of rounds and its two labels are."""


class SharedExchange(Exchange):
    """Moves bytes through a segment, in rounds that all processes of the group count alike."""

    def __init__(self, memory: np.ndarray, inbox: Inbox, ranks: Sequence[int], rank: int) -> None:
        self._inbox, self._ranks, self._rank = inbox, tuple(ranks), rank
        size = len(self._ranks)
        self._size, self._round = size, 0
        self._spins = SPINS if size <= cores() else 0
        self._others = [other for other in range(size) if other != rank]
        lines = memory[PAGE : PAGE + LINE * size]
        self._bytes = lines.data
        self._words = lines.view(np.int64).data
        self._address = address(lines)
        self._slot = slot_of(size)
        slots = memory[memory.size - 2 * self._slot * size :]
        self._slots = slots.reshape(2, size, self._slot)

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """As many rounds as the largest piece takes."""
        step = even(call.largest, self._slot if call.same else self._share)
        for start in range(0, max(call.largest, 1), step):
            self._begin(call)
            self._write(call, send, start, step)
            self._count(WRITTEN)
            sink.take(start, self._pieces(call, sink, start, step))
            self._count(READ)

    def run_both(self, first: MakingStep, second: Step) -> None:
        """In each round a part of the first exchange, and the second's of the round before.

        What the first makes goes where it would send to itself, in the slot of the next round: all
        that have written in this round have read there. Each part is sent on while it is in a
        cache, and there are half as many rounds as in two exchanges.
        """
        call = first.call
        largest = max(call.largest, second.call.largest, 1)
        step = even(largest, self._share)
        own = self._rank * step
        for start in range(0, largest + step, step):
            before = start - step
            self._begin(call)
            if start < largest:
                self._write(call, first.send, start, step)
            self._count(WRITTEN)
            if before >= 0:
                second.sink.take(before, self._pieces(call, second.sink, before, step, True))
            if start < largest:
                pieces = self._pieces(call, first.sink, start, step)
                following = self._slots[self._round + 1 & 1, self._rank]
                first.sink.make(start, pieces, following[own : own + step])
            self._count(READ)

    @property
    def _share(self) -> int:
        """Bytes of a slot for each process."""
        return self._slot // self._size // ALIGNED * ALIGNED

    def _begin(self, call: Call) -> None:
        """Begin a round, as soon as all have read what lies where it writes."""
        self._round += 1
        for other in self._others:
            self._wait(READ, other, self._round - 2, call)
        self._label(self._rank)[:] = call.label

    def _write(self, call: Call, send: Pieces, start: int, step: int) -> None:
        for other in self._others:
            data = send[other]
            if data is None:
                continue
            self._put(data, start, step, 0 if call.same else other * step)
            if call.same:
                break

    def _put(self, data: np.ndarray | None, start: int, step: int, at: int) -> None:
        if data is not None:
            piece = data[start : start + step]
            copy(piece, self._slots[self._round & 1, self._rank, at : at + piece.size])

    def _pieces(self, call: Call, sink: Sink, start: int, step: int,
                of_itself: bool = False) -> Pieces:  # fmt: skip
        """What the others have written in this round: for this process, or as if for themselves."""
        pieces: list[np.ndarray | None] = [None] * self._size
        for other in self._others:
            if sink.sizes[other] < 0:
                continue
            self._wait(WRITTEN, other, self._round, call)
            call.check(self._label(other).tobytes(), self._ranks[other])
            length = min(max(sink.sizes[other] - start, 0), step)
            at = (other if of_itself else 0 if call.same else self._rank) * step
            pieces[other] = self._slots[self._round & 1, other, at : at + length]
        return pieces

    def _label(self, rank: int) -> memoryview:
        at = rank * LINE + TEXT + (self._round & 1) * LABEL
        return self._bytes[at : at + LABEL]

    def _count(self, counter: int) -> None:
        at = self._rank * LINE + counter
        futex.order()
        self._words[at // 8] = self._round
        futex.wake(self._address + at)

    def _wait(self, counter: int, rank: int, value: int, call: Call) -> None:
        """Wait until a process's counter has come to a value."""
        at = rank * LINE + counter
        words, word = self._words, at // 8
        spins = 0 if call.aside else self._spins
        while words[word] < value:
            if spins:
                spins -= 1
                continue
            futex.wait(self._address + at, words[word], LOOK)
            if words[word] < value:
                self._look(rank, word, value, call)
        futex.order()

    def _look(self, rank: int, word: int, value: int, call: Call) -> None:
        """Raise if the process will not come: it or one that it needs is gone, or it is late."""
        gone = self._inbox.gone
        if gone:
            futex.order()
            if self._words[word] >= value:
                return
            for member in (rank, *self._others):
                world_rank = self._ranks[member]
                behind = self._words[(member * LINE + WRITTEN) // 8] < self._round
                if world_rank in gone and (member == rank or behind):
                    call.lost(world_rank, gone[world_rank])
        if time.monotonic() >= call.deadline:
            call.late(self._ranks[rank])

    def close(self) -> None:
        """Let go of the memory."""
        self._slots = np.empty((2, self._size, 0), np.uint8)
        self._bytes = self._words = memoryview(b"")


def slot_of(size: int) -> int:
    """Bytes of a slot in a group of so many processes."""
    return max(min(SLOT, ROOM // size), SMALLEST) // PAGE * PAGE


def even(largest: int, most: int) -> int:
    """Bytes of each round: as few rounds as there can be, and all alike."""
    rounds = max(-(-largest // most), 1)
    return max(-(-largest // (rounds * ALIGNED)) * ALIGNED, ALIGNED)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
