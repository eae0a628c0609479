"""How calls come into inline caches by being observed: a call that launches one kernel on its
arguments and its results, and does nothing else, is that launch.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import memory_format
from flambeau._runtime import choice, cpu, observed
from flambeau._runtime.inline_cache import Argument, InlineCache, Result

ndarray = np.ndarray
MOST = 1 << 15
"""Elements of all arrays of an observed call: with more a launch is worth several tasks, and other
threads of Python go on meanwhile."""
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
        choice.Learning.alike = alike
        try:
            with cpu.quiet(), observed.observed() as seen:
                found = run(*arguments)
        except Exception:  # the call itself will say so
            return
        finally:
            choice.Learning.alike = False
        if len(seen.launches) == 1:
            results = found if isinstance(found, tuple) else (found,)
            _keep_launch(cache, arguments, results, seen)

    return learn


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(item.__class__ is int for item in value)
    return value.__class__ in IMMUTABLE


def _keep_launch(cache: InlineCache, arguments: tuple[Any, ...], results: tuple[Any, ...],
                 seen: observed.Seen) -> None:  # fmt: skip
    """Describe a call that was one launch, if it is nothing else."""
    kernel, tasks, given = seen.launches[0]
    if len(seen.flags) > 1:
        return
    made = [*results, *seen.scratch, *seen.flags]
    if tasks != 1 or not all(_is_new(value) for value in made) or _is_large(made):
        return
    arrays = [(k, a) for k, a in enumerate(arguments) if a.__class__ is ndarray]
    places = [(a, Result, k) for k, a in enumerate(made)] + [(a, Argument, k) for k, a in arrays]
    if not _are_apart(
        [array for array, _, _ in places]
    ):  # which one a kernel is given is not known
        return
    slots: list[Any] = []
    constants = []
    for letter, word in zip(kernel.letters, given, strict=True):
        if letter == "d":
            slots.append(struct.unpack("q", struct.pack("d", word))[0])
        elif letter == "q":
            slots.append(int(word))
        elif word.__class__ is not ndarray:
            return
        else:
            start = cpu.address(word)
            slot = next((kind(k, start - first) for array, kind, k in places
                         if 0 <= start - (first := cpu.address(array)) < array.nbytes), None)  # fmt: skip
            if slot is None and not _is_constant(word):
                return
            if slot is None:
                constants.append(word)
            slots.append(start if slot is None else slot)
    written = {slot.position for slot in slots if isinstance(slot, Result)}
    if len(written) == len(made):
        described = [(value.dtype, value.shape) for value in made]
        cache.keep(arguments, described, slots, kernel.address, None, len(results),
                   len(made) if seen.flags else 0, (kernel, constants))  # fmt: skip


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
