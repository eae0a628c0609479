"""Graphs: work of a stream that is noted once and put into streams as a whole, again and again.

While a stream is captured, memory comes from a private pool, and nothing may ask the device for
results. Who has to act when a graph begins, ends or is launched (random generators) is a listener.
"""

from __future__ import annotations

from typing import Any

from flambeau._runtime.cuda import memory, pools
from flambeau._runtime.cuda.allocator import PoolId
from flambeau._runtime.cuda.driver import NOT_CAPTURING
from flambeau._runtime.cuda.memory import Current, running

MODES = {"global": 0, "thread_local": 1, "relaxed": 2}

NOT_DEFAULT = (
    "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
    "replay them on the default stream.)"
)

listeners: list[Any] = []
"""What has `graph_begins(graph)`, `graph_ends(graph)` and `graph_launches(graph)`; what each of
them wants to remember of a graph it keeps in `graph.notes`, by its own key."""
capturing: list[Graph] = []
"""The graphs that are being captured."""


class Graph:
    """A graph of a device, from its capture on."""

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self.device = 0
        self.pool: PoolId | None = None
        self.notes: dict[Any, Any] = {}
        self.handle = 0
        self.executable = 0
        self.stream = 0
        self.before: PoolId | None = None
        self.is_routed = False

    def begin(self, pool: PoolId | None, mode: str) -> None:
        """Note what is put into the current stream from now on.

        Raises:
            RuntimeError: the stream is the default one, or a graph was captured already.
        """
        if self.handle or self.executable:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture "
                               "a new graph, create a new instance.")  # fmt: skip
        if mode not in MODES:
            raise RuntimeError(f"Unknown capture error mode. Expected `global`, `thread_local`, or "
                               f"`relaxed`, got {mode}")  # fmt: skip
        if not Current.stream:
            raise RuntimeError(NOT_DEFAULT)
        self.device, self.stream = Current.device, Current.stream
        self.pool = pool or pools.new()
        self._route()
        for listener in listeners:
            listener.graph_begins(self)
        try:
            running().begin_capture(self.stream, MODES[mode])
        except BaseException:
            self._reroute()
            raise
        memory.capturing.count += 1
        capturing.append(self)

    def end(self) -> None:
        """Make the graph of what was noted.

        Raises:
            RuntimeError: another stream is current than when it began.
            AcceleratorError: something was done that a graph cannot hold.
        """
        if Current.stream != self.stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        memory.capturing.count -= 1
        capturing.remove(self)
        try:
            self.handle = running().end_capture(self.stream)
        finally:
            self._reroute()
        for listener in listeners:
            listener.graph_ends(self)
        if not self.keep:
            self.instantiate()

    def _route(self) -> None:
        assert self.pool is not None
        self.before = Current.pools.get(self.device)
        pools.retain(self.device, self.pool)
        Current.set_pool(self.device, self.pool)
        self.is_routed = True

    def _reroute(self) -> None:
        Current.set_pool(self.device, self.before)

    def instantiate(self) -> None:
        """Make the form that is launched."""
        use = running(self.device)
        if self.executable:
            use.free_executable(self.executable)
        self.executable = use.instantiate(self.handle)
        if not self.keep:
            use.free_graph(self.handle)
            self.handle = 0
        running()

    def launch(self) -> None:
        """Put it into the current stream.

        Raises:
            RuntimeError: there is no graph.
        """
        if not self.executable and self.handle:
            self.instantiate()
        if not self.executable:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for listener in listeners:
            listener.graph_launches(self)
        running(self.device).launch_graph(self.executable, Current.streams.get(self.device, 0))
        if self.device != Current.device:
            running()

    def reset(self) -> None:
        """Give the graph back, and its memory when no tensor lies in it."""
        if self in capturing:
            return
        use = running(self.device)
        if self.executable:
            use.free_executable(self.executable)
        if self.handle:
            use.free_graph(self.handle)
        self.handle = self.executable = 0
        if self.is_routed and self.pool is not None:
            pools.release(self.device, self.pool)
            self.is_routed = False
        self.notes.clear()
        running()


def is_capturing() -> bool:
    """Whether a graph is made of what is put into the current stream."""
    return bool(capturing) and running().capture_status(Current.stream) != NOT_CAPTURING
