"""Collectives through memory that processes share.

Every process has two slots, used in turn. A round: wait until all have read what was in the slot
two rounds ago, write, count up, wait for those that one reads from, read, count up. Only a process
itself writes its counters, so there are no locks, and a process that dies holds none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from flambeau._runtime.cpu import address
from flambeau.distributed.transport import futex
from flambeau.distributed.transport.call import LABEL, Call, Pieces, Sink
from flambeau.distributed.transport.inbox import Inbox
from flambeau.distributed.transport.segment import LINE, PAGE

SLOT = 1 << 20
"""Bytes of a slot: two processes' slots stay in a cache (benchmarks/distributed.py)."""
SPINS = 60
LOOK = 0.1
ALIGNED = 64
WRITTEN, READ, TEXT = 0, 64, 128
"""Where in a process's line the counters of rounds and its two labels are."""


class SharedExchange:
    """Moves bytes through a segment, in rounds that all processes of the group count alike."""

    def __init__(self, memory: np.ndarray, inbox: Inbox, ranks: Sequence[int], rank: int) -> None:
        self._inbox, self._ranks, self._rank = inbox, tuple(ranks), rank
        size = len(self._ranks)
        self._size, self._round = size, 0
        self._others = [other for other in range(size) if other != rank]
        lines = memory[PAGE : PAGE + LINE * size]
        self._bytes = lines.data
        self._words = lines.view(np.int64).data
        self._address = address(lines)
        slots = memory[memory.size - 2 * SLOT * size :]
        self._slots = slots.reshape(2, size, SLOT)

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """As many rounds as the largest piece takes."""
        step = SLOT if call.same else SLOT // self._size // ALIGNED * ALIGNED
        for start in range(0, max(call.largest, 1), step):
            self._one_round(call, send, sink, start, step)

    def _one_round(self, call: Call, send: Pieces, sink: Sink, start: int, step: int) -> None:
        self._round += 1
        bank = self._round & 1
        for other in self._others:
            self._wait(READ, other, self._round - 2, call)
        self._write(call, send, start, step, bank)
        self._count(WRITTEN)
        pieces: list[np.ndarray | None] = [None] * self._size
        for other in self._others:
            if sink.sizes[other] < 0:
                continue
            self._wait(WRITTEN, other, self._round, call)
            call.check(self._label(other, bank).tobytes(), self._ranks[other])
            length = min(max(sink.sizes[other] - start, 0), step)
            at = 0 if call.same else self._rank * step
            pieces[other] = self._slots[bank, other, at : at + length]
        sink.take(start, pieces)
        self._count(READ)

    def _write(self, call: Call, send: Pieces, start: int, step: int, bank: int) -> None:
        slot = self._slots[bank, self._rank]
        for other in self._others:
            data = send[other]
            if data is None:
                continue
            piece = data[start : start + step]
            at = 0 if call.same else other * step
            slot[at : at + piece.size] = piece
            if call.same:
                break
        self._label(self._rank, bank)[:] = call.label

    def _label(self, rank: int, bank: int) -> memoryview:
        at = rank * LINE + TEXT + bank * LABEL
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
        spins = 0
        while words[word] < value:
            if spins < SPINS:
                spins += 1
                futex.give_way()
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
