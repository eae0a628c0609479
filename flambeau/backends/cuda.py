"""`torch.backends.cuda`: flags of matrix products and of attention.

Those of products act on GPUs; those of attention on the CPU too: see
`flambeau/_core/attention_backends.py`.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flambeau._core import attention_backends as attention
from flambeau._core import precision
from flambeau._core.device import Cuda
from flambeau._core.missing import lazily
from flambeau.backends import _flags


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Whether the kernel of that name would be taken: only this library's own is here."""
    return False


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """Whether the kernel of that name would be taken: only this library's own is here."""
    return False


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Whether cuDNN's kernel would be taken when asked for by name: it would not."""
    return False


@dataclass(frozen=True)
class SDPAParams:
    """The arguments of a call of attention."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def is_built() -> bool:
    """Whether CUDA is built in: where there are GPUs, or emulated ones."""
    return Cuda.devices() > 0


def _reduction(name: str) -> property:
    """Whether sums of products may be kept in half precision: a bool, or one and whether the sum
    may be split."""

    def get(self: Any) -> bool:
        return bool(self.__dict__[f"_{name}"][0])

    def put(self: Any, value: Any) -> None:
        self.__dict__[f"_{name}"] = _reduction_setting(name, value)
        kind = name.split("_")[1]
        change = precision.Precision.wide_reductions
        (change.discard if self.__dict__[f"_{name}"][0] else change.add)(kind)

    return property(get, put)


def _reduction_setting(name: str, value: Any) -> tuple[bool, bool]:
    given = [value] if isinstance(value, bool) else value
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)}")
    if not 1 <= len(given) <= 2:
        limit = "at most two boolean arguments" if given else "at least one boolean argument"
        raise TypeError(f"{name} expects {limit}")
    for what, flag in zip(("allow_reduced_precision", "allow_splitk"), given, strict=False):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} expects a bool for {what}, but got {type(flag)}")
    allowed, split = given[0], given[-1] if len(given) == 2 else True
    if allowed and not split:
        raise RuntimeError(
            "allow_splitk=False is not supported when reduced precision reductions are enabled"
        )
    return allowed, split


class cuBLASModule:
    """What GPU products may do with precision: float32 as TF32, sums of half types kept in half
    precision between parts. Accumulation in float16 is a permission that is never used."""

    allow_fp16_reduced_precision_reduction = _reduction("allow_fp16_reduced_precision_reduction")
    allow_bf16_reduced_precision_reduction = _reduction("allow_bf16_reduced_precision_reduction")
    allow_fp16_accumulation = _flags.kept(False, "set_allow_fp16_accumulation_cublas", False)
    allow_tf32 = _flags.Flag(precision.cublas_allows_tf32, precision.allow_tf32_in_cublas, False)
    fp32_precision = _flags.of_precision("cuda", "matmul", False)

    def __init__(self) -> None:
        for kind in ("fp16", "bf16"):
            self.__dict__[f"_allow_{kind}_reduced_precision_reduction"] = True, True

    @property
    def allow_fp16_reduced_precision_reduction_split_k(self) -> bool:
        """Whether sums of float16 may be split."""
        return bool(self.__dict__["_allow_fp16_reduced_precision_reduction"][1])

    @property
    def allow_bf16_reduced_precision_reduction_split_k(self) -> bool:
        """Whether sums of bfloat16 may be split."""
        return bool(self.__dict__["_allow_bf16_reduced_precision_reduction"][1])

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name) or name.startswith("_"):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


matmul = cuBLASModule()


def flash_sdp_enabled() -> bool:
    """Whether flash attention is permitted."""
    return "flash" in attention.Permitted.names


def enable_flash_sdp(enabled: bool) -> None:
    """Permit or forbid flash attention."""
    attention.set_permitted("flash", _flags.expect_bool("set_sdp_use_math", enabled))


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is permitted; it is never used."""
    return "mem_efficient" in attention.Permitted.names


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Permit or forbid memory-efficient attention."""
    attention.set_permitted("mem_efficient", _flags.expect_bool("set_sdp_use_math", enabled))


def math_sdp_enabled() -> bool:
    """Whether attention by plain operators is permitted."""
    return attention.Permitted.math


def enable_math_sdp(enabled: bool) -> None:
    """Permit or forbid attention by plain operators."""
    attention.set_permitted("math", _flags.expect_bool("set_sdp_use_math", enabled))


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention is permitted; it is never used."""
    return "cudnn" in attention.Permitted.names


def enable_cudnn_sdp(enabled: bool) -> None:
    """Permit or forbid cuDNN's attention."""
    attention.set_permitted("cudnn", _flags.expect_bool("set_sdp_use_math", enabled))


class _HalfReduction:
    allowed = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether plain operators may sum halves in half precision; they never do."""
    return _HalfReduction.allowed


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Permit or forbid sums of halves in half precision."""
    _HalfReduction.allowed = _flags.expect_bool("set_sdp_use_math", enabled)


def is_flash_attention_available() -> bool:
    """Whether flash attention is built in for CUDA: no."""
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict[str, Any]]:
    """The older form of `torch.nn.attention.sdpa_kernel`."""
    wanted = {"flash": enable_flash, "math": enable_math, "cudnn": enable_cudnn}
    wanted["mem_efficient"] = enable_mem_efficient
    before = attention.Permitted.names
    attention.permit(tuple(name for name, enabled in wanted.items() if enabled))
    try:
        yield {}
    finally:
        attention.permit(before)


class _LinalgBackend(enum.Enum):
    """Libraries of linear algebra on a GPU."""

    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    """Libraries of products on a GPU."""

    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


_LINALG = {"default": _LinalgBackend.Default, "cusolver": "cuSOLVER", "magma": "MAGMA"}
_BLAS = {
    "default": _BlasBackend.Cublas,
    "cublas": _BlasBackend.Cublas,
    "hipblas": _BlasBackend.Cublas,
    "cublaslt": "cuBLASLt",
    "hipblaslt": "cuBLASLt",
    "ck": _BlasBackend.Ck,
}
"""What a name chooses; a text: a library that is not there."""


class _ROCmFABackend(enum.Enum):
    """Libraries of attention on a GPU of AMD's."""

    Default = 0
    AOTriton = 1
    Ck = 2


_ROCM = {
    "default": _ROCmFABackend.Default,
    "aotriton": _ROCmFABackend.AOTriton,
    "ck": _ROCmFABackend.Ck,
}


class _Preferred:
    linalg: Any = _LinalgBackend.Default
    blas: Any = _BlasBackend.Cublas
    rocm: Any = _ROCmFABackend.Default


def _chosen(backend: Any, known: dict[str, Any]) -> Any:
    """The library of a name, or torch's refusal."""
    if isinstance(backend, enum.Enum):
        return backend
    if not isinstance(backend, str):
        raise RuntimeError("Unknown input value type.")
    if backend not in known:
        raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
    found = known[backend]
    if isinstance(found, str):
        raise RuntimeError(
            f"Cannot set preferred backend to {found} if PyTorch has not been compiled with "
            f"{found}."
        )
    return found


def preferred_linalg_library(backend: Any = None) -> Any:
    """The library that a GPU's linear algebra would use first, after setting it if given."""
    if backend is not None:
        _Preferred.linalg = _chosen(backend, _LINALG)
    return _Preferred.linalg


def preferred_blas_library(backend: Any = None) -> Any:
    """The library that a GPU's products would use first, after setting it if given."""
    if backend is not None:
        _Preferred.blas = _chosen(backend, _BLAS)
    return _Preferred.blas


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """The library that attention on AMD's GPUs would use first, after setting it if given."""
    if backend is not None:
        try:
            _Preferred.rocm = _chosen(backend, _ROCM)
        except RuntimeError as error:
            if isinstance(backend, str):
                raise
            raise ValueError(f"Unknown input value. Choose from: {', '.join(_ROCM)}.") from error
    return _Preferred.rocm


def is_ck_sdpa_available() -> bool:
    """Whether attention of AMD's Composable Kernel is there: no."""
    return False


__getattr__ = lazily(__name__)
