"""One collective call, as a transport sees it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, Protocol

import numpy as np

from flambeau.distributed.errors import DistBackendError

LABEL = 56
"""Bytes that tell what a process called, so that calls that do not match are found out."""
Pieces = Sequence["np.ndarray | None"]
"""Bytes for, or from, each rank of a group."""


@dataclass(frozen=True)
class Call:
    """What every process of a group has to know alike.

    name: of the collective. detail: what has to agree, such as the type of elements.
    largest: bytes of the largest piece that goes from one process to another.
    same: whether each process sends the same bytes to all.
    aside: whether it runs beside other things, whose cores it must not take while it waits.
    """

    name: str
    detail: str
    largest: int
    same: bool
    timeout: float
    deadline: float
    aside: bool = False

    @cached_property
    def label(self) -> bytes:
        """The call in so many bytes."""
        text = f"{self.name} {self.detail} {self.largest}".encode()
        return text[:LABEL].ljust(LABEL, b"\0")

    def check(self, other: bytes, rank: int) -> None:
        """Raise DistBackendError if another process called something else."""
        if other != self.label:
            theirs, ours = (text.rstrip(b"\0").decode() for text in (other, self.label))
            raise DistBackendError(
                f"{self.name}: rank {rank} called something else at the same time: its call is "
                f"({theirs}), this one is ({ours})"
            )

    def late(self, rank: int) -> NoReturn:
        """Raise the error that a process did not come in time."""
        raise DistBackendError(
            f"Timed out waiting {round(self.timeout * 1000)}ms for {self.name} operation to "
            f"complete: rank {rank} has not come"
        )

    def lost(self, rank: int, reason: str) -> NoReturn:
        """Raise the error that a process is gone."""
        raise DistBackendError(f"{self.name}: Connection closed by peer: rank {rank} {reason}")


def new_call(name: str, detail: str, largest: int, same: bool, timeout: float,
             aside: bool = False) -> Call:  # fmt: skip
    """A call that begins now."""
    return Call(name, detail, largest, same, timeout, time.monotonic() + timeout, aside)


class Sink(Protocol):
    """What happens to bytes that come in."""

    @property
    def sizes(self) -> Sequence[int]:
        """How many bytes come from each rank; -1: nothing is waited for."""

    @property
    def buffers(self) -> Pieces:
        """Where they are to lie, if that is all; else None for each rank."""

    def take(self, start: int, pieces: Pieces) -> None:
        """Use pieces of bytes, the first of which is that at `start` of what each rank sends."""

    def keep_own(self) -> None:
        """Nothing will come: the result is what this process has, as it is."""


class Maker(Sink, Protocol):
    """A sink that makes something of what comes in, which goes on to all."""

    def make(self, start: int, pieces: Pieces, also: np.ndarray | None) -> None:
        """Use pieces of bytes as `take` does; `also`: where what is made of them lies, too."""


@dataclass(frozen=True)
class Step:
    """One exchange of several: what is called, what is sent, and what becomes of what comes."""

    call: Call
    send: Pieces
    sink: Sink


@dataclass(frozen=True)
class MakingStep(Step):
    """An exchange of which something is made."""

    sink: Maker


class Exchange(Protocol):
    """Moves bytes between all processes of a group. All of them call it, in the same order."""

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Send `send[r]` to each rank r and hand to `sink` what they send."""

    def run_both(self, first: MakingStep, second: Step) -> None:
        """Two exchanges, the second of which sends to all what the sink of the first has made.

        Who moves bytes in pieces may send a piece on as soon as it is made.
        """
        for step in (first, second):
            self.run(step.call, step.send, step.sink)

    def close(self) -> None:
        """Give memory and connections back."""
