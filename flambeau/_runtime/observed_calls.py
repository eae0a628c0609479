"""How calls come into inline caches by being observed: a call that launches one kernel on its
arguments and its results, and does nothing else, is that launch.
"""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import memory_format
from flambeau._core.settings import withholding
from flambeau._runtime import choice, cpu, observed
from flambeau._runtime.inline_cache import MOST, Argument, InlineCache, Result

ndarray = np.ndarray
IMMUTABLE = (int, float, bool, NoneType, str, dt.dtype, memory_format)


def observer(run: Callable[..., Any], alike: bool) -> Callable[..., None]:
    """What describes calls of a function of arrays by what they launch.

    Args:
        alike: whether NumPy's results are those of kernels to the last bit, see `choice.Learning`.
    """

    def learn(cache: InlineCache, *arguments: Any) -> None:
        arrays = [a for a in arguments if a.__class__ is ndarray]
        if not all(a.__class__ is ndarray or _is_immutable(a) for a in arguments):
            return
        if not all(a.size for a in arrays) or _is_large(arrays):
            return
        choice.Learning.thread = threading.get_ident() if alike else 0
        try:
            with cpu.quiet(), withholding() as warned, observed.observed() as seen:
                found = run(*arguments)
        except Exception as error:
            if _is_of_a_signal(error):
                raise
            return  # the call itself will say so
        finally:
            choice.Learning.thread = 0
        if len(seen.launches) == 1 and not warned:  # the call itself will warn, each time
            results = found if isinstance(found, tuple) else (found,)
            _keep_launch(cache, arguments, results, seen)

    return learn


def _is_of_a_signal(error: Exception) -> bool:
    """Whether an error comes from the handler of a signal that came meanwhile: from code of others.
    What a call raises comes from here or from NumPy."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    home = "" if trace is None else trace.tb_frame.f_globals.get("__name__") or ""
    return home.partition(".")[0] not in ("", "flambeau", "numpy")


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(item.__class__ is int for item in value)
    return value.__class__ in IMMUTABLE or isinstance(value, np.dtype)


def _keep_launch(cache: InlineCache, arguments: tuple[Any, ...], results: tuple[Any, ...],
                 seen: observed.Seen) -> None:  # fmt: skip
    """Describe a call that was one launch, if it is nothing else."""
    kernel, tasks, given = seen.launches[0]
    made = [*results, *seen.scratch, *seen.flags]
    if len(seen.flags) > 1 or tasks != 1:
        return
    if not all(_is_new(value) for value in made) or _is_large(made):
        return
    arrays = [(k, a) for k, a in enumerate(arguments) if a.__class__ is ndarray]
    places = [(a, Result, k) for k, a in enumerate(made)] + [(a, Argument, k) for k, a in arrays]
    if not _are_apart([array for array, _, _ in places]):  # which of two a kernel gets is not known
        return
    slots = [
        _slot(letter, word, places) for letter, word in zip(kernel.letters, given, strict=True)
    ]
    written = {slot.position for slot in slots if isinstance(slot, Result)}
    if None in slots or len(written) != len(made):
        return
    tables = [word for word in given if word.__class__ is ndarray and _is_constant(word)]
    described = [(value.dtype, value.shape) for value in made]
    try:
        cache.keep(arguments, described, slots, kernel.address, None, len(results),
                   len(made) if seen.flags else 0, alive=(kernel, tables))  # fmt: skip
        cache.confirm(arguments, results)
    except BaseException:  # a signal's: what is not confirmed is not used
        cache.forget()
        raise


def _slot(letter: str, word: Any, places: Sequence[Any]) -> Any:
    """What a kernel is given for an argument; None for memory that is neither the call's own, at
    `places`, nor a constant."""
    if letter == "d":
        return struct.unpack("q", struct.pack("d", word))[0]
    if letter == "q":
        return int(word)
    if word.__class__ is not ndarray:
        return None
    start = cpu.address(word)
    for array, kind, k in places:
        offset = start - cpu.address(array)
        if 0 <= offset < array.nbytes:
            return kind(k, offset)
    return start if _is_constant(word) else None


def _are_apart(arrays: Sequence[np.ndarray]) -> bool:
    """Whether each of some arrays lies in rows, in memory of its own."""
    ends = sorted([(cpu.address(a), cpu.address(a) + a.nbytes) for a in arrays])
    apart = all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
    return apart and all(a.flags.c_contiguous for a in arrays)


def _is_large(arrays: Sequence[np.ndarray]) -> bool:
    return sum([array.size for array in arrays]) > MOST


def _is_new(value: Any) -> bool:
    """Whether a result is an array of its own, as one that is made anew would be."""
    return value.__class__ is ndarray and value.flags.c_contiguous and value.size > 0


def _is_constant(array: np.ndarray) -> bool:
    """Whether an array is one that nobody writes to, as tables of plans are."""
    return array.flags.owndata and not array.flags.writeable
