"""Exchanges that send nothing: of the backend "fake", and of groups of one process."""

from __future__ import annotations

from flambeau.distributed.transport.call import Call, Exchange, Pieces, Sink, Step


class SilentExchange(Exchange):
    """Nothing is sent: what would come from others is what this process sends, or would.

    One process plays any rank of a group of any size, for tests of programs. What is gathered is
    this process's for each; reductions leave its own elements.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Nothing comes."""
        sink.keep_own()
        if call.name == "reduce":
            return
        own = sink.buffers[self._rank]
        for rank, buffer in enumerate(sink.buffers):
            given = own if send[rank] is None else send[rank]
            if rank == self._rank or buffer is None or given is None:
                continue
            count = min(buffer.size, given.size)
            buffer[:count] = given[:count]

    def run_both(self, first: Step, second: Step) -> None:
        """The elements of a reduction stay as they are."""

    def close(self) -> None:
        """There is nothing to close."""


class LonelyExchange(Exchange):
    """The exchange of a group of one process."""

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Nothing comes from others."""
        sink.take(0, [None])

    def close(self) -> None:
        """There is nothing to close."""
