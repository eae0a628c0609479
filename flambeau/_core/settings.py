"""Settings of the process that programs read and write: threads, determinism, precision.

Each says what it governs here. Where flambeau has one way only, the setting is kept and reported,
so that a program that sets it runs, and the way that is always taken satisfies every value.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

has_lapack = True  # NumPy carries one
has_spectral = True
has_mkl = False
has_openmp = False


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wished_threads() -> int:
    """The first number in OMP_NUM_THREADS, or the processors that this process may use."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else _processors()


class Threads:
    """The numbers of threads that programs asked for; None until one does."""

    inside: int | None = None
    between: int | None = None
    wished: int = _wished_threads()


def _checked_count(name: str, count: Any) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return count


def get_num_threads() -> int:
    """How many threads one operator may use, as `set_num_threads` was told.

    Until then it is OMP_NUM_THREADS, or else the number of processors.
    """
    return Threads.wished if Threads.inside is None else Threads.inside


def set_num_threads(count: int) -> None:
    """Set the number of threads that one operator may use: large tensors are split over them.

    The threads of NumPy's BLAS, which some matrix products use, are its own: they follow
    OMP_NUM_THREADS or OPENBLAS_NUM_THREADS, read when NumPy is imported.

    Raises:
        RuntimeError: the count is not a positive int.
    """
    Threads.inside = _checked_count("set_num_threads", count)


def get_num_interop_threads() -> int:
    """How many operators may run at a time, as `set_num_interop_threads` was told."""
    return _processors() if Threads.between is None else Threads.between


def set_num_interop_threads(count: int) -> None:
    """Keep the number of operators that may run at a time; nothing here runs two at a time.

    Raises:
        RuntimeError: the count is not a positive int, or the number was set before.
    """
    _checked_count("set_num_interop_threads", count)
    if Threads.between is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has "
                           "started or set_num_interop_threads called")  # fmt: skip
    Threads.between = count


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers can be flushed to zero: no, the processor's mode is not touched."""
    return False


# ---- determinism: on the CPU every operator gives the same bits from run to run


class Warnings:
    """Warnings that torch gives once per process, unless `set_warn_always` was called."""

    always = False
    given: set[str] = set()  # noqa: RUF012


def warn_once(text: str, stacklevel: int = 2) -> None:
    """Give a warning that torch gives once per process."""
    if text in Warnings.given and not Warnings.always:
        return
    Warnings.given.add(text)
    warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


class Determinism:
    """What `use_deterministic_algorithms` was told."""

    enabled = False
    warn_only = False


DEBUG_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Keep whether deterministic algorithms are asked for; flambeau has no others on the CPU."""
    if not isinstance(mode, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'mode' (position 1) must be "
                        f"bool, not {type(mode).__name__}")  # fmt: skip
    Determinism.enabled, Determinism.warn_only = mode, warn_only


def set_warn_always(mode: bool, /) -> None:
    """Whether warnings that are given once per process are given each time."""
    Warnings.always = mode


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` has set."""
    return Warnings.always


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether operators without a deterministic algorithm shall only warn."""
    return Determinism.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as one setting: 0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, "
                               f"`error`, but got {debug_mode}")  # fmt: skip
        debug_mode = DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: not asked for; 1: a warning where there is none; 2: an error."""
    if not Determinism.enabled:
        return 0
    return 1 if Determinism.warn_only else 2


# ---- precision


class Precision:
    """What `set_float32_matmul_precision` was told."""

    matmul = "highest"


def get_float32_matmul_precision() -> str:
    """The precision that float32 products may have, as it was set; "highest" at first."""
    return Precision.matmul


def set_float32_matmul_precision(precision: str) -> None:
    """Keep how far float32 products may be shortened ("highest", "high", "medium").

    It is a permission. Products are computed in full float32 under every value.
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
        return
    Precision.matmul = precision
