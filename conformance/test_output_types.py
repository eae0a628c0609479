"""`out=` of every type for what reduces or scans, and numbers for `copy_`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import Raised, attempt, compare

TYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
FOLLOWING = ("sum", "nansum", "prod", "cumsum", "cumprod", "mean")
"""What computes in the type of `out`."""
EXACT = ("amax", "amin", "argmax", "softmax", "log_softmax", "logcumsumexp", "any")
NORMS = ("norm(x, 2, 0, out=o)", "linalg.vector_norm(x, 2, 0, out=o)", "quantile(x, 0.5, out=o)",
         "all(x + 2, 0, out=o)")  # fmt: skip


def values(t: Any, name: str) -> Any:
    """A few numbers in a type."""
    numbers = t.tensor([1.5, 2.75, 3.5, -0.625], dtype=t.float64)
    return numbers * (1 + 1j) if name == "complex128" else numbers.to(getattr(t, name))


def written(t: Any, text: str, source: str, target: str) -> Any:
    """What a call writes to an empty `out` of a type; of errors of missing kernels the class."""
    x, o = values(t, source), t.zeros(0, dtype=getattr(t, target))
    with warnings.catch_warnings():  # torch speaks of lost imaginary parts once in a process
        warnings.simplefilter("ignore")
        found = attempt(lambda: eval(f"t.{text}", {"t": t, "x": x, "o": o}))  # noqa: S307
    if isinstance(found, Raised) and "not implemented for" in found.text:
        return found.kind
    return found, o if not isinstance(found, Raised) else None


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("name", FOLLOWING)
def test_computed_in_the_type_of_out(name: str, target: str) -> None:
    for source in ("float64", "float32", "int64", "bool", "complex128"):
        if name == "nansum" and source == "complex128":
            continue
        compare(lambda t, s=source: written(t, f"{name}(x, 0, out=o)", s, target), rtol=2e-3)


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("name", FOLLOWING)
def test_type_that_was_asked_for(name: str, target: str) -> None:
    text = f"{name}(x, 0, dtype=t.float64, out=o)"
    for source in ("float64",) if name == "nansum" else ("float64", "int64"):
        compare(lambda t, s=source: written(t, text, s, target))


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("text", [*(f"{name}(x, 0, out=o)" for name in EXACT), *NORMS])
def test_only_one_type(text: str, target: str) -> None:
    compare(lambda t: written(t, text, "float64", target), rtol=2e-3)


def test_written_where_it_is() -> None:
    """`out` keeps its memory and strides where it has the shape already."""

    def scenario(t: Any) -> Any:
        base = t.zeros(4, 2, dtype=t.int32)
        out = base[:, 1]
        t.cumsum(values(t, "float64"), 0, out=out)
        return base, out.stride()

    compare(scenario)


STRICT = (
    "abs(x, out=o)", "nan_to_num(x, out=o)", "conj_physical(x, out=o)", "cross(x, x, out=o)",
    "linalg.cross(x, x, out=o)", "mv(x.expand(3, 3), x, out=o)", "tril(x.expand(3, 3), out=o)",
    "triu(x.expand(3, 3), out=o)", "diag(x, out=o)", "msort(x, out=o)", "nonzero(x, out=o)",
    "matmul(x.expand(3, 3), x, out=o)", "heaviside(x, x, out=o)",
)  # fmt: skip


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("text", STRICT)
def test_no_other_type(text: str, target: str) -> None:
    def scenario(t: Any, source: str) -> Any:
        x, o = values(t, source)[:3], t.zeros(0, dtype=getattr(t, target))
        names = {"t": t, "x": x, "o": o}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = attempt(lambda: eval(f"t.{text}", names))  # noqa: S307
        return "refused" if isinstance(found, Raised) else (found, o)

    for source in ("float32", "int64", "complex64", "bool"):
        compare(lambda t, s=source: scenario(t, s))


@pytest.mark.parametrize("target", TYPES)
def test_bits_of_no_other_type(target: str) -> None:
    def scenario(t: Any) -> Any:
        out = t.zeros(0, dtype=getattr(t, target))
        sources = (values(t, "int64"), values(t, "bool"))
        return [attempt(lambda x=source: t.bitwise_not(x, out=out)) for source in sources]

    compare(scenario)


NUMBERS = (3.0, 3, True, 3j, -1, 2.7, math.nan, 300, 2**40, 10**30, np.float64(2.5), np.int64(3))
OTHERS = ([1, 2], None, "a", np.ones(3))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_numbers_copied(name: str) -> None:
    def scenario(t: Any) -> Any:
        kind = getattr(t, name)
        return [
            attempt(lambda v=value: t.zeros(2, 3, dtype=kind).copy_(v))
            for value in (*NUMBERS, *OTHERS)
            if not (isinstance(value, float) and math.isnan(value) and "int" in name)
        ]

    compare(scenario, warned_once="Casting complex values")


def test_copied_number_and_history() -> None:
    def scenario(t: Any) -> Any:
        leaf = t.ones(3, requires_grad=True)
        result, part = leaf * 2, leaf * 2
        result.copy_(3.0)
        part[1:].copy_(4)
        (result + part).sum().backward()
        refused = [attempt(lambda v=value: leaf.copy_(v)) for value in (1.0, [1.0])]
        spread = attempt(lambda: t.ones(1).expand(3).copy_(2.0))
        names = result.grad_fn.name(), [n and n.name() for n, _ in result.grad_fn.next_functions]
        return leaf.grad, refused, spread, names, result._version

    compare(scenario)
