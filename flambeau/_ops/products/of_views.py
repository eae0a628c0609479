"""`@` of conjugate views, at once where nothing looks on.

`z.conj().T @ w` is what such views are made for: it takes no more time than `z.T @ w` does
(benchmarks/conjugates.py). All that is not so plain goes the way of every product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core.modes import watch
from flambeau._ops.products.conjugated import of_memory
from flambeau._tensor.bits import BitTensor, method_of_bits, opened
from flambeau._tensor.tensor import Tensor, new

KINDS = frozenset({Tensor, BitTensor})
PLAIN = np.ndarray


def at_once(left: Any, right: Any) -> Any:
    """The product of two matrices of one complex type, of which at least one is a conjugate view.

    None if they are anything else, and where more is wanted than numbers: a mode is active, a
    gradient will be asked for, or other arrays stand for tensors with a bit.
    """
    if watch.active or watch.results or opened.arrays:
        return None
    if left._requires_grad or right._requires_grad or left._negated or right._negated:
        return None
    one = left._data if left._stored is None else left._stored
    two = right._data if right._stored is None else right._stored
    dtype = one.dtype
    if two.dtype is not dtype or dtype.kind != "c" or one.ndim != 2 or two.ndim != 2:
        return None
    if one.shape[1] != two.shape[0] or one.__class__ is not PLAIN or two.__class__ is not PLAIN:
        return None
    result = new(Tensor)
    result._data = of_memory(one, two, left._conjugated, right._conjugated)
    return result


@method_of_bits("__matmul__")
def _matmul(self: Any, other: Any) -> Any:
    if self.__class__ is BitTensor and other.__class__ in KINDS:
        result = at_once(self, other)
        if result is not None:
            return result
    return super(BitTensor, self).__matmul__(other)


@method_of_bits("__rmatmul__")
def _of_right(self: Any, other: Any) -> Any:
    if self.__class__ is BitTensor and other.__class__ in KINDS:
        result = at_once(other, self)
        if result is not None:
            return result
    return super(BitTensor, self).__rmatmul__(other)
