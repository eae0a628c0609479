"""Memory that libraries work in: one piece for a stream, used by one call after the other."""

from __future__ import annotations

from typing import Any

from flambeau._runtime.cuda.driver import NOT_CAPTURING
from flambeau._runtime.cuda.memory import Block, Current, running

PIECES: dict[tuple[int, int], tuple[int, int]] = {}
"""Device and stream -> address and size of the piece in use."""
KEPT: list[Any] = []
"""Pieces that were too small, and those that graphs were captured with: graphs hold addresses, so
none is ever given back."""


def capturing() -> bool:
    """Whether the current stream's work goes into a graph: nothing may be waited for then."""
    return running().capture_status(Current.stream) != NOT_CAPTURING


def workspace(nbytes: int) -> int:
    """The address of memory of the current stream, of at least `nbytes`. What is put into the
    stream later finds it free again."""
    key = Current.device, Current.stream
    address, size = PIECES.get(key, (0, 0))
    if size >= nbytes:
        return address
    wanted = max(nbytes, 2 * size)
    if address:
        KEPT.append(address)
    if capturing():  # the driver may not be asked for memory now; the allocator knows how
        block = Block(wanted, Current.device)
        KEPT.append(block)
        address = block.address
    else:
        address = running().allocate(wanted)
    PIECES[key] = address, wanted
    return address
