"""Python's operators that are not one pointwise row: `x[i]`, `2 / x`, `x ** y`, `x @ y`, ..."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from flambeau._ops.table import pointwise
from flambeau._ops.table.dispatch import make
from flambeau._ops.table.elementwise_path import is_known
from flambeau._ops.table.namespace import get_inplace, ops
from flambeau._ops.table.op import BY_NAME
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor, method


def _foreign(dunder: str, self: Tensor, other: Any) -> Any:
    """What the class of an operand that is no tensor makes of an operator. If it has no say, or
    none of it has a way, Python asks the operand itself."""
    if not overriding.takes_part(other):
        return NotImplemented
    function = getattr(Tensor, overriding.CALLED.get(dunder, dunder))
    try:
        taken, result = overriding.asked(function, (self, other), {})
    except TypeError:
        return NotImplemented
    return result if taken else NotImplemented


QUICK = frozenset((int, float, Tensor))
"""Classes of operands that rows take as they are."""


def _operator(name: str, dunder: str, *, reflected: bool = False) -> None:
    def forward(self: Tensor, other: Any) -> Any:
        if other.__class__ in QUICK:
            return getattr(ops, name)(self, other)
        if not is_known(other):
            return _foreign(dunder, self, other)
        return getattr(ops, name)(self, _plain(other))

    def reverse(self: Tensor, other: Any) -> Any:
        if not is_known(other):
            return _foreign(dunder, self, other)
        return getattr(ops, name)(_plain(other), self)

    function = reverse if reflected else forward
    function.__name__ = dunder
    setattr(Tensor, dunder, function)


def _plain(other: Any) -> Any:
    """NumPy's scalars as numbers."""
    return other if isinstance(other, Tensor) else pointwise.number_of(other)


_operator("floor_divide", "__floordiv__")
_operator("remainder", "__mod__")
_operator("floor_divide", "__rfloordiv__", reflected=True)
_operator("remainder", "__rmod__", reflected=True)
_operator("bitwise_left_shift", "__rlshift__", reflected=True)
_operator("bitwise_right_shift", "__rrshift__", reflected=True)


@method
def __rtruediv__(self: Tensor, other: Any) -> Any:
    return self.reciprocal() * other if is_known(other) else _foreign("__rtruediv__", self, other)


Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[attr-defined]


@cache
def _power_by_number() -> Any:
    return make(next(op for op in BY_NAME["pow"] if op.overload == "Tensor_Scalar"))


@method
def __pow__(self: Tensor, other: Any) -> Any:
    kind = other.__class__
    if kind is int or kind is float:
        return _power_by_number()(self, other)
    return ops.pow(self, _plain(other)) if is_known(other) else _foreign("__pow__", self, other)


@method
def __ipow__(self: Tensor, other: Any) -> Any:
    if other.__class__ in QUICK:
        return get_inplace("pow")(self, other)
    if is_known(other):
        return get_inplace("pow")(self, _plain(other))
    return _foreign("__ipow__", self, other)


@method
def __rpow__(self: Tensor, other: Any) -> Any:
    return ops.pow(_plain(other), self) if is_known(other) else _foreign("__rpow__", self, other)


@method
def __matmul__(self: Tensor, other: Any) -> Any:
    if isinstance(other, Tensor):
        return ops.matmul(self, other)
    return _foreign("__matmul__", self, other)


@method
def __rmatmul__(self: Tensor, other: Any) -> Any:
    if isinstance(other, Tensor):
        return ops.matmul(other, self)
    return _foreign("__rmatmul__", self, other)


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
def __delitem__(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


@method
def __reversed__(self: Tensor) -> Tensor:
    return ops.flip(self, [0]) if self._data.ndim else self  # type: ignore[no-any-return]
