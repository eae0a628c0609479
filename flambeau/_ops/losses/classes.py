"""Losses of class scores: negative log-likelihood, cross-entropy and the margin losses.

`cross_entropy` with class indices is one kernel: softmax, logarithm and selection together. It
keeps the greatest score and the sum of each row, from which its gradient is one exponential.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.autocast import settings
from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.losses.elementwise import MEAN, NONE, reduced, reduction_of
from flambeau._ops.reductions.sums import fused
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, kernel
from flambeau._ops.table.pointwise import wants_grad
from flambeau._tensor.examples import numbers_under

INT64 = np.dtype(np.int64)
HALVES = "eE"

# ---- what class targets mean


class Targets:
    """Class indices flattened beside scores of shape [N, C, S], and the weight of each.

    `indices` has the ignored ones replaced by class 0; `weights` is None where all are 1.
    """

    __slots__ = ("count", "ignored", "indices", "weights")

    def __init__(self, target: np.ndarray, weight: np.ndarray | None, ignore_index: int,
                 classes: int) -> None:  # fmt: skip
        self.indices = target
        self.weights: np.ndarray | None = None
        self.ignored: np.ndarray | None = None
        self.count: Any = target.size
        if ignore_index >= 0 or _out_of_range(target, classes):
            self._ignore(target == ignore_index)
            self._check(target, ignore_index, classes)
        if weight is not None:
            chosen = widen(weight)[self.indices]
            self.weights = chosen if self.weights is None else chosen * self.weights
        if self.weights is not None:
            self.count = self.weights.sum()

    def _ignore(self, ignored: np.ndarray) -> None:
        if ignored.any():
            self.ignored = ignored
            self.indices = np.where(ignored, 0, self.indices)
            self.weights = np.where(ignored, np.float32(0), np.float32(1))

    def _check(self, target: np.ndarray, ignore_index: int, classes: int) -> None:
        indices = self.indices
        if _out_of_range(indices, classes):
            wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
            if not wrong.any():  # there are no classes, and all targets are ignored
                return
            raise IndexError(f"Target {target[wrong].flat[0]} is out of bounds.")


def _out_of_range(indices: np.ndarray, classes: int) -> bool:
    """Whether an index is negative or too large: as unsigned numbers negative ones are large."""
    if not indices.size:
        return False
    unsigned = indices.view(np.uint64) if indices.itemsize == 8 else indices
    return unsigned.item(unsigned.argmax()) >= classes  # type: ignore[no-any-return]


def flat_scores(scores: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores as [N, C] or [N, C, S], and targets as [N] or [N, S]."""
    if scores.ndim == 1:
        return scores.reshape(1, -1), target.reshape(1)
    if scores.ndim == 2:
        return scores, target
    batch, classes = scores.shape[:2]
    spatial = math.prod(scores.shape[2:])
    return scores.reshape(batch, classes, spatial), target.reshape(batch, spatial)


def numbers_to(count: int) -> np.ndarray:
    """0 to count - 1, which nobody writes to; few are remembered."""
    return _few_numbers(count) if count <= FEW else np.arange(count)


FEW = 4096
_few_numbers = lru_cache(64)(np.arange)


def pick(values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The value of each target's class: [N, C(, S)] by [N(, S)]. Without classes all targets are
    ignored ones, whose value is no matter."""
    if not values.shape[1]:
        return np.zeros(indices.shape, values.dtype)
    if values.ndim == 2:
        return values[numbers_to(values.shape[0]), indices]  # type: ignore[no-any-return]
    rows, columns = numbers_to(values.shape[0]), numbers_to(values.shape[2])
    return values[rows[:, None], indices, columns]  # type: ignore[no-any-return]


def put(values: np.ndarray, indices: np.ndarray, amount: Any) -> None:
    """Add an amount at each target's class, in place."""
    if not values.shape[1]:
        return
    if values.ndim == 2:
        values[np.arange(values.shape[0]), indices] += amount
        return
    rows, columns = np.ogrid[: values.shape[0], : values.shape[2]]
    values[rows, indices, columns] += amount


def _reduce(losses: np.ndarray, targets: Targets, reduction: int, shape: Any, dtype: Any) -> Any:
    if targets.weights is not None:
        losses = losses * targets.weights
    if targets.ignored is not None:
        losses[targets.ignored] = 0  # whatever the scores there are: 0 * inf is not 0
    if reduction == NONE:
        return narrow(np.ascontiguousarray(losses), dtype).reshape(shape)
    total = np.add.reduce(losses, None)
    if reduction == MEAN:
        count = targets.count
        total = total / (count if count.__class__ is int else losses.dtype.type(count))
    return total if total.dtype == dtype else np.asarray(total, dtype)


def _row_factor(grad: np.ndarray, targets: Targets, reduction: int, dtype: Any) -> Any:
    """What the gradient of each position's loss is multiplied by: [N(, S)] or 0-dim."""
    factor = widen(grad).reshape(targets.indices.shape) if reduction == NONE else widen(grad)
    if reduction == MEAN:
        factor = factor / dtype.type(targets.count)
    if targets.weights is not None:
        factor = factor * targets.weights.astype(dtype, copy=False)
    if targets.ignored is not None:
        factor = np.where(targets.ignored, dtype.type(0), factor)  # 0, however few there are
    return factor


# ---- checks in torch's words


def check_targets(input: Any, target: Any, weight: Any) -> None:
    """Shapes and types of scores [N, C, *], class indices [N, *] and class weights [C]."""
    shape, target_shape = input._data.shape, target._data.shape
    is_usual = len(shape) == 2 and target_shape == shape[:1] and weight is None
    if is_usual and target._data.dtype is INT64:
        return
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) != 1 and (not target_shape or shape[0] != target_shape[0]):
        size = target_shape[0] if target_shape else 0
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({size})."
        )
    if len(shape) <= 2:
        if len(target_shape) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if len(shape) == 1 and target_shape not in ((), (1,)):
            raise ValueError("For 1D input, 1D target must have size 1, but got target size: "
                             f"{target_shape[0]}")  # fmt: skip
    else:
        _check_spatial(shape, target_shape)
    if target.dtype not in (dt.int64, dt.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}"
        )
    if weight is not None:
        _check_weight(input, weight)


def _check_spatial(shape: Any, target_shape: Any) -> None:
    wanted = [shape[0], *shape[2:]]
    if list(target_shape) == wanted:
        return
    if len(shape) != 4:
        raise RuntimeError(f"Expected target size {wanted}, got {list(target_shape)}")
    if len(target_shape) != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{len(target_shape)}"
        )
    raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target_shape)}")


def _check_weight(input: Any, weight: Any) -> None:
    classes = input._data.shape[min(1, input._data.ndim - 1)]
    if weight._data.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight._data.shape)}"
        )
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}"
        )


# ---- negative log-likelihood


def _nll(self: np.ndarray, target: np.ndarray, weight: np.ndarray | None, reduction: int,
         ignore_index: int) -> Any:  # fmt: skip
    """Minus the score of each target's class, reduced: scores [N, C, *], targets [N, *]."""
    if self.dtype.kind not in "fV":
        raise refuse("nll_loss_out_frame", self.dtype)
    scores, flat = flat_scores(widen(self), target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    shape = () if self.ndim == 1 else target.shape
    losses = pick(scores, targets.indices)
    np.negative(losses, out=losses)
    return _reduce(losses, targets, reduction, shape, self.dtype)


def _nll_in_aten(name: str, self: Any, target: Any, weight: Any = None, reduction: int = 1,
                 ignore_index: int = -100) -> InAten:  # fmt: skip
    return InAten(name, (self, target, weight, reduction, ignore_index), pick=0)


UNSETTLED = ("nll_loss2d_forward_out_cuda_template", lambda given: given[3] != NONE)
"""What PyTorch calls the sum over an image's elements, whose order it leaves open."""


def _nll_row(name: str, node: str) -> None:
    kernel(f"{name}(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
           "int ignore_index=-100) -> Tensor", method=False, function=False, node=node,
           aten=partial(_nll_in_aten, f"{name}_forward"), device_check=f"{name}_forward",
           saved_names={"self_shape": None},
           nondeterministic=UNSETTLED if name.endswith("2d") else "",
           autocast="float32", constants={"weight": f"{name}_forward"}, backward={
        "self": lambda grad, self, self_shape, target, weight, reduction, ignore_index: beside(
            ops.nll_loss_backward(grad, target, weight, self_shape, reduction, ignore_index), self),
    })(_nll)  # fmt: skip


def _forward_row(name: str) -> None:
    @composite(f"{name}_forward(Tensor self, Tensor target, Tensor? weight, int reduction, "
               "int ignore_index) -> (Tensor output, Tensor total_weight)",
               method=False, function=False)  # fmt: skip
    def forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
        """ATen's name for the loss, and for the sum of the weights that it is divided by."""
        loss = getattr(ops, name)(self, target, weight, reduction, ignore_index)
        counted = target != ignore_index
        if reduction == NONE:
            return loss, self.new_zeros(())
        if weight is None:
            return loss, counted.sum().to(self.dtype)
        return loss, weight[ops.where(counted, target, 0)].mul(counted).sum()


_nll_row("nll_loss", "NllLossBackward0")
_nll_row("nll_loss2d", "NllLoss2DBackward0")
_forward_row("nll_loss")
_forward_row("nll_loss2d")


def _nll_second(grad: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The gradient is linear in the incoming one: its own is the same choice of elements."""
    return ops.nll_loss(grad, target, weight, reduction, ignore_index)


def _nll_backward_parts(grad_output: Any, target: Any, weight: Any, size: Any, reduction: int,
                        ignore_index: int) -> Any:  # fmt: skip
    """The gradient by public operators: minus the weights, put where the targets say."""
    counted = target != ignore_index
    indices = ops.where(counted, target, 0)
    weights = counted.to(grad_output.dtype) if weight is None else weight[indices] * counted
    share = grad_output / weights.sum() if reduction == MEAN else grad_output
    dim = min(1, len(size) - 1)
    values = (-(weights * share)).unsqueeze(dim)
    return grad_output.new_zeros(list(size)).scatter(dim, indices.unsqueeze(dim), values)


@kernel(
    "nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, int[] size,"
    " int reduction, int ignore_index) -> Tensor",
    method=False,
    function=False,
    decomposition=_nll_backward_parts,
    backward={
        "grad_output": _nll_second,
    },
)
def nll_loss_backward(grad: np.ndarray, target: np.ndarray, weight: np.ndarray | None, size: Any,
                      reduction: int, ignore_index: int) -> np.ndarray:  # fmt: skip
    """Zero but at each target's class, where it is minus its weight times the gradient."""
    result = np.zeros(size, grad.dtype)
    scores, flat = flat_scores(result, target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    factor = _row_factor(grad, targets, reduction, widen(result[:0]).dtype)
    put(scores, targets.indices, narrow(np.asarray(-factor), grad.dtype))
    return result


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
    " int ignore_index=-100) -> Tensor",
    method=False,
    function=False,
)
def nll_loss_nd(input: Any, target: Any, weight: Any = None, reduction: int = NONE,
                ignore_index: int = -100) -> Any:  # fmt: skip
    """Minus the score of each target's class: input [C], [N, C] or [N, C, *], target [N, *]."""
    try:
        check_targets(input, target, weight)
    except AttributeError as error:
        values = (input, target, weight, reduction, ignore_index)
        raise explained(nll_loss_nd, values, error) from None
    if input._data.ndim <= 2:
        return ops.nll_loss(input, target, weight, reduction, ignore_index)
    return ops.nll_loss2d(input, target, weight, reduction, ignore_index)


@composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None,"
    " int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
    namespace="nn.functional",
)
def functional_nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of each target: input [C], [N, C] or [N, C, *], target [N, *].

    Targets are numbers of classes; those that are `ignore_index` count nothing. `weight` [C] weighs
    classes. `reduction`: "mean" (over the weights of the targets), "sum", or "none" for [N, *].
    The input holds logarithms: `cross_entropy` takes scores.

    >>> import flambeau as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """
    code = reduction_of(size_average, reduce, reduction)
    return nll_loss_nd.body(input, target, weight, code, ignore_index)


# ---- cross-entropy


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
        return _reduce(losses, targets, reduction, shape, self.dtype), row_data
    scores, flat = flat_scores(widen(self), target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    greatest = np.maximum.reduce(scores, 1, keepdims=True)
    shifted = scores - greatest
    chosen = pick(shifted, targets.indices)
    np.exp(shifted, out=shifted)
    total = np.add.reduce(shifted, 1)
    losses = np.log(total)
    losses -= chosen
    result = _reduce(losses, targets, reduction, shape, self.dtype)
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
    factor = _row_factor(grad, targets, reduction, row_data.dtype)
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
        spread = spread.sum() / _total_weight(numbers_under(target._data), weight, ignore_index)
    else:
        spread = reduced(spread, code)
    return chosen * (1 - smoothing) + spread * (smoothing / classes)


def _class_shape(weight: Any, ndim: int, dim: int) -> Any:
    return weight.view([-1 if d == dim else 1 for d in range(ndim)])


def _total_weight(target: np.ndarray, weight: Any, ignore_index: int) -> Any:
    kept = target[target != ignore_index]
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
