"""`torch.Generator("cuda")`: the generator of a CUDA device, with states as tensors."""

from __future__ import annotations

from typing import Any

from flambeau._core.philox import Grid
from flambeau._core.philox_generator import PhiloxGenerator
from flambeau._ops.random import cuda_choices, cuda_dropout, graph_streams, philox_launch  # noqa: F401
from flambeau._ops.random.draws import Generator
from flambeau._runtime.cuda import graphs
from flambeau._tensor.tensor import Tensor, wrap

GRIDS: dict[int, Grid] = {}
"""The grid of a device, by its index; devices that are not here count as an H100."""


class CudaGenerator(PhiloxGenerator, Generator):
    """A random stream of a CUDA device; `torch.Generator("cuda")`."""

    __slots__ = ()

    def __init__(self, device: Any = "cuda") -> None:
        super().__init__(device)
        self.grid = GRIDS.get(self.device.index or 0, self.grid)

    def reserve(self, count: int) -> tuple[int, int]:
        """The seed, or where it will stand when the graph is launched that is being made, and the
        offset where `count` words a thread begin."""
        if graphs.capturing and graphs.is_capturing():
            return graph_streams.reserve(graphs.capturing[-1], self, count)
        return super().reserve(count)

    def get_state(self) -> Any:
        """The seed and the offset as a uint8 tensor of the CPU, shape (16,)."""
        return wrap(super().get_state())

    def set_state(self, state: Any) -> CudaGenerator:
        """Go to a state that `get_state` gave. Returns self."""
        if isinstance(state, Tensor) and state.is_cuda:
            raise TypeError("RNG state must be a torch.ByteTensor")
        super().set_state(state._data if isinstance(state, Tensor) else state)
        return self

    def __reduce__(self) -> Any:
        return Generator, (self.device,), (self.initial_seed(), self.get_offset(), self.get_state())


CudaGenerator.__name__ = CudaGenerator.__qualname__ = "Generator"
