"""Batch and instance normalization, with running statistics."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter


class _NormBase(Module):
    """Parameters and running statistics of the normalizations over channels.

    Files of version 1 lack `num_batches_tracked`.
    """

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = empty_parameter((num_features,), dtype, device) if wanted else None
            self.register_parameter(name, value)
        self._register_statistics(device, dtype)
        self.reset_parameters()

    def _register_statistics(self, device: Any, dtype: Any) -> None:
        if not self.track_running_stats:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
            return
        size = (self.num_features,)
        self.register_buffer("running_mean", ops.zeros(size, device=device, dtype=dtype))
        self.register_buffer("running_var", ops.ones(size, device=device, dtype=dtype))
        count = ops.zeros((), dtype=dt.int64, device=device)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Running statistics as above; weight 1 and bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    extra_repr = shown(
        "eps", "momentum", "affine", "bias", "track_running_stats", plain=("num_features",)
    )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        version = local_metadata.get("version", None)
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats:
            current = self.num_batches_tracked
            if key not in state_dict:
                missing = current is None
                state_dict[key] = ops.zeros((), dtype=dt.int64) if missing else current
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Normalization over the batch and the trailing dims, for each channel."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        mean, variance = self.running_mean, self.running_var
        from_batch = self.training or (mean is None and variance is None)
        factor = self._count_batch()
        # Statistics that are not tracked are not updated either, even if they are there.
        used = self.track_running_stats or not self.training
        return F.batch_norm(
            input,
            mean if used else None,
            variance if used else None,
            self.weight,
            self.bias,
            from_batch,
            factor,
            self.eps,
        )

    def _count_batch(self) -> float:
        """The weight of this batch in the running statistics; 1 / count without momentum."""
        factor = 0.0 if self.momentum is None else self.momentum
        if not (self.training and self.track_running_stats):
            return factor
        if self.num_batches_tracked is None:
            return factor
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            return 1.0 / float(self.num_batches_tracked)
        return factor


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L) (Ioffe and Szegedy, 2015).

    >>> import flambeau as torch
    >>> torch.nn.BatchNorm1d(3)(torch.ones(4, 3)).shape
    torch.Size([4, 3])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 for each channel of (N, C, H, W), then weight and bias of shape (C,).

    num_features: C.
    eps: what is added to the variance before its root.
    momentum: the share of the new batch in `running_mean` and `running_var`; None takes the mean
        of all batches.
    affine: whether there are weight and bias.
    track_running_stats: whether running statistics are kept.

    In training the batch's own mean and variance are used, and the running ones brought up to
    date; after `eval()` the running ones are used. The shape stays.

    >>> import flambeau as torch
    >>> norm = torch.nn.BatchNorm2d(3)
    >>> norm(torch.ones(4, 3, 8, 8)).shape
    torch.Size([4, 3, 8, 8])
    >>> norm.running_mean
    tensor([0.1000, 0.1000, 0.1000])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.BatchNorm3d(2)(torch.ones(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several processes.

    There are no process groups here, so that it does what BatchNorm does for any number of dims.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))
    >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
    SyncBatchNorm(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if process_group is not None:
            raise NotImplementedError("process groups are not implemented in flambeau")
        place = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *place, bias=bias)
        self.process_group = None

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """A module with every BatchNorm in it, or itself, replaced by SyncBatchNorm."""
        if isinstance(module, _BatchNorm):
            return cls._with_state_of(module, process_group)
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module

    @classmethod
    def _with_state_of(cls, module: _BatchNorm, process_group: Any) -> SyncBatchNorm:
        settings = (module.eps, module.momentum, module.affine, module.track_running_stats)
        made = cls(module.num_features, *settings, process_group)
        made._parameters = dict(module._parameters)
        made._buffers = dict(module._buffers)
        made.training = module.training
        return made


UNTRACKED = (
    "Unexpected running stats buffer(s) {names} for {cls} with track_running_stats=False. If "
    "state_dict is a checkpoint saved before 0.4.0, this may be expected because {cls} does not "
    "track running stats by default since 0.4.0. Please remove these keys from state_dict. If the "
    "running stats are actually needed, instead set track_running_stats=True in {cls} to enable "
    "them. See the documentation of {cls} for details."
)


class _InstanceNorm(_NormBase):
    """Normalization over the trailing dims, for each sample and channel."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        place = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *place, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        alone = self._get_no_batch_dim()
        if input.ndim not in (alone, alone + 1):
            raise ValueError(f"expected {alone}D or {alone + 1}D input (got {input.ndim}D input)")

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched = input.ndim == self._get_no_batch_dim()
        dim = 0 if unbatched else 1
        if input.shape[dim] != self.num_features:
            self._wrong_size(input, dim)
        if unbatched:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _wrong_size(self, input: Tensor, dim: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                f"but got: {input.shape[dim]}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=2,
        )

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(  # type: ignore[override]
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            keys = [f"{prefix}{name}" for name in ("running_mean", "running_var")]
            found = [key for key in keys if key in state_dict]
            if found:
                names = " and ".join(f'"{key}"' for key in found)
                error_msgs.append(UNTRACKED.format(names=names, cls=type(self).__name__))
                for key in found:
                    state_dict.pop(key)
        reports = (missing_keys, unexpected_keys, error_msgs)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *reports)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm1d(2)(torch.tensor([[[1., 3.], [10., 30.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    def _get_no_batch_dim(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    def _get_no_batch_dim(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm3d(2)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 4, 4, 4])
    """

    def _get_no_batch_dim(self) -> int:
        return 4
