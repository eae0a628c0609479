"""Fills from Philox's streams by kernels: on a CUDA device, and for larger arrays on the CPU.

`_core.philox_fill` asks `filler` who fills an array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler import types
from flambeau._compiler.gpu.ptx import Shape
from flambeau._core import philox_fill, settings
from flambeau._core.philox import InGraph
from flambeau._core.philox_fill import Draw
from flambeau._core.random_integer import signed
from flambeau._ops.random import philox_kernels as kernels
from flambeau._runtime import choice
from flambeau._runtime.cuda import launch as cuda_launch
from flambeau._runtime.cuda.memory import there
from flambeau._runtime.launch import kernel
from flambeau._tensor.device_array import DeviceArray, written

GRAIN = 4096
"""Numbers that are worth a task."""
SHAPE = Shape(threads=kernels.THREADS, aligned=False)
Filler = Callable[[int, int, int], None]


def filler(out: np.ndarray, draw: Draw) -> Filler | None:
    """What fills an array in the order of its memory, given seed, counter and threads; None where
    NumPy does."""
    if isinstance(out, DeviceArray):
        return _on_gpu(out, draw) if _fits(out, draw) else _by_host(out, draw)
    if not choice.compiled("random of cuda", out.size) or not _fits(out, draw):
        return None
    return _on_cpu(out, draw)


def _fits(out: np.ndarray, draw: Draw) -> bool:
    """Whether there is a kernel for these numbers, and the array is row-major."""
    return out.flags.c_contiguous and _known(draw.kernel, out.dtype)


@cache
def _known(name: str, dtype: np.dtype[Any]) -> bool:
    return hasattr(kernels, name) and dtype.name in types.OF_NUMPY


@cache
def _gpu_kernel(name: str, dtype: np.dtype[Any], unroll: int, in_graph: bool) -> Any:
    statics = _statics(name, dtype, unroll)
    return cuda_launch.kernel(kernels.fill_on_gpu, SHAPE, **statics, IN_GRAPH=in_graph)


@cache
def _statics(name: str, dtype: np.dtype[Any], unroll: int) -> dict[str, Any]:
    whole = name.startswith("integers")
    return {"NUMBER": getattr(kernels, name), "UNROLL": unroll, "T": types.OF_NUMPY[dtype.name],
            "P": types.i64 if whole else types.f64}  # fmt: skip


def _parameters(draw: Draw) -> list[Any]:
    """The three parameters of a number; integers of 64 bits as signed ones."""
    given = [*draw.parameters, 0, 0, 0][:3]
    if not draw.kernel.startswith("integers"):
        return [float(value) for value in given]
    return [signed(int(value)) for value in given]


def _on_cpu(out: np.ndarray, draw: Draw) -> Filler:
    run = kernel(kernels.fill_on_cpu, **_statics(draw.kernel, out.dtype, draw.unroll))
    tasks = max(1, min(2 * settings.get_num_threads(), out.size // GRAIN))

    def fill(seed: int, counter: int, threads: int) -> None:
        run.parallel(tasks, out.reshape(-1), out.size, signed(seed), counter, threads,
                     *_parameters(draw))  # fmt: skip

    return fill


def _on_gpu(out: Any, draw: Draw) -> Filler:
    def fill(seed: int, counter: int, threads: int) -> None:
        in_graph = isinstance(seed, InGraph)
        run = _gpu_kernel(draw.kernel, out.dtype, draw.unroll, in_graph)
        state = int(seed) if in_graph else out
        with there(out.place.index):
            run(threads // kernels.THREADS, out, state, out.size, signed(seed), counter, threads,
                *_parameters(draw))  # fmt: skip

    return fill


def _by_host(out: Any, draw: Draw) -> Filler:
    """The numbers made on the host and copied."""

    def fill(seed: int, counter: int, threads: int) -> None:
        def write(numbers: np.ndarray) -> None:
            flat = np.empty(numbers.size, numbers.dtype)
            philox_fill.fill_flat(flat, draw, seed, counter, threads)
            numbers[...] = flat.reshape(numbers.shape)

        written(out, write)

    return fill


philox_fill.Compiled.fill = staticmethod(filler)
