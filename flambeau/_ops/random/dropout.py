"""Dropout in all forms. The masks are torch's own for the same seed."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from flambeau._core.doc_text import with_example
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.random.draws import stream_of
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op, composite, functional, kernel, pointwise
from flambeau._tensor.tensor import Tensor

SELU_ALPHA = 1.7580993408473766
"""Minus the value that SELU goes to at minus infinity: what alpha dropout sets elements to."""


def _noise(input: Any, keep: float, feature: bool) -> Any:
    """Zeros and ones, one for each element or one for each channel."""
    if not feature:
        return ops.empty_like(input).bernoulli_(keep)
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = [*input.shape[:2], *[1] * (input.dim() - 2)]
    return ops.new_empty(input, shape).bernoulli_(keep)


def _drop(input: Any, p: float, train: bool, inplace: bool, feature: bool, alpha: bool) -> Any:
    """All dropouts: multiply by scaled noise; alpha dropout adds what keeps mean and variance."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or input._data.size == 0:
        return input
    if p == 1:
        zero = ops.new_zeros(input, ())
        return input.mul_(zero) if inplace else input * zero
    if input.is_cuda and not (inplace or feature or alpha):
        return ops.native_dropout(input, p, train)[0]
    noise = _noise(input, 1 - p, feature)
    if not alpha:
        noise.div_(1 - p)
        return input.mul_(noise) if inplace else input * noise
    scale = 1 / math.sqrt((SELU_ALPHA * SELU_ALPHA * p + 1) * (1 - p))
    shift = (noise - 1).mul_(SELU_ALPHA * scale).add_(SELU_ALPHA * scale * p)
    noise.mul_(scale)
    return input.mul_(noise).add_(shift) if inplace else (input * noise).add_(shift)


def _dropout_pair(name: str, feature: bool, alpha: bool, doc: str) -> tuple[Op, Op]:
    """The rows `name(input, p, train)` and `name_(input, p, train)`."""

    def plain(input: Any, p: float, train: bool) -> Any:
        return _drop(input, p, train, False, feature, alpha)

    def inplace(input: Any, p: float, train: bool) -> Any:
        return _drop(input, p, train, True, feature, alpha)

    shown = "torch.ones(1, 2, 3), 0.5, train=False"
    plain.__doc__ = with_example(
        f"{doc}; nothing is dropped unless `train`. The shape stays.",
        f"torch.{name}({shown}).shape", "torch.Size([1, 2, 3])",
    )  # fmt: skip
    inplace.__doc__ = with_example(
        f"{doc}, in place: the shape stays.",
        f"torch.{name}_({shown}).shape",
        "torch.Size([1, 2, 3])",
    )
    plain.__name__, inplace.__name__ = name, f"{name}_"
    parameters = "(Tensor input, float p, bool train) -> Tensor"
    row, row_inplace = (
        composite(f"{part.__name__}{parameters}", method=False, may_give_input=part is plain)(part)
        for part in (plain, inplace)
    )
    return row, row_inplace


dropout, dropout_ = _dropout_pair(
    "dropout", False, False, "Zero elements with probability `p`, scale the others"
)
feature_dropout, feature_dropout_ = _dropout_pair(
    "feature_dropout", True, False, "Zero whole channels with probability `p`"
)
alpha_dropout, alpha_dropout_ = _dropout_pair(
    "alpha_dropout", False, True, "Dropout that keeps mean and variance behind SELU"
)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout_pair(
    "feature_alpha_dropout", True, True, "Alpha dropout of whole channels"
)


# ---- torch.nn.functional


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@functional()
def functional_dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Zero elements with probability `p` and scale the others by `1 / (1 - p)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout(torch.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    try:
        return dropout_.body(input, p, training) if inplace else dropout.body(input, p, training)
    except AttributeError as error:
        raise explained(functional_dropout, (input, p, training, inplace), error) from None


@functional()
def functional_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Dropout that keeps mean and variance of normal inputs, for nets with SELU.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.alpha_dropout(torch.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    if inplace:
        return alpha_dropout_.body(input, p, training)
    return alpha_dropout.body(input, p, training)


@functional()
def functional_feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Alpha dropout of whole channels.

    Takes shapes (N, C, *); the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2, 3), training=False).shape
    torch.Size([1, 2, 3])
    """
    _check_probability(p)
    if inplace:
        return feature_alpha_dropout_.body(input, p, training)
    return feature_alpha_dropout.body(input, p, training)


def _drop_channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Any:
    """Channel dropout of a batch, or of one sample without a batch dim."""
    if batched:
        if inplace:
            return feature_dropout_.body(input, p, training)
        return feature_dropout.body(input, p, training)
    if inplace:
        return feature_dropout_.body(input.unsqueeze_(0), p, training).squeeze_(0)
    return feature_dropout.body(input.unsqueeze(0), p, training).squeeze(0)


@functional()
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of [N, C, L] or [C, L] with probability `p`.

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 3), training=False).shape
    torch.Size([1, 2, 3])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, ndim == 3)


def _warn_rank(name: str, ndim: int, spatial: int) -> None:
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
        f"(i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        stacklevel=3,
    )


@functional()
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of [N, C, H, W] (or [N, C, L]) with probability `p`.

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        _warn_rank("dropout2d", ndim, 2)
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    if inplace:
        return feature_dropout_.body(input, p, training)
    return feature_dropout.body(input, p, training)


@functional()
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of [N, C, D, H, W] or [C, D, H, W] with probability `p`.

    >>> import flambeau as torch
    >>> torch.nn.functional.dropout3d(torch.ones(1, 2, 3, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3, 3])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_rank("dropout3d", ndim, 3)
    return _drop_channels(input, p, training, inplace, ndim == 5)


# ---- native_dropout


@kernel(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    batch="elements",
    method=False,
    nondifferentiable=("result1",),
    backward={
        "input": lambda grad, result1, p, train: ops._kept_scaled(
            grad, result1, 1.0 if train is False else (0.0 if p == 1 else 1 / (1 - p))
        ),
    },
)
def native_dropout(input: np.ndarray, p: float, train: bool | None) -> Any:
    """The input after dropout, and the mask of what was kept.

    Takes any shape; both results have the same.

    >>> import flambeau as torch
    >>> torch.native_dropout(torch.ones(3), 0.5, False)
    (tensor([1., 1., 1.]), tensor([True, True, True]))
    """
    mask = np.ones(input.shape, np.bool_)
    if train is False or input.size == 0:
        return input.copy(), mask
    stream = stream_of(None)
    stream.numbers.dropout_mask_(mask, input, 1 - p, stream)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return narrow(widen(input) * mask * scale, input.dtype), mask


@pointwise(
    "_kept_scaled(Tensor self, Tensor mask, Scalar scale) -> Tensor",
    method=False,
    backward={
        "self": lambda grad, mask, scale: ops._kept_scaled(grad, conj(mask), scale),
        "mask": lambda grad, self, scale: ops._kept_scaled(grad, conj(self), scale),
    },
)
def _kept_scaled(self: Any, mask: Any, scale: Any) -> Any:
    """The elements that a mask keeps, times a number: one pass, also on devices."""
    return self * mask * scale


@composite(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", method=False
)
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Any:
    """`grad_output * mask * scale`."""
    return grad_output * mask * scale
