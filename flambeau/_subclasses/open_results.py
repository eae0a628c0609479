"""Results that only the elements of tensors tell, as symbols: `x.item()`, the rows of `nonzero`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau._core import dtype as dt
from flambeau._subclasses.errors import DataDependentOutputException, DynamicOutputShapeException


class Open:
    """A tensor to come: its sizes and strides, some of them new symbols, and its type."""

    def __init__(self, sizes: tuple[Any, ...], steps: tuple[Any, ...], dtype: Any) -> None:
        self.sizes = sizes
        self.steps = steps
        self.dtype = dtype


def _contiguous(sizes: tuple[Any, ...], dtype: Any) -> Open:
    steps = tuple([math.prod(sizes[dim + 1 :]) for dim in range(len(sizes))])
    return Open(sizes, steps, dtype)


def _nonzero(env: Any, fakes: Any, args: Any) -> Any:
    rows = env.new_size(fakes[0].numel())
    return Open((rows, fakes[0].dim()), (1, rows), dt.int64)


def _masked(env: Any, fakes: Any, args: Any) -> Any:
    return _contiguous((env.new_size(fakes[0].numel()),), fakes[0].dtype)


def _indexed(env: Any, fakes: Any, args: Any) -> Any:
    """`x[mask]`, with one mask and nothing else."""
    indices = [index for index in args[1] if index is not None]
    if len(indices) != 1 or indices[0].dtype is not dt.bool_:
        return NotImplemented
    place, mask = args[1].index(indices[0]) if len(args[1]) == 1 else 0, indices[0]
    if args[1][0] is not mask:
        return NotImplemented
    rest = tuple(fakes[0].shape)[place + mask.dim() :]
    return _contiguous((env.new_size(mask.numel()), *rest), fakes[0].dtype)


RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nonzero": _nonzero, "masked_select": _masked, "index": _indexed,
}  # fmt: skip
"""For each operator: what comes of it, with new symbols."""


def of_call(env: Any, func: Any, args: Any, fakes: Any) -> Any:
    """What comes of a call as symbols; NotImplemented if elements have no say in it.

    Raises:
        DataDependentOutputException: the environment allows for no numbers of elements.
        DynamicOutputShapeException: the environment allows for no sizes of elements.
    """
    if env is None:
        return NotImplemented
    name = func._opname
    if name == "_local_scalar_dense":
        if not env.allow_scalar_outputs:
            raise DataDependentOutputException(func)
        return _number(env, fakes[0].dtype)
    if name not in RULES or any(word.endswith("out") for word in (func._overloadname,)):
        return NotImplemented
    if name == "index" and not any(t.dtype is dt.bool_ for t in args[1] if t is not None):
        return NotImplemented
    if not env.allow_dynamic_output_shape_ops:
        raise DynamicOutputShapeException(func)
    return RULES[name](env, fakes, args)


def _number(env: Any, dtype: Any) -> Any:
    if dtype is dt.bool_:
        return env.create_unbacked_symbool()
    if dtype.is_floating_point:
        return env.create_unbacked_symfloat()
    return env.create_unbacked_symint()
