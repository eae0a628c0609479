"""Numbers of flambeau's own on their way to a device: tables of addresses, ranges, identities.

While a graph is captured, a copy is part of the graph and reads the host's memory in every launch:
the numbers are kept, pinned, as long as the graph is.
"""

from __future__ import annotations

import ctypes

from flambeau._runtime.cuda import graphs
from flambeau._runtime.cuda.memory import Current, running
from flambeau._runtime.cuda.pinned import HostBlock


def copied(target: int, source: int, nbytes: int) -> None:
    """Copy numbers of the host to the current device, in its current stream."""
    if graphs.capturing and graphs.is_capturing():
        block = HostBlock(nbytes)
        ctypes.memmove(block.address, source, nbytes)
        graphs.capturing[-1].notes.setdefault("constants", []).append(block)
        source = block.address
    running().to_device(target, source, nbytes, Current.stream)
