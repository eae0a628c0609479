"""Where PyTorch's answer depends on a parameter and ours does not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import flambeau
from conformance.autograd.generated.observing import Line, Outcome
from conformance.autograd.generated.running import outcome
from conformance.calls.generated.drawing import seen_there
from conformance.calls.generated.signatures import Parameter, Target
from conformance.calls.generated.words import CallWords

from .bases import Base, bases
from .candidates import candidates

AS_FOUND = ("Tensor.new",)
"""What gives memory as it is found."""
OF_FULL_RANK = ("torch.linalg.lstsq", "torch.svd_lowrank", "torch.pca_lowrank")
"""What has many answers for other matrices: not asked for matrices of equal numbers."""
EQUAL = ("'ones'", "'zeros'")


@dataclass(frozen=True)
class Finding:
    """Two values of a parameter that PyTorch tells apart."""

    path: str
    parameter: str
    how: str
    """What differs in PyTorch: "values", "raises", ..."""
    first: str
    second: str
    said: str = ""
    never: bool = False
    """Whether it has no effect here at all, in any call that was tried."""


def findings(target: Target, seed: str) -> Iterator[Finding]:
    """The parameters of a target that have too little effect, each once."""
    if target.path in AS_FOUND:
        return
    found: dict[str, Finding] = {}
    acting: set[str] = set()
    for base in bases(target, seed):
        for parameter in filter(may_be_ignored, base.signature):
            texts = tried(target.path, base, parameter)
            finding, acts = told_apart(target.path, parameter.name, texts)
            if acts:
                acting.add(parameter.name)
            if finding is not None:
                found.setdefault(parameter.name, finding)
    for name, finding in found.items():
        yield replace(finding, never=name not in acting)


def may_be_ignored(parameter: Parameter) -> bool:
    """Whether results may be right without it: not so the tensors that every call is about."""
    if parameter.kind == "out" or parameter.variadic:
        return False
    return not (parameter.required and parameter.kind in ("tensor", "tensors"))


def tried(path: str, base: Base, parameter: Parameter) -> list[str]:
    """The programs that give a parameter one value after the other."""
    values = candidates(path, parameter, base.context)
    return [base.text(parameter.name, value) for value in values]


def told_apart(path: str, name: str, texts: Iterable[str]) -> tuple[Finding | None, bool]:
    """The first two programs that differ in PyTorch and not here, and whether any differ here.

    The first is run twice: some warnings come once.
    """
    texts = list(texts)
    if path in OF_FULL_RANK:
        texts = [text for text in texts if not any(fill in text for fill in EQUAL)]
    if not texts:
        return None, False
    seen_there(texts[0])
    outcome(texts[0], flambeau, language=CallWords)
    looked_at = {text: seen_there(text) for text in texts}
    theirs = {text: seen for text, seen in looked_at.items() if seen is not None}
    if len({signature(seen) for seen in theirs.values()}) < 2:
        return None, False
    seen_here = {text: outcome(text, flambeau, language=CallWords) for text in theirs}
    ours = {text: signature(seen) for text, seen in seen_here.items()}
    acts = len(set(ours.values())) > 1
    taken = [text for text in theirs if not ended(seen_here[text]).error]
    for first, second in itertools.combinations(taken, 2):
        how = difference(theirs[first], theirs[second])
        if how and ours[first] == ours[second]:
            said = " / ".join(_said(theirs[text]) for text in (first, second))
            return Finding(path, name, how, first, second, said), acts
    return None, acts


def ended(seen: Outcome) -> Line:
    """The statement that failed, or the last one."""
    return next((line for line in seen.lines if line.error), seen.lines[-1])


def _said(seen: Outcome) -> str:
    last = ended(seen)
    return f"{last.error}: {last.said}"[:160] if last.error else repr(last.values.get("r"))[:160]


def difference(first: Outcome, second: Outcome) -> str:
    """What differs between two outcomes; "" if nothing does, or only the words of errors.

    That a value is of a wrong type is no answer to it: what looks at types when something fails is
    told in docs/compatibility.md.
    """
    one, other = ended(first), ended(second)
    if one.error and other.error:
        return ""
    if UNFIT in (one.said, other.said):
        return ""
    if one.error or other.error:
        return f"raises {one.error or other.error}"
    if warnings_of(first) != warnings_of(second):
        return "warnings"
    for name in sorted({*first.final, *second.final}):
        field = _field(first.final.get(name), second.final.get(name))
        if field:
            return f"{name}: {field}"
    return ""


UNFIT = "the arguments do not fit"
"""What a line says in place of the words of parsers; see `CallWords`."""


def warnings_of(seen: Outcome) -> Any:
    return data([line.warned for line in seen.lines])


def _field(first: Any, second: Any) -> str:
    """The first field in which two values differ; "" if they are the same but for rounding."""
    if data(first) == data(second):
        return ""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return "" if _close(first, second) else "values"
    if isinstance(first, (list, tuple)) and type(first) is type(second):
        pairs = zip(first, second, strict=False)
        found = (_field(a, b) for a, b in pairs)
        return next(filter(None, found), "" if len(first) == len(second) else "number of values")
    if type(first) is not type(second) or not hasattr(first, "__dict__"):
        return "value"
    named = zip(vars(first).items(), vars(second).values(), strict=True)
    return next((name for (name, a), b in named if _field(a, b)), "")


def _close(first: np.ndarray, second: np.ndarray) -> bool:
    if first.shape != second.shape or first.dtype.kind not in "fc":
        return False
    return np.allclose(first, second, rtol=1e-3, atol=1e-5, equal_nan=True)


def signature(seen: Outcome) -> Any:
    """An outcome as something to be compared, errors by their class."""
    return data([ended(seen).error, warnings_of(seen), seen.final])


def _numbers(array: np.ndarray) -> np.ndarray:
    """An array in which zeros and NaN have no signs."""
    if array.dtype.kind not in "fc":
        return array
    parts = np.array([array.real, array.imag])
    return np.where(np.isnan(parts), np.nan, parts + 0.0)


def data(value: Any) -> Any:
    """A value without objects: arrays by their bytes."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, _numbers(value).tobytes())
    if isinstance(value, dict):
        return tuple((key, data(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(data(item) for item in value)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return data(vars(value))
    return repr(value)
