"""`torch.cuda.graphs`: work that is noted once and replayed at the price of one launch."""

from __future__ import annotations

import gc
from typing import Any

from flambeau._core.device import Cuda
from flambeau._core.missing import lazily
from flambeau._runtime.cuda import graphs as runtime
from flambeau._runtime.cuda import pools
from flambeau._runtime.cuda.memory import empty_cache, running
from flambeau._runtime.cuda.pools import PoolId
from flambeau.cuda.devices import synchronize
from flambeau.cuda.graphed_callables import make_graphed_callables
from flambeau.cuda.started import init
from flambeau.cuda.streams import Stream, StreamContext

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing",
           "make_graphed_callables"]  # fmt: skip


def is_current_stream_capturing() -> bool:
    """Whether a graph is made of what is put into the current stream. Raises RuntimeError without
    a GPU."""
    if not Cuda.devices():
        raise RuntimeError("Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing")
    return runtime.is_capturing()


def graph_pool_handle() -> PoolId:
    """A new private pool, for graphs that may share memory. Raises RuntimeError without a GPU."""
    if not Cuda.devices():
        raise RuntimeError("Tried to instantiate dummy base class _graph_pool_handle")
    return pools.new()


class CUDAGraph:
    """A graph of GPU work.

    Args:
        keep_graph: keep what was noted, so that `instantiate` may be called again.

    Raises:
        RuntimeError: there is no GPU.
    """

    __module__ = "torch.cuda.graphs"

    def __init__(self, keep_graph: bool = False) -> None:
        if not Cuda.devices():
            raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")
        init()
        self._graph = runtime.Graph(keep_graph)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Note what is put into the current stream from now on, instead of doing it.

        Args:
            pool: the private pool of another graph, to share its memory.
            capture_error_mode: whose calls that a graph cannot hold are refused: "global" those
                of all threads, "thread_local" those of this one, "relaxed" none.
        """
        self._graph.begin(getattr(pool, "id", pool), capture_error_mode)

    def capture_end(self) -> None:
        """Make the graph of what was noted."""
        self._graph.end()

    def instantiate(self) -> None:
        """Make the form that is replayed anew."""
        if not self._graph.handle:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        self._graph.instantiate()

    def replay(self) -> None:
        """Put the work into the current stream."""
        self._graph.launch()

    def reset(self) -> None:
        """Give the graph back."""
        self._graph.reset()

    def pool(self) -> PoolId:
        """The private pool that its memory comes from, for `capture_begin` of another graph."""
        if self._graph.pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._graph.pool

    def raw_cuda_graph(self) -> int:
        """The driver's handle of what was noted. Raises RuntimeError unless it was kept."""
        if not self._graph.handle:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance unless CUDAGraph "
                               "was initialized with keep_graph=True")  # fmt: skip
        return self._graph.handle

    def raw_cuda_graph_exec(self) -> int:
        """The driver's handle of what is replayed."""
        if not self._graph.executable:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until "
                               "instantiate() has been called")  # fmt: skip
        return self._graph.executable

    def enable_debug_mode(self) -> None:
        """Keep what was noted, for `debug_dump`."""
        self._graph.keep = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph to a file, in the language of Graphviz.

        Raises:
            RuntimeError: `enable_debug_mode` was not called before the capture.
        """
        if not self._graph.handle:
            raise RuntimeError("CUDA graph debug mode was not enabled before the capture")
        running().print_graph(self._graph.handle, debug_path)

    def register_generator_state(self, generator: Any) -> None:
        """A generator's numbers shall differ from replay to replay, as all do."""

    def __del__(self) -> None:
        if hasattr(self, "_graph"):
            self._graph.reset()


class graph:
    """`with torch.cuda.graph(g):` notes the work inside, in a stream of its own.

    Args:
        cuda_graph: where it is noted.
        pool: see `CUDAGraph.capture_begin`.
        stream: which stream is captured, by default one that all graphs share.
        capture_error_mode: see `CUDAGraph.capture_begin`.
    """

    default_capture_stream: Stream | None = None

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None,
                 capture_error_mode: str = "global") -> None:  # fmt: skip
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode
        self.stream_ctx = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, *exc: object) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(*exc)


__getattr__ = lazily(__name__)
