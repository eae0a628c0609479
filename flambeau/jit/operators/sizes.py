"""How much memory the results of operators take, in bytes, before they are computed.

Only operators are listed whose results may be far larger than what they are given. An estimate is
a lower bound, rough where a rough one will do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from flambeau._core import dtype as dt
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.operators.forms import element_type

Estimate = Callable[..., int]



def _factory(size: list[int], *rest: Any) -> int:
    numbers = [value for value in rest if type(value) is int]
    try:
        itemsize = element_type(numbers[0]).itemsize if numbers else dt.default_dtype().itemsize
    except ValueError:
        itemsize = 8
    return prod(size) * itemsize


def _range_size(*args: Any) -> int:
    start, end, step = (0, args[0], 1) if len(args) < 6 else (*args[:2], 1)
    if len(args) >= 7:
        step = args[2]
    return int(8 * max(0, (end - start) / step)) if step else 0


def _repeat(tensor: Any, sizes: list[int]) -> int:
    return tensor.numel() * prod(sizes) * tensor.dtype.itemsize


def _times(items: Any, count: Any) -> int:
    if isinstance(items, int):
        items, count = count, items
    return 8 * len(items) * max(0, count)


def _broadcast(some: Any, other: Any, *rest: Any) -> int:
    """The size of the shapes' broadcast, as far as both are tensors."""
    if not isinstance(other, Tensor):
        return 0
    longer, shorter = sorted((some.shape, other.shape), key=len, reverse=True)
    padded = (1,) * (len(longer) - len(shorter)) + tuple(shorter)
    return prod(max(a, b) if a and b else 0 for a, b in zip(longer, padded, strict=True)) * 8


def _matrix(some: Any, other: Any, *rest: Any) -> int:
    if some.ndim < 2 or other.ndim < 2:
        return 0
    return prod(some.shape[:-1]) * other.shape[-1] * 8


SIZES: dict[str, Estimate] = {
    **{f"aten::{name}": _factory for name in (
        "zeros", "ones", "rand", "randn", "empty.memory_format", "new_empty")},
    "aten::full": lambda size, *rest: prod(size) * 8,
    "aten::new_zeros": lambda t, size, *rest: prod(size) * 8,
    "aten::new_ones": lambda t, size, *rest: prod(size) * 8,
    "aten::new_full": lambda t, size, *rest: prod(size) * 8,
    "aten::arange": _range_size, "aten::eye": lambda n, *rest: n * n * 4,
    "aten::eye.m": lambda n, m, *rest: n * m * 4,
    "aten::linspace": lambda start, end, steps, *rest: steps * 4,
    "aten::logspace": lambda start, end, steps, *rest: steps * 4,
    "aten::randperm": lambda n, *rest: n * 8,
    "aten::randint": lambda high, size, *rest: (prod(size) if isinstance(size, list) else 0) * 8,
    "aten::randint.low": lambda low, high, size, *rest: prod(size) * 8,
    "aten::repeat": _repeat, "aten::tile": _repeat,
    "aten::mul.left_t": _times, "aten::mul.right_": _times, "aten::mul_.t": _times,
    "prim::rangelist": lambda n: 8 * n,
    "aten::center": lambda text, width, *rest: width, "aten::ljust": lambda t, width, *rest: width,
    "aten::rjust": lambda t, width, *rest: width, "aten::zfill": lambda t, width: width,
    "aten::expandtabs": lambda text, size: len(text) + text.count("\t") * max(0, size),
    "aten::replace": lambda text, old, new, most: (
        len(text) + (text.count(old) if old else len(text) + 1) * len(new)),
    "aten::join": lambda text, parts: sum(map(len, parts)) + len(text) * len(parts),
    "aten::one_hot": lambda t, n: t.numel() * max(0, n) * 8,
    **{f"aten::{name}": _broadcast for name in (
        "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "eq.Tensor",
        "lt.Tensor", "gt.Tensor", "le.Tensor", "ge.Tensor", "ne.Tensor", "maximum", "minimum")},
    "aten::matmul": _matrix, "aten::mm": _matrix, "aten::bmm": _matrix,
    "aten::outer": lambda a, b: a.numel() * b.numel() * 8,
}  # fmt: skip
"""By full name or name."""


def estimate_of(schema: FunctionSchema) -> Estimate | None:
    """The estimate of an operator; None for one whose results are about as large as its inputs."""
    return SIZES.get(schema.full_name) or SIZES.get(schema.name)
