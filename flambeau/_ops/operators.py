"""Python's operators that are not one pointwise row: `x[i]`, `2 / x`, `x ** y`, `x @ y`, ..."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from flambeau._ops import pointwise
from flambeau._ops.dispatch import make
from flambeau._ops.namespace import ops
from flambeau._ops.op import BY_NAME
from flambeau._tensor.tensor import Tensor, method, wrap


def _known(other: Any) -> bool:
    return isinstance(other, (Tensor, np.ndarray)) or pointwise.number_of(other) is not None


QUICK = frozenset((int, float, Tensor))
"""Classes of operands that rows take as they are."""


def _operator(name: str, dunder: str, *, reflected: bool = False) -> None:
    def forward(self: Tensor, other: Any) -> Any:
        if other.__class__ in QUICK:
            return getattr(ops, name)(self, other)
        return getattr(ops, name)(self, _plain(other)) if _known(other) else NotImplemented

    def reverse(self: Tensor, other: Any) -> Any:
        return getattr(ops, name)(_plain(other), self) if _known(other) else NotImplemented

    function = reverse if reflected else forward
    function.__name__ = dunder
    setattr(Tensor, dunder, function)


def _plain(other: Any) -> Any:
    """NumPy's arrays as tensors, its scalars as numbers."""
    if isinstance(other, np.ndarray):
        return wrap(other)
    return other if isinstance(other, Tensor) else pointwise.number_of(other)


_operator("floor_divide", "__floordiv__")
_operator("remainder", "__mod__")
_operator("floor_divide", "__rfloordiv__", reflected=True)
_operator("remainder", "__rmod__", reflected=True)
_operator("bitwise_left_shift", "__rlshift__", reflected=True)
_operator("bitwise_right_shift", "__rrshift__", reflected=True)


@method
def __rtruediv__(self: Tensor, other: Any) -> Any:
    return self.reciprocal() * other if _known(other) else NotImplemented


Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[attr-defined]


@cache
def _power_by_number() -> Any:
    return make(next(op for op in BY_NAME["pow"] if op.overload == "Tensor_Scalar"))


@method
def __pow__(self: Tensor, other: Any) -> Any:
    kind = other.__class__
    if kind is int or kind is float:
        return _power_by_number()(self, other)
    return ops.pow(self, _plain(other)) if _known(other) else NotImplemented


@method
def __rpow__(self: Tensor, other: Any) -> Any:
    return ops.pow(_plain(other), self) if _known(other) else NotImplemented


@method
def __matmul__(self: Tensor, other: Any) -> Any:
    return ops.matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@method
def __rmatmul__(self: Tensor, other: Any) -> Any:
    return ops.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


@method
def __neg__(self: Tensor) -> Any:
    return ops.neg(self)


@method
def __pos__(self: Tensor) -> Any:
    return ops.positive(self)


@method
def __abs__(self: Tensor) -> Any:
    return ops.abs(self)


@method
def __invert__(self: Tensor) -> Any:
    if self._data.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors")  # fmt: skip
    return ops.bitwise_not(self)


@method
def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self._data.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(ops.unbind(self, 0))


@method
def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, Tensor) or pointwise.number_of(element) is not None:
        return bool((element == self)._data.any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


@method
def __reversed__(self: Tensor) -> Tensor:
    return ops.flip(self, list(range(self._data.ndim))) if self._data.ndim else self  # type: ignore[no-any-return]
