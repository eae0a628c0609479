"""`torch.backends`: which of PyTorch's libraries are there, and their flags.

Flags can be set, as many programs do at their start, and are kept. Those of `cuda` and `cudnn` act
on GPUs; on the CPU only those that `flambeau/_core/precision.py` and `attention_backends.py` tell
of govern anything.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flambeau.backends import (
    _flags,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
)
from flambeau.backends._flags import bracketed as __allow_nonbracketed_mutation
from flambeau.backends._flags import disable_global_flags, flags_frozen

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "disable_global_flags", "flags", "flags_frozen",
    "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum",
    "set_flags",
]  # fmt: skip

_precision = _flags.of_precision("generic", "all")


def set_flags(_fp32_precision: str | None = "none") -> tuple[Any, ...]:
    """Set the precision of all libraries; what it was."""
    return _flags.written((_precision,), (_fp32_precision,))


def flags(fp32_precision: str = "none") -> AbstractContextManager[None]:
    """Another precision of all libraries within a `with`."""
    return _flags.within((_precision,), (fp32_precision,))


def __getattr__(name: str) -> object:
    from flambeau._core.missing import missing

    return missing(__name__, name)


_flags.give(__name__, fp32_precision=_precision)
