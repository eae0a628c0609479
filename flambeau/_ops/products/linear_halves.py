"""Affine maps in regions of autocast on GPUs: computed in half precision, with gradients in the
types of what was there before it was cast.

A product of half types can give float32 as well as them. So gradients of inputs and parameters in
float32 come out of the products as they are to be, in place of being rounded and cast again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.products import blas, linear
from flambeau._ops.table.autocast import GIVEN_BOTH
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import internal
from flambeau._ops.table.pointwise import wants_grad
from flambeau._tensor.device_array import DeviceArray

FLOAT32 = np.dtype(np.float32)
HALVES = "eE"


def _gradients(grad: Any, half_input: Any, half_weight: Any, input_dtype: Any, wanted: Any) -> Any:
    """Where they are to have gradients, they are made of rows that do, from the casts."""
    half_input = grad if half_input is None else half_input
    half_weight = grad if half_weight is None else half_weight
    if not wants_grad((grad, half_input, half_weight)):
        return ops._linear_of_halves_backward(
            half_input, grad, half_weight, wanted, input_dtype == FLOAT32
        )
    mask = (wanted[0], wanted[1], False)
    of_input, of_weight, _ = ops.linear_backward(half_input, grad, half_weight, mask)
    return of_input, of_weight, grad if wanted[2] else None


def _affine(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, half_input: np.ndarray,
            half_weight: np.ndarray, half_bias: np.ndarray | None) -> np.ndarray:  # fmt: skip
    """`half_input @ half_weight.T + half_bias`; the others are only differentiated by."""
    return linear._linear(half_input, half_weight, half_bias)


def _row(name: str, node: str) -> None:
    internal(
        f"{name}(Tensor input, Tensor weight, Tensor? bias, Tensor half_input, Tensor half_weight,"
        " Tensor? half_bias) -> Tensor",
        node=node, public_node=linear._taken_apart,
        backward={("input", "weight", "bias"): _gradients},
        saved_for={"half_input": "weight", "half_weight": "input"},
    )(_affine)  # fmt: skip


_row("_linear_of_halves", "AddmmBackward0")
_row("_linear_of_halves_no_bias", "MmBackward0")
_row("_linear_of_halves_nd", "ViewBackward0")
_row("_linear_of_halves_nd_no_bias", "UnsafeViewBackward0")


@internal(
    "_linear_of_halves_backward(Tensor half_input, Tensor grad, Tensor half_weight,"
    " bool[3] output_mask, bool widened) -> (Tensor, Tensor, Tensor)",
)
def linear_of_halves_backward(input: np.ndarray, grad: np.ndarray, weight: np.ndarray,
                              output_mask: Any, widened: bool) -> Any:  # fmt: skip
    """`grad @ weight`, `grad.T @ input` and the column sums of `grad` where wanted: the last two in
    float32, the first one if it is `widened`."""
    kind, rows = input.dtype, math.prod(grad.shape[:-1])
    input, grad, weight = widen(input), widen(grad), widen(weight)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        of_input = linear.rows_product(grad, weight.T)
        of_input = of_input if widened else narrow(of_input, kind)
    flat = grad.reshape(rows, grad.shape[-1])
    if output_mask[1]:
        of_weight = blas.product(flat.T, input.reshape(rows, input.shape[-1]))
    if output_mask[2]:
        of_bias = blas.column_sums(flat)
    return of_input, of_weight, of_bias


def _suits(given: tuple[Any, ...], cast: tuple[Any, ...]) -> bool:
    """Whether a call is one of these: on a GPU, with parameters in float32 that learn, where nobody
    looks on who knows torch's operators alone."""
    input, weight, bias = given
    parameters = (weight,) if bias is None else (weight, bias)
    if not modes.grad.enabled or not weight._requires_grad or _watched():
        return False
    if bias is not None and bias._data.shape != weight._data.shape[:1]:
        return False
    in_float32 = all(one._data.dtype == FLOAT32 for one in parameters)
    on_gpu = all(isinstance(one._data, DeviceArray) for one in (input, *parameters))
    halves = all(one._data.dtype.char in HALVES for one in cast if one is not None)
    return in_float32 and on_gpu and halves and input._data.dtype.char in f"f{HALVES}"


def _watched() -> bool:
    """Whether this thread is in a transform or a mode, as traces are."""
    stacks = modes.stacks
    return bool(stacks.levels or stacks.dispatch_modes or stacks.function_modes)


for _name in ("", "_no_bias", "_nd", "_nd_no_bias"):
    GIVEN_BOTH[f"_linear{_name}"] = (_suits, f"_linear_of_halves{_name}")
