"""Normalizations that take `num_features` from their first input."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.layers import batchnorm
from flambeau.nn.layers.lazy import LazyModuleMixin
from flambeau.nn.parameter import UninitializedBuffer, UninitializedParameter


class _LazyNormBase(LazyModuleMixin):
    """What the lazy normalizations share."""

    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # Without parameters and statistics first: nothing of them has a shape yet.
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = ops.zeros((), dtype=dt.int64, device=device)

    def reset_parameters(self) -> None:
        """Start values, once the shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the shapes from an input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, batchnorm.BatchNorm1d):  # type: ignore[misc]
    """A BatchNorm1d that takes `num_features` from its first input.

    Shapes (N, C) or (N, C, L).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyBatchNorm1d()
    >>> norm(torch.ones(4, 3)).shape, norm.num_features
    (torch.Size([4, 3]), 3)
    """

    cls_to_become = batchnorm.BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, batchnorm.BatchNorm2d):  # type: ignore[misc]
    """A BatchNorm2d that takes `num_features` from its first input.

    Shapes (N, C, H, W).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyBatchNorm2d()
    >>> norm(torch.ones(4, 3, 2, 2)).shape, norm.num_features
    (torch.Size([4, 3, 2, 2]), 3)
    """

    cls_to_become = batchnorm.BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, batchnorm.BatchNorm3d):  # type: ignore[misc]
    """A BatchNorm3d that takes `num_features` from its first input.

    Shapes (N, C, D, H, W).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyBatchNorm3d()
    >>> norm(torch.ones(4, 3, 2, 2, 2)).shape, norm.num_features
    (torch.Size([4, 3, 2, 2, 2]), 3)
    """

    cls_to_become = batchnorm.BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, batchnorm.InstanceNorm1d):  # type: ignore[misc]
    """An InstanceNorm1d that takes `num_features` from its first input.

    Shapes (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyInstanceNorm1d()
    >>> norm(torch.ones(4, 3, 8)).shape, norm.num_features
    (torch.Size([4, 3, 8]), 3)
    """

    cls_to_become = batchnorm.InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, batchnorm.InstanceNorm2d):  # type: ignore[misc]
    """An InstanceNorm2d that takes `num_features` from its first input.

    Shapes (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyInstanceNorm2d()
    >>> norm(torch.ones(4, 3, 8, 8)).shape, norm.num_features
    (torch.Size([4, 3, 8, 8]), 3)
    """

    cls_to_become = batchnorm.InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, batchnorm.InstanceNorm3d):  # type: ignore[misc]
    """An InstanceNorm3d that takes `num_features` from its first input.

    Shapes (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> norm = torch.nn.LazyInstanceNorm3d()
    >>> norm(torch.ones(4, 3, 8, 8, 8)).shape, norm.num_features
    (torch.Size([4, 3, 8, 8, 8]), 3)
    """

    cls_to_become = batchnorm.InstanceNorm3d
