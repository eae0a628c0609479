"""Kernels of Philox's numbers: bits against NumPy's form, and machine code for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import f16, f32, f64, i64
from flambeau._core import philox_fill, philox_numbers
from flambeau._core.generator import Generator
from flambeau._core.philox import Grid
from flambeau._core.philox_generator import PhiloxGenerator
from flambeau._ops.random import philox_kernels as kernels
from flambeau._ops.random import philox_launch
from flambeau._runtime import choice
from flambeau._runtime.cuda import assemble

pytestmark = pytest.mark.skipif(not choice.available(), reason="there is no compiler")

FILLS: dict[str, tuple[Any, ...]] = {
    "uniform_": (-2.0, 3.0), "normal_": (1.5, 0.3), "log_normal_": (0.5, 0.3),
    "exponential_": (1.5,), "cauchy_": (1.0, 2.0), "geometric_": (0.1,), "bernoulli_": (0.3,),
    "random_": (),
}  # fmt: skip
FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)


class OnHost(PhiloxGenerator):
    """The generator of a device that need not be there."""

    __slots__ = ()

    def __init__(self) -> None:
        Generator.__init__(self)
        self.grid = Grid(3, 1024)
        self.manual_seed(2**63 + 77).set_offset(2**34)


def filled(name: str, parameters: tuple[Any, ...], dtype: Any, size: int,
           by: Callable[..., Any]) -> tuple[np.ndarray, int]:  # fmt: skip
    before = philox_fill.Compiled.fill
    philox_fill.Compiled.fill = staticmethod(by)
    generator = OnHost()
    try:
        out = getattr(philox_numbers, name)(np.empty(size, dtype), *parameters, generator)
    finally:
        philox_fill.Compiled.fill = staticmethod(before)
    return out, generator.get_offset()


def on_cpu(out: np.ndarray, draw: Any) -> Any:
    assert philox_launch._fits(out, draw)
    return philox_launch._on_cpu(out, draw)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", list(FILLS))
@pytest.mark.parametrize("size", [1, 3072, 40_001])
def test_kernels_give_numpys_bits(name: str, dtype: Any, size: int) -> None:
    if name == "cauchy_" and dtype is np.float64:
        pytest.skip("it has no kernel")
    ours, offset = filled(name, FILLS[name], dtype, size, on_cpu)
    theirs, same_offset = filled(name, FILLS[name], dtype, size, lambda out, draw: None)
    assert offset == same_offset
    assert ours.view(f"u{ours.itemsize}").tolist() == theirs.view(f"u{ours.itemsize}").tolist()


@pytest.mark.parametrize(("dtype", "low", "high"), [
    (np.int64, 0, 10), (np.int32, -5, 2**30), (np.int64, -(2**63), None), (np.int64, 0, 2**62),
    (np.uint8, 3, 200), (np.float16, 0, 1000), (np.bool_, 0, 2), (np.int16, -9, 9),
])  # fmt: skip
def test_integers_by_kernels_are_numpys(dtype: Any, low: int, high: int | None) -> None:
    ours = filled("random_from_to_", (low, high), dtype, 30_001, on_cpu)
    theirs = filled("random_from_to_", (low, high), dtype, 30_001, lambda out, draw: None)
    assert (ours[0] == theirs[0]).all() and ours[1] == theirs[1]


NUMBERS = ("uniform", "normal", "log_normal", "exponential", "geometric", "bernoulli", "integers")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_machine_code_for_gpus(arch: str) -> None:
    for number in (*(f"{name}{bits}" for name in NUMBERS for bits in (32, 64)), "cauchy32"):
        whole, wide = number.startswith("integers"), number.endswith("64")
        statics = {
            "NUMBER": getattr(kernels, number), "UNROLL": 2 if wide else 4,
            "T": i64 if whole else f64 if wide else f16, "P": i64 if whole else f64,
            "IN_GRAPH": wide,
        }  # fmt: skip
        shape = Shape(threads=kernels.THREADS, aligned=False)
        found = assemble.report(kernels.fill_on_gpu, statics, shape, arch)
        assert found.spilled in (0, -1), number
    for lanes in (1, 2, 4, 8):
        shape = Shape(threads=kernels.THREADS, aligned=False, reads=("x",))
        found = assemble.report(
            kernels.drop_on_gpu, {"T": f32, "LANES": lanes, "IN_GRAPH": lanes > 2}, shape, arch
        )
        assert found.spilled in (0, -1)
