"""Elementwise kernels for given device arrays: collapse dims, choose layouts and vectors, launch.

A `Fusion` is a row (or a copy) in one type. For every combination of shapes and strides it makes a
`Plan` once; a call with a known plan launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from math import prod
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr, trace
from flambeau._compiler.gpu.pointwise_text import Pointwise, build, divisor
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.kernel_source import (
    HALVES,
    NoForm,
    conditions,
    fixed_number,
    static_parameters,
)
from flambeau._compiler.loops import Operand
from flambeau._compiler.types import OF_NUMPY, Scalar, b8, boolean, f32
from flambeau._ops.launching.loop_plans import steps_of, type_of
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import Kernel, kernel
from flambeau._tensor.device_array import DeviceArray, block_of

THREADS = 256
WIDEST = 16
"""Bytes of an access."""
HEAVY = 8
"""The cost of an element from which on halves gain by several vectors a thread: 2 of them."""
MOST_PLANS = 512
SHORT = 1 << 31
"""Elements that 32 bits count."""


@dataclass(slots=True)
class Plan:
    """A kernel, its blocks, and which operands it takes."""

    kernel: Kernel | None
    blocks: int
    given: tuple[int, ...]
    numbers: tuple[int, ...]
    rest: tuple[int, ...]
    plain: bool
    """Whether it takes all operands, all of them arrays."""

    def run(self, operands: Sequence[Any], outs: Sequence[Any]) -> None:
        """Launch."""
        if self.kernel is not None:
            if self.plain:
                self.kernel(self.blocks, *operands, *outs, *self.rest)
                return
            listed = [operands[k] for k in self.given]
            more = [operands[k] for k in self.numbers]
            self.kernel(self.blocks, *listed, *outs, *more, *self.rest)


class Fusion:
    """Expressions of named parameters, computed in one type."""

    def __init__(
        self, title: str, results: Sequence[Expr], names: Sequence[str], compute: np.dtype[Any],
        rounds: Sequence[bool] = (),
    ) -> None:  # fmt: skip
        self.title = title
        self.results, self.names = tuple(results), tuple(names)
        self.compute = OF_NUMPY[compute.name]
        self.rounds = tuple(rounds) or (True,) * len(names)
        fixed = set().union(*[static_parameters(result) for result in results])
        self.fixed = frozenset(k for k, name in enumerate(names) if name in fixed)
        self.conditions = conditions(results)
        self.plans: dict[Any, Plan | None] = {}

    def run(self, operands: Sequence[Any], outs: Sequence[Any], fresh: bool = False) -> bool:
        """Write the results to `outs`; whether there is a kernel for that.

        Args:
            operands: device arrays that broadcast to the shape of the results, and numbers.
            outs: device arrays of one shape.
            fresh: whether `outs` are new, and so apart from the operands.
        """
        if not outs[0].size:
            return True
        plan = self.plan_of(operands, outs, fresh)
        if plan is None:
            return False
        plan.run(operands, outs)
        return True

    def plan_of(
        self, operands: Sequence[Any], outs: Sequence[Any], fresh: bool = True
    ) -> Plan | None:
        """The plan for such operands and results; None where there is no kernel."""
        meeting = 0 if fresh else _meeting(operands, outs)
        key = (meeting, *self._key(operands, outs))
        try:
            return self.plans[key]
        except KeyError:
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            found = self.plans[key] = self._plan(operands, outs, meeting)
            return found

    def _key(self, operands: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        key: list[Any] = []
        for k, value in enumerate((*operands, *outs)):
            if isinstance(value, np.ndarray):
                key += (value.shape, value.strides, value.dtype.num, address(value) % WIDEST)
            else:
                key.append(value if k in self.fixed else None)
        return key

    def _plan(self, operands: Sequence[Any], outs: Sequence[Any], meeting: int) -> Plan | None:
        if not outs[0].size:
            return Plan(None, 0, (), (), (), True)
        try:
            return make_plan(self, operands, outs, meeting)
        except NoForm:
            return None


def _meeting(operands: Sequence[Any], outs: Sequence[Any]) -> int:
    """0: results lie apart from the operands; 1: element by element in the same memory; 2: across
    each other."""
    found = 0
    for out in outs:
        block = block_of(out)
        for value in operands:
            if value is out:
                found = max(found, 1)
            elif isinstance(value, DeviceArray) and block_of(value) is block:
                found = max(found, _in_one_block(out, value))
    return found


def _in_one_block(out: Any, value: Any) -> int:
    """The same of two arrays that lie in the same piece of memory."""
    low, high = _reach(out)
    start, stop = _reach(value)
    if start >= high or low >= stop:
        return 0
    same = address(out) == address(value) and out.itemsize == value.itemsize
    return 1 if same and (out.shape, out.strides) == (value.shape, value.strides) else 2


def _reach(array: Any) -> tuple[int, int]:
    """The addresses of an array's first byte, and of the one behind its last."""
    start = address(array)
    if not array.size:
        return start, start
    low, high = start, start + array.itemsize
    for size, step in zip(array.shape, array.strides, strict=True):
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high


# ---- plans


def make_plan(fusion: Fusion, operands: Sequence[Any], outs: Sequence[Any], meeting: int) -> Plan:
    """Everything about a call but the addresses. Raises NoForm where there is no kernel."""
    if meeting > 1:
        raise NoForm("a result across an operand")
    shape = outs[0].shape
    fixed = {k: operands[k] for k in fusion.fixed if _is_fixed(fusion, operands[k])}
    given = [k for k, value in enumerate(operands) if isinstance(value, np.ndarray)]
    numbers = [k for k in range(len(operands)) if k not in given and k not in fixed]
    arrays = [operands[k] for k in given] + list(outs)
    steps = [steps_of(array, shape) for array in arrays]
    dims = collapsed(shape, steps, len(given))
    layouts = [_layout(dims, place, place >= len(given)) for place in range(len(arrays))]
    flat = len(dims) <= 1 and "G" not in layouts
    vector = _vector(arrays, dims, layouts, flat)
    types = [type_of(array.dtype) for array in arrays]
    inputs = [_operand(fusion, k, operands, fixed) for k in range(len(operands))]
    for place, k in enumerate(given):
        inputs[k] = _array(fusion, k, operands[k], types[place], layouts[place])
    outputs = tuple(
        Operand(f"y{k}", types[len(given) + k], layouts[len(given) + k]) for k in range(len(outs))
    )
    work = Pointwise(fusion.title, fusion.results, fusion.names, fusion.compute, tuple(inputs),
                     outputs, 0 if flat else len(dims), meeting == 0)  # fmt: skip
    native, cost = build(work)
    size = prod(shape)
    statics: dict[str, Any] = {
        "V": vector,
        "U": _unroll(vector, cost, types, size),
        "THREADS": THREADS,
    }
    rest: tuple[int, ...] = (size,)
    units = size
    if not flat:
        statics["BIG"] = size >= SHORT
        units = size // vector
        rest = (units, *_arguments(dims, layouts, vector))
    each = THREADS * statics["U"] * (vector if flat else 1)
    aligned = all(address(array) % WIDEST == 0 for array in arrays)
    form = Shape(threads=THREADS, apart=meeting == 0, aligned=aligned, reads=work.reads)
    made = kernel(native, form, **statics) if size else None
    plain = len(given) == len(operands)
    return Plan(made, -(-units // each), tuple(given), tuple(numbers), rest, plain)


def _is_fixed(fusion: Fusion, value: Any) -> bool:
    return not isinstance(value, np.ndarray) and fixed_number(fusion.compute, value)


def _operand(fusion: Fusion, k: int, operands: Sequence[Any], fixed: dict[int, Any]) -> Operand:
    """The operand for a number."""
    if k in fixed:
        return Operand(f"x{k}", fusion.compute, "S", fixed=fixed[k])
    compute = f32 if fusion.compute in HALVES else fusion.compute
    chooses = fusion.names[k] in fusion.conditions
    return Operand(f"x{k}", boolean if chooses or compute is b8 else compute, "N",
                   condition=chooses)  # fmt: skip


def _array(fusion: Fusion, k: int, array: Any, type: Scalar, layout: str) -> Operand:
    chooses = fusion.names[k] in fusion.conditions and type is b8
    rounded = array.ndim > 0 or fusion.rounds[k]
    return Operand(f"x{k}", type, layout, rounded=rounded, condition=chooses)


Dims = list[tuple[int, tuple[int, ...]]]


def collapsed(shape: tuple[int, ...], steps: list[list[int]], inputs: int) -> Dims:
    """(size, steps of all arrays) of each dim that is left, innermost first; dims that every array
    steps through as through one are joined."""
    kept = [d for d, size in enumerate(shape) if size != 1]
    kept.sort(key=lambda d: abs(steps[inputs][d]))
    dims: Dims = []
    for d in kept:
        here = tuple(s[d] for s in steps)
        if dims:
            size, below = dims[-1]
            if all(far == near * size for far, near in zip(here, below, strict=True)):
                dims[-1] = (size * shape[d], below)
                continue
        dims.append((shape[d], here))
    return dims or [(1, tuple(1 if k >= inputs else 0 for k in range(len(steps))))]


def _layout(dims: Dims, place: int, is_result: bool) -> str:
    size, steps = dims[0]
    if steps[place] == 1 or (is_result and size == 1):
        return "C"
    return "G" if steps[place] else "S"


def _vector(arrays: list[Any], dims: Dims, layouts: list[str], flat: bool) -> int:
    """Elements of an access: as many as all arrays take in 16 bytes, whatever row they are in."""
    following = [k for k, layout in enumerate(layouts) if layout == "C"]
    if any(address(arrays[k]) % WIDEST for k in following) or not following:
        return 1
    vector = WIDEST // max(arrays[k].itemsize for k in following)
    if flat:
        return vector
    while vector > 1:
        sizes = [dims[0][0], *[step[k] for k in following for _, step in dims[1:]]]
        if all(size % vector == 0 for size in sizes):
            return vector
        vector //= 2
    return 1


LARGE = 1 << 22
"""Elements from which on there are threads enough for four vectors each."""


def _unroll(vector: int, cost: int, types: list[Scalar], size: int) -> int:
    """Vectors a thread computes: several where accesses are narrow, or much is computed. On an H200
    tanh of float32 has 0.88 of a copy's speed with one vector, 0.94 with two, 0.96 with four."""
    widest = max(type.size for type in types)
    several = max(1, 4 * min(4, WIDEST // widest) // (4 * vector))
    if widest <= 4 and cost >= HEAVY:  # noqa: PLR2004
        several = max(several, 4 if size >= LARGE else 2 if widest <= 2 else 1)  # noqa: PLR2004
    return several


def _arguments(dims: Dims, layouts: list[str], vector: int) -> list[int]:
    """Sizes with their divisors, and steps: those of the innermost dim go by vectors."""
    found: list[int] = []
    for place, (size, _) in enumerate(dims):
        found += divisor(size if place else size // vector)
    for k in range(len(layouts)):
        found += [steps[k] * (1 if place else vector) for place, (_, steps) in enumerate(dims)]
    return found


# ---- expressions of kernels that are made of several launches


@cache
def loop_of(function: Callable[..., Any], compute: np.dtype[Any]) -> Fusion:
    """An expression as a loop: a function of expressions."""
    names = list(signature(function).parameters)
    return Fusion(function.__name__, [trace(function, names)], names, compute)


def apply(function: Callable[..., Any], operands: Sequence[Any], out: Any) -> Any:
    """`out`, holding an expression of arrays and numbers: half types are computed in float32.

    Raises:
        NotImplementedError: there is no kernel for these types.
    """
    compute = np.dtype(np.float64 if out.dtype.itemsize == 8 else np.float32)  # noqa: PLR2004
    if not loop_of(function, compute).run(operands, (out,)):
        raise NotImplementedError(function.__name__)
    return out
