"""`torch.backends.cudnn`: not there; its flags can be set and are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core.device import Emulated

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True

_FLAGS = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available() -> bool:
    """Whether cuDNN is there: only where CUDA is emulated."""
    return Emulated.count > 0


def version() -> int | None:
    """The version of cuDNN; None where there is none."""
    return Emulated.cudnn_version


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN can work on a tensor: on one of an emulated GPU."""
    return bool(tensor.is_cuda)


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Other flags within a `with`."""
    wanted = dict(zip(_FLAGS, (enabled, benchmark, benchmark_limit, deterministic, allow_tf32),
                      strict=True))  # fmt: skip
    before = {name: globals()[name] for name in _FLAGS}
    globals().update(wanted)
    try:
        yield
    finally:
        globals().update(before)


def __getattr__(name: str) -> Any:
    from flambeau._core.missing import missing

    return missing(__name__, name)
