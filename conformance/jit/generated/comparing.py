"""Whether two outcomes of a call are the same: where they first differ, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .observing import Outcome, Seen

EPSILON = {
    "float64": 2.3e-16, "float32": 1.2e-7, "bfloat16": 8e-3, "float16": 1e-3,
    "complex64": 1.2e-7, "complex128": 2.3e-16,
}  # fmt: skip
ULPS = {"bfloat16": 4.0, "float16": 8.0}
USUAL_ULPS = 64.0
"""So many roundings of the largest number may lie between two forms, before it is looked into how
well the numbers are determined at all."""
LISTS = str.maketrans("()", "[]")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)j?")


@dataclass(frozen=True)
class Difference:
    """How two outcomes differ."""

    kind: str
    """A few words, the same for the same kind of difference: `values of a result`."""
    detail: str = ""
    size: float = 0.0
    """Of values: how far they are apart, measured by the largest number."""
    place: int = -1
    """Of values: of which tensor."""

    @property
    def of_values(self) -> bool:
        """Whether it may be that the numbers are not well determined."""
        return self.kind.startswith(("values", "second values", "printed", "other"))


@dataclass(frozen=True)
class Rules:
    """What is compared: between libraries less than between two forms of one."""

    strides: bool = True
    texts: bool = True
    versions: bool = True
    classes: bool = True
    shared: bool = True
    random: bool = True
    indices: bool = True
    """Whether whole numbers are compared: among equal numbers, libraries find different ones."""
    ulps: float = 1.0
    """A factor for what may lie between."""


STRICT = Rules()
ACROSS = Rules(strides=False, texts=False, versions=False, classes=False, ulps=4.0)
"""Between libraries: LAPACK's columns have other strides, operators count a version for each buffer
that they fill inside, gradients may have a history of zeros (that of relu has, in PyTorch), and
sums of infinities and zeros are taken in another order."""


def difference(mine: Outcome, other: Outcome, rules: Rules = STRICT) -> Difference | None:
    """The first difference; None if there is none. `other` is what should be."""
    for look in (_errors, _structure, _results, _arguments, _memory, _writes, _gradients, _rest):
        found = look(mine, other, rules)
        if found is not None:
            return found
    return None


def _errors(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    one, two = mine.raised, other.raised
    if not rules.classes:
        one, two = one.partition(":")[0], two.partition(":")[0]
    if one == two:
        return None
    if not other.raised:
        kind = f"raises in {mine.raised}"
    elif not mine.raised:
        kind = f"does not raise in {other.raised}"
    else:
        kind = f"raises another: {mine.raised} for {other.raised}"
    return Difference(kind, f"{mine.text[-600:]!r} for {other.text[-600:]!r}")


def _structure(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    if mine.raised.startswith("call"):
        return None
    one, two = str(mine.kinds), str(other.kinds)
    if not rules.classes:  # eager functions give lists where scripts have tuples, and tuples back
        one, two = (text.translate(LISTS) for text in (one, two))
    if one != two:
        return Difference("structure of results", f"{mine.kinds} for {other.kinds}")
    for one, two in zip(mine.others, other.others, strict=True):
        if not same_number(one, two, 1e-5):
            return Difference("other result", f"{one!r} for {two!r}")
    return None


def same_number(one: Any, two: Any, rtol: float) -> bool:
    """Whether two Python values are the same; floats nearly."""
    if type(one) is not type(two):
        return False
    if not isinstance(one, (float, complex)):
        return bool(one == two)
    return compare_arrays(np.array(one), np.array(two)) <= rtol


def _results(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    return _tensors("result", mine.results, other.results, rules)


def _arguments(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    return _tensors("argument", mine.arguments, other.arguments, rules)


def _tensors(what: str, mine: list[Any], other: list[Any], rules: Rules) -> Difference | None:
    if len(mine) != len(other):
        # Gradients that are always zero may have a history in one library, none in the other.
        own = what == "gradient" and not rules.classes
        return None if own else Difference(f"number of {what}s", f"{len(mine)} for {len(other)}")
    for index, (one, two) in enumerate(zip(mine, other, strict=True)):
        found = _tensor(what, one, two, rules)
        if found is not None:
            return Difference(found.kind, f"{index}: {found.detail}", found.size, index)
    return None


def _tensor(what: str, mine: Seen | None, other: Seen | None, rules: Rules) -> Difference | None:
    if mine is None or other is None:
        if mine is other or (not rules.classes and _nothing(mine) and _nothing(other)):
            return None
        return Difference(f"{what} is None or not", f"{_brief(mine)} for {_brief(other)}")
    for name in ("dtype", "shape", "requires_grad"):
        one, two = getattr(mine, name), getattr(other, name)
        own = name == "requires_grad" and what == "gradient" and not rules.classes
        if one != two and not own:
            return Difference(f"{name} of {what}", f"{one} for {two}")
    found = compare_arrays(mine.values, other.values, what == "result" and rules.classes)
    limit = rules.ulps * ULPS.get(other.dtype, USUAL_ULPS) * EPSILON.get(other.dtype, 0.0)
    if found > limit and (rules.indices or other.dtype != "int64"):
        detail = f"{mine.values.tolist()!s:.300} for {other.values.tolist()!s:.300}"
        # 0.0 added to -0.0 is 0.0.
        only_signs = compare_arrays(mine.values + 0.0, other.values + 0.0) <= limit
        return Difference(f"{'signs' if only_signs else 'values'} of {what}", detail, found)
    if rules.strides and what != "gradient" and _strides(mine) != _strides(other):
        return Difference(f"strides of {what}", f"{mine.stride} for {other.stride}, {mine.shape}")
    if rules.versions and what != "gradient" and mine.version != other.version:
        return Difference(f"version of {what}", f"{mine.version} for {other.version}")
    return None


def _nothing(gradient: Seen | None) -> bool:
    """Whether a gradient says the same as none."""
    return gradient is None or not np.any(gradient.values)


def _brief(value: Seen | None) -> str:
    return "None" if value is None else f"{value.dtype}{list(value.shape)}"


def _strides(value: Seen) -> list[int]:
    """The strides that mean something."""
    if 0 in value.shape:
        return []
    return [step for step, size in zip(value.stride, value.shape, strict=True) if size > 1]


def compare_arrays(mine: np.ndarray, other: np.ndarray, signs: bool = True) -> float:
    """How far arrays are apart, in parts of the largest number; infinite for what is right or
    wrong. Without `signs`, for gradients, which are sums in any order, the signs of zeros are not
    asked for, and all that is not finite is the same."""
    if mine.shape != other.shape:
        return np.inf
    if mine.dtype.kind in "biu" or other.dtype.kind in "biu":
        return 0.0 if np.array_equal(mine, other) else np.inf
    if mine.dtype.kind == "c":
        # A product of complex numbers that are not finite has other parts in each library.
        both = ~(np.isfinite(mine) | np.isfinite(other))
        mine, other = np.where(both, 0, mine), np.where(both, 0, other)
        parts = ((mine.real, other.real), (mine.imag, other.imag))
        found = max(compare_arrays(*part, signs) for part in parts)
        return found if signs or not np.isfinite(found) else _in_the_plane(mine, other)
    with np.errstate(all="ignore"):
        return _compare_floats(mine.astype(np.float64), other.astype(np.float64), signs)


def _in_the_plane(mine: np.ndarray, other: np.ndarray) -> float:
    """How far complex numbers are apart, in parts of the largest: one part may be rounding."""
    finite = np.isfinite(mine) & np.isfinite(other)
    if not finite.any():
        return 0.0
    mine, other = mine[finite].astype(np.complex128), other[finite].astype(np.complex128)
    return float(np.abs(mine - other).max()) / max(float(np.abs(other).max()), 1e-30)


def _compare_floats(mine: np.ndarray, other: np.ndarray, signs: bool) -> float:
    if not signs:
        both = ~(np.isfinite(mine) | np.isfinite(other))
        mine, other = np.where(both, 0.0, mine), np.where(both, 0.0, other)
    if not np.array_equal(np.isnan(mine), np.isnan(other)):
        return np.inf
    infinite = np.isinf(other) | np.isinf(mine)
    if not np.array_equal(mine[infinite], other[infinite]):
        return np.inf
    zero = (mine == 0) & (other == 0)
    if signs and not np.array_equal(np.signbit(mine[zero]), np.signbit(other[zero])):
        return np.inf
    finite = np.isfinite(other)
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(other[finite]).max()), 1e-30)
    return float(np.abs(mine[finite] - other[finite]).max()) / scale


def _memory(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    one, two = mine.shared, other.shared
    if not rules.strides:  # nor where in a storage something begins
        one, two = ([(first, 0) for first, _ in pairs] for pairs in (one, two))
    if not rules.shared or one == two:
        return None
    return Difference("shared memory", f"{mine.shared} for {other.shared}")


def _writes(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    for index, (one, two) in enumerate(zip(mine.written, other.written, strict=True)):
        if one.dtype.kind in "iu" and not rules.indices:
            continue
        if compare_arrays(one, two, rules.classes) > 1e-2:
            return Difference("values after a write", f"{index}: {one!s:.200} for {two!s:.200}")
    return None


def _gradients(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    found = _tensors("gradient", mine.gradients, other.gradients, rules)
    if found is not None:
        return found
    found = _tensors("gradient", mine.second, other.second, rules)
    return replace(found, kind=f"second {found.kind}") if found else None


SEEN = {
    "values of result": "results", "values of argument": "arguments",
    "values of gradient": "gradients", "second values of gradient": "second",
}  # fmt: skip
"""Where an outcome has the tensors that a difference is about."""


def at_place(mine: Outcome, other: Outcome, told: Difference) -> float:
    """How far two outcomes are apart in the tensor that a difference is about."""
    one, two = (getattr(outcome, SEEN[told.kind])[told.place] for outcome in (mine, other))
    if one is None or two is None:
        return np.inf
    return compare_arrays(one.values, two.values, "gradient" not in told.kind)


def _rest(mine: Outcome, other: Outcome, rules: Rules) -> Difference | None:
    if rules.random and mine.random != other.random:
        return Difference("random state")
    if rules.texts and not _same_text(mine.printed, other.printed):
        return Difference("printed text", f"{mine.printed[:300]!r} for {other.printed[:300]!r}")
    return None


def _same_text(mine: str, other: str) -> bool:
    """Whether texts are the same, the last digits of numbers apart."""
    if mine == other:
        return True
    if NUMBER.sub("", mine).split() != NUMBER.sub("", other).split():
        return False
    one, two = NUMBER.findall(mine), NUMBER.findall(other)
    if len(one) != len(two):
        return False
    pairs = zip(one, two, strict=True)
    return all(a == b or same_number(complex(a), complex(b), 1e-3) for a, b in pairs)
