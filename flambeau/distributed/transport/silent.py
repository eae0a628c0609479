"""Exchanges that send nothing: of the backend "fake", and of groups of one process."""

from __future__ import annotations

from flambeau.distributed.transport.call import Call, Exchange, Pieces, Sink


class SilentExchange(Exchange):
    """Every collective is done at once, and leaves its outputs as they are.

    One process plays any rank of a group of any size, for tests of programs.
    """

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Nothing comes."""

    def close(self) -> None:
        """There is nothing to close."""


class LonelyExchange(Exchange):
    """The exchange of a group of one process."""

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Nothing comes from others."""
        sink.take(0, [None])

    def close(self) -> None:
        """There is nothing to close."""
