"""Collectives over connections."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from flambeau.distributed.errors import DistBackendError
from flambeau.distributed.transport.call import Call, Exchange, Pieces, Sink
from flambeau.distributed.transport.inbox import EXCHANGE, Key, Receive
from flambeau.distributed.transport.mesh import Mesh

LOOK = 0.05


class SocketExchange(Exchange):
    """Every process sends to every other what is for it, and waits for what is for itself."""

    def __init__(self, mesh: Mesh, group: int, ranks: Sequence[int], rank: int) -> None:
        self._mesh, self._group = mesh, group
        self._ranks, self._rank = tuple(ranks), rank
        self._number = 0

    def run(self, call: Call, send: Pieces, sink: Sink) -> None:
        """Send, receive, and hand over what came."""
        self._number += 1
        key = Key(self._group, EXCHANGE, self._number)
        pieces = [self._room(sink, rank) for rank in range(len(self._ranks))]
        receives = {
            rank: self._post(key, rank, piece)
            for rank, piece in enumerate(pieces) if piece is not None
        }  # fmt: skip
        for rank, data in enumerate(send):
            if data is not None and rank != self._rank:
                self._send(call, rank, key, data)
        for rank, receive in receives.items():
            self._wait(call, rank, receive, receives)
            call.check(receive.label, self._ranks[rank])
        sink.take(0, pieces)

    def _send(self, call: Call, rank: int, key: Key, data: np.ndarray) -> None:
        try:
            self._mesh.send(self._ranks[rank], key, call.label, data.data, call.deadline)
        except DistBackendError as error:
            if time.monotonic() >= call.deadline:
                call.late(self._ranks[rank])
            first = next((lost for lost in self._mesh.inbox.gone if lost in self._ranks), None)
            if first is None:
                raise DistBackendError(
                    f"{call.name}: Connection closed by peer: {error}"
                ) from error
            call.lost(first, self._mesh.inbox.gone[first])

    def _room(self, sink: Sink, rank: int) -> np.ndarray | None:
        if rank == self._rank or sink.sizes[rank] < 0:
            return None
        there = sink.buffers[rank]
        return np.empty(sink.sizes[rank], np.uint8) if there is None else there

    def _post(self, key: Key, rank: int, piece: np.ndarray) -> Receive:
        receive = Receive((self._ranks[rank],), piece.data)
        self._mesh.inbox.post(key, receive)
        return receive

    def _wait(self, call: Call, rank: int, receive: Receive, all_of: dict[int, Receive]) -> None:
        while not receive.done.wait(LOOK):
            for other, each in all_of.items():
                self._check(call, other, each)
            if time.monotonic() >= call.deadline:
                call.late(self._ranks[rank])
        self._check(call, rank, receive)

    def _check(self, call: Call, rank: int, receive: Receive) -> None:
        if receive.error is None:
            return
        if receive.label:
            call.check(receive.label, self._ranks[rank])
        call.lost(self._ranks[rank], self._reason(rank, receive))

    def _reason(self, rank: int, receive: Receive) -> str:
        return self._mesh.inbox.gone.get(self._ranks[rank], str(receive.error))

    def close(self) -> None:
        """The connections are the mesh's."""
