"""Settings of the process that programs read and write: threads, determinism, precision.

Each says what it governs here. Where flambeau has one way only, the setting is kept and reported,
so that a program that sets it runs, and the way that is always taken satisfies every value.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flambeau._core import processors

has_lapack = True  # NumPy carries one
has_spectral = True
has_mkl = False
has_openmp = False


def _wished_threads() -> int:
    """The first number in MKL_NUM_THREADS, else in OMP_NUM_THREADS, else the cores that this
    process may keep busy."""
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return processors.usable()


class Threads:
    """How many threads one operator may use.

    The number is one for all threads, `inside`, until they differ; then that is 0. A thread keeps
    what it has set, and begins with what any thread has set last.
    """

    inside = _wished_threads()
    latest = inside
    elder: weakref.WeakKeyDictionary[threading.Thread, int] = weakref.WeakKeyDictionary()
    followers: list[Callable[[int], object]] = []  # noqa: RUF012  # other libraries' pools
    asked = False  # whether any thread has set a number
    between: int | None = None
    begun = False  # whether calls run beside each other already


class _OfThread(threading.local):
    """The number of a thread, once they differ; 0 until it asks."""

    number = 0


_own = _OfThread()


def _number_of_thread() -> int:
    if not _own.number:
        _own.number = Threads.elder.get(threading.current_thread(), Threads.latest)
    return _own.number


def _checked_count(name: str, count: Any) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(count).__name__}")
    for bits, words in ((64, "long long"), (32, "long")):
        if not -(2 ** (bits - 1)) <= count < 2 ** (bits - 1):
            raise ValueError(f"Overflow when unpacking {words}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return count


def get_num_threads() -> int:
    """How many threads one operator may use, as `set_num_threads` was told.

    Until then it is MKL_NUM_THREADS or OMP_NUM_THREADS, or else the number of cores that this
    process may keep busy (`_core/processors.py`).

    >>> import flambeau as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return Threads.inside or _number_of_thread()


def set_num_threads(count: int) -> None:
    """Set the number of threads that one operator may use: large tensors are split over them.

    It holds in this thread, and in threads that begin later. Others that run already keep theirs.
    NumPy's BLAS, which linear algebra uses, follows where it can be told; before that its number
    comes from OMP_NUM_THREADS or OPENBLAS_NUM_THREADS.

    Raises:
        RuntimeError: the count is not a positive int.
        ValueError: it has more than 32 bits.

    >>> import flambeau as torch
    >>> before = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(before)
    """
    _keep(_checked_count("set_num_threads", count))
    Threads.asked = True
    for follow in Threads.followers:
        follow(count)


def _keep(count: int) -> None:
    others = [t for t in threading.enumerate() if t is not threading.current_thread()]
    if Threads.inside and (not others or count == Threads.inside):
        Threads.inside = Threads.latest = count
        return
    if Threads.inside:
        Threads.elder.update(dict.fromkeys(others, Threads.inside))
    Threads.inside, Threads.latest, _own.number = 0, count, count


def get_num_interop_threads() -> int:
    """How many forks may run at a time, as `set_num_interop_threads` was told; until then as many
    as there are cores to keep busy.

    >>> import flambeau as torch
    >>> torch.get_num_interop_threads() >= 1
    True
    """
    return processors.usable() if Threads.between is None else Threads.between


def set_num_interop_threads(count: int) -> None:
    """Set how many calls that scripts fork may run at a time.

    Raises:
        RuntimeError: the count is not a positive int, the number was set before, or forks run.

    >>> import flambeau as torch
    >>> try:
    ...     torch.set_num_interop_threads(0)
    ... except RuntimeError:
    ...     print("at least one")
    at least one
    """
    _checked_count("set_num_interop_threads", count)
    if Threads.between is not None or Threads.begun:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has "
                           "started or set_num_interop_threads called")  # fmt: skip
    Threads.between = count


# ---- determinism: on the CPU every operator gives the same bits from run to run


class Warnings:
    """Warnings that torch gives once per process, unless `set_warn_always` was called."""

    always = False
    given: set[str] = set()  # noqa: RUF012
    withheld: dict[int, list[str]] = {}  # noqa: RUF012
    """By thread: what a call that is made again has to warn of, which nobody is told now."""


def _is_withheld(text: str) -> bool:
    kept = Warnings.withheld.get(threading.get_ident()) if Warnings.withheld else None
    if kept is None:
        return False
    kept.append(text)
    return True


@contextmanager
def withholding() -> Iterator[list[str]]:
    """A region whose calls this thread makes again: they warn then. Gives what of."""
    kept: list[str] = []
    number = threading.get_ident()
    before = Warnings.withheld.get(number)
    try:
        Warnings.withheld[number] = kept
        yield kept
    finally:
        if before is None:
            Warnings.withheld.pop(number, None)
        else:
            Warnings.withheld[number] = before


def warn_once(text: str, stacklevel: int = 2, about: str = "") -> None:
    """Give a warning that torch gives once per process, be it in other words (`about` the same)."""
    if (about or text) in Warnings.given and not Warnings.always:
        return
    if _is_withheld(text):
        return
    Warnings.given.add(about or text)
    warnings.warn(text, UserWarning, stacklevel=users_level(stacklevel + 1))


OURS = ("<flambeau", *(str(Path(__file__).parents[1] / floor) + os.sep
                       for floor in ("_ops", "_tensor", "_core")))  # fmt: skip
"""How names of files begin whose functions a warning is never about."""
PACKAGE = ("<flambeau", str(Path(__file__).parents[1]) + os.sep)
"""The same of a warning that torch has not: it is about the user's line, and not one of `nn`."""


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning about the call that a user, or `nn`, wrote: where torch warns in C++."""
    if not _is_withheld(text):
        warnings.warn(text, category, stacklevel=users_level(2))


def users_level(level: int = 1, ours: tuple[str, ...] = OURS) -> int:
    """The `stacklevel` of a caller's warning, past generated functions and those of operators: no
    user wrote those, and torch has none of Python's."""
    frame = sys._getframe(1)
    for _ in range(level - 1):
        if frame.f_back is None:
            return level
        frame = frame.f_back
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
        level += 1
    return level


class Determinism:
    """What `use_deterministic_algorithms` was told."""

    enabled = False
    warn_only = False
    fill_uninitialized_memory = True
    fills = False  # both: new memory that nothing is written to gets numbers nobody overlooks


NO_WAY = "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_"
REPORT = (
    "You can {}file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize "
    "adding deterministic support for this operation."
)


def alert_not_deterministic(name: str) -> None:
    """Raise or warn, as was asked for, where PyTorch's result depends on chance."""
    if not Determinism.enabled:
        return
    if Determinism.warn_only:
        told = f"{NO_WAY}algorithms(True, warn_only=True)'. {REPORT.format('')}"
        warn_user(told.format(name))
        return
    way_out = (
        "You can turn off determinism just for this operation, or you can use the "
        "'warn_only=True' option, if that's acceptable for your application."
    )
    told = f"{NO_WAY}algorithms(True)'. {way_out} {REPORT.format('also ')}"
    raise RuntimeError(told.format(name))


def alert_on_gpus(name: str, tensor: Any) -> None:
    """The same for what depends on chance on GPUs alone."""
    if Determinism.enabled and tensor.is_cuda:
        alert_not_deterministic(name)


def set_fill_uninitialized_memory(fill: bool) -> None:
    """Whether memory that nothing is written to is filled while determinism is asked for."""
    if not isinstance(fill, bool):
        raise RuntimeError(f"expected a bool, but got {type(fill).__name__}")
    Determinism.fill_uninitialized_memory = fill
    Determinism.fills = Determinism.enabled and fill


DEBUG_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Whether deterministic algorithms are asked for.

    Flambeau has no others on the CPU. Where PyTorch has others, it is an error or, by `warn_only`,
    a warning; and memory that nothing is written to is filled
    (`torch.utils.deterministic.fill_uninitialized_memory`).

    >>> import flambeau as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'mode' (position 1) must be "
                        f"bool, not {type(mode).__name__}")  # fmt: skip
    if not isinstance(warn_only, bool):
        raise TypeError("_set_deterministic_algorithms(): argument 'warn_only' must be bool, not "
                        f"{type(warn_only).__name__}")  # fmt: skip
    Determinism.enabled, Determinism.warn_only = mode, warn_only
    Determinism.fills = mode and Determinism.fill_uninitialized_memory


def set_warn_always(mode: bool, /) -> None:
    """Whether warnings that are given once per process are given each time.

    >>> import flambeau as torch
    >>> torch.set_warn_always(True)
    >>> torch.is_warn_always_enabled()
    True
    >>> torch.set_warn_always(False)
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(mode).__name__}")
    Warnings.always = mode


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` has set.

    >>> import flambeau as torch
    >>> torch.is_warn_always_enabled()
    False
    """
    return Warnings.always


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for.

    >>> import flambeau as torch
    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether operators without a deterministic algorithm shall only warn.

    >>> import flambeau as torch
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return Determinism.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as one setting: 0 or "default", 1 or "warn", 2 or "error".

    >>> import flambeau as torch
    >>> torch.set_deterministic_debug_mode("error")
    >>> torch.get_deterministic_debug_mode()
    2
    >>> torch.set_deterministic_debug_mode("default")
    """
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
    """0: not asked for; 1: a warning where there is none; 2: an error.

    >>> import flambeau as torch
    >>> torch.get_deterministic_debug_mode()
    0
    """
    if not Determinism.enabled:
        return 0
    return 1 if Determinism.warn_only else 2
