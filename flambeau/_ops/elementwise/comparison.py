"""Comparisons, logic and bits."""

from __future__ import annotations

from typing import Any

from flambeau._compiler import expr as E
from flambeau._ops.elementwise.arithmetic import zero_like
from flambeau._ops.table.op import alias, pointwise
from flambeau._ops.table.outputs import FOUND

FLAT = {"self": zero_like, "other": zero_like}
"""Formulas of comparisons that are written in place: they give numbers then."""


@pointwise(
    "eq.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    complex_half=True,
    promote="bool",
    backward_inplace=FLAT,
    node_inplace="EqBackward1",
    number_nodes={"other": "EqBackward0"},
)
def eq(self: Any, other: Any) -> Any:
    """Whether elements are equal.

    >>> import flambeau as torch
    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """
    return self == other


@pointwise(
    "ne.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    complex_half=True,
    promote="bool",
    backward_inplace=FLAT,
    node_inplace="NeBackward1",
    number_nodes={"other": "NeBackward0"},
)
def ne(self: Any, other: Any) -> Any:
    """Whether elements differ.

    >>> import flambeau as torch
    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """
    return self != other


@pointwise(
    "lt.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    promote="bool",
    label="lt_cpu",
    dtypes="bool int float",
    backward_inplace=FLAT,
    node_inplace="LtBackward1",
    number_nodes={"other": "LtBackward0"},
)
def lt(self: Any, other: Any) -> Any:
    """Whether elements are less.

    >>> import flambeau as torch
    >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return self < other


@pointwise(
    "le.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    promote="bool",
    label="le_cpu",
    dtypes="bool int float",
    backward_inplace=FLAT,
    node_inplace="LeBackward1",
    number_nodes={"other": "LeBackward0"},
)
def le(self: Any, other: Any) -> Any:
    """Whether elements are less or equal.

    >>> import flambeau as torch
    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return self <= other


@pointwise(
    "gt.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    promote="bool",
    label="gt_cpu",
    dtypes="bool int float",
    backward_inplace=FLAT,
    node_inplace="GtBackward1",
    number_nodes={"other": "GtBackward0"},
)
def gt(self: Any, other: Any) -> Any:
    """Whether elements are greater.

    >>> import flambeau as torch
    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return self > other


@pointwise(
    "ge.Tensor(Tensor self, Tensor other) -> Tensor",
    fused=True,
    promote="bool",
    label="ge_cpu",
    dtypes="bool int float",
    backward_inplace=FLAT,
    node_inplace="GeBackward1",
    number_nodes={"other": "GeBackward0"},
)
def ge(self: Any, other: Any) -> Any:
    """Whether elements are greater or equal.

    >>> import flambeau as torch
    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return self >= other


@pointwise(
    "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    regular=True,
    numbers="both",
    dtypes="bool int",
    label="bitwise_and_cpu",
)
def bitwise_and(self: Any, other: Any) -> Any:
    """Bits set in both; for bools, `and`.

    >>> import flambeau as torch
    >>> torch.bitwise_and(torch.tensor([6]), torch.tensor([3]))
    tensor([2])
    """
    return self & other


@pointwise(
    "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    regular=True,
    numbers="both",
    dtypes="bool int",
    label="bitwise_or_cpu",
)
def bitwise_or(self: Any, other: Any) -> Any:
    """Bits set in either; for bools, `or`.

    >>> import flambeau as torch
    >>> torch.bitwise_or(torch.tensor([6]), torch.tensor([3]))
    tensor([7])
    """
    return self | other


@pointwise(
    "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
    numbers="both",
    dtypes="bool int",
    label="bitwise_xor_cpu",
)
def bitwise_xor(self: Any, other: Any) -> Any:
    """Bits set in one of the two; for bools, `xor`.

    >>> import flambeau as torch
    >>> torch.bitwise_xor(torch.tensor([6]), torch.tensor([3]))
    tensor([5])
    """
    return self ^ other


@pointwise(
    "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    numbers="both",
    dtypes="int",
    label="lshift_cpu",
)
def bitwise_left_shift(self: Any, other: Any) -> Any:
    """Shift bits up.

    >>> import flambeau as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), torch.tensor([2, 1]))
    tensor([4, 6])
    """
    return E.left_shift(self, other)


@pointwise(
    "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    numbers="both",
    dtypes="int",
    label="rshift_cpu",
)
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


@pointwise(
    "logical_and(Tensor self, Tensor other) -> Tensor",
    fused=True,
    label="logical_and_cpu",
    numbers="none",
    promote="bool",
)
def logical_and(self: Any, other: Any) -> Any:
    """Whether both are non-zero.

    >>> import flambeau as torch
    >>> torch.logical_and(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([ True, False])
    """
    return E.logical_and(self, other)


@pointwise(
    "logical_or(Tensor self, Tensor other) -> Tensor",
    fused=True,
    label="logical_or_cpu",
    numbers="none",
    promote="bool",
)
def logical_or(self: Any, other: Any) -> Any:
    """Whether either is non-zero.

    >>> import flambeau as torch
    >>> torch.logical_or(torch.tensor([False, True]), torch.tensor([False, False]))
    tensor([False,  True])
    """
    return E.logical_or(self, other)


@pointwise(
    "logical_xor(Tensor self, Tensor other) -> Tensor",
    label="logical_xor_cpu",
    numbers="none",
    promote="bool",
)
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


@pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor", dtypes="int", label="gcd_cpu", numbers="none"
)
def gcd(self: Any, other: Any) -> Any:
    """The greatest common divisor; `gcd(0, 0)` is 0.

    >>> import flambeau as torch
    >>> torch.gcd(torch.tensor([12]), torch.tensor([18]))
    tensor([6])
    """
    return E.gcd(self, other)


@pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor", dtypes="int", label="lcm_cpu", numbers="none"
)
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
