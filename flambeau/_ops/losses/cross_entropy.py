"""Cross-entropy, of class indices and of probabilities.

With class indices it is one kernel: softmax, logarithm and selection together. It keeps the
greatest score and the sum of each row, from which its gradient is one exponential.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from flambeau._core.autocast import settings
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.losses.elementwise import MEAN, NONE, reduced, reduction_of
from flambeau._ops.losses.likelihood import UNSETTLED
from flambeau._ops.losses.targets import (
    Targets,
    check_targets,
    flat_scores,
    pick,
    put,
    reduce_losses,
    row_factor,
)
from flambeau._ops.reductions.sums import fused
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.pointwise import wants_grad
from flambeau._tensor.examples import is_near, numbers_under

HALVES = "eE"


def _cross_entropy_gradient(grad: Any, self: Any, target: Any, weight: Any, reduction: int,
                            ignore_index: int, result1: Any) -> Any:  # fmt: skip
    if not wants_grad((grad, self)):
        return ops._cross_entropy_backward(
            grad, self, target, weight, result1, reduction, ignore_index
        )
    likelihoods = ops.log_softmax(self, min(1, self.dim() - 1))
    of_likelihoods = ops.nll_loss_backward(
        grad, target, weight, tuple(self.shape), reduction, ignore_index
    )
    return ops._log_softmax_backward_data(
        of_likelihoods, likelihoods, min(1, self.dim() - 1), self.dtype
    )


def _cross_entropy_parts(likelihood: str, self: Any, target: Any, weight: Any, reduction: int,
                         ignore_index: int) -> tuple[Any, Any]:  # fmt: skip
    """The loss as ATen makes it, in place of both results."""
    scores = ops.log_softmax(self, min(1, self.dim() - 1))
    loss = getattr(ops, likelihood)(scores, target, weight, reduction, ignore_index)
    return loss, loss


def _cross_entropy_row(name: str, node: str, likelihood: str) -> None:
    kernel(f"{name}(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index)"
           " -> (Tensor, Tensor)", method=False, function=False, node=node, autocast="float32",
           nondifferentiable=("result1",), constants={"weight": f"{likelihood}_forward"},
           decomposition=partial(_cross_entropy_parts, likelihood),
           device_check=f"{likelihood}_forward",
           nondeterministic=UNSETTLED if name.endswith("2d") else "",
           saved_names={"result1": None}, backward={"self": _cross_entropy_gradient},
    )(_cross_entropy)  # fmt: skip


def _cross_entropy(self: np.ndarray, target: np.ndarray, weight: np.ndarray | None,
                   reduction: int, ignore_index: int) -> tuple[Any, np.ndarray]:  # fmt: skip
    """The loss, and the greatest score and the sum of exponentials of each position."""
    if self.dtype.kind not in "fV":
        raise refuse("log_softmax_lastdim_kernel_impl", self.dtype)
    kernels = fused("softmax", self)
    shape = () if self.ndim == 1 else target.shape
    if kernels is not None:
        scores, flat = flat_scores(self, target)
        targets = Targets(flat, weight, ignore_index, scores.shape[1])
        losses, row_data = kernels.cross_entropy(scores, targets.indices)
        return reduce_losses(losses, targets, reduction, shape, self.dtype), row_data
    scores, flat = flat_scores(widen(self), target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    greatest = np.maximum.reduce(scores, 1, keepdims=True)
    shifted = scores - greatest
    chosen = pick(shifted, targets.indices)
    np.exp(shifted, out=shifted)
    total = np.add.reduce(shifted, 1)
    losses = np.log(total)
    losses -= chosen
    result = reduce_losses(losses, targets, reduction, shape, self.dtype)
    row_data = np.empty((2, *total.shape), total.dtype)
    row_data[0], row_data[1] = greatest[:, 0], total
    return result, row_data


_cross_entropy_row("_cross_entropy", "NllLossBackward0", "nll_loss")
_cross_entropy_row("_cross_entropy2d", "NllLoss2DBackward0", "nll_loss2d")


def _widened_gradient(grad: Any, self: Any, target: Any, reduction: int, ignore_index: int,
                      result1: Any) -> Any:  # fmt: skip
    if wants_grad((grad, self)):
        wide = self.float() if self._data.dtype.char in HALVES else self
        given = grad, wide, target, None, reduction, ignore_index, None
        return _cross_entropy_gradient(*given).to(self.dtype)
    return ops._cross_entropy_backward(grad, self, target, None, result1, reduction, ignore_index)


@kernel(
    "_cross_entropy_of_halves(Tensor self, Tensor target, int reduction, int ignore_index)"
    " -> (Tensor, Tensor)",
    method=False,
    function=False,
    node="NllLossBackward0",
    nondifferentiable=("result1",),
    backward={"self": _widened_gradient},
)
def cross_entropy_of_halves(self: np.ndarray, target: np.ndarray, reduction: int,
                            ignore_index: int) -> tuple[Any, np.ndarray]:  # fmt: skip
    """The loss of scores of half types in float32, without a copy of them in that type."""
    return _cross_entropy(widen(self), target, None, reduction, ignore_index)


def _are_halves_to_widen(input: Any, weight: Any) -> bool:
    """Whether autocast on a GPU would make float32 of scores, which kernels there do by
    themselves."""
    halves = input._data.dtype.char in HALVES and weight is None
    return halves and settings.enabled["cuda"] and input.is_cuda


@kernel(
    "_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight,"
    " Tensor row_data, int reduction, int ignore_index) -> Tensor",
    method=False,
    function=False,
)
def cross_entropy_backward(grad: np.ndarray, self: np.ndarray, target: np.ndarray,
                           weight: np.ndarray | None, row_data: np.ndarray, reduction: int,
                           ignore_index: int) -> np.ndarray:  # fmt: skip
    """`(softmax - one_hot) * weight * grad`, divided by the sum of weights for a mean."""
    kernels = fused("softmax", self)
    scores, flat = flat_scores(self if kernels is not None else widen(self), target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    factor = row_factor(grad, targets, reduction, row_data.dtype)
    if kernels is not None:
        result = kernels.cross_entropy_backward(scores, targets.indices, row_data, factor,
                                                self.dtype)  # fmt: skip
        _clear_ignored(result, targets)
        return _like(result, self)
    greatest, total = row_data
    result = np.subtract(scores, greatest[:, None], order="C")
    np.exp(result, out=result)
    result *= np.divide(factor, total)[:, None]
    put(result, targets.indices, -factor)
    _clear_ignored(result, targets)
    return _like(narrow(result, self.dtype), self)


def _clear_ignored(result: np.ndarray, targets: Targets) -> None:
    """Ignored positions have no gradient, whatever their scores are."""
    if targets.ignored is not None:
        np.copyto(result, 0, where=np.expand_dims(targets.ignored, 1))


def _like(result: np.ndarray, shaped: np.ndarray) -> np.ndarray:
    if result.shape == shaped.shape:
        return result
    reshaped = np.empty(shaped.shape, result.dtype)
    reshaped.reshape(result.shape)[...] = result
    return reshaped


def _indexed_cross_entropy(input: Any, target: Any, weight: Any, code: int,
                           ignore_index: int) -> Any:  # fmt: skip
    check_targets(input, target, weight)
    if not input._data.shape[-1] and input._data.ndim <= 2:  # no classes: no greatest score
        return ops.nll_loss(ops.log_softmax(input, -1), target, weight, code, ignore_index)
    if input._data.ndim <= 2:
        if _are_halves_to_widen(input, weight):
            return ops._cross_entropy_of_halves(input, target, code, ignore_index)[0]
        return ops._cross_entropy(input, target, weight, code, ignore_index)[0]
    return ops._cross_entropy2d(input, target, weight, code, ignore_index)[0]


def _smoothed_cross_entropy(input: Any, target: Any, weight: Any, code: int, ignore_index: int,
                            smoothing: float) -> Any:  # fmt: skip
    """Part of the weight goes to all classes alike."""
    check_targets(input, target, weight)
    dim = min(1, input.dim() - 1)
    classes = input.shape[dim]
    likelihoods = ops.log_softmax(input, dim)
    chosen = ops.nll_loss(likelihoods, target, weight, code, ignore_index)
    scaled = likelihoods if weight is None else likelihoods * _class_shape(weight, input.dim(), dim)
    ignored = target == ignore_index
    spread = ops.masked_fill(-scaled.sum(dim), ignored, 0.0)
    if code == MEAN:
        spread = spread.sum() / _total_weight(target, weight, ignore_index)
    else:
        spread = reduced(spread, code)
    return chosen * (1 - smoothing) + spread * (smoothing / classes)


def _class_shape(weight: Any, ndim: int, dim: int) -> Any:
    return weight.view([-1 if d == dim else 1 for d in range(ndim)])


def _total_weight(target: Any, weight: Any, ignore_index: int) -> Any:
    """The weights of what counts; a tensor where the numbers are on a device."""
    if not is_near(target._data):
        counts = target != ignore_index
        if weight is None:
            return counts.sum()
        return (weight.float()[ops.where(counts, target, 0)] * counts).sum()
    numbers = numbers_under(target._data)
    kept = numbers[numbers != ignore_index]
    if weight is None:
        return int(kept.size)
    return float(widen(numbers_under(weight._data))[kept].sum())


def _probability_cross_entropy(input: Any, target: Any, weight: Any, code: int,
                               smoothing: float) -> Any:  # fmt: skip
    """Targets that are probabilities of all classes."""
    dim = min(1, input.dim() - 1)
    classes = input._data.shape[dim] if input.dim() else 1
    if target._data.dtype.kind not in "fV":
        raise RuntimeError("Expected floating point type for target with class probabilities, got "
                           f"{target.dtype.scalar_name}")  # fmt: skip
    if weight is not None and weight._data.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight._data.shape)}"
        )
    likelihoods = ops.log_softmax(input, dim)
    smoothing = _smoothing(smoothing)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    weighted = likelihoods * target
    if weight is not None:
        weighted = weighted * _class_shape(weight, input.dim(), dim)
    if code == NONE:
        return -weighted.sum(dim)
    total = -weighted.sum()
    if code != MEAN:
        return total
    return total / (input.numel() // classes) if classes else total * math.nan


def _smoothing(given: float) -> float:
    """How much classes are smoothed: torch takes negative numbers for none."""
    if given > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {given:g}")
    return max(given, 0.0)


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
    " int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    method=False,
    function=False,
    autocast="cpu=float32",
)
def cross_entropy_loss(input: Any, target: Any, weight: Any = None, reduction: int = NONE,
                       ignore_index: int = -100, label_smoothing: float = 0.0
                       ) -> Any:  # fmt: skip
    """Cross-entropy of scores and classes, or probabilities of the shape of the scores."""
    try:
        if input._data.shape == target._data.shape:
            if ignore_index >= 0 and target._data.dtype.kind in "fV":
                raise RuntimeError("ignore_index is not supported for floating point target")
            return _probability_cross_entropy(input, target, weight, reduction, label_smoothing)
        if _smoothing(label_smoothing):
            return _smoothed_cross_entropy(
                input, target, weight, reduction, ignore_index, label_smoothing
            )
        return _indexed_cross_entropy(input, target, weight, reduction, ignore_index)
    except AttributeError as error:
        values = (input, target, weight, reduction, ignore_index, label_smoothing)
        raise explained(cross_entropy_loss, values, error) from None


@composite(
    "cross_entropy(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None,"
    " int ignore_index=-100, bool? reduce=None, str reduction='mean',"
    " float label_smoothing=0.0) -> Tensor",
    namespace="nn.functional",
    autocast="cpu=float32",
)
def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:  # fmt: skip
    """Cross-entropy of scores [C], [N, C] or [N, C, *].

    `target` holds class indices ([], [N] or [N, *], int64 or uint8) or probabilities (the shape
    of `input`, floating point).

    >>> import flambeau as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """
    code = reduction_of(size_average, reduce, reduction)
    return cross_entropy_loss.body(input, target, weight, code, ignore_index, label_smoothing)
