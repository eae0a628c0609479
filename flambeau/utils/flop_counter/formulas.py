"""How many floating-point operations an operator takes, from the shapes of its tensors.

A product of [M, K] and [K, N] takes 2 M N K: a multiplication and an addition for each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.library.overloads import OpOverloadPacket, ops
from flambeau.utils._pytree import tree_map

aten = ops.aten
Formula = Callable[..., int]
flop_registry: dict[Any, Formula] = {}
"""Operator -> its formula, which is given the arguments, and the result as `out_val`."""


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value


def of_shapes(formula: Formula) -> Formula:
    """A formula that takes shapes, for arguments that are tensors."""

    @functools.wraps(formula)
    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, result = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=result, **kwargs)

    return counted


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A formula for operators (`torch.ops.aten.mm`) or a list of these.

    It is given the operator's arguments with shapes in place of tensors, and `out_shape`; with
    `get_raw` the tensors themselves, and `out_val`.
    """

    def register(formula: Formula) -> Formula:
        counted = formula if get_raw else of_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket "
                    "(i.e. torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of two matrices."""
    (m, k), (k2, n) = a_shape, b_shape
    _require(k == k2, f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return int(2 * m * n * k)


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None,
               **kwargs: Any) -> int:  # fmt: skip
    """Of a product that is added to something."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of batches of matrices."""
    (b, m, k), (b2, k2, n) = a_shape, b_shape
    _require(b == b2, f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    _require(k == k2, f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return int(2 * b * m * n * k)


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None,
                 **kwargs: Any) -> int:  # fmt: skip
    """Of batches of products that are added to something."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Of a convolution without its bias: each position of the output (of the input if it is
    transposed) meets each weight."""
    positions = (x_shape if transposed else out_shape)[2:]
    return int(2 * x_shape[0] * math.prod(positions) * math.prod(w_shape))


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any,
              _dilation: Any, transposed: bool, *args: Any, out_shape: Any = None,
              **kwargs: Any) -> int:  # fmt: skip
    """Of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(grad_out_shape: Any, x_shape: Any, w_shape: Any, _bias: Any, _stride: Any,
                       _padding: Any, _dilation: Any, transposed: bool, _output_padding: Any,
                       _groups: Any, output_mask: Any, out_shape: Any,
                       **kwargs: Any) -> int:  # fmt: skip
    """Of the gradients of a convolution: that of the input costs as much as the convolution, that
    of the weight is counted as if there were no groups."""
    once = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed=transposed)
    of_input, of_weight = (bool(wanted) for wanted in output_mask[:2])
    return once * (of_input + of_weight * int(_groups))


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Of attention: the scores, and the weighted values."""
    b, h, s_q, d_q = query_shape
    *_, s_k, d_k = key_shape
    _require(d_q == d_k, f"sdpa: query and key must have as many features, got {d_q} and {d_k}")
    return int(2 * b * h * s_q * s_k * (d_q + value_shape[-1]))


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any,
                             value_shape: Any) -> int:  # fmt: skip
    """Of the gradients of attention: the scores again, the gradients of weights and values, of
    queries and keys."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[-2], value_shape[-1]
    compatible = list(grad_out_shape) == [b, h, s_q, d_v] and value_shape[-2] == s_k
    _require(compatible, "sdpa_backward_flop_count: grad_out/value/key/query shapes are "
                         "incompatible")  # fmt: skip
    return int(2 * b * h * s_q * s_k * (3 * d_q + 2 * d_v))


FORWARD = [aten._scaled_dot_product_efficient_attention, aten._scaled_dot_product_flash_attention,
           aten._scaled_dot_product_cudnn_attention]  # fmt: skip
BACKWARD = [aten._scaled_dot_product_efficient_attention_backward,
            aten._scaled_dot_product_flash_attention_backward,
            aten._scaled_dot_product_cudnn_attention_backward]  # fmt: skip


@register_flop_formula(FORWARD)
def sdpa_flop(query_shape: Any, key_shape: Any, value_shape: Any, *args: Any,
              out_shape: Any = None, **kwargs: Any) -> int:  # fmt: skip
    """Of attention."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


@register_flop_formula(BACKWARD)
def sdpa_backward_flop(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any,
                       *args: Any, out_shape: Any = None, **kwargs: Any) -> int:  # fmt: skip
    """Of the gradients of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)
