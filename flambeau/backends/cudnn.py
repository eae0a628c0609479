"""`torch.backends.cudnn`: what convolutions on GPUs may do; on the CPU the flags govern nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flambeau._core import precision
from flambeau._core.cudnn_settings import Cudnn
from flambeau._core.device import Cuda
from flambeau._core.dtype import float16, float32, float64
from flambeau._core.missing import lazily
from flambeau.backends import _flags

CUDNN_TENSOR_DTYPES = {float16, float32, float64}
conv = _flags.OperatorPrecision("cuda", "conv")
rnn = _flags.OperatorPrecision("cuda", "rnn")

DEPTHWISE_KERNELS = ("auto", "cudnn", "native")


def _check_depthwise_kernel(value: Any) -> None:
    if not isinstance(value, str):
        found = type(value).__name__
        raise RuntimeError(f"set_cudnn_depthwise_kernel expects a string, but got {found}")
    if value not in DEPTHWISE_KERNELS:
        raise RuntimeError(f"Unknown cuDNN depthwise kernel mode: {value}. Expected one of: "
                           f"{', '.join(DEPTHWISE_KERNELS)}")  # fmt: skip


_enabled = _flags.held_by(Cudnn, "enabled", "set_enabled_cudnn")
_benchmark = _flags.held_by(Cudnn, "benchmark", "set_benchmark_cudnn")
_benchmark_limit = _flags.held_by(Cudnn, "benchmark_limit")
_limit_in_use = _flags.Flag(lambda: _benchmark_limit.get() if is_available() else None,
                            _benchmark_limit.set)  # fmt: skip
_deterministic = _flags.held_by(Cudnn, "deterministic", "set_deterministic_cudnn")
_allow_tf32 = _flags.Flag(precision.cudnn_allows_tf32, precision.allow_tf32_in_cudnn)
_fp32_precision = _flags.of_precision("cuda", "all")
_depthwise_kernel = _flags.kept("auto", check=_check_depthwise_kernel)

_ALL = (_enabled, _benchmark, _limit_in_use, _deterministic, _allow_tf32, _fp32_precision,
        _depthwise_kernel)  # fmt: skip


def is_available() -> bool:
    """Whether there are GPUs, and cuDNN for them."""
    return version() is not None


def version() -> int | None:
    """The version of cuDNN, 91900 for 9.19; None where there is none."""
    if not Cuda.devices():
        return None
    if Cuda.cudnn_version is None:
        from flambeau._runtime.cuda.libraries import cudnn

        Cuda.cudnn_version = cudnn.version()
    return Cuda.cudnn_version


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN can work on a tensor: on one of a GPU."""
    return bool(tensor.is_cuda)


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:
    """Set what is given; what all flags were. The limit needs a cuDNN to be set."""
    limit = _benchmark_limit if is_available() else None
    return _flags.written(_ALL, (_enabled, _benchmark, limit, _deterministic, _allow_tf32,
                                 _fp32_precision, _depthwise_kernel))  # fmt: skip


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> AbstractContextManager[None]:
    """Other flags within a `with`."""
    limit = benchmark_limit if is_available() else None
    return _flags.within(_ALL, (enabled, benchmark, limit, deterministic, allow_tf32,
                                fp32_precision, depthwise_kernel))  # fmt: skip


__getattr__ = lazily(__name__)


_flags.give(__name__, enabled=_enabled, benchmark=_benchmark, benchmark_limit=_benchmark_limit,
            deterministic=_deterministic, allow_tf32=_allow_tf32, fp32_precision=_fp32_precision,
            depthwise_kernel=_depthwise_kernel)  # fmt: skip
