"""Losses of two classes: binary cross-entropy of probabilities and of scores, soft margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.elementwise.arithmetic import NO_BOOL_NEGATION, NO_BOOL_SUBTRACTION
from flambeau._ops.launching.memory_formats import in_order_of
from flambeau._ops.launching.precision import narrow, refuse
from flambeau._ops.losses.elementwise import (
    MEAN,
    NONE,
    SUM,
    common,
    factor_of,
    kernels_for,
    mean_or_sum,
    promoted,
    reduce_array,
    reduction_of,
    scaled_gradient,
)
from flambeau._ops.rows.losses import LOGIT, PROBABILITY
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import functional, internal, kernel
from flambeau._ops.table.outputs import check_cast, check_inplace_shape
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad

FLOATS = "fV"
"""Kinds of NumPy types that are floats: bfloat16 is none to NumPy."""

# ---- binary cross-entropy of probabilities

WORK = "loss function"
"""What `choice` calls losses of logarithms."""
LOG_FLOOR = -100.0
"""Logarithms are cut off here, so that a probability of 0 does not give an infinite loss."""


def _share(grad: Any, reduction: int, count: int) -> Any:
    return grad / max(count, 1) if reduction == MEAN else grad


def _bce_gradients(grad: Any, self: Any, target: Any, weight: Any, reduction: int,
                   wanted: Any) -> Any:  # fmt: skip
    of_self = of_target = None
    if wanted[0] and wants_grad((grad, self, target)):
        slope = ops._binary_cross_entropy_slope(self, target)
        of_self = _share(grad * slope, reduction, self.numel())
        of_self = of_self if weight is None else of_self * weight
    elif wanted[0]:
        of_self = ops.binary_cross_entropy_backward(grad, self, target, weight, reduction)
    if wanted[1]:
        of_target = _share(((1 - self).log() - self.log()) * grad, reduction, self.numel())
        of_target = of_target if weight is None else of_target * weight
    return of_self, of_target


def _spread(self: Any) -> Any:
    return (1 - self) * self + 1e-12


@internal(
    "_binary_cross_entropy_slope(Tensor self, Tensor target) -> Tensor",
    batch="elements",
    node="BinaryCrossEntropyBackwardBackward0",
    backward={
        "self": lambda grad, self, target: (
            grad * (self * self - 2 * self * target + target) / _spread(self) ** 2
        ),
        "target": lambda grad, self: -grad / _spread(self),
    },
)
def binary_cross_entropy_slope(self: np.ndarray, target: np.ndarray) -> Any:
    """`(input - target) / max(input * (1 - input), 1e-12)`.

    The slope of this leaves out what the 1e-12 would add, so that it is 0 where a probability of
    exactly 0 or 1 is right.
    """
    return (self - target) / np.maximum((1 - self) * self, self.dtype.type(1e-12))


def _check_unit(values: np.ndarray, name: str) -> None:
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise RuntimeError(f"all elements of {name} should be between 0 and 1")


def _check_same_type(self: np.ndarray, *others: np.ndarray | None) -> None:
    for other in others:
        if other is not None and other.dtype != self.dtype:
            words = [dt.from_numpy_dtype(a.dtype).scalar_name for a in (other, self)]
            raise RuntimeError(f"Found dtype {words[0]} but expected {words[1]}")


@internal(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean)"
    " -> Tensor",
    autocast="cpu=float32 cuda=banned",
    constants={"weight": "binary_cross_entropy"},
    backward={("self", "target"): _bce_gradients},
)
def binary_cross_entropy(self: np.ndarray, target: np.ndarray, weight: np.ndarray | None,
                         reduction: int) -> Any:  # fmt: skip
    """`-(target * log(input) + (1 - target) * log(1 - input))`, logarithms at least -100."""
    _check_same_type(self, target, weight)
    (x, t, w), result = common([self, target, weight], "binary_cross_entropy")
    kernels = kernels_for(x, t, work=WORK) if w is None and reduction != NONE else None
    total = None if kernels is None else kernels.binary_cross_entropy(x, t)
    if total is not None:
        return mean_or_sum(total, x.size, reduction, result)
    _check_unit(x, "input")
    _check_unit(t, "target")
    values = (t - 1) * np.maximum(np.log1p(-x), LOG_FLOOR)
    values -= t * np.maximum(np.log(x), LOG_FLOOR)
    if w is not None:
        values = values * w
    found = reduce_array(np.asarray(values), reduction, result)
    return in_order_of(found, self) if reduction == NONE else found


@internal(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target,"
    " Tensor? weight=None, int reduction=Mean) -> Tensor",
)
def binary_cross_entropy_backward(grad_output: np.ndarray, self: np.ndarray, target: np.ndarray,
                                  weight: np.ndarray | None, reduction: int) -> Any:  # fmt: skip
    """`(input - target) / max(input * (1 - input), 1e-12)` times weight and gradient."""
    (x, t, w), result = common([self, target, weight], "binary_cross_entropy")
    kernels = kernels_for(x, t, work=WORK) if w is None and not grad_output.ndim else None
    if kernels is not None:
        factor = factor_of(grad_output, x.size, reduction)
        return narrow(kernels.loss_slope(PROBABILITY, (x, t), factor), result)
    slope = (x - t) / np.maximum((1 - x) * x, 1e-12)
    slope = slope if w is None else slope * w
    return scaled_gradient(slope, grad_output, reduction, result, self)


@functional()
def functional_binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Binary cross-entropy of probabilities `input` and `target` of one shape.

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    code = reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(_weight_shape(target.size(), weight.size()))
    return ops.binary_cross_entropy(input, target, weight, code)


def _weight_shape(target: list[int], weight: list[int]) -> list[int]:
    """The broadcast shape, or torch's error from the comparison of the shapes."""
    length = max(len(target), len(weight))
    shape = [1] * (length - len(target)) + list(target)
    for back in range(1, len(weight) + 1):
        have, size = shape[-back], weight[-back]
        if have != size and 1 not in (have, size):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {size} at {-back}! Mismatching "
                f"argument at index 1 had torch.Size({list(weight)}); but expected shape should be "
                f"broadcastable to {list(target)}"
            )
        shape[-back] = size if have == 1 else have
    return shape


# ---- binary cross-entropy of scores


def _sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)  # type: ignore[no-any-return]


def _logit_gradients(grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any,
                     reduction: int, wanted: Any) -> Any:  # fmt: skip
    of_self = of_target = None
    if wanted[0] and wants_grad((grad, self, target)):
        of_self = _composed_logit_slope(self, target, pos_weight) * grad
        of_self = _share(of_self, reduction, of_self.numel())
        of_self = of_self if weight is None else of_self * weight
    elif wanted[0]:
        of_self = ops._binary_cross_entropy_with_logits_backward(
            grad, self, target, weight, pos_weight, reduction
        )
    if wanted[1]:
        of_target = _logit_target_slope(self, pos_weight) * grad
        of_target = _share(of_target, reduction, ops.broadcast_to(self, target.shape).numel())
        of_target = of_target if weight is None else of_target * weight
    return of_self, of_target


def _composed_logit_slope(self: Any, target: Any, pos_weight: Any) -> Any:
    sigmoid = ops.sigmoid(self)
    if pos_weight is None:
        return sigmoid - target
    raised = target * pos_weight
    return (raised + 1 - target) * sigmoid - raised


def _logit_target_slope(self: Any, pos_weight: Any) -> Any:
    if pos_weight is None:
        return -self
    positive = ops.nn.functional.logsigmoid(self)
    return ops.nn.functional.logsigmoid(-self) - pos_weight * positive


@kernel(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None,"
    " Tensor? pos_weight=None, int reduction=Mean) -> Tensor",
    method=False,
    autocast="float32",
    constants=dict.fromkeys(("weight", "pos_weight"), "binary_cross_entropy_with_logits"),
    backward={("self", "target"): _logit_gradients},
)
def binary_cross_entropy_with_logits(self: np.ndarray, target: np.ndarray,
                                     weight: np.ndarray | None, pos_weight: np.ndarray | None,
                                     reduction: int) -> Any:  # fmt: skip
    """Binary cross-entropy of `sigmoid(input)`: `(1 - t) x + (1 + (p - 1) t) softplus(-x)`.

    Shapes of input, target and weights broadcast; reductions (1: mean, 2: sum) give shape ().

    >>> import flambeau as torch
    >>> torch.binary_cross_entropy_with_logits(torch.tensor([0., 2.]), torch.tensor([1., 1.]))
    tensor([0.6931, 0.1269])
    """
    if self.dtype.kind not in FLOATS:
        raise refuse("log_sigmoid_cpu", self.dtype)
    if target.dtype.kind == "b":
        raise NO_BOOL_SUBTRACTION["bool"]
    if self.dtype != target.dtype:
        check_cast(self.dtype, target.dtype)
    reduction = reduction if reduction in (MEAN, SUM) else NONE
    arrays, _ = common([self, target, weight, pos_weight], "binary_cross_entropy_with_logits")
    for array in arrays:
        if array is not None and array.shape != target.shape:
            _check_written(target, array)
    if pos_weight is not None and self.shape != target.shape:
        _check_written(self, target)
    x, t, w, positive = arrays
    result = target.dtype  # as in torch, which writes the terms over `1 - target`
    plain = w is None and positive is None and reduction != NONE
    kernels = kernels_for(x, t, work=WORK) if plain else None
    if kernels is not None:
        return mean_or_sum(kernels.loss_total(LOGIT, (x, t)), x.size, reduction, result)
    values = np.log1p(np.exp(-np.abs(x)))
    values = values + np.maximum(-x, 0)  # softplus(-x) without overflow
    if positive is not None:
        values = values * ((positive - 1) * t + 1)
    values = values + (1 - t) * x
    if w is not None:
        values = values * w
    found = reduce_array(np.asarray(values), reduction, result)
    return in_order_of(found, target) if reduction == NONE else found


def _check_written(mine: np.ndarray, other: np.ndarray) -> None:
    """Terms are written over one of the target's shape; those with weights of positives before over
    one of the input's."""
    check_inplace_shape(mine.shape, broadcast_shape([mine.shape, other.shape]))


@internal(
    "_binary_cross_entropy_with_logits_backward(Tensor grad_output, Tensor self, Tensor target,"
    " Tensor? weight, Tensor? pos_weight, int reduction) -> Tensor",
)
def logits_backward(grad_output: np.ndarray, self: np.ndarray, target: np.ndarray,
                    weight: np.ndarray | None, pos_weight: np.ndarray | None,
                    reduction: int) -> Any:  # fmt: skip
    """`(1 + (p - 1) t) sigmoid(x) - p t` times weight and gradient."""
    arrays, _ = common([self, target, weight, pos_weight], "binary_cross_entropy_with_logits")
    x, t, w, positive = arrays
    result = self.dtype
    plain = w is None and positive is None and not grad_output.ndim
    kernels = kernels_for(x, t, work=WORK) if plain else None
    if kernels is not None:
        factor = factor_of(grad_output, x.size, reduction)
        return narrow(kernels.loss_slope(LOGIT, (x, t), factor), result)
    slope = _sigmoid(x)
    if positive is None:
        slope = slope - t
    else:
        raised = t * positive
        slope = (raised + 1 - t) * slope - raised
    slope = slope if w is None else slope * w
    return scaled_gradient(np.asarray(slope), grad_output, reduction, result, self)


@functional()
def functional_binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Binary cross-entropy of scores, stable for large ones; `pos_weight` scales targets of 1.

    Input and target have one shape, which is also that of the result without reduction, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.0]),
    ...     torch.tensor([1.0]))
    tensor(0.6931)
    """
    code = reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


# ---- soft margin


@internal(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    autocast="float32",
    constants={"target": "soft_margin_loss"},
    backward={
        "self": lambda grad, self, target, reduction: _share(
            -target * ops.sigmoid(-target * self) * grad, reduction, (self * target).numel()
        ),
    },
)
def soft_margin_loss(self: np.ndarray, target: np.ndarray, reduction: int) -> Any:
    """`log(1 + exp(-target * input))`, in the input's type."""
    _check_soft_margin(self, target)
    (x, t), _ = common([self, target], "soft_margin_loss")
    margin = -t * x
    values = np.log1p(np.exp(-np.abs(margin))) + np.maximum(margin, 0)
    found = reduce_array(np.asarray(values), reduction, self.dtype)
    return in_order_of(found, self) if reduction == NONE else found


def _check_soft_margin(self: np.ndarray, target: np.ndarray) -> None:
    if self.dtype.kind == "b":
        raise NO_BOOL_NEGATION["bool"]
    shape = broadcast_shape([self.shape, target.shape])
    if shape != self.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast "
                           f"shape {list(shape)}")  # fmt: skip
    result = promoted([self, target])
    check_cast(result if result.kind in FLOATS else np.dtype(np.float32), self.dtype)


@functional()
def functional_soft_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """`log(1 + exp(-target * input))` with targets 1 and -1.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0., 2.]), torch.tensor([1., 1.]))
    tensor(0.4100)
    """
    code = reduction_of(size_average, reduce, reduction)
    return ops.soft_margin_loss(input, target, code)
