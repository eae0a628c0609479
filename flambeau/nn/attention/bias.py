"""Causal masks for `scaled_dot_product_attention` when queries and keys differ in number."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor, wrap

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the (queries, keys) matrix the triangle of a causal mask is drawn from.

    For 3 queries and 4 keys, UPPER_LEFT lets the last query see 3 keys, LOWER_RIGHT all 4.
    """

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(Tensor):
    """A causal mask of (seq_len_q, seq_len_kv) booleans, given as `attn_mask`.

    >>> from flambeau.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int
    __torch_function__ = staticmethod(overriding.disabled)

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = ops.ones(seq_len_q, seq_len_kv, dtype=dt.bool_).tril(shift)
        return mask.as_subclass(cls)  # type: ignore[no-any-return]

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=2,
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return wrap(self._data)

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of `is_causal=True`: query i sees keys 0 to i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query sees all keys, each query before it one key less."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
