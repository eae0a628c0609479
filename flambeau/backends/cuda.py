"""`torch.backends.cuda`: not built; flags of matrix products are kept."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


def is_built() -> bool:
    """Whether CUDA is built in: no."""
    return False


class _ProductFlags:
    """What GPU products may do with precision: permissions, kept for programs that set them."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False


matmul = _ProductFlags()


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
