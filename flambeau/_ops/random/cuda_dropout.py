"""Dropout in one pass on a CUDA device: words, mask and product by one kernel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import types
from flambeau._compiler.gpu.ptx import Shape
from flambeau._core.philox import InGraph
from flambeau._core.philox_sample import dense_order, lanes_of
from flambeau._core.random_integer import signed
from flambeau._ops.cuda.table import on_gpu
from flambeau._ops.random.draws import stream_of
from flambeau._ops.random.philox_kernels import THREADS, drop_on_gpu
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray, contiguous, empty
from flambeau._tensor.tensor import wrap

BOOL = np.dtype(np.bool_)
FLOATS = frozenset(np.dtype(name) for name in ("float16", "bfloat16", "float32", "float64"))


@on_gpu("native_dropout")
def native_dropout(data: DeviceArray, p: float, train: bool | None) -> Any:
    """The array after dropout, and the mask of what was kept: both laid out as it is."""
    if train is False or not data.size or data.dtype not in FLOATS:
        return NotImplemented
    order = dense_order(data)
    lanes = 1 if order is None else lanes_of(data)
    source = contiguous(data) if order is None else data
    steps = [step // source.itemsize for step in source.strides]
    result, mask = (empty(data.shape, steps, t, data.place.index) for t in (data.dtype, BOOL))
    _launch(source, result, mask, 1 - p, lanes)
    return result, mask


@cache
def _kernel(dtype: np.dtype[Any], lanes: int, in_graph: bool) -> Any:
    shape = Shape(threads=THREADS, aligned=False, reads=("x",))
    kind = types.OF_NUMPY[dtype.name]
    return kernel(drop_on_gpu, shape, T=kind, LANES=lanes, IN_GRAPH=in_graph)


def _launch(data: Any, result: Any, mask: Any, keep: float, lanes: int) -> None:
    stream: Any = stream_of(None, filled=wrap(data))
    threads = stream.grid.threads(data.size)
    seed, offset = stream.reserve(4 * stream.grid.rounds(data.size, 4))
    run = _kernel(data.dtype, lanes, isinstance(seed, InGraph))
    state = int(seed) if isinstance(seed, InGraph) else result
    run(threads // THREADS, data, result, mask.view(np.uint8), state, data.size, signed(seed),
        offset // 4, threads, keep, 0.0 if keep == 0 else 1 / keep)  # fmt: skip
