"""Random numbers in graphs: each launch goes on where the generators are then.

While a graph is made, its kernels learn an address instead of a seed, and offsets from the graph's
beginning. A launch writes seed and offset there, and moves the generator on by what it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.philox import InGraph
from flambeau._core.philox_generator import PhiloxGenerator
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.graphs import Graph, listeners
from flambeau._runtime.cuda.memory import Current, running
from flambeau._tensor.device_array import empty

INT64 = np.dtype(np.int64)
NOTE = "random streams"


class Stream:
    """What a graph takes of one generator."""

    def __init__(self, index: int) -> None:
        self.state = empty((2,), (1,), INT64, index)  # seed and counter, on the device
        self.here = np.empty(2, np.uint64)
        self.taken = 0


def reserve(graph: Graph, generator: PhiloxGenerator, count: int) -> tuple[InGraph, int]:
    """Where seed and counter will stand, and the offset in the graph of `count` words a thread."""
    streams = graph.notes.setdefault(NOTE, {})
    if generator not in streams:
        streams[generator] = Stream(graph.device)
    stream = streams[generator]
    before = stream.taken
    stream.taken += (count + 3) // 4 * 4
    return InGraph(address(stream.state)), before


class Listener:
    """Tells the kernels of a graph where its generators are."""

    def graph_begins(self, graph: Graph) -> None:
        """Nothing is known of it yet."""

    def graph_ends(self, graph: Graph) -> None:
        """All is known: the generators stay where they were."""

    def graph_launches(self, graph: Graph) -> None:
        """Write seeds and counters, and move the generators on."""
        found: dict[Any, Stream] = graph.notes.get(NOTE, {})
        for generator, stream in found.items():
            seed, offset = PhiloxGenerator.reserve(generator, stream.taken)
            stream.here[:] = seed, offset // 4
            running(graph.device).to_device(
                address(stream.state), address(stream.here), stream.here.nbytes,
                Current.streams.get(graph.device, 0),
            )  # fmt: skip


listeners.append(Listener())
