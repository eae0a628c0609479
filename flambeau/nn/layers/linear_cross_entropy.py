"""A linear map to classes and its cross-entropy in one module."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from flambeau._core import dtype as dt
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.linear import Linear
from flambeau.nn.layers.loss import _WeightedLoss


@dataclass
class LinearCrossEntropyOptions:
    """How torch splits the computation to save memory; nothing is split here.

    >>> import flambeau as torch
    >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2).batch_chunk_size
    2
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if not _is_method(method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.acc_dtype not in (None, dt.float16, dt.bfloat16, dt.float32, dt.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                f"torch.float64}}, got {self.acc_dtype}. Pass acc_dtype=None to let the op pick "
                "automatically."
            )


def _is_method(method: str | None) -> bool:
    """Whether torch has this way to choose sizes of chunks: `aspect_ratio`, `aspect_ratio:2`."""
    if method is None or method == "auto":
        return True
    name, colon, ratio = method.partition(":")
    if name != "aspect_ratio":
        return False
    return not colon or (ratio.isdigit() and int(ratio) > 0)


class LinearCrossEntropyLoss(_WeightedLoss):
    """cross_entropy(linear(input), target): (N, in_features) and classes (N, *out_features).

    >>> import flambeau as torch
    >>> loss = torch.nn.LinearCrossEntropyLoss(8, 10)
    >>> loss(torch.ones(4, 8), torch.tensor([0, 1, 2, 9])).shape
    torch.Size([])
    """

    __constants__ = [
        "num_classes",
        "out_features",
        "reduction",
        "ignore_index",
        "label_smoothing",
    ]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if label_smoothing < 0 or label_smoothing > 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        count = num_classes * prod(self.out_features)
        self.linear = Linear(in_features, count, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        wanted = self.linear.in_features
        if input.shape[-1] != wanted:
            raise RuntimeError(
                "expected equal input and linear_weight last dimensions (in_features), got "
                f"{input.shape[-1]} and {wanted}, respectively"
            )
        shape = (*input.shape[:-1], self.num_classes, *self.out_features)
        return F.cross_entropy(
            self.linear(input).reshape(shape),
            target,
            weight=self.weight,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
