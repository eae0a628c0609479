"""Calls of NumPy's BLAS that stay in the calling thread.

OpenBLAS's threads look for more work for some 30 ms after each product that they took part in, and
take the cores from the kernels of our own pool meanwhile: one product of 20 us by two threads can
double the time of a training step (benchmarks/engine.py "mlp"). So once the pool has threads,
products of ours are told to start none; those of the user's NumPy code, and LAPACK's, go on as
before. A BLAS that cannot be told, or that has one thread anyway, is left as it is.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._core import settings
from flambeau._runtime import threads

NAMES = (
    "scipy_openblas_{}_num_threads64_",  # NumPy's wheels
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
"""What the functions that get and set the number are called in builds of OpenBLAS."""


class Alone:
    """How many calls are inside now, and how many threads BLAS may start when they have left."""

    lock = threading.Lock()
    inside = 0
    before = 1


def alone(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of NumPy's; products inside it are computed by this thread alone, once the
    pool has threads."""
    number = None if threads.Shared.pool is None else control()
    if number is None:
        return function(*arguments, **options)
    return _by_one(number, function, arguments, options)


def always_alone(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The same whether there is a pool or not: how BLAS cuts products of complex numbers, and with
    it their last bits, depends on how many threads it may start."""
    number = functions()
    if number is None:
        return function(*arguments, **options)
    return _by_one(number, function, arguments, options)


def _by_one(number: Any, function: Callable[..., Any], arguments: Any, options: Any) -> Any:
    get, put = number
    is_inside = False
    try:  # all of it: a signal's handler may raise between any two calls
        with Alone.lock:
            is_first = Alone.inside == 0
            if is_first:
                Alone.before = get()
            Alone.inside += 1
            is_inside = True
            if is_first:
                put(1)
        return function(*arguments, **options)
    finally:
        if is_inside:
            with Alone.lock:
                Alone.inside -= 1
                if Alone.inside == 0:
                    put(Alone.before)


@cache
def control() -> Any:
    """The functions that get and set BLAS's number of threads; None where it has one, or none are
    found."""
    found = functions()
    return found if found is not None and found[0]() > 1 else None


@cache
def functions() -> Any:
    """The functions that get and set BLAS's number of threads; None where none are found."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError, TypeError):
        return None
    for name in NAMES:
        get, put = (getattr(library, name.format(what), None) for what in ("get", "set"))
        if get is not None and put is not None:
            return get, put
    return None


def follow(count: int) -> None:
    """`set_num_threads`: from now on BLAS may start so many threads, too."""
    number = functions()
    if number is None:
        return
    with Alone.lock:
        Alone.before = count
        if Alone.inside == 0:
            number[1](count)
        control.cache_clear()


settings.Threads.followers.append(follow)
if settings.Threads.asked:
    follow(settings.Threads.latest)


def _forget() -> None:
    """The child of a fork has none of its parent's calls under way."""
    if Alone.inside:
        control()[1](Alone.before)
    Alone.lock, Alone.inside = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
