"""Whether two outcomes of a program are the same: where they first differ, and how."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.jit.generated.comparing import compare_arrays

from .observing import BACKWARD, Line, Outcome, Seen

LIMITS = {
    "float64": 1e-7, "complex128": 1e-7, "float32": 1e-4, "complex64": 1e-4, "bfloat16": 4e-2,
    "float16": 1e-2,
}  # fmt: skip
"""How far values may be apart, in parts of the largest: special functions are not exact."""


UNSUPPORTED = ("_will_engine_execute_node", "report a bug", "Inplace update to inference tensor",
               "Could this error message be improved", "inplace version of",
               "is out of bounds for dimension")  # fmt: skip
"""What PyTorch says where it cannot do what works here, fails an assertion of its own, or has
written already what it refuses."""


@dataclass(frozen=True)
class Difference:
    """How two outcomes differ. `place` says where, in words that another run has, too."""

    kind: str
    detail: str = ""
    place: tuple[Any, ...] = ()
    size: float = 0.0

    @property
    def of_values(self) -> bool:
        return self.kind.startswith("values")


LAID = re.compile(
    r"linalg|fft|lu_|inverse|cholesky|triangular|ldl_|geqrf|\.qr|solve|unique|float_power|pow\(-?\d"
)
"""What gives new results that lie by rows here, and as LAPACK, the transform or a loop leaves them
in PyTorch: views of them, and what is contiguous, differ from there on."""


def difference(mine: Outcome, other: Outcome) -> Difference | None:
    """The first difference; `other` is what should be."""
    found = _first(mine, other)
    if found is not None and found.kind in ("stride", "memory", "is_leaf"):
        return None if LAID.search("\n".join(line.text for line in other.lines)) else found
    return found


def _first(mine: Outcome, other: Outcome) -> Difference | None:
    for index, (one, two) in enumerate(zip(mine.lines, other.lines, strict=False)):
        if any(word in two.said for word in UNSUPPORTED):
            return None
        found = _lines(one, two, index)
        if found is None and one.lent and not two.lent:
            return Difference("lends a gradient", one.text, (index,))
        if found is not None or two.lent:
            return found  # what a gradient is that is the user's own tensor, too, nobody can say
    if len(mine.lines) != len(other.lines):
        # An error within backward ends a program.
        return Difference("ends elsewhere", f"{len(mine.lines)} for {len(other.lines)}")
    for outcome in (mine, other):
        _count_from_start(outcome)
        if outcome.lines and outcome.lines[-1].error:
            _without_gradients(outcome)
    return _named(mine.final, other.final, ("final",))


def _without_gradients(outcome: Outcome) -> None:
    """Leave out what leaves have got: when backward fails, some of them have theirs already."""
    outcome.final = _ungraded(outcome.final)


def _ungraded(value: Any) -> Any:
    if isinstance(value, list):
        return [_ungraded(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: _ungraded(v) for k, v in value.items() if not str(k).endswith(".grad")}


def _count_from_start(outcome: Outcome) -> None:
    """Count versions from those that variables began with: operators fill buffers inside. Of what
    the statement made that ended the program nobody saw the beginning."""
    first = {name: value for line in reversed(outcome.lines) for name, value in line.values.items()}
    for name, value in outcome.final.items():
        start = first.get(name)
        if isinstance(value, Seen) and isinstance(start, Seen) and value.version >= 0:
            value.version -= start.version
        elif isinstance(value, Seen) and start is None:
            value.version = 0


NO_FORMULA = "derivative for aten::"


def _lines(mine: Line, other: Line, index: int) -> Difference | None:
    if mine.error != other.error:
        told = f"{mine.error}: {mine.said} for {other.error}: {other.said}"
        return Difference(_error_kind(mine, other), told, (index,))
    # Hooks of leaves run at the end here, and as soon as they can in PyTorch; what has no formula
    # is met before anything else there.
    notes = [sorted(line.notes, key=_told_by) for line in (mine, other)]
    met_late = NO_FORMULA in mine.said and NO_FORMULA in other.said
    found = None if met_late else _values(*notes, (index, "note"))
    if found is None:
        found = _named(mine.values, other.values, (index,))
    if found is None and mine.warned != other.warned:
        return Difference("warnings", f"{mine.warned} for {other.warned}", (index,))
    told = other.weighed or any(word in other.text for word in BACKWARD)
    if found is None and told and _plainly(mine.said) != _plainly(other.said):
        return Difference("words of an error", f"{mine.said!r} for {other.said!r}", (index,))
    return found


def _told_by(note: list[Any]) -> str:
    return note[0] if note and isinstance(note[0], str) else ""


OUTPUT = re.compile(r"(which is output \d+ of \w+?)\d*,")
CLASS = re.compile(r"\b(?:torch|flambeau)(?:\.\w+)*\.(\w+)")
UNINITIALIZED = re.compile(r"(uninitialized parameter) in <.*?>(?= This|\.)")
BACKEND = re.compile(r"(Could not run '\S+' with arguments from the '\S+' backend\.).*")
ADDRESS = re.compile(r"0x[0-9a-f]+|\b\d{12,}\b")


def _plainly(said: str) -> str:
    """What an error says, without the number that tells overloads apart, without addresses and
    the modules of classes."""
    said = UNINITIALIZED.sub(r"\1", said)
    said = BACKEND.sub(r"\1", said)
    return ADDRESS.sub("0x", CLASS.sub(r"\1", OUTPUT.sub(r"\1,", said)))


def _error_kind(mine: Line, other: Line) -> str:
    if not other.error:
        return f"raises {mine.error}"
    if not mine.error:
        return f"does not raise {other.error}"
    return f"raises {mine.error} for {other.error}"


def _named(mine: dict[str, Any], other: dict[str, Any],
           place: tuple[Any, ...]) -> Difference | None:  # fmt: skip
    if list(mine) != list(other):
        return Difference("names", f"{list(mine)} for {list(other)}", place)
    for name, value in other.items():
        found = _values(mine[name], value, (*place, name))
        if found is not None:
            return found
    return None


def _values(mine: Any, other: Any, place: tuple[Any, ...]) -> Difference | None:
    if isinstance(mine, Seen) and isinstance(other, Seen):
        return _tensors(mine, other, place)
    if isinstance(mine, list) and isinstance(other, list):
        if len(mine) != len(other):
            return Difference("number of values", f"{mine!s:.200} for {other!s:.200}", place)
        for index, (one, two) in enumerate(zip(mine, other, strict=True)):
            found = _values(one, two, (*place, index))
            if found is not None:
                return found
        return None
    if isinstance(mine, dict) and isinstance(other, dict):
        return _named(mine, other, place)
    if type(mine) is type(other) and _same(mine, other):
        return None
    kind = "None or not" if mine is None or other is None else "other value"
    return Difference(kind, f"{mine!s:.200} for {other!s:.200}", place)


def _same(mine: Any, other: Any) -> bool:
    if not isinstance(mine, (float, complex)):
        return bool(mine == other)
    return compare_arrays(np.array(mine), np.array(other)) < 1e-5


UNSETTLED = ("version", "name", "is_leaf", "bits")
"""Of gradients: which sums an engine has made in place, what formulas are made of (so that one may
be a conjugate view), and whether one is what came in or an alias of it."""
STRUCTURAL = ("", "torch::autograd::CopySlices")
FIELDS = ("dtype", "shape", "requires_grad", "is_leaf", "memory", "version", "name", "bits")


def _tensors(mine: Seen, other: Seen, place: tuple[Any, ...]) -> Difference | None:
    for field in FIELDS[:2]:
        if getattr(mine, field) != getattr(other, field):
            return _of(field, mine, other, place)
    size = compare_arrays(mine.values, other.values, signs=False)
    if size > LIMITS.get(other.dtype, 0.0):
        told = f"{mine.values.tolist()!s:.300} for {other.values.tolist()!s:.300}"
        return Difference("values", told, place, size)
    for field in FIELDS[2:]:
        if field == "memory" and str(place[-1]).endswith(".grad"):
            continue  # see `Line.lent`
        if field in UNSETTLED and _is_gradient(place):
            continue
        if field == "version" and place[0] != "final":
            continue
        if _told(mine, field) != _told(other, field):
            return _of(field, mine, other, place)
    if not _same_layout(mine, other) and not _is_gradient(place):
        return _of("stride", mine, other, place)
    return None


def _told(value: Seen, field: str) -> Any:
    """A field; of nodes' names only those that say how a tensor came to its history: many
    operators are made of others than in PyTorch."""
    found = getattr(value, field)
    return found if field != "name" or found in STRUCTURAL else "an operator"


def _of(field: str, mine: Seen, other: Seen, place: tuple[Any, ...]) -> Difference:
    kind = f"{field} of a gradient" if _is_gradient(place) else field
    return Difference(kind, f"{getattr(mine, field)} for {getattr(other, field)}", place)


GRADIENT = re.compile(r"\.grad$|^g\d+$")


def _is_gradient(place: tuple[Any, ...]) -> bool:
    """Whether a tensor is a gradient: in which layout sums of them are kept is not settled."""
    names = [name for name in place if isinstance(name, str)]
    return "note" in names or any(GRADIENT.search(name) for name in names)


def _same_layout(mine: Seen, other: Seen) -> bool:
    """Whether strides agree, but for new results that lie by rows here (see `LAID`)."""
    if _strides(mine) == _strides(other):
        return True
    sizes = [size for size in mine.shape if size > 1]
    rows = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    return _strides(mine) == rows and _is_dense(other)


def _is_dense(value: Seen) -> bool:
    """Whether a tensor fills its memory, in any order of dims."""
    reach = 1
    pairs = zip(value.stride, value.shape, strict=True)
    for step, size in sorted(pair for pair in pairs if pair[1] > 1):
        if step != reach:
            return False
        reach *= size
    return True


def _strides(value: Seen) -> list[int]:
    """The strides that mean something."""
    if 0 in value.shape:
        return []
    return [step for step, size in zip(value.stride, value.shape, strict=True) if size > 1]


def at(outcome: Outcome, place: tuple[Any, ...]) -> Any:
    """What an outcome has at the place of a difference; None if there is nothing."""
    found: Any = outcome.final
    path = place[1:]
    if place[0] != "final":
        if place[0] >= len(outcome.lines):
            return None  # an error ended it before
        line = outcome.lines[place[0]]
        notes = sorted(line.notes, key=_told_by)
        found, path = (notes, place[2:]) if place[1] == "note" else (line.values, place[1:])
    try:
        for step in path:
            found = found[step]
    except (KeyError, IndexError, TypeError):
        return None
    return found
