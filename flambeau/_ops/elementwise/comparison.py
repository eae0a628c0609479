"""Comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._compiler import expr as E
from flambeau._ops.elementwise.arithmetic import zero_like
from flambeau._ops.table.op import Body, Op, alias, pointwise
from flambeau._ops.table.outputs import FOUND

FLAT = {"self": zero_like, "other": zero_like}
"""Formulas of comparisons that are written in place: they give numbers then."""


def comparison(name: str, **options: Any) -> Callable[[Body], Op]:
    """A row of two operands whose result is a bool."""
    title = name.capitalize()
    return pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        fused=True,
        promote="bool",
        backward_inplace=FLAT,
        node_inplace=f"{title}Backward1",
        number_nodes={"other": f"{title}Backward0"},
        **options,
    )


def order(name: str) -> Callable[[Body], Op]:
    """A comparison that complex numbers have not."""
    return comparison(name, label=f"{name}_cpu", dtypes="bool int float")


def of_bits(name: str, dtypes: str, kernel: str, **options: Any) -> Callable[[Body], Op]:
    """A row of two operands, one of which may be a number, by their bits."""
    return pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        numbers="both",
        dtypes=dtypes,
        label=f"{kernel}_cpu",
        **options,
    )


def of_tensors(name: str, **options: Any) -> Callable[[Body], Op]:
    """A row of two tensors."""
    return pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        numbers="none",
        label=f"{name}_cpu",
        **options,
    )


@comparison("eq", complex_half=True)
def eq(self: Any, other: Any) -> Any:
    """Whether elements are equal.

    >>> import flambeau as torch
    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """
    return self == other


@comparison("ne", complex_half=True)
def ne(self: Any, other: Any) -> Any:
    """Whether elements differ.

    >>> import flambeau as torch
    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """
    return self != other


@order("lt")
def lt(self: Any, other: Any) -> Any:
    """Whether elements are less.

    >>> import flambeau as torch
    >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return self < other


@order("le")
def le(self: Any, other: Any) -> Any:
    """Whether elements are less or equal.

    >>> import flambeau as torch
    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return self <= other


@order("gt")
def gt(self: Any, other: Any) -> Any:
    """Whether elements are greater.

    >>> import flambeau as torch
    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return self > other


@order("ge")
def ge(self: Any, other: Any) -> Any:
    """Whether elements are greater or equal.

    >>> import flambeau as torch
    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return self >= other


@of_bits("bitwise_and", "bool int", "bitwise_and", regular=True)
def bitwise_and(self: Any, other: Any) -> Any:
    """Bits set in both; for bools, `and`.

    >>> import flambeau as torch
    >>> torch.bitwise_and(torch.tensor([6]), torch.tensor([3]))
    tensor([2])
    """
    return self & other


@of_bits("bitwise_or", "bool int", "bitwise_or", regular=True)
def bitwise_or(self: Any, other: Any) -> Any:
    """Bits set in either; for bools, `or`.

    >>> import flambeau as torch
    >>> torch.bitwise_or(torch.tensor([6]), torch.tensor([3]))
    tensor([7])
    """
    return self | other


@of_bits("bitwise_xor", "bool int", "bitwise_xor")
def bitwise_xor(self: Any, other: Any) -> Any:
    """Bits set in one of the two; for bools, `xor`.

    >>> import flambeau as torch
    >>> torch.bitwise_xor(torch.tensor([6]), torch.tensor([3]))
    tensor([5])
    """
    return self ^ other


@of_bits("bitwise_left_shift", "int", "lshift")
def bitwise_left_shift(self: Any, other: Any) -> Any:
    """Shift bits up.

    >>> import flambeau as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), torch.tensor([2, 1]))
    tensor([4, 6])
    """
    return E.left_shift(self, other)


@of_bits("bitwise_right_shift", "int", "rshift")
def bitwise_right_shift(self: Any, other: Any) -> Any:
    """Shift bits down, keeping the sign.

    >>> import flambeau as torch
    >>> torch.bitwise_right_shift(torch.tensor([8, -8]), torch.tensor([2, 1]))
    tensor([ 2, -4])
    """
    return E.right_shift(self, other)


@pointwise("bitwise_not(Tensor self) -> Tensor",
           regular=True, dtypes="bool int", label="bitwise_not_cpu",
           out_type=FOUND)  # fmt: skip
def bitwise_not(self: Any) -> Any:
    """Every bit turned; for bools, `not`.

    >>> import flambeau as torch
    >>> torch.bitwise_not(torch.tensor([0, 5])), torch.bitwise_not(torch.tensor([True]))
    (tensor([-1, -6]), tensor([False]))
    """
    return ~self


@of_tensors("logical_and", fused=True, promote="bool")
def logical_and(self: Any, other: Any) -> Any:
    """Whether both are non-zero.

    >>> import flambeau as torch
    >>> torch.logical_and(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([ True, False])
    """
    return E.logical_and(self, other)


@of_tensors("logical_or", fused=True, promote="bool")
def logical_or(self: Any, other: Any) -> Any:
    """Whether either is non-zero.

    >>> import flambeau as torch
    >>> torch.logical_or(torch.tensor([False, True]), torch.tensor([False, False]))
    tensor([False,  True])
    """
    return E.logical_or(self, other)


@of_tensors("logical_xor", promote="bool")
def logical_xor(self: Any, other: Any) -> Any:
    """Whether just one is non-zero.

    >>> import flambeau as torch
    >>> torch.logical_xor(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([False,  True])
    """
    return E.logical_xor(self, other)


@pointwise(
    "logical_not(Tensor self) -> Tensor", fused=True, label="logical_not_cpu", promote="bool"
)
def logical_not(self: Any) -> Any:
    """Whether elements are zero.

    >>> import flambeau as torch
    >>> torch.logical_not(torch.tensor([0, 2]))
    tensor([ True, False])
    """
    return E.logical_not(self)


@of_tensors("gcd", dtypes="int")
def gcd(self: Any, other: Any) -> Any:
    """The greatest common divisor; `gcd(0, 0)` is 0.

    >>> import flambeau as torch
    >>> torch.gcd(torch.tensor([12]), torch.tensor([18]))
    tensor([6])
    """
    return E.gcd(self, other)


@of_tensors("lcm", dtypes="int")
def lcm(self: Any, other: Any) -> Any:
    """The least common multiple, not negative.

    >>> import flambeau as torch
    >>> torch.lcm(torch.tensor([4]), torch.tensor([6]))
    tensor([12])
    """
    return E.absolute(E.lcm(self, other))  # of what wraps around, too


for _new, _old in (("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"),
                   ("greater_equal", "ge")):  # fmt: skip
    alias(_new, _old)
