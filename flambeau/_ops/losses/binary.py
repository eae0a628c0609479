"""Losses of probabilities and densities: binary cross-entropy, KL divergence, likelihoods."""

from __future__ import annotations

import math
import warnings
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
    legacy_reduction,
    mean_or_sum,
    promoted,
    reduce_array,
    reduced,
    reduction_code,
    reduction_of,
    scaled_gradient,
)
from flambeau._ops.rows.losses import LOGIT, PROBABILITY
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal, kernel
from flambeau._ops.table.outputs import check_cast, check_inplace_shape
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad
from flambeau._ops.table.scalars import checked_number
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor

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


# ---- composed losses


def _check_divergence(tensor: Any) -> None:
    if tensor.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not tensor.is_floating_point():
        raise RuntimeError("kl_div: Integral inputs not supported.")


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    autocast="float32",
    method=False,
)
def kl_div(input: Any, target: Any, reduction: int = NONE, *, log_target: bool = False) -> Any:
    """`target * (log(target) - input)`; `input` holds log-probabilities, `target` too if said.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]))
    tensor([0.6931, 0.0000])
    """
    for tensor in (input, target):
        _check_divergence(tensor)
    if log_target:
        values = target.exp() * (target - input)
    else:
        product = target * input  # first: as in PyTorch, its gradient is taken last
        values = ops.xlogy(target, target) - product
    return reduced(values, reduction)


@functional()
def functional_kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """Kullback-Leibler divergence; "batchmean" divides the sum by the batch size.

    >>> import flambeau as torch
    >>> torch.nn.functional.kl_div(torch.tensor([0.5]).log(), torch.tensor([0.5]),
    ...     reduction="sum")
    tensor(0.)
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    batchmean = reduction == "batchmean"
    code = reduction_of(size_average, reduce, "sum" if batchmean else reduction)
    result = ops.kl_div(input, target, code, log_target=log_target)
    return result / input.size()[0] if batchmean and input.dim() else result


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps,"
    " int reduction) -> Tensor",
    autocast="float32",
    method=False,
)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """Minus the log-likelihood of Poisson counts; `full` adds Stirling's term for large targets.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> rates, counts = torch.tensor([0., 1.]), torch.tensor([1., 2.])
    >>> torch.poisson_nll_loss(rates, counts, True, False, 1e-8, 1)
    tensor(0.8591)
    """
    if log_input:
        weighted = target * input  # before exp, as in torch: its gradient is the second to arrive
        values = input.exp() - weighted
    else:
        values = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = values + stirling.masked_fill(target <= 1, 0).to(values.dtype)
    return reduced(values, reduction)


@functional()
def functional_poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of counts `target` at rates `input` (or their logarithms).

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> log_rates, counts = torch.tensor([0., 1.]), torch.tensor([1., 2.])
    >>> torch.nn.functional.poisson_nll_loss(log_rates, counts)
    tensor(0.8591)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "elementwise_mean":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    code = reduction_code(reduction)
    require_tensor("poisson_nll_loss", "target", 2, target)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, code)


def _variance(input: Any, var: Any) -> Any:
    """The variance as a tensor that broadcasts to the input."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * ops.ones_like(input)
    if (numbers_under(var._data) < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() == input.size():
        return var
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    pairs = zip(input.shape, var.shape, strict=False)
    different = [size for have, size in pairs if have != size]
    if var.dim() != input.dim() or different != [1]:  # one variance for all of a single dim
        raise ValueError("var is of incorrect size")
    return var


@functional()
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """`0.5 * (log(var) + (input - target)**2 / var)`, with variances of at least `eps`.

    Shapes: input, target and var (*), or var without the last dim, or with size 1 there.

    >>> import flambeau as torch
    >>> mean, value, var = torch.tensor([1., 2.]), torch.tensor([1., 4.]), torch.tensor([1., 1.])
    >>> torch.nn.functional.gaussian_nll_loss(mean, value, var)
    tensor(1.)
    """
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var + (var.detach().clamp_min(eps) - var.detach())  # the gradient passes the limit
    gap = input - target
    values = 0.5 * (var.log() + gap * gap / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return reduced(values, {"none": 0, "mean": 1, "sum": 2}[reduction])


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean)"
    " -> Tensor",
    autocast="float32",
    method=False,
)
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, reduction: int = NONE
) -> Any:
    """`input` where the target is 1, `max(0, margin - input)` where it is -1.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.hinge_embedding_loss(torch.tensor([0.2, 0.4]), torch.tensor([1, -1]))
    tensor([0.2000, 0.6000])
    """
    if input._data.dtype.kind == "b":
        raise NO_BOOL_SUBTRACTION["bool"]
    if input._data.dtype.kind in "iu":
        checked_number(margin, input._data.dtype)
    zeros = ops.zeros_like(input)
    # torch writes the margin into memory of the input's type, and takes the input away from it
    distances = (ops.full_like(input, float(margin)) - input).clamp_min(0)
    far = ops.where(target != 1, distances, zeros)
    near = ops.where(target != -1, input, zeros)
    return reduced(far + near, reduction)


@functional()
def functional_hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Loss of distances: near for targets 1, at least `margin` apart for targets -1.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.2, 0.4]), torch.tensor([1, -1]))
    tensor(0.4000)
    """
    code = reduction_of(size_average, reduce, reduction)
    return ops.hinge_embedding_loss(input, target, margin, code)
