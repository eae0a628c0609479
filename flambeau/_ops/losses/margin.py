"""Margin losses of class scores, and `linear_cross_entropy`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.launching.precision import refuse, widen
from flambeau._ops.linalg.checks import type_name
from flambeau._ops.losses.elementwise import (
    MEAN,
    NONE,
    legacy_reduction,
    reduce_array,
    reduced,
    reduction_code,
    reduction_of,
)
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import on_device_of, wrap


def _batched(data: np.ndarray) -> np.ndarray:
    return data.reshape(1, -1) if data.ndim < 2 else data


def _factor(grad: Any, reduction: int, rows: int) -> Any:
    """The incoming gradient as a column per sample, divided for a mean."""
    if reduction == NONE:
        return grad.reshape(-1, 1)
    return grad / max(rows, 1) if reduction == MEAN else grad


# ---- multi_margin_loss


def _margins(scores: np.ndarray, target: np.ndarray, margin: float) -> np.ndarray:
    """`max(0, margin - chosen + score)`, 0 at the chosen class."""
    rows = np.arange(scores.shape[0])
    gaps = np.maximum(scores + (margin - scores[rows, target])[:, None], 0)
    gaps[rows, target] = 0
    return gaps


def _multi_margin_gradient(grad: Any, self: Any, target: Any, p: Any, margin: Any, weight: Any,
                           reduction: int) -> Any:  # fmt: skip
    scores = self if self.dim() == 2 else self.reshape(1, -1)
    rows, classes = scores.shape
    indices = numbers_under(target._data).reshape(-1)
    one_hot = np.zeros((rows, classes), widen(np.empty(0, scores._data.dtype)).dtype)
    one_hot[np.arange(rows), indices] = 1
    chosen = on_device_of(wrap(one_hot), self).to(self.dtype)
    gaps = scores - (scores * chosen).sum(1, keepdim=True) + margin
    active = ((gaps > 0) * (chosen == 0)).to(self.dtype)
    slope = active if p == 1 else 2 * gaps * active
    if weight is not None:
        slope = slope * ops.embedding(weight.reshape(-1, 1), target.reshape(-1))
    slope = (slope - slope.sum(1, keepdim=True) * chosen) / classes
    return beside((slope * _factor(grad, reduction, rows)).reshape(self.shape), self)


@internal(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1,"
    " Tensor? weight=None, int reduction=Mean) -> Tensor",
    autocast="float32",
    constants={"weight": "multi_margin_loss"},
    backward={"self": _multi_margin_gradient},
)
def multi_margin_loss(self: np.ndarray, target: np.ndarray, p: Any, margin: Any,
                      weight: np.ndarray | None, reduction: int) -> Any:  # fmt: skip
    """`sum(max(0, margin - x[y] + x[i]) ** p) / C` over the other classes."""
    _check_multi_margin(self, target, p, weight)
    scores, indices = _batched(widen(self)), target.reshape(-1)
    gaps = _margins(scores, indices, float(margin))
    losses = np.add.reduce(gaps if p == 1 else gaps * gaps, 1) / scores.shape[1]
    if weight is not None:
        losses = losses * widen(weight)[indices]
    if reduction == NONE:
        losses = losses.reshape(target.shape)
    return reduce_array(np.asarray(losses), reduction, self.dtype)


def _check_multi_margin(self: np.ndarray, target: np.ndarray, p: Any, weight: Any) -> None:
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if self.ndim > 2 or self.size == 0 and not (self.ndim == 2 and self.shape[1]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {list(self.shape)}")  # fmt: skip
    rows, classes = _batched(self).shape
    if target.ndim > 1 or target.size != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows}], but got {list(target.shape)}. "
            f"Input has shape {list(self.shape)}."
        )
    if target.dtype != np.int64:
        found = dt.from_numpy_dtype(target.dtype).scalar_name
        raise RuntimeError(f"expected scalar type Long but found {found}")
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    if target.size and (target.min() < 0 or target.max() >= classes):
        raise RuntimeError("target out of range")
    if self.dtype.kind not in "fV":
        raise refuse("multi_margin_loss", self.dtype)


@functional()
def functional_multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Hinge loss of [N, C] scores against the class of each sample.

    >>> import flambeau as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.9]]), torch.tensor([2]))
    tensor(0.1667)
    """
    code = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, p, margin, weight, code)


# ---- multilabel margins


def _label_counts(target: np.ndarray, classes: int) -> np.ndarray:
    """[N, C]: how often each row lists a label before its first -1."""
    rows = _batched(target)
    listed = np.logical_and.accumulate(rows >= 0, axis=1)
    counts = np.zeros((rows.shape[0], classes), np.int8 if classes < 128 else np.int64)
    sample, place = np.nonzero(listed)
    np.add.at(counts, (sample, rows[sample, place]), 1)
    return counts


def _label_pairs(counts: np.ndarray) -> np.ndarray:
    """[N, C, C]: how often a label and a class that is none stand against each other."""
    return counts[:, :, None] * (counts == 0)[:, None, :]


def _multilabel_gradient(grad: Any, self: Any, target: Any, reduction: int) -> Any:
    scores = self if self.dim() == 2 else self.reshape(1, -1)
    rows, classes = scores.shape
    pairs = wrap(_label_pairs(_label_counts(numbers_under(target._data), classes)))
    pairs = on_device_of(pairs, target)
    active = ((1 - scores.unsqueeze(2) + scores.unsqueeze(1) > 0) * pairs).to(self.dtype)
    slope = (active.sum(1) - active.sum(2)) / max(classes, 1)
    return beside((slope * _factor(grad, reduction, rows)).reshape(self.shape), self)


@internal(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    autocast="float32",
    backward={"self": _multilabel_gradient},
)
def multilabel_margin_loss(self: np.ndarray, target: np.ndarray, reduction: int) -> Any:
    """`sum(max(0, 1 - x[label] + x[other])) / C` over labels and other classes."""
    if self.ndim > 2 or (self.ndim and self.shape[-1] == 0):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {list(self.shape)}")  # fmt: skip
    if target.shape != self.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}"
        )
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target)}")
    scores = _batched(widen(self))
    if target.size and (target.min() < -1 or target.max() >= scores.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    counts = _label_counts(target, scores.shape[1])
    gaps = np.maximum(1 - scores[:, :, None] + scores[:, None, :], 0)
    gaps *= _label_pairs(counts)
    losses = gaps.sum((1, 2)) / max(scores.shape[1], 1)
    if reduction == NONE:
        losses = losses.reshape(self.shape[:-1])
    return reduce_array(np.asarray(losses), reduction, self.dtype)


@functional()
def functional_multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Hinge loss of [N, C] scores; `target` lists each sample's labels, ended by -1.

    >>> import flambeau as torch
    >>> scores, labels = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
    >>> torch.nn.functional.multilabel_margin_loss(scores, labels)
    tensor(0.8500)
    """
    code = reduction_of(size_average, reduce, reduction)
    return ops.multilabel_margin_loss(input, target, code)


@functional()
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Binary cross-entropy of scores, averaged over classes.

    Shapes: scores and targets (N, C) or (C,); without reduction the result has (N,) or ().

    >>> import flambeau as torch
    >>> target = torch.tensor([[1., 0., 1.]])
    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 3), target)
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    code = reduction_code(reduction)
    present, absent = ops.nn.functional.logsigmoid(input), ops.nn.functional.logsigmoid(-input)
    losses = -(target * present + (1 - target) * absent)
    if weight is not None:
        losses = losses * weight
    dim = input.dim() - 1
    return reduced(losses.sum(dim) / input.size(dim), code)


# ---- linear_cross_entropy


def _check_linear(input: Any, weight: Any, bias: Any) -> None:
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    rows = tuple(weight.shape[:-1])
    if bias is not None and tuple(bias.shape) != rows:
        raise RuntimeError(f"expected linear_bias shape {rows}, got {tuple(bias.shape)}")
    if len(rows) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )


@composite(
    "linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *,"
    " Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean',"
    " int? ignore_index=None, float label_smoothing=0.0) -> Tensor",
    method=False,
    namespace="nn.functional",
)
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    Shapes: input (N, D), linear_weight (C, D), target (N,).

    >>> import flambeau as torch
    >>> x, weight, classes = torch.ones(2, 3), torch.zeros(4, 3), torch.tensor([0, 3])
    >>> torch.nn.functional.linear_cross_entropy(x, weight, classes)
    tensor(1.3863)
    """
    _check_linear(input, linear_weight, linear_bias)
    rows = tuple(linear_weight.shape[:-1])
    shape = (*input.shape[:-1], *rows)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None:
        warnings.warn("linear_cross_entropy: ``options`` ignored; flambeau computes all scores at "
                      "once", stacklevel=2)  # fmt: skip
    flat_weight = linear_weight.reshape(math.prod(rows), -1)
    flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = ops.nn.functional.linear(input, flat_weight, flat_bias).reshape(shape)
    return ops.nn.functional.cross_entropy(
        scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction, label_smoothing=label_smoothing,
    )  # fmt: skip
