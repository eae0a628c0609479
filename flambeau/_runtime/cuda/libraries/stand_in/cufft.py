"""cuFFT's functions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod

import numpy as np

from flambeau._runtime.cuda.libraries import cufft
from flambeau._runtime.cuda.libraries.stand_in.memory import (
    Refusal,
    device_array,
    guarded,
    numpy_type,
    put,
)

NAMES = {number: types for types, (number, _) in cufft.KINDS.items()}
INVALID_VALUE, INTERNAL_ERROR = 4, 5
function = guarded(INTERNAL_ERROR)


@dataclass
class Plan:
    """A plan, and the stream that it is for."""

    sizes: tuple[int, ...]
    types: tuple[str, str]
    batch: int
    stream: int = 0


class StandIn:
    """The library."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        for name in ("C2C", "R2C", "C2R", "Z2Z", "D2Z", "Z2D"):
            setattr(self, f"cufftExec{name}", self._execute)

    @function
    def cufftPlanMany(self, target: int, rank: int, sizes: int, *rest: int) -> None:
        _, _, _, _, _, _, kind, batch = rest
        held = tuple((ctypes.c_int * rank).from_address(sizes))
        if not 1 <= rank <= cufft.RANK or min(held) < 1 or batch < 1:
            raise Refusal(INVALID_VALUE)
        self.plans.append(Plan(held, NAMES[kind], batch))
        ctypes.c_int.from_address(target).value = len(self.plans) - 1

    @function
    def cufftSetStream(self, plan: int, stream: int | None) -> None:
        self.plans[plan].stream = stream or 0

    @function
    def _execute(self, number: int, given: int, result: int, direction: int = 0) -> None:
        plan = self.plans[number]
        work = lambda: _transform(plan, given, result, direction)  # noqa: E731
        overwritten = [given] if plan.types[1].startswith("float") else []
        put(plan.stream, work, [given], [result, *overwritten])


def _transform(plan: Plan, given: int, result: int, direction: int) -> None:
    half = (*plan.sizes[:-1], plan.sizes[-1] // 2 + 1)
    source, target = (numpy_type(name) for name in plan.types)
    dims = tuple(range(1, len(plan.sizes) + 1))
    count = prod(plan.sizes)

    def memory(address: int, dtype: np.dtype, real: bool) -> np.ndarray:
        sizes = plan.sizes if real or source.kind == target.kind else half
        shape = plan.batch, *sizes
        steps = [prod(shape[place + 1 :]) for place in range(len(shape))]
        return device_array(address, shape, tuple(steps), dtype)

    x, y = memory(given, source, source.kind == "f"), memory(result, target, target.kind == "f")
    if source.kind == "f":
        y[...] = np.fft.rfftn(x, axes=dims)
    elif target.kind == "f":
        y[...] = np.fft.irfftn(x, plan.sizes, dims) * count
        x[...] = np.nan  # its memory is worked in
    elif direction == cufft.FORWARD:
        y[...] = np.fft.fftn(x, axes=dims)
    else:
        y[...] = np.fft.ifftn(x, axes=dims) * count
