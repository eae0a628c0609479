"""What a run has come to, and the first difference between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import version_of
from flambeau.jit.optimise.sharing import tensors_in

TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4,
             "float16": 2e-2, "bfloat16": 1e-1}  # fmt: skip
"""How far floats may lie apart, beside the largest number of their tensor: sums come in another
order. Integers, masks and all else are equal."""


@dataclass(slots=True)
class Outcome:
    """results: what the program returned; None where it raised `error`. tensors: all that its
    arguments held. leaves: where gradients end.
    """

    results: Any
    error: BaseException | None
    tensors: Sequence[Tensor]
    leaves: Sequence[Tensor]
    values: Sequence[Any]
    printed: str
    random_state: bytes
    recording: bool | None


def difference(found: Outcome, wanted: Outcome, factor: float = 1.0) -> str | None:
    """What differs first, in words; None where nothing does."""
    if found.error is not None or wanted.error is not None:
        return _of_errors(found.error, wanted.error)
    for words, mine, theirs in (
        ("output", found.printed, wanted.printed),
        ("random state", found.random_state, wanted.random_state),
        ("grad mode", found.recording, wanted.recording),
    ):
        if mine != theirs:
            return f"{words}: {mine!r:.200} instead of {theirs!r:.200}"
    pairs = [("result", found.results, wanted.results), ("argument", found.values, wanted.values)]
    for name, mine, theirs in pairs:
        told = of_values(name, mine, theirs, factor)
        if told:
            return told
    return _of_sharing(found, wanted)


def _of_errors(found: BaseException | None, wanted: BaseException | None) -> str | None:
    if type(found) is type(wanted):
        return None
    return f"error: {_named(found)} instead of {_named(wanted)}"


def _named(error: BaseException | None) -> str:
    return "none" if error is None else f"{type(error).__name__}: {error}"


def of_values(name: str, found: Any, wanted: Any, factor: float = 1.0) -> str | None:
    """What differs first between two values and all that they hold."""
    if isinstance(found, Tensor) and isinstance(wanted, Tensor):
        return of_tensors(name, found, wanted, factor)
    if type(found) is not type(wanted):
        return f"{name}: a {type(found).__name__} instead of a {type(wanted).__name__}"
    if isinstance(found, (list, tuple)):
        if len(found) != len(wanted):
            return f"{name}: {len(found)} items instead of {len(wanted)}"
        pairs = [(f"{name}[{k}]", *pair) for k, pair in enumerate(zip(found, wanted, strict=True))]
        return _first(of_values(*pair, factor) for pair in pairs)
    if isinstance(found, dict):
        if list(found) != list(wanted):
            return f"{name}: keys {list(found)} instead of {list(wanted)}"
        return _first(of_values(f"{name}[{k!r}]", found[k], wanted[k], factor) for k in found)
    if isinstance(found, float):
        return _of_numbers(name, np.float64(found), np.float64(wanted), "float64", factor)
    if isinstance(found, (int, str, bool, type(None))) and found != wanted:
        return f"{name}: {found!r} instead of {wanted!r}"
    return None


def _first(found: Iterator[str | None]) -> str | None:
    return next((told for told in found if told), None)


FACTS: dict[str, Callable[[Tensor], Any]] = {
    "dtype": lambda t: t.dtype,
    "shape": lambda t: tuple(t._data.shape),
    "strides": lambda t: tuple(t.stride()) if t._data.size else (),  # type: ignore[attr-defined]
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "version": lambda t: 0 if t._inference else version_of(t),
    "inference": lambda t: t._inference,
}
"""What is asked of tensors beside their numbers."""
FACTS_OF_GRADIENTS = {name: ask for name, ask in FACTS.items() if name != "strides"}


def of_tensors(name: str, found: Tensor, wanted: Tensor, factor: float = 1.0) -> str | None:
    """What differs first between two tensors."""
    return _of_facts(name, found, wanted, FACTS) or _of_numbers(
        name, found._data, wanted._data, found.dtype.name, factor)  # fmt: skip


def of_gradients(found: Any, wanted: Any, factor: float) -> str | None:
    """What differs first between the gradients of two runs. How they lie in memory is nobody's
    promise, and a sum of infinite ones may be nan or infinite, as its order is.
    """
    if isinstance(found, str) or isinstance(wanted, str):
        return of_values("gradient", found, wanted)
    for k, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        name = f"gradient[{k}]"
        if mine is None or theirs is None:
            told = of_values(name, mine, theirs)
        else:
            told = _of_facts(name, mine, theirs, FACTS_OF_GRADIENTS)
            if told is None:
                arrays = _without_infinities(mine._data, theirs._data)
                told = _of_numbers(name, *arrays, mine.dtype.name, factor)
        if told:
            return told
    return None


def _of_facts(name: str, found: Tensor, wanted: Tensor,
              facts: Mapping[str, Callable[[Tensor], Any]]) -> str | None:  # fmt: skip
    for fact, ask in facts.items():
        mine, theirs = ask(found), ask(wanted)
        if mine != theirs:
            return f"{name}: {fact} {mine} instead of {theirs}"
    return None


def _without_infinities(found: Any, wanted: Any) -> tuple[Any, Any]:
    """Two arrays, with 0 where neither is finite."""
    wide = [a.astype(np.float32) if a.dtype.kind == "V" else a for a in (found, wanted)]
    either = np.isfinite(wide[0]) | np.isfinite(wide[1])
    return np.where(either, wide[0], 0), np.where(either, wide[1], 0)


def _of_numbers(name: str, found: Any, wanted: Any, dtype: str, factor: float) -> str | None:
    """Whether numbers are the same, or near each other where their type rounds."""
    if dtype not in TOLERANCE:
        wrong = int(np.count_nonzero(np.asarray(found != wanted)))
        return f"{name}: {wrong} of {found.size} elements differ" if wrong else None
    kind = np.complex128 if dtype.startswith("complex") else np.float64
    mine, theirs = np.asarray(found, kind), np.asarray(wanted, kind)
    finite = np.isfinite(theirs)
    odd = ~finite & ~((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))
    scale = float(np.abs(theirs[finite]).max(initial=0.0))
    with np.errstate(all="ignore"):
        apart = finite & ~(np.abs(mine - theirs) <= factor * TOLERANCE[dtype] * scale)
    wrong = int(np.count_nonzero(odd | apart))
    if not wrong:
        return None
    place = tuple(int(k) for k in np.argwhere(odd | apart)[0])
    return (f"{name}: {wrong} of {mine.size} elements differ, first {mine[place]} instead of "
            f"{theirs[place]} at {place}")  # fmt: skip


# ---- what is one tensor, and what shares memory


def _of_sharing(found: Outcome, wanted: Outcome) -> str | None:
    mine, theirs = [_all_tensors(outcome) for outcome in (found, wanted)]
    for words, classes in (("are one tensor", _identities), ("share memory", memories)):
        if classes(mine) != classes(theirs):
            return f"aliasing: other results and arguments {words} than in the plain program"
    return None


def _all_tensors(outcome: Outcome) -> list[Tensor]:
    return [*_in_order(outcome.results), *outcome.tensors, *tensors_in(list(outcome.values))]


def _in_order(value: Any) -> list[Tensor]:
    """The tensors of results, those that come twice as often."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _in_order(item)]
    return []


def _identities(tensors: Sequence[Tensor]) -> list[int]:
    """For each tensor the first place at which it stands."""
    first: dict[int, int] = {}
    return [first.setdefault(id(tensor), k) for k, tensor in enumerate(tensors)]


def memories(tensors: Sequence[Tensor]) -> list[int]:
    """For each tensor the first one whose stretch of memory meets its own, or is joined to it."""
    bounds = [np.lib.array_utils.byte_bounds(t._data) for t in tensors]
    order = sorted(range(len(tensors)), key=lambda k: bounds[k])
    groups: list[list[int]] = []
    end = -1
    for k in order:
        if not tensors[k]._data.size or bounds[k][0] >= end:
            groups.append([])
        end = max(end, bounds[k][1]) if tensors[k]._data.size else end
        groups[-1].append(k)
    firsts = {k: min(group) for group in groups for k in group}
    return [firsts[k] for k in range(len(tensors))]
