"""`torch.backends.cuda`: not built; flags of matrix products and of attention are kept.

Those of attention govern the CPU too: see `flambeau/_core/attention_backends.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau._core import attention_backends as attention
from flambeau._core.device import Emulated
from flambeau._core.missing import missing


def is_built() -> bool:
    """Whether CUDA is built in: only while it is emulated."""
    return Emulated.count > 0


class _ProductFlags:
    """What GPU products may do with precision: permissions, kept for programs that set them."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False


matmul = _ProductFlags()


def flash_sdp_enabled() -> bool:
    """Whether flash attention is permitted."""
    return "flash" in attention.Permitted.names


def enable_flash_sdp(enabled: bool) -> None:
    """Permit or forbid flash attention."""
    attention.set_permitted("flash", enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is permitted; it is never used."""
    return "mem_efficient" in attention.Permitted.names


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Permit or forbid memory-efficient attention."""
    attention.set_permitted("mem_efficient", enabled)


def math_sdp_enabled() -> bool:
    """Whether attention by plain operators is permitted."""
    return attention.Permitted.math


def enable_math_sdp(enabled: bool) -> None:
    """Permit or forbid attention by plain operators."""
    attention.set_permitted("math", enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention is permitted; it is never used."""
    return "cudnn" in attention.Permitted.names


def enable_cudnn_sdp(enabled: bool) -> None:
    """Permit or forbid cuDNN's attention."""
    attention.set_permitted("cudnn", enabled)


class _HalfReduction:
    allowed = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether plain operators may sum halves in half precision; they never do."""
    return _HalfReduction.allowed


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Permit or forbid sums of halves in half precision."""
    _HalfReduction.allowed = enabled


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


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
