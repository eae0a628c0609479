"""Losses that compare values element by element, and what `reduction` means.

A row computes loss and reduction in one pass over NumPy arrays; its gradient is one more row. The
second derivative goes through public operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.programs import EAGER
from flambeau._core.promotion import promote_types
from flambeau._ops.launching.memory_formats import in_order_of
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.reductions.sums import fused
from flambeau._ops.rows.losses import HUBER, SMOOTH, SQUARED, Difference
from flambeau._ops.table.binder import without_public_attribute
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal
from flambeau._ops.table.outputs import check_cast
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad
from flambeau._runtime import choice

NONE, MEAN, SUM = 0, 1, 2
DOT_LIMIT = 1 << 13
"""Up to here BLAS sums squares as exactly as a pairwise sum does."""


# ---- reductions and arguments


def reduction_code(reduction: str) -> int:
    """ATen's number of a reduction; torch's ValueError for an unknown word."""
    if reduction == "mean":
        return MEAN
    if reduction == "sum":
        return SUM
    if reduction == "none":
        return NONE
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=3,
        )
        return MEAN
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """The word for the old flags, with torch's warning."""
    word = "mean" if size_average is None or size_average else "sum"
    if reduce is not None and not reduce:
        word = "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{word}' instead.",
        stacklevel=4,
    )
    return word


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The reduction's code from the current word or the old flags."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    return reduction_code(reduction)


def reduced(values: Any, reduction: int) -> Any:
    """The tensor itself, its mean, or its sum."""
    if reduction == MEAN:
        return values.mean()
    return values.sum() if reduction == SUM else values


def of_one_size(input: Any, target: Any) -> Any:
    """Two operands, broadcast if need be: losses allow that, but it usually is a mistake."""
    try:
        if target._data.shape == input._data.shape:
            return input, target
    except AttributeError:
        without_public_attribute("size", target, input)
        raise
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    one, other = ops.broadcast_tensors(input, target)
    return one, other


# ---- what kernels share


def promoted(arrays: list[Any]) -> Any:
    """The type that arrays promote to, those left out aside."""
    given = [a for a in arrays if a is not None]
    result = given[0].dtype
    for array in given[1:]:
        if array.dtype != result:
            pair = dt.from_numpy_dtype(result), dt.from_numpy_dtype(array.dtype)
            result = promote_types(*pair).numpy_dtype
    return result


def common(arrays: list[Any], label: str) -> tuple[list[Any], Any]:
    """Float arrays in the type to compute in, and the type of the result."""
    result = promoted(arrays)
    if result.kind not in "fV":
        raise refuse(label, result)
    working = np.dtype(np.float32) if result in dt.NUMPY_HALVES else result
    cast = [a if a is None or a.dtype == working else a.astype(working) for a in arrays]
    return cast, result


def reduce_array(values: np.ndarray, reduction: int, result: Any) -> Any:
    """Values, their mean or their sum, in the result's type."""
    if reduction == NONE:
        return values if values.dtype == result else narrow(values, result)
    total = np.add.reduce(values, None)
    if reduction == MEAN:
        total = total / values.size
    return total if total.dtype == result else np.asarray(total, result)


def difference(left: np.ndarray, right: np.ndarray, *, row_major: bool = False) -> np.ndarray:
    """`left - right` in new memory, or torch's broadcasting error."""
    try:
        gap = np.asarray(np.subtract(left, right, order="C" if row_major else "K"))
        plain = row_major or (gap.flags.c_contiguous and left.flags.c_contiguous)
        return gap if plain or gap.shape != left.shape else in_order_of(gap, left)
    except ValueError:
        broadcast_shape([left.shape, right.shape])
        raise


def scaled_gradient(slope: np.ndarray, grad: np.ndarray, reduction: int, result: Any,
                    like: np.ndarray | None = None) -> Any:  # fmt: skip
    """A loss's slope times the incoming gradient, divided for a mean; `like`: in the memory order
    of that array."""
    slope, grad = np.asarray(slope), widen(grad)
    if reduction == MEAN:
        grad = grad / max(slope.size, 1)
    if slope.shape == np.broadcast_shapes(slope.shape, grad.shape):
        np.multiply(slope, grad, out=slope)
    else:
        slope = np.multiply(slope, grad)
    plain = slope.flags.c_contiguous and (like is None or like.flags.c_contiguous)
    if like is not None and not plain and slope.shape == like.shape:
        slope = in_order_of(slope, like)
    return slope if slope.dtype == result else narrow(slope, result)


def kernels_for(*arrays: np.ndarray, work: str = "loss") -> Any:
    """The compiled losses for row-major arrays of one shape and type; else None."""
    data = arrays[0]
    if data.size < choice.LIMITS[work]:
        return None
    for array in arrays:
        if array.shape != data.shape or array.dtype != data.dtype or not array.flags.c_contiguous:
            return None
    return fused(work, data)


def mean_or_sum(total: Any, count: int, reduction: int, result: Any) -> np.ndarray:
    """A loss's sum, divided for a mean, in the result's type."""
    return np.asarray(total / count if reduction == MEAN else total, result)


def factor_of(grad: np.ndarray, count: int, reduction: int) -> float:
    """What the slope of every element is multiplied by, for the gradient of a mean or sum."""
    return float(grad) / (count if reduction == MEAN else 1)


# ---- mean squared error


def _mse_gradients(grad: Any, self: Any, target: Any, reduction: int, wanted: Any) -> Any:
    slope = ops.mse_loss_backward(grad, self, target, reduction)
    return (slope if wanted[0] else None), (-slope if wanted[1] else None)


@internal(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    inline=True,
    devices="numbers",
    autocast="float32",
    backward={("self", "target"): _mse_gradients},
)
def mse_loss(self: np.ndarray, target: np.ndarray, reduction: int) -> Any:
    """`(input - target) ** 2`, its mean or its sum."""
    result = self.dtype
    if target.dtype != result or result.kind != "f" or result.itemsize < 4:
        (self, target), result = common([self, target], "mse_cpu")
    kernels = None if reduction == NONE else kernels_for(self, target)
    if kernels is not None:
        total = kernels.loss_total(SQUARED, (self, target))
        return mean_or_sum(total, self.size, reduction, result)
    gap = difference(self, target)
    if reduction == NONE or gap.size > DOT_LIMIT:
        return reduce_array(np.multiply(gap, gap, out=gap), reduction, result)
    flat = gap.ravel("K")
    total = flat.dot(flat)
    if reduction == MEAN:
        total = total / gap.size
    return total if total.dtype == result else np.asarray(total, result)


def _mse_second(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int,
                wanted: Any) -> Any:  # fmt: skip
    """`2 (x - t) g / n` is linear in g, x and t."""
    scale = 2.0 / max(grad.numel(), 1) if reduction == MEAN else 2.0
    to_grad = grad * (self - target) * scale if wanted[0] else None
    bend = grad * grad_output * scale if wanted[1] or wanted[2] else None
    return to_grad, bend, (-bend if wanted[2] else None)


@internal(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    backward={("grad_output", "self", "target"): _mse_second},
)
def mse_loss_backward(grad_output: np.ndarray, self: np.ndarray, target: np.ndarray,
                      reduction: int) -> np.ndarray:  # fmt: skip
    """`2 * (input - target) * grad`, divided by the number of elements for a mean."""
    result = self.dtype
    if target.dtype != result or result.kind != "f" or result.itemsize < 4:
        (self, target), result = common([self, target], "mse_backward_cpu")
    kernels = None if grad_output.ndim else kernels_for(self, target)
    if kernels is not None:
        factor = factor_of(grad_output, self.size, reduction)
        return narrow(kernels.loss_slope(SQUARED, (self, target), factor), result)
    slope = difference(self, target, row_major=True)  # as torch's is, whatever the input is
    if grad_output.ndim:
        slope *= 2
        return scaled_gradient(slope, grad_output, reduction, result)  # type: ignore[no-any-return]
    factor = 2.0 * float(grad_output)
    if reduction == MEAN:
        factor /= slope.size or 1
    slope *= factor
    return slope if slope.dtype == result else narrow(slope, result)


def _weighted(values: Any, weight: Any, reduction: str, input: Any) -> Any:
    """The weighted mean divides by the sum of the weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = values * weight
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


@functional()
def functional_mse_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Squared differences: all ("none"), their mean or their sum.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    one, other = of_one_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        return _weighted(ops.mse_loss(one, other, NONE), weight, reduction, input)
    code = MEAN if reduction == "mean" else reduction_code(reduction)
    return ops.mse_loss(one, other, code)


# ---- losses from a value and a slope


class DifferenceLoss:
    """The rows of a loss of `input - target` and a number.

    `composed` is the slope by public operators, for second derivatives. `like_input`: the result
    has the input's type, whatever the target's is.
    """

    def __init__(self, name: str, label: str, loss: Difference, composed: Callable[..., Any], *,
                 like_input: bool = False) -> None:  # fmt: skip
        self.name = name
        self.label = label
        self.loss = loss
        self.composed = composed
        self.like_input = like_input

    def forward(self, input: np.ndarray, target: np.ndarray, reduction: int, p: float) -> Any:
        """The loss of each pair of elements, its mean or its sum."""
        if self.like_input:
            check_cast(promoted([input, target]), input.dtype)
        arrays, result = common([input, target], self.label)
        result = input.dtype if self.like_input else result
        kernels = None if reduction == NONE else kernels_for(*arrays)
        if kernels is not None:
            total = kernels.loss_total(self.loss, arrays, p)
            return mean_or_sum(total, input.size, reduction, result)
        return reduce_array(self.loss.values(difference(*arrays), p), reduction, result)

    def backward(self, grad: np.ndarray, input: np.ndarray, target: np.ndarray, reduction: int,
                 p: float) -> Any:  # fmt: skip
        """The slope times the incoming gradient."""
        arrays, result = common([input, target], self.label)
        kernels = None if grad.ndim else kernels_for(*arrays)
        if kernels is not None:
            factor = factor_of(grad, input.size, reduction)
            return narrow(kernels.loss_slope(self.loss, arrays, p, factor), result)
        slopes = self.loss.slopes(difference(*arrays, row_major=True), p)
        return scaled_gradient(slopes, grad, reduction, result)

    def gradients(self, grad: Any, input: Any, target: Any, reduction: int, p: float,
                  wanted: Any) -> Any:  # fmt: skip
        """The formula of the row: gradients of input and target."""
        if wants_grad((grad, input, target)):
            found = self.composed(input - target, p) * grad
            found = found / max(found.numel(), 1) if reduction == MEAN else found
        else:
            found = getattr(ops, f"{self.name}_backward")(grad, input, target, reduction, p)
        return (found if wanted[0] else None), (-found if wanted[1] else None)


def _kept_within(gap: Any, edge: float) -> Any:
    """The gap from -edge to edge. Its own slope is 0 at the edges, where `clamp` has 1."""
    return ops.where(ops.abs(gap) < edge, gap, gap.detach().clamp(-edge, edge))


HUBER_LOSS = DifferenceLoss("huber_loss", "huber_cpu", HUBER, _kept_within, like_input=True)
SMOOTH_L1_LOSS = DifferenceLoss("smooth_l1_loss", "smooth_l1_cpu", SMOOTH,
                                lambda gap, beta: _kept_within(gap, beta) / beta)  # fmt: skip

internal("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
         devices="numbers", autocast="float32", backward={
    ("self", "target"): lambda grad, self, target, reduction, delta, wanted:  # noqa: PLW0108
          HUBER_LOSS.gradients(grad, self, target, reduction, delta, wanted),
})(HUBER_LOSS.forward)  # fmt: skip
internal("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
         " float delta) -> Tensor")(HUBER_LOSS.backward)  # fmt: skip
internal("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
         devices="numbers", autocast="float32", backward={
    ("self", "target"): lambda grad, self, target, reduction, beta, wanted:  # noqa: PLW0108
          SMOOTH_L1_LOSS.gradients(grad, self, target, reduction, beta, wanted),
})(SMOOTH_L1_LOSS.forward)  # fmt: skip
internal("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
         " float beta) -> Tensor")(SMOOTH_L1_LOSS.backward)  # fmt: skip


@functional()
def functional_smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """`0.5 d**2 / beta` where `d = |input - target|` is below `beta`, else `d - 0.5 beta`.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.0]), torch.tensor([3.0]))
    tensor(2.5000)
    """
    input, target = of_one_size(input, target)
    code = reduction_of(size_average, reduce, reduction)
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return ops.l1_loss(input, target, code)
    return ops.smooth_l1_loss(input, target, code, beta)


def _check_delta(delta: Any) -> None:
    if isinstance(delta, (complex, str)):
        raise TypeError("huber_loss(): argument 'delta' (position 4) must be float, not "
                        f"{type(delta).__name__}")  # fmt: skip
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")


@functional()
def functional_huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """`0.5 d**2` where `d = |input - target|` is at most `delta`, else `delta (d - 0.5 delta)`.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([0.0]), torch.tensor([3.0]))
    tensor(2.5000)
    """
    one, other = of_one_size(input, target)
    if EAGER:
        _check_delta(delta)
    if weight is not None:
        losses = ops.huber_loss(one, other, NONE, delta)
        if reduction == "mean":  # by their number, unlike the other losses
            return _weighted(losses, weight, "none", input).mean()
        return _weighted(losses, weight, reduction, input)
    return ops.huber_loss(one, other, reduction_code(reduction), delta)


@composite(
    "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    autocast="float32",
    method=False,
    function=False,
)
def l1_loss(input: Any, target: Any, reduction: int = NONE) -> Any:
    """`|input - target|`, its mean or its sum."""
    return reduced((input - target).abs(), reduction)


@functional()
def functional_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """Absolute differences: all ("none"), their mean or their sum.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0]), torch.tensor([3.0]))
    tensor(2.)
    """
    one, other = of_one_size(input, target)  # none counts as a number beside the other
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        return _weighted((one - other).abs(), weight, reduction, input)
    return ops.l1_loss(one, other, reduction_code(reduction))
